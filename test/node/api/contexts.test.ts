import test, { type Assert } from 'brittle'
import type { AgentTask } from '../../../src/ports/agent-runtime.js'
import type { ContextInfo } from '../../../src/ports/task-api.js'
import type { Reply } from '../../../src/ports/node-api.js'
import { TaskService } from '../../../src/node/gateway/task-service.js'
import { failsWith } from '../../support/fails.js'
import { agentDefinition, capability, FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { ALICE, request, says, taskOf } from '../../support/gateway.js'

/** Says how many messages it had before this one. */
const counts = (id: string): FakeAgent =>
  new FakeAgent(agentDefinition(id, { capabilities: [capability('count')] }), ({ conversation, input }) => {
    const { text } = input as { text?: string }
    if (text === 'ask')
      return { ok: true, result: { a2a: { state: 'input-required', message: 'Which?', taskId: 't7' } } }
    if (text === 'nothing') return { ok: true, result: null }
    if (text === 'fail') return { ok: false, code: 'TASK_FAILED', message: 'no luck' }
    return { ok: true, result: `${conversation?.history.length ?? 'no'} before ${text ?? ''}` }
  })

async function scene(t: Assert) {
  const world = new World(t)
  const made: { gateway?: TaskService } = {}
  const [near, far] = [counts('slow'), counts('far')]
  const owner = await world.owner({ agents: [near], contexts: () => made.gateway?.contexts ?? null })
  const member = await world.member('m', { agents: [far] })
  const gateway = new TaskService(owner.core)
  made.gateway = gateway
  await gateway.start()
  t.teardown(() => gateway.stop())
  await world.link(owner, member)
  const done = async <T>(work: Promise<T>): Promise<T> => {
    await world.settle()
    world.clock.advance(1)
    return await work
  }
  const call = (text: string, context: string, agent = 'slow', node: FakeNode = owner): Promise<Reply> =>
    done(node.api().call('message.call', { agent, capability: 'count', input: { text }, context }))
  const show = (id: string): Promise<ContextInfo> => owner.api().call('context.show', { id })
  return { world, owner, member, gateway, near, far, call, show, done }
}

const conversationOf = (agent: FakeAgent): AgentTask['conversation'] => agent.tasks.at(-1)?.conversation

test('calls of the operator in a context get its history, here and one hop away', async (t: Assert) => {
  const { call, show, far, near, owner } = await scene(t)
  for (const [name, agent] of [
    ['slow', near],
    ['far@m', far]
  ] as const) {
    const first = await call('1', 'new', name)
    const contextId = first.contextId ?? ''
    t.is(first.payload, '0 before 1')
    t.is((await call('2', contextId, name)).payload, '2 before 2')
    t.is((await call('fail', contextId.slice(0, 12), name)).contextId, contextId, 'a prefix is enough')
    t.is((await call('4', contextId, name)).payload, '6 before 4')
    const { history = [], caller, message } = conversationOf(agent) ?? {}
    t.alike(
      history.map(({ role, parts }) => `${role} ${parts[0]?.text}`),
      ['user 1', 'agent 0 before 1', 'user 2', 'agent 2 before 2', 'user fail', 'agent no luck (TASK_FAILED)']
    )
    t.alike([caller?.kind, message?.contextId, message?.parts], ['operator', contextId, [{ text: '4' }]])

    const { id, turns, more } = await show(contextId)
    t.alike([id, turns.length, more], [contextId, 8, false])
    t.alike(
      turns.slice(0, 6).map(({ role, caller: from, state, text }) => [role, from, state, text]),
      [
        ['user', 'operator', 'completed', '1'],
        ['agent', 'operator', 'completed', '0 before 1'],
        ['user', 'operator', 'completed', '2'],
        ['agent', 'operator', 'completed', '2 before 2'],
        ['user', 'operator', 'failed', 'fail'],
        ['agent', 'operator', 'failed', 'no luck (TASK_FAILED)']
      ]
    )
    t.is(turns[0]?.taskId, first.taskId)
    t.is((await owner.api().call('tasks.show', { id: first.taskId ?? '' })).state, 'completed')
  }
  const { contexts } = await owner.api().call('context.list', {})
  t.is(contexts.length, 2)
})

test('the operator continues the context of a client, which sees none of it; another agent has no part of the history', async (t: Assert) => {
  const { call, show, gateway, done } = await scene(t)
  const asked = await done(gateway.send(ALICE, request(says('hello', { contextId: 'my talk' }), { wait: true })))
  t.is(taskOf(asked).artifacts[0]?.parts[0]?.text, '0 before hello')
  t.is((await call('and', 'my talk')).payload, '2 before and')
  t.is((await call('other', 'my talk', 'far@m')).payload, '0 before other')
  const again = await done(gateway.send(ALICE, request(says('back', { contextId: 'my talk' }), { wait: true })))
  t.is(taskOf(again).artifacts[0]?.parts[0]?.text, '2 before back')
  t.is((await call('end', 'my talk')).payload, '6 before end')
  const { turns } = await show('my talk')
  t.alike(
    turns.filter(({ role }) => role === 'user').map(({ caller, text }) => `${caller}: ${text}`),
    ['token tok_a: hello', 'operator: and', 'operator: other', 'token tok_a: back', 'operator: end']
  )
})

test('the answer to a question goes with the ids of its agent', async (t: Assert) => {
  const { call, near } = await scene(t)
  const { contextId = '', payload } = await call('ask', 'new')
  t.alike(payload, { a2a: { state: 'input-required', message: 'Which?', taskId: 't7' } })
  await call('this', contextId)
  t.alike(conversationOf(near)?.thread, { taskId: 't7' })
  await call('more', contextId)
  t.absent(conversationOf(near)?.thread)
})

test('ids that a client puts in its own message are no ids of the agent', async (t: Assert) => {
  const { call, near, gateway, done } = await scene(t)
  const metadata = { thread: { taskId: 'of another' } }
  await done(gateway.send(ALICE, request(says('nothing', { contextId: 'my talk', metadata }), { wait: true })))
  await call('and', 'my talk')
  t.is(conversationOf(near)?.history.length, 1, 'the message of the client is the newest')
  t.absent(conversationOf(near)?.thread)
})

test('contexts of all callers are for the operator; an unknown one and a node without a gateway are named', async (t: Assert) => {
  const { call, show, owner, world, member } = await scene(t)
  const { contextId = '' } = await call('1', 'new')
  const input = { agent: 'slow', capability: 'count', input: {}, context: contextId }
  const token = owner.api({ kind: 'token' })
  await failsWith(t, 'FORBIDDEN', () => token.call('context.show', { id: contextId }))
  await failsWith(t, 'FORBIDDEN', () => token.call('context.list', {}))
  await failsWith(t, 'FORBIDDEN', () => token.call('message.call', input))
  await failsWith(t, 'TASK_NOT_FOUND', () => show('ctx_nothing'))
  await failsWith(t, 'TASK_NOT_FOUND', () => owner.api().call('message.call', { ...input, context: 'ctx_nothing' }))
  await failsWith(t, 'TASK_NOT_FOUND', () => show('ctx_'))
  await failsWith(t, 'CONFLICT', () => member.api().call('context.list', {}))
  await world.settle()
})

test('a long context shows its newest messages within bounds, and says that it has more', async (t: Assert) => {
  const { call, show } = await scene(t)
  const { contextId = '' } = await call('x'.repeat(20_000), 'new')
  for (let turn = 0; turn < 40; turn++) await call(`turn ${turn}`, contextId)
  const { turns, more } = await show(contextId)
  t.alike([turns.length, more, turns.at(-2)?.text], [64, true, 'turn 39'])
  t.ok(turns.every(({ text }) => text.length <= 8192))
})
