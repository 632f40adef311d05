import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import type { Tier } from '../../../src/domain/routing/tier.js'
import type { DirectAnswers, DirectQuestion, DirectWork } from '../../../src/node/gateway/direct-answer.js'
import { TaskService } from '../../../src/node/gateway/task-service.js'
import type { Message } from '../../../src/domain/gateway/message.js'
import type { AgentTask } from '../../../src/ports/agent-runtime.js'
import type { HereRun } from '../../../src/node/requests/callee/in-flight.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { agentDefinition, capability, echo, FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { failsWith } from '../../support/fails.js'
import { holds } from '../../support/holds.js'

const ALICE: Principal = {
  kind: 'token',
  name: 'token alice',
  id: 'tok_a',
  tier: 0,
  sandboxId: null,
  scopes: ['read', 'send']
}

let made = 0
type Asking = DirectQuestion & DirectWork
const begin = (direct: DirectAnswers, asked: Asking): HereRun | null => {
  const way = direct.path(asked)
  return way === null ? null : direct.begin(way, asked)
}
const asking = (node: FakeNode, agentId: string, more: Partial<Asking> = {}): Asking => ({
  target: { agentId, nodeId: node.id },
  capability: `${agentId}.do`,
  by: { maxTier: 0, sandboxId: null },
  input: { n: 1 },
  names: { requestId: `req_${++made}`, taskId: `task_${made}` },
  ...more
})

const tier = fc.integer({ min: 0, max: 3 }).map((number) => number as Tier)
const sandbox = fc.constantFrom(null, 'one', 'two')

test('a direct run does the same as a request, for any caller, agent and policy', async (t: Assert) => {
  await holds(
    t,
    fc.asyncProperty(
      fc.record({
        by: fc.record(
          { maxTier: tier, sandboxId: sandbox, capabilities: fc.constantFrom(['one.do'], ['other.do'], []) },
          { requiredKeys: ['maxTier', 'sandboxId'] }
        ),
        agent: fc.record({ tier, sandboxId: sandbox }),
        sideEffect: fc.constantFrom('none', 'read', 'write', 'exec'),
        idempotent: fc.boolean(),
        decision: fc.constantFrom(null, 'allow', 'deny', 'ask')
      }),
      async ({ by, agent, sideEffect, idempotent, decision }) => {
        const world = new World(t)
        const one = echo('one', { ...agent, capabilities: [capability('one.do', { sideEffect, idempotent })] })
        const policy = decision === null ? '' : `rules:\n  - capability: one.*\n    decision: ${decision}\n`
        const node = await world.owner({ agents: [one], policy })
        const { requests, direct } = node.core
        const sender = { agentId: 'operator', nodeId: node.id }
        const asked = asking(node, 'one', { by })
        const hasWay = direct.path(asked) !== null
        const run = begin(direct, asked)
        const isBegun = run !== null && (await run.outcome).ok
        const runs = one.tasks.length
        const { justification: _none, ...what } = asked
        const sent = requests.ask({
          ...what,
          sender,
          onBehalfOf: by,
          description: '',
          timeoutMs: 1000,
          mayQueue: false
        })
        const request = sent.then(({ answer }) => answer).catch(() => null)
        await world.settle()
        const isLet = one.tasks.length > runs
        // While a person may decide, the timeout of the request stands still.
        if (decision === 'ask') await world.pass(310_000, 10_000)
        else await world.pass(2000)
        await request
        return hasWay === isBegun && isBegun === (isLet && idempotent) && runs === (isBegun ? 1 : 0)
      }
    ),
    150
  )
})

test('a direct run is counted, timed and on record as a request is, and no ledger stores it', async (t: Assert) => {
  const world = new World(t)
  const node = await world.owner({ agents: [echo('one', { tier: 2 })] })
  const before = (await node.ledger.list({ from: 'a', to: 'z', limit: 100 })).length
  t.ok(node.core.direct.path(asking(node, 'one')), 'a way that is not gone is no decision')
  const run = begin(node.core.direct, asking(node, 'one'))
  t.alike(await run?.outcome, { ok: true, result: { n: 1 } })
  t.is((await node.ledger.list({ from: 'a', to: 'z', limit: 100 })).length, before)
  const { counters } = node.core.deps.telemetry.snapshot()
  for (const name of ['messages_sent', 'messages_received', 'messages_delivered'] as const)
    t.is(counters.find((one) => one.name === name && one.label === 'request')?.value, 1, name)
  t.is(counters.find((one) => one.name === 'routing_decisions' && one.label === 'allowed')?.value, 1)
  t.is(node.audit.of('cross-tier').length, 1)
  t.alike(
    node.core.tasks.list().map(({ id, state, role }) => [id, state, role]),
    [[`task_${made}`, 'completed', 'callee']]
  )
})

test('an agent that has no free place, or answers in person, is asked by a request', async (t: Assert) => {
  const world = new World(t)
  const slow = new FakeAgent(agentDefinition('slow'))
  const node = await world.owner({ agents: [slow] })
  const first = begin(node.core.direct, asking(node, 'slow'))
  t.ok(first)
  t.is(begin(node.core.direct, asking(node, 'slow')), null)
  await world.settle()
  t.is(node.core.executor.counts().running, 1)
  t.ok(node.core.executor.cancelTask(`task_${made - 1}`))
  t.is((await first?.outcome)?.ok, false)
  t.ok(node.core.direct.path(asking(node, 'slow')))
  await node.core.attach({ id: 'person', onMessage: () => {} })
  t.absent(node.core.direct.path(asking(node, 'person')))
})

test('a read-only run is stopped when no caller waits for it any more, and when its time is over', async (t: Assert) => {
  const world = new World(t)
  const slow = new FakeAgent(agentDefinition('slow', { capabilities: [capability('slow.do', { sideEffect: 'read' })] }))
  const node = await world.owner({ agents: [slow] })
  const gateway = new TaskService(node.core)
  await gateway.start()
  t.teardown(() => gateway.stop())
  const ends = new AbortController()
  const read = async (messageId: string, signal?: AbortSignal) => {
    const message = { messageId, role: 'user' as const, parts: [{ text: 'hi' }] }
    const how = { agent: 'slow', skill: null, mayAnswer: true, wait: true }
    return await gateway.send(ALICE, { message, ...how, ...(signal === undefined ? {} : { signal }) })
  }
  const gone = failsWith(t, 'CANCELED', () => read('m1', ends.signal))
  await world.settle()
  t.is(slow.open.length, 1)
  ends.abort()
  await gone
  t.is(slow.open.length, 0)
  const late = failsWith(t, 'TIMEOUT', () => read('m2'))
  await world.settle()
  await world.pass(node.core.deps.settings.requestTimeoutMs)
  await late
  t.is(slow.open.length, 0)
})

test('an agent that only reads and rejects its task gives a rejected task, not a failed call', async (t: Assert) => {
  const agent = new FakeAgent(
    agentDefinition('looks', { capabilities: [capability('looks.do', { sideEffect: 'read' })] }),
    () => ({
      ok: true,
      result: { a2a: { state: 'TASK_STATE_REJECTED', message: { why: 'closed' } } }
    })
  )
  const world = new World(t)
  const node = await world.owner({ agents: [agent] })
  const gateway = new TaskService(node.core)
  await gateway.start()
  t.teardown(() => gateway.stop())
  const message = { messageId: 'm1', role: 'user' as const, parts: [{ text: 'hi' }] }
  const asked = gateway.send(ALICE, { message, agent: 'looks', skill: null, mayAnswer: true, wait: true })
  await world.settle()
  const reply = await asked
  const task = reply.kind === 'task' ? reply.snapshot.task : null
  t.alike(
    [task?.state, task?.message?.parts],
    ['rejected', [{ data: { why: 'closed' }, mediaType: 'application/json' }]]
  )
})

test('a weaker token asks a stronger agent with a justification in the metadata of its message, and the error says so', async (t: Assert) => {
  const reads = capability('look.up', { sideEffect: 'read' })
  const world = new World(t)
  const node = await world.owner({
    agents: [echo('strong', { tier: 0 }), echo('look', { tier: 0, capabilities: [reads] })]
  })
  const gateway = new TaskService(node.core)
  await gateway.start()
  t.teardown(() => gateway.stop())
  const weak: Principal = { ...ALICE, tier: 2 }
  const ask = async (agent: string, metadata: Record<string, unknown> = {}) => {
    const message = { messageId: `m${++made}`, role: 'user' as const, parts: [{ text: 'hi' }], metadata }
    const isRead = agent === 'look'
    const reply = await gateway.send(weak, { message, agent, skill: null, mayAnswer: isRead, wait: isRead })
    await world.settle()
    return reply.kind === 'message' ? 'message' : (await gateway.get(weak, reply.snapshot.task.id)).task
  }
  const refused = await ask('strong')
  t.is(refused === 'message' ? '' : refused.state, 'rejected')
  t.ok(JSON.stringify(refused).includes('metadata.justification'))
  t.ok((await failsWith(t, 'ESCALATION_REQUIRED', () => ask('look')))?.message.includes('metadata.justification'))
  const why = { justification: 'the report is due' }
  const taken = await ask('strong', why)
  t.is(taken === 'message' ? '' : taken.state, 'completed')
  t.is(await ask('look', why), 'message')
})

test('a program gets a copy of its conversation as a member of its task', async (t: Assert) => {
  const world = new World(t)
  const node = await world.owner({})
  const tasks: AgentTask[] = []
  const run = (task: AgentTask): number => tasks.push(task)
  await node.core.attach({ id: 'bot', capabilities: [capability('bot.do', { sideEffect: 'none' })], run })
  const message: Message = { messageId: 'm', role: 'user', parts: [{ text: 'hi' }] }
  const caller = { kind: 'token', id: 'tok_a' }
  const conversation = { contextId: 'c', taskId: 't', message, history: [message], isCut: false, caller }
  await begin(node.core.direct, asking(node, 'bot', { conversation, justification: 'why' }))?.outcome
  await begin(node.core.direct, asking(node, 'bot'))?.outcome
  const [turn, plain] = tasks
  const given = { ...conversation, caller: { ...caller, node: node.id } }
  t.alike({ ...turn }.conversation, given)
  t.alike(JSON.parse(JSON.stringify(turn)), { ...turn })
  t.alike([turn?.input, turn?.peer, turn?.justification, turn?.attempt], [{ n: 1 }, node.id, 'why', 1])
  Object.assign(turn?.conversation?.message.parts[0] ?? {}, { text: 'changed' })
  t.is(turn?.conversation?.message.parts[0]?.text, 'changed')
  t.alike(message.parts, [{ text: 'hi' }])
  t.absent('conversation' in (plain ?? {}))
})
