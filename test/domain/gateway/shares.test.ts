import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { letGo } from '../../../src/domain/gateway/shares.js'
import { RESTING_STATES } from '../../../src/domain/gateway/task.js'
import { holds } from '../../support/holds.js'

const task = fc.record({
  owner: fc.constantFrom('a', 'b', 'c'),
  state: fc.constantFrom('completed' as const, 'working' as const, 'input-required' as const),
  updatedAt: fc.nat(20)
})
const tasks = fc.array(task, { maxLength: 40 }).map((all) => all.map((one, i) => ({ ...one, id: `t${i}` })))

test('a caller whose task is dropped for a new one never loses more than it has, and none with fewer tasks than the newcomer loses one', async (t: Assert) => {
  const property = fc.property(tasks, fc.nat(45), fc.constantFrom('a', 'b', 'new', null), (all, count, newcomer) => {
    const gone = letGo(all, count, newcomer)
    const sizes = new Map<string, number>()
    for (const { owner } of all) sizes.set(owner, (sizes.get(owner) ?? 0) + 1)
    const left = new Set(all)
    for (const one of gone) {
      const own = sizes.get(one.owner) ?? 0
      const isFair = newcomer === null || one.owner === newcomer || own >= (sizes.get(newcomer) ?? 0)
      const isLargest = [...sizes].every(
        ([owner, size]) => size <= own || ![...left].some((it) => it.owner === owner && RESTING_STATES.has(it.state))
      )
      const isOldest = [...left].every(
        (it) => it.owner !== one.owner || !RESTING_STATES.has(it.state) || it.updatedAt >= one.updatedAt
      )
      if (!isFair || !isLargest || !isOldest || !RESTING_STATES.has(one.state) || !left.delete(one)) return false
      sizes.set(one.owner, own - 1)
    }
    const mayLose = [...left].some(
      ({ owner, state }) =>
        RESTING_STATES.has(state) && (newcomer === null || (sizes.get(owner) ?? 0) >= (sizes.get(newcomer) ?? 0))
    )
    return gone.length === Math.min(count, gone.length) && (gone.length >= count || !mayLose)
  })
  await holds(t, property, 500)
})

test('a token that begins too many tasks drops its own, and the resting tasks of others stay', (t: Assert) => {
  const rests = (owner: string, count: number, updatedAt: number) =>
    Array.from({ length: count }, (_, i) => ({
      owner,
      state: 'completed' as const,
      updatedAt: updatedAt + i,
      id: `${owner}${i}`
    }))
  const all = [...rests('quiet', 3, 0), ...rests('greedy', 10, 100)]
  t.alike(
    letGo(all, 4, 'greedy').map(({ id }) => id),
    ['greedy0', 'greedy1', 'greedy2', 'greedy3']
  )
  const busy = [
    ...rests('quiet', 3, 0),
    ...rests('greedy', 10, 100).map((one) => ({ ...one, state: 'working' as const }))
  ]
  t.alike(letGo(busy, 4, 'greedy'), [], 'rather refused than at the cost of others')
})
