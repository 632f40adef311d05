import fc from 'fast-check'
import test, { type Assert } from 'brittle'
import type { GatewayState, GatewayTask } from '../../../src/domain/gateway/task.js'
import { RESTING_STATES } from '../../../src/domain/gateway/task.js'
import { TaskIndex } from '../../../src/node/gateway/task-index.js'

/** A task of a member, or of a client that is none. */
function task(at: number, isOfMember: boolean): GatewayTask {
  const id = `task_${at}`
  const owner = isOfMember ? `peer:node_${at % 3}` : 'token:tok_a'
  const run = { requestId: `req_${at}`, taskId: id }
  const what = { agent: 'a@b', capability: 'c', by: { maxTier: 1, sandboxId: null }, message: null } as const
  return {
    ...what,
    ...{
      id,
      contextId: 'ctx',
      owner,
      messageId: `msg_${at}`,
      state: 'submitted',
      since: 1,
      createdAt: 1,
      updatedAt: 1,
      generation: 0,
      run
    }
  }
}

/** All that any of the tasks is ever done by. */
const REQUESTS = Array.from({ length: 10 }, (_, at) => [
  `req_${at}`,
  `req_${at}_0`,
  `req_${at}_1`,
  `req_${at}_2`
]).flat()
const STATES = ['submitted', 'working', 'input-required', 'completed'] as const satisfies readonly GatewayState[]
const step = fc.oneof(
  fc.record({ type: fc.constant('begin' as const), at: fc.nat(9), isOfMember: fc.boolean() }),
  fc.record({ type: fc.constant('not begun' as const), at: fc.nat(9) }),
  fc.record({
    type: fc.constant('durable' as const),
    at: fc.nat(9),
    state: fc.constantFrom(...STATES),
    turn: fc.nat(2)
  }),
  fc.record({ type: fc.constant('remove' as const), at: fc.nat(9) })
)

test('the member that a request is made for is known from the beginning of its task on, as long as that is under way, and not longer', (t: Assert) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const index = new TaskIndex()
      const [beginning, durable] = [new Map<number, GatewayTask>(), new Map<number, GatewayTask>()]
      for (const one of steps) {
        const { at } = one
        const [fresh, known] = [beginning.get(at), durable.get(at)]
        if (one.type === 'begin' && fresh === undefined && known === undefined) {
          beginning.set(at, task(at, one.isOfMember))
          index.begin(task(at, one.isOfMember))
        } else if (one.type === 'not begun' && fresh !== undefined) {
          beginning.delete(at)
          index.notBegun(fresh)
        } else if (one.type === 'durable' && (fresh ?? known) !== undefined) {
          const before = (fresh ?? known) as GatewayTask
          const run = one.state === 'completed' ? null : { requestId: `req_${at}_${one.turn}`, taskId: before.id }
          const after = { ...before, state: one.state, run }
          beginning.delete(at)
          durable.set(at, after)
          if (fresh === undefined) index.put(after)
          else index.add(after)
        } else if (one.type === 'remove' && known !== undefined) {
          durable.delete(at)
          index.remove(known)
        }
        const expected = new Map<string, string>()
        for (const { run, owner, state } of [...beginning.values(), ...durable.values()])
          if (run !== null && owner.startsWith('peer:') && !RESTING_STATES.has(state))
            expected.set(run.requestId, owner.slice(5))
        if (REQUESTS.some((id) => index.memberBehind(id) !== (expected.get(id) ?? null))) return false
      }
      return true
    }),
    { numRuns: 200 }
  )
  t.pass('200 sequences of steps')
})
