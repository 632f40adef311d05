import test, { type Assert } from 'brittle'
import { toAgentJson } from '../../../src/adapters/agents/schemas/agent-json.js'
import type { Message } from '../../../src/domain/gateway/message.js'
import { MAX_MEMBER_TASKS } from '../../../src/node/gateway/task-intake.js'
import { RETENTION_MS } from '../../../src/node/gateway/task-index.js'
import { MAX_TASK_BYTES } from '../../../src/node/gateway/turn-runner.js'
import type { AgentRun, AgentTask } from '../../../src/ports/agent-runtime.js'
import type { GatewaySend, GatewaySnapshot } from '../../../src/ports/gateway.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { capability } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { failsWith } from '../../support/fails.js'
import { ALICE, gatewayOf, taskOf } from '../../support/gateway.js'

const ALL = { after: null, limit: 100, isWhole: true }
const QUESTION = { a2a: { state: 'input-required', message: 'Which one?' } }

let said = 0
const says = (data: unknown, more: Partial<Message> = {}): Message => ({
  messageId: `m${++said}`,
  role: 'user',
  parts: [{ data }],
  ...more
})
const request = (agent: string, data: unknown, more: Partial<GatewaySend> = {}): GatewaySend => ({
  message: says(data),
  agent,
  skill: null,
  mayAnswer: false,
  wait: true,
  ...more
})

type Run = (task: AgentTask, run: AgentRun) => unknown

/** A node with a program as its agent `bot`, which may be repeated. */
async function scene(t: Assert, run: Run, about: Parameters<typeof capability>[1] = {}) {
  const world = new World(t)
  const owner = await world.owner({})
  await owner.core.attach({ id: 'bot', concurrency: 64, capabilities: [capability('bot.do', about)], run })
  return { world, owner, gateway: await gatewayOf(t, owner) }
}

const dataOf = (snapshot: GatewaySnapshot): unknown[] => snapshot.artifacts.map(({ parts }) => parts[0]?.data)

test('later changes by a program to its input and its results are in no record: each has the value at its time', async (t: Assert) => {
  const state = { n: 0 }
  const { gateway } = await scene(t, (task, { progress }) => {
    const input = task.input as Record<string, unknown>
    input['note'] = 'of the agent'
    state.n++
    progress({ a2a: { artifact: { artifactId: 'step', parts: [{ data: state }] } } })
    return state
  })
  const asked = request('bot', { q: 1 })
  const again = structuredClone(asked)
  const first = taskOf(await gateway.send(ALICE, asked))
  t.alike(first.history[0]?.parts, [{ data: { q: 1 } }])
  t.is(taskOf(await gateway.send(ALICE, again)).task.id, first.task.id)
  const more = await Promise.all([1, 2, 3].map(() => gateway.send(ALICE, request('bot', {}))))
  t.alike(
    more.map((reply) => dataOf(taskOf(reply))),
    [[{ n: 2 }], [{ n: 3 }], [{ n: 4 }]]
  )
})

test('a result without a JSON form ends its task, also behind an artifact; a function is none', async (t: Assert) => {
  const results = new Map<string, unknown>([
    ['number', { n: Number.POSITIVE_INFINITY }],
    ['function', () => 1]
  ])
  const { gateway } = await scene(t, ({ input }, { progress }) => {
    progress({ a2a: { artifact: { artifactId: 'a', parts: [{ text: 'x' }] } } })
    return results.get((input as { kind: string }).kind)
  })
  const told = async (kind: string) => taskOf(await gateway.send(ALICE, request('bot', { kind })))
  t.alike(dataOf(await told('number'))[1], { n: null })
  t.is((await told('function')).task.state, 'failed')
})

test('bytes in results of an agent are base64 for its client, in a task and in an answer', async (t: Assert) => {
  for (const sideEffect of ['read', 'write'] as const) {
    const { gateway, owner } = await scene(t, () => ({ bytes: new Uint8Array([104, 105]) }), {
      sideEffect,
      idempotent: true
    })
    Object.assign(owner.core.deps, { toAgentJson })
    const reply = await gateway.send(ALICE, request('bot', {}, { mayAnswer: true }))
    const parts = reply.kind === 'task' ? reply.snapshot.artifacts[0]?.parts : reply.message.parts
    t.alike(parts?.[0]?.data, { bytes: 'aGk=' }, sideEffect)
  }
})

test('an agent that reports more bytes than a turn may have fails its task, and its stored output is within them', async (t: Assert) => {
  const piece = { a2a: { artifact: { artifactId: 'log', parts: [{ text: 'x'.repeat(60_000) }] }, append: true } }
  const pieces = Math.ceil(MAX_TASK_BYTES / 60_000) + 10
  const { gateway } = await scene(t, (_task, { progress }) => {
    for (let at = 0; at < pieces; at++) progress(piece)
    return { done: true }
  })
  const { task, artifacts } = taskOf(await gateway.send(ALICE, request('bot', {})))
  t.is(task.state, 'failed')
  const kept = artifacts.flatMap(({ parts }) => parts).length
  t.ok(kept < pieces - 5 && kept * 60_000 <= MAX_TASK_BYTES, `${kept} of ${pieces} pieces`)
})

test('a later turn that sent all artifacts of its result leaves them as they are: nothing is sent again in the place of one', async (t: Assert) => {
  const result = { artifactId: 'result', parts: [{ data: { answer: 42 } }] }
  const log = { artifactId: 'log', parts: [{ text: 'all of it' }] }
  const { gateway } = await scene(t, ({ input }, { progress }) => {
    if ((input as { kind: string }).kind === 'ask') return QUESTION
    for (const artifact of [log, result]) progress({ a2a: { artifact } })
    return { artifacts: [log, result] }
  })
  const { task } = taskOf(await gateway.send(ALICE, request('bot', { kind: 'ask' })))
  const message = says({ kind: 'answer' }, { taskId: task.id })
  t.alike(taskOf(await gateway.send(ALICE, request('bot', {}, { message }))).artifacts, [log, result])
})

test('a read that asks its client back, or reports artifacts, is a task; of any other the answer is a message', async (t: Assert) => {
  const { gateway } = await scene(
    t,
    ({ input }, { progress }) => {
      const { kind } = input as { kind: string }
      if (kind === 'artifact')
        progress({ a2a: { artifact: { artifactId: 'report', parts: [{ text: 'all of it' }] }, lastChunk: true } })
      else progress({ message: 'on my way' })
      return kind === 'question' ? QUESTION : kind === 'artifact' ? null : { kind }
    },
    { sideEffect: 'read', idempotent: true }
  )
  const send = (kind: string, more: Partial<GatewaySend> = {}) =>
    gateway.send(ALICE, request('bot', { kind }, { mayAnswer: true, ...more }))
  t.is((await send('plain')).kind, 'message')
  const asked = taskOf(await send('question'))
  t.is(asked.task.state, 'input-required')
  t.alike(asked.task.message?.parts, [{ text: 'Which one?' }])
  const message = says({ kind: 'artifact' }, { taskId: asked.task.id })
  t.is(taskOf(await gateway.send(ALICE, request('bot', {}, { message }))).task.state, 'completed')
  const told = taskOf(await send('artifact'))
  t.is(told.task.state, 'completed')
  t.alike(
    told.artifacts.map(({ artifactId, parts }) => [artifactId, parts]),
    [['report', [{ text: 'all of it' }]]]
  )
  // What began a task is no read any more.
  const other = { ...says({ kind: 'other' }), messageId: told.history[0]?.messageId ?? '' }
  await failsWith(t, 'INVALID_INPUT', () => send('other', { message: other }))
})

test('the same read sent twice at once is one task, and one with more output than is stored is done again', async (t: Assert) => {
  let runs = 0
  const { gateway } = await scene(
    t,
    ({ input }, { progress }) => {
      runs++
      const { pieces = 0 } = input as { pieces?: number }
      for (let at = 0; at < pieces; at++)
        progress({ a2a: { artifact: { artifactId: 'log', parts: [{ text: `${at}` }] }, append: at > 0 } })
      return pieces === 0 ? QUESTION : null
    },
    { sideEffect: 'read', idempotent: true }
  )
  const same = request('bot', {}, { mayAnswer: true })
  const [one, two] = await Promise.all([gateway.send(ALICE, same), gateway.send(ALICE, structuredClone(same))])
  t.is(taskOf(one).task.id, taskOf(two).task.id)
  t.is((await gateway.list(ALICE, {}, ALL)).total, 1)
  runs = 0
  const told = taskOf(await gateway.send(ALICE, request('bot', { pieces: 300 }, { mayAnswer: true })))
  t.is(told.task.state, 'completed')
  t.is(told.artifacts[0]?.parts.length, 300)
  t.is(runs, 2)
})

test('a read that reports an artifact and then fails is a failed task with it', async (t: Assert) => {
  const { gateway } = await scene(
    t,
    (_task, { progress }) => {
      progress({ a2a: { artifact: { artifactId: 'rep', parts: [{ text: 'so far' }] } } })
      throw new Error('boom')
    },
    { sideEffect: 'read', idempotent: true }
  )
  const { task, artifacts } = taskOf(await gateway.send(ALICE, request('bot', {}, { mayAnswer: true })))
  t.is(task.state, 'failed')
  t.alike(artifacts[0]?.parts, [{ text: 'so far' }])
})

test('an answer that does not fit its agent is refused, and its task waits on', async (t: Assert) => {
  const inputSchema = { type: 'object', properties: { do: { type: 'string' } }, required: ['do'] }
  const { gateway } = await scene(
    t,
    ({ input }) => ((input as { do: string }).do === 'ask' ? QUESTION : { done: true }),
    { inputSchema }
  )
  const { task } = taskOf(await gateway.send(ALICE, request('bot', { do: 'ask' })))
  const answer = (data: unknown) =>
    gateway.send(ALICE, request('bot', {}, { message: says(data, { taskId: task.id }) }))
  await failsWith(t, 'INVALID_INPUT', () => answer({ x: 1 }))
  t.is((await gateway.get(ALICE, task.id)).task.state, 'input-required')
  t.is(taskOf(await answer({ do: 'end' })).task.state, 'completed')
})

test('a task whose agent asks a question after the order to stop is canceled, and a client that hung up waits no more', async (t: Assert) => {
  const ends: (() => void)[] = []
  const { gateway, world } = await scene(t, () => new Promise((resolve) => ends.push(() => resolve(QUESTION))))
  const begin = async (): Promise<string> =>
    taskOf(await gateway.send(ALICE, request('bot', {}, { wait: false }))).task.id
  const id = await begin()
  await world.settle()
  const canceled = gateway.cancel(ALICE, id)
  for (const end of ends.splice(0)) end()
  t.is((await canceled).task.state, 'canceled')
  const deaf = await begin()
  await world.settle()
  const hangUp = new AbortController()
  const waiting = gateway.cancel(ALICE, deaf, { signal: hangUp.signal })
  hangUp.abort()
  t.is((await waiting).task.state, 'working')
  for (const end of ends.splice(0)) end()
})

test('a list that is read while old tasks are let go of has no task without its contents', async (t: Assert) => {
  const { gateway, world } = await scene(t, () => ({ done: true }))
  for (let at = 0; at < 20; at++) await gateway.send(ALICE, request('bot', { at }))
  const list = gateway.list(ALICE, {}, ALL)
  world.clock.advance(RETENTION_MS + 120_000)
  const { tasks } = await list
  t.ok(tasks.every(({ history, artifacts }) => history.length === 1 && artifacts.length === 1))
  await world.settle()
  t.is((await gateway.list(ALICE, {}, ALL)).total, 0)
})

test('a task takes messages of its client up to its bytes, and says so', async (t: Assert) => {
  const { gateway } = await scene(t, () => QUESTION)
  const large = 'x'.repeat(1_000_000)
  const parts = Array.from({ length: 9 }, () => ({ text: large }))
  const { task } = taskOf(await gateway.send(ALICE, request('bot', {}, { message: { ...says({}), parts } })))
  let taken = 1
  const more = () => gateway.send(ALICE, request('bot', {}, { message: { ...says({}, { taskId: task.id }), parts } }))
  for (; taken < 20; taken++) if ((await more().catch(() => null)) === null) break
  t.is(taken, Math.ceil(MAX_TASK_BYTES / 9_000_000))
  await failsWith(t, 'CONFLICT', more)
})

test('tasks of a member that begin count as under way', async (t: Assert) => {
  const { gateway, owner } = await scene(t, () => new Promise(() => {}))
  const peer: Principal = {
    kind: 'peer',
    name: 'peer',
    id: owner.id,
    tier: 0,
    sandboxId: null,
    scopes: ['read', 'send']
  }
  const sends = Array.from({ length: MAX_MEMBER_TASKS + 20 }, () =>
    gateway.send(peer, request('bot', {}, { wait: false })).then(
      () => true,
      () => false
    )
  )
  t.is((await Promise.all(sends)).filter(Boolean).length, MAX_MEMBER_TASKS)
})
