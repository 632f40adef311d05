import { ManualClock } from '../../support/manual-clock.js'
import test, { type Assert } from 'brittle'
import { beginTask } from '../../../src/adapters/a2a/server/operations.js'
import { memberPrincipal } from '../../../src/node/gateway/resolve-agent.js'
import type { AgentOutcome } from '../../../src/ports/agent-runtime.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { failsWith } from '../../support/fails.js'
import { agentDefinition, echo, FakeAgent } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { ALICE, gatewayOf, taskOf } from '../../support/gateway.js'

const ASKED = { skill: null, mayAnswer: false, wait: false } as const

test('an id alone is the agent of this node, where other nodes have one of that id as well', async (t: Assert) => {
  const world = new World(t)
  const twins = [new FakeAgent(agentDefinition('slow')), new FakeAgent(agentDefinition('slow'))] as const
  const owner = await world.owner({ agents: [twins[0]] })
  const peer = await world.member('peer', { agents: [twins[1]] })
  await world.link(owner, peer)
  const gateway = await gatewayOf(t, owner)
  for (const agent of ['slow', 'slow@peer']) {
    await gateway.send(ALICE, {
      ...ASKED,
      agent,
      message: { messageId: agent, role: 'user', parts: [{ text: agent }] }
    })
    await world.settle()
  }
  t.alike(
    twins.map(({ tasks }) => tasks.map(({ input }) => input)),
    [[{ text: 'slow' }], [{ text: 'slow@peer' }]]
  )
  const { tasks } = await gateway.list(ALICE, { agentName: 'slow' }, { after: null, limit: 5, isWhole: true })
  t.alike(
    tasks.map(({ history }) => history[0]?.parts),
    [[{ text: 'slow' }]]
  )
})

test('only the whole name on its card means an agent, and is found at once; the suggestion names it', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner({ agents: [echo('helper'), echo('help.desk')] })
  const peer = await world.member('peer', { agents: [echo('tester')] })
  await world.link(owner, peer)
  const named = (name: string) => owner.core.resolver.agent(ALICE, name)
  for (const name of ['helper', `helper@${owner.name}`, `helper@${owner.id}`])
    t.alike(named(name), { agentId: 'helper', nodeId: owner.id }, name)
  for (const name of ['tester@peer', `tester@${peer.id}`])
    t.alike(named(name), { agentId: 'tester', nodeId: peer.id }, name)
  const none: readonly (readonly [string, string])[] = [
    ['helpe', `helper@${owner.name}`],
    ['help', `help.desk@${owner.name}`],
    ['tester', 'tester@peer'],
    ['test', 'tester@peer'],
    ['test@peer', 'tester@peer'],
    [`tester@${peer.id.slice(0, 8)}`, 'tester@peer'],
    [`helper@${owner.id.slice(0, 8)}`, `helper@${owner.name}`],
    ['nobody', ''],
    ['', ''],
    ['@peer', ''],
    ['tester@', ''],
    ['operator', ''],
    ['oper', '']
  ]
  for (const [name, meant] of none) {
    const error = await failsWith(t, 'AGENT_NOT_FOUND', async () => await world.settle().then(() => named(name)))
    t.ok(error.message.includes(meant), `${name}: ${error.message}`)
  }
})

test('no caller of the gateway finds an agent that works for the operator alone, by name or by skill', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner({ agents: [] })
  const capability = { id: 'any.do', name: 'Any', description: '', inputSchema: {}, outputSchema: {} }
  await owner.core.attach({ id: 'own', isReserved: true, capabilities: [capability], run: () => t.fail('it ran') })
  const gateway = await gatewayOf(t, owner)
  const message = { messageId: 'm', role: 'user', parts: [{ text: 'x' }] } as const
  const client: Principal = { ...ALICE, kind: 'client', name: 'client c', id: 'c' }
  const peer: Principal = { ...ALICE, kind: 'peer', name: 'b', id: owner.id }
  for (const by of [ALICE, client, peer]) {
    for (const agent of ['own', 'own@owner', `own@${owner.id}`]) {
      const error = await failsWith(t, 'AGENT_NOT_FOUND', () => gateway.send(by, { ...ASKED, agent, message }))
      t.absent(error.message.includes('did you mean'), error.message)
    }
    await failsWith(t, 'CAPABILITY_NOT_FOUND', () =>
      gateway.send(by, { ...ASKED, agent: null, skill: 'any.do', message })
    )
  }
})

test('a message without agent and skill names no agent to a caller that does not see the only one', async (t: Assert) => {
  const world = new World(t)
  const answer = (): AgentOutcome => ({ ok: true, result: 'done' })
  const owner = await world.owner({ agents: [new FakeAgent(agentDefinition('hidden', { sandboxId: 'box' }), answer)] })
  const gateway = await gatewayOf(t, owner)
  const asked = { ...ASKED, agent: null, skill: null }
  const send = (by: Principal, messageId: string): Promise<unknown> =>
    gateway.send(by, { ...asked, message: { messageId, role: 'user', parts: [{ text: 'x' }] } })
  await t.execution(send(ALICE, 'seen'))
  const client: Principal = { ...ALICE, kind: 'client', id: 'c', sandboxId: 'other' }
  const { message } = await failsWith(t, 'INVALID_INPUT', () => send(client, 'unseen'))
  t.absent(message.includes('hidden'), message)
})

test('an agent of another node without a known card is looked up by its whole name', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner({ agents: [] })
  const peer = await world.member('peer', { agents: [echo('tester')] })
  await world.link(owner, peer)
  owner.core.registry.unregister(`tester@${peer.id}`)
  const found = owner.core.resolver.agent(ALICE, 'tester@peer')
  t.ok(found instanceof Promise)
  await world.settle()
  t.alike(await found, { agentId: 'tester', nodeId: peer.id })
})

test('a message to a task may name its skill, and no other one', async (t: Assert) => {
  const world = new World(t)
  const slow = new FakeAgent(agentDefinition('slow'))
  const owner = await world.owner({ agents: [slow, echo('quick')] })
  const gateway = await gatewayOf(t, owner)
  const said = (messageId: string) => ({ messageId, role: 'user', parts: [{ text: 'x' }] }) as const
  const reply = await gateway.send(ALICE, { ...ASKED, agent: 'slow', message: said('a') })
  await world.settle()
  slow.finish({ a2a: { state: 'input-required', message: 'Which?' } })
  await world.settle()
  const answer = { ...said('b'), taskId: reply.kind === 'task' ? reply.snapshot.task.id : '' }
  const wrong = () => gateway.send(ALICE, { ...ASKED, agent: 'slow', skill: 'slow.other', message: answer })
  const error = await failsWith(t, 'INVALID_INPUT', wrong)
  t.ok(error.message.startsWith('metadata.skillId: the task is of the skill slow.do'))
  const by = { gateway, by: ALICE, agent: null, signal: new AbortController().signal }
  const go = (skill: string) => beginTask(by, { message: answer, skill }, { wait: false, mayAnswer: false })
  await t.exception(() => go('quick/slow.do'), /metadata\.skillId: is of another agent/)
  await go('slow/slow.do')
  await world.settle()
  t.is(slow.tasks.length, 2)
})

test('a member asks a more powerful agent with a justification in its message, first and in each further turn', async (t: Assert) => {
  const world = new World(t)
  const question = { a2a: { state: 'input-required', message: 'Which one?' } }
  const agent = new FakeAgent(agentDefinition('strong', { tier: 0 }), () => ({ ok: true, result: question }))
  const owner = await world.owner({ agents: [agent] })
  const peer = await world.member('peer', { terms: { tier: 2 } })
  await world.link(owner, peer)
  const gateway = await gatewayOf(t, owner)
  const by = memberPrincipal({ directory: owner.core.directory, clock: new ManualClock() }, peer.id, {})
  const send = (messageId: string, more: object, taskId?: string) =>
    gateway.send(by, {
      ...ASKED,
      agent: 'strong',
      message: { messageId, role: 'user', parts: [{ text: 'x' }], ...more, ...(taskId === undefined ? {} : { taskId }) }
    })
  const missing = await failsWith(t, 'ESCALATION_REQUIRED', () => send('1', {}))
  t.ok(missing.message.includes('justification'), missing.message)
  for (const justification of ['', ' ', 7, null, 'x'.repeat(2000)])
    await failsWith(t, 'ESCALATION_REQUIRED', () =>
      send(`no ${String(justification).slice(0, 9)}`, { metadata: { justification } })
    )
  const why = { metadata: { justification: 'the report is due' } }
  const begun = await send('2', why)
  await world.settle()
  const { id } = taskOf(begun).task
  t.is(agent.tasks.length, 1)
  await failsWith(t, 'ESCALATION_REQUIRED', () => send('3', {}, id))
  await send('4', why, id)
  await world.settle()
  t.is(agent.tasks.length, 2)
})
