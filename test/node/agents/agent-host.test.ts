import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { createSchemaCompiler } from '../../../src/adapters/agents/schemas/compile-schema.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { Abort } from '../../../src/kit/abort.js'
import { AgentHost, type HostOutcome } from '../../../src/node/agents/agent-host.js'
import type { HostedAgent } from '../../../src/ports/agent-runtime.js'
import { failsWith } from '../../support/fails.js'
import { capability, agentDefinition, echo, FakeAgent, FakeSource } from '../../support/fake-agents.js'
import { holds } from '../../support/holds.js'
import { ManualClock } from '../../support/manual-clock.js'

interface Hosted {
  readonly host: AgentHost
  readonly source: FakeSource
  readonly clock: ManualClock
  /** How often the set changed. */
  changes(): number
  /** Gives an agent a task; the input is the number. */
  give(agentId: string, input?: unknown, options?: { signal?: Abort; capability?: string }): Promise<HostOutcome>
}

async function hosted(t: Assert, agents: readonly HostedAgent[]): Promise<Hosted> {
  const clock = new ManualClock()
  const source = new FakeSource(agents)
  const telemetry = new MemoryTelemetry({ clock, level: null, format: 'text', write: () => {} })
  const host = new AgentHost({ source, clock, telemetry, compileSchema: createSchemaCompiler() })
  let changes = 0
  let last = 0
  await host.start(() => Promise.resolve(void changes++))
  t.teardown(() => host.close())
  return {
    host,
    source,
    clock,
    changes: () => changes,
    give: (agentId, input = null, options = {}) =>
      host.run(
        agentId,
        {
          taskId: 't',
          requestId: `r${++last}`,
          attempt: 1,
          capability: options.capability ?? `${agentId}.do`,
          description: '',
          swarm: null,
          input
        },
        { signal: options.signal ?? new Abort(), onStart: () => Promise.resolve(), onProgress: () => {} }
      )
  }
}

async function turns(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
}

test('an agent does its tasks one after the other, in the order they came, for any cancellations between', async (t) => {
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 3 }),
    fc.array(fc.record({ cancel: fc.boolean() }), { minLength: 1, maxLength: 15 }),
    async (concurrency, given) => {
      const agent = new FakeAgent(agentDefinition('a', { concurrency }))
      const { give, host } = await hosted(t, [agent])
      const aborts = given.map(() => new Abort())
      const outcomes = given.map((_, index) => give('a', index, { signal: aborts[index] }))
      await turns()
      // Those that wait are canceled; what has begun goes on.
      for (const [index, { cancel }] of given.entries()) if (cancel && index >= concurrency) aborts[index].abort()
      await turns()
      while (agent.open.length > 0) {
        agent.finish()
        await turns()
      }
      const kept = given.flatMap(({ cancel }, index) => (cancel && index >= concurrency ? [] : [index]))
      assert.deepEqual(
        agent.tasks.map((task) => task.input),
        kept
      )
      assert.ok(agent.mostAtOnce <= concurrency)
      const settled = await Promise.all(outcomes)
      assert.deepEqual(
        settled.map((one) => (one.ok ? 'ok' : one.code)),
        given.map((_, index) => (kept.includes(index) ? 'ok' : 'CANCELED'))
      )
      assert.deepEqual(host.load('a'), { running: 0, waiting: 0, slots: concurrency })
    }
  )
  await holds(t, property, 150)
})

test('a new version takes over the queue; active runs end with the old one', async (t) => {
  const [old, young] = [new FakeAgent(agentDefinition('a')), new FakeAgent(agentDefinition('a', { version: '2.0.0' }))]
  const { give, host, source } = await hosted(t, [old])
  const outcomes = [give('a', 1), give('a', 2), give('a', 3)]
  await turns()
  source.set([young])
  t.alike(host.load('a'), { running: 1, waiting: 2, slots: 1 })
  await turns()
  t.is(young.tasks.length, 0, 'still strictly serial')
  old.finish('by the old one')
  await turns()
  young.finish('by the new one')
  await turns()
  young.finish('by the new one')
  t.alike(
    (await Promise.all(outcomes)).map((one) => (one.ok ? one.result : one.code)),
    ['by the old one', 'by the new one', 'by the new one']
  )
})

test('a new version with more places begins more of the waiting tasks', async (t) => {
  const old = new FakeAgent(agentDefinition('a'))
  const young = new FakeAgent(agentDefinition('a', { concurrency: 3 }))
  const { give, source } = await hosted(t, [old])
  for (const input of [1, 2, 3, 4]) void give('a', input)
  await turns()
  source.set([young])
  await turns()
  t.is(old.open.length + young.open.length, 3)
})

test('tasks that wait for a removed agent fail at once with the reason; active runs still count', async (t) => {
  const agent = new FakeAgent(agentDefinition('a'))
  const { give, host, source } = await hosted(t, [agent, echo('b')])
  const [running, waiting] = [give('a', 1), give('a', 2)]
  await turns()
  source.set([echo('b')])
  const outcome = await waiting
  t.is(outcome.ok ? '' : outcome.code, 'AGENT_NOT_FOUND')
  agent.finish('late but good')
  t.alike(await running, { ok: true, result: 'late but good' })
  t.is(agent.tasks.length, 1)
  t.absent(host.has('a'))
  const none = await give('a')
  t.is(none.ok ? '' : none.code, 'AGENT_NOT_FOUND')
})

test('an agent that is removed and comes back stays serial: earlier runs end first', async (t) => {
  const [first, second] = [new FakeAgent(agentDefinition('a')), new FakeAgent(agentDefinition('a'))]
  const { give, host, source } = await hosted(t, [first])
  const old = give('a', 1)
  await turns()
  for (let i = 0; i < 2; i++) {
    source.set([])
    source.set([second])
  }
  const fresh = give('a', 2)
  await turns()
  t.alike(host.load('a'), { running: 1, waiting: 1, slots: 1 })
  t.is(second.tasks.length, 0)
  first.finish('old')
  t.alike(await old, { ok: true, result: 'old' })
  await turns()
  second.finish('fresh')
  t.alike(await fresh, { ok: true, result: 'fresh' })
  t.alike(host.load('a'), { running: 0, waiting: 0, slots: 1 })
})

test('an agent that comes back after its runs have ended begins at once', async (t) => {
  const [first, second] = [new FakeAgent(agentDefinition('a')), echo('a', { concurrency: 2 })]
  const { give, host, source } = await hosted(t, [first])
  const old = give('a', 1)
  await turns()
  source.set([])
  first.finish()
  await old
  source.set([second])
  t.alike(host.load('a'), { running: 0, waiting: 0, slots: 2 })
  t.alike(await give('a', 2), { ok: true, result: 2 })
})

test('an agent that is removed while a task gets its turn does not begin it', async (t) => {
  const agent = new FakeAgent(agentDefinition('a'))
  const { give, host, source } = await hosted(t, [agent])
  const [, outcome] = [give('a', 1), give('a', 2)]
  await turns()
  agent.finish()
  // It is told of its turn in this moment, and has not gone on yet.
  while (host.load('a').waiting > 0) await Promise.resolve()
  source.set([])
  const { ok, ...rest } = await outcome
  t.is(ok ? '' : 'code' in rest && rest.code, 'AGENT_NOT_FOUND')
  t.alike(
    agent.tasks.map(({ input }) => input),
    [1]
  )
})

test('a task that waited is checked again when its agent has changed', async (t) => {
  const old = new FakeAgent(agentDefinition('a'))
  const strict = new FakeAgent(
    agentDefinition('a', {
      capabilities: [capability('a.do', { inputSchema: { type: 'object', required: ['file'] } })]
    })
  )
  const other = new FakeAgent(agentDefinition('a', { capabilities: [capability('a.other')] }))
  const { give, source } = await hosted(t, [old])
  const [first, second, third] = [give('a', 1), give('a', 'no object'), give('a', { file: 'x' })]
  await turns()
  source.set([strict])
  old.finish()
  const refused = await second
  t.is(refused.ok ? '' : refused.code, 'INVALID_INPUT')
  t.is((await first).ok, true)
  await turns()
  t.is(strict.open.length, 1)
  strict.finish()
  t.is((await third).ok, true)
  const [fourth, fifth] = [give('a', { file: 'x' }), give('a', { file: 'x' })]
  await turns()
  source.set([other])
  strict.finish()
  t.is((await fourth).ok, true)
  const gone = await fifth
  t.is(gone.ok ? '' : gone.code, 'CAPABILITY_NOT_FOUND')
})

test('a result is judged by the schema of the version that made it', async (t) => {
  const text = capability('a.do', { outputSchema: { type: 'string' } })
  const number = capability('a.do', { outputSchema: { type: 'number' } })
  const old = new FakeAgent(agentDefinition('a', { capabilities: [text] }))
  const { give, source } = await hosted(t, [old])
  const outcome = give('a')
  await turns()
  source.set([new FakeAgent(agentDefinition('a', { capabilities: [number] }))])
  old.finish('a text')
  t.alike(await outcome, { ok: true, result: 'a text' })
})

test('a result that does not fit its schema is a failure', async (t) => {
  const agent = new FakeAgent(
    agentDefinition('a', { capabilities: [capability('a.do', { outputSchema: { type: 'number' } })] }),
    () => ({
      ok: true,
      result: 'text'
    })
  )
  const { give } = await hosted(t, [agent])
  const outcome = await give('a')
  t.is(outcome.ok ? '' : outcome.code, 'INVALID_OUTPUT')
})

test('a question or an end that an agent states is no result: no schema judges it, and an end is a failure', async (t) => {
  const states = ['input_required', 'TASK_STATE_AUTH_REQUIRED', 'rejected', 'failed', 'cancelled']
  const agents = states.map(
    (state, at) =>
      new FakeAgent(
        agentDefinition(`a${at}`, { capabilities: [capability(`a${at}.do`, { outputSchema: { type: 'number' } })] }),
        () => ({
          ok: true,
          result: { a2a: { state, message: 'no' } }
        })
      )
  )
  const { give, host } = await hosted(t, agents)
  const outcomes = await Promise.all(states.map((_, at) => give(`a${at}`)))
  t.alike(
    outcomes.map((outcome) => (outcome.ok ? 'ok' : `${outcome.code} ${outcome.message}`)),
    ['ok', 'ok', 'TASK_FAILED no', 'TASK_FAILED no', 'CANCELED no']
  )
  t.is(host.measured().filter(({ failures }) => failures === 1).length, 3)
})

test('a runtime that throws fails its task, and the queue goes on', async (t) => {
  let calls = 0
  const agent = new FakeAgent(agentDefinition('a'), () => {
    if (++calls === 1) throw new Error('broken')
    return { ok: true, result: calls }
  })
  const { give } = await hosted(t, [agent])
  const outcomes = await Promise.all([give('a'), give('a')])
  t.alike(
    outcomes.map((one) => (one.ok ? one.result : one.code)),
    ['TASK_FAILED', 2]
  )
})

test('inputs are checked before they are queued', async (t) => {
  const strict = new FakeAgent(
    agentDefinition('a', {
      capabilities: [capability('a.do', { inputSchema: { type: 'object', required: ['file'] } })]
    })
  )
  const { host } = await hosted(t, [strict])
  t.is(host.inputFault('a', 'a.do', { file: 'x' }), null)
  t.is(host.inputFault('a', 'a.do', {})?.code, 'INVALID_INPUT')
  await failsWith(t, 'CAPABILITY_NOT_FOUND', () => host.inputFault('a', 'a.other', {}))
  await failsWith(t, 'AGENT_NOT_FOUND', () => host.inputFault('nobody', 'a.do', {}))
})

test('the estimate follows the runs there were', async (t) => {
  const agent = new FakeAgent(agentDefinition('a'))
  const { give, host, clock } = await hosted(t, [agent])
  t.is(host.estimateMs('a'), 60_000, 'the timeout while nothing is known')
  const outcome = give('a')
  await turns()
  clock.advance(400)
  agent.finish()
  await outcome
  t.is(host.estimateMs('a'), 400)
  for (const input of [1, 2, 3]) void give('a', input)
  await turns()
  t.is(host.estimateMs('a'), 1200, 'two wait before it')
})

test('a program may be an agent beside those of files, under an id of its own', async (t) => {
  const { give, host, source, changes } = await hosted(t, [echo('a')])
  const program = echo('p')
  host.attach(program)
  t.is(changes(), 1)
  t.alike(await give('p', 7), { ok: true, result: 7 })
  source.set([echo('b')])
  t.ok(source.served instanceof Promise, 'the source can wait for the cards')
  t.alike(
    host
      .definitions()
      .map((one) => one.id)
      .sort(),
    ['b', 'p'],
    'a change of the files leaves it where it is'
  )
  await failsWith(t, 'USAGE', () => host.attach(echo('b')))
  await failsWith(t, 'USAGE', () => host.attach(echo('operator')))
  host.detach(program)
  t.absent(host.has('p'))
  t.is(changes(), 3)
})
