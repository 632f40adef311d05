import v8 from 'node:v8'
import vm from 'node:vm'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { MAX_HISTORY, MAX_HISTORY_BYTES, historyBytes } from '../../../src/domain/gateway/conversation.js'
import { earlier } from '../../../src/domain/gateway/conversation-turns.js'
import type { Message, Part } from '../../../src/domain/gateway/message.js'
import type { GatewayEvent, GatewayTask } from '../../../src/domain/gateway/task.js'
import { AnswerLog } from '../../../src/node/gateway/answer-log.js'
import { Conversations } from '../../../src/node/gateway/conversations.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { ManualClock } from '../../support/manual-clock.js'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import { TaskService } from '../../../src/node/gateway/task-service.js'
import type { AgentTask } from '../../../src/ports/agent-runtime.js'
import type { GatewayReply } from '../../../src/ports/gateway.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { agentDefinition, capability, FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { ALICE, gatewayOf, request, says, taskOf } from '../../support/gateway.js'

const BOB: Principal = { ...ALICE, name: 'token bob', id: 'tok_b' }

/** Answers with the state, the parts or the text that the input names. */
const talker = (id: string, more: Parameters<typeof capability>[1] = {}): FakeAgent =>
  new FakeAgent(agentDefinition(id, { capabilities: [capability(`${id}.do`, more)] }), ({ input }) => {
    const { text = '' } = input as { readonly text?: string }
    const result = text.startsWith('ask')
      ? { a2a: { state: 'input-required', message: `what of ${text}?` } }
      : `re: ${text}`
    return { ok: true, result }
  })

const line = ({ role, parts }: Message): string =>
  `${role}: ${parts.map(({ text, data, raw, filename }) => filename ?? text ?? raw ?? JSON.stringify(data)).join('+')}`
const heard = ({ conversation }: AgentTask): string[] => conversation?.history.map(line) ?? ['no conversation']
const lastOf = ({ tasks }: FakeAgent): AgentTask => {
  const last = tasks.at(-1)
  if (last === undefined) throw new Error('it was not asked')
  return last
}

async function send(
  world: World,
  gateway: TaskService,
  how: Parameters<typeof request>[1] & { readonly message: Message; readonly by?: Principal }
) {
  const { message, by = ALICE, ...more } = how
  const sent = gateway.send(by, request(message, { wait: true, ...more }))
  await world.settle()
  return await sent
}

test('each turn of a conversation comes with the turns before: of the same task, of other tasks, and after a restart', async (t: Assert) => {
  const world = new World(t)
  const agent = talker('bot')
  const owner = await world.owner({ agents: [agent] })
  let gateway = await gatewayOf(t, owner)
  const first = taskOf(await send(world, gateway, { agent: 'bot', message: says('ask one') }))
  const { id, contextId } = first.task
  t.alike(heard(lastOf(agent)), [])
  const { conversation } = lastOf(agent)
  t.alike(
    [conversation?.contextId, conversation?.taskId, conversation?.message, conversation?.caller, conversation?.isCut],
    [contextId, id, first.history[0], { kind: 'token', id: 'tok_a', node: owner.id }, false]
  )
  await send(world, gateway, { agent: 'bot', message: says('two', { taskId: id }) })
  t.is(lastOf(agent).conversation?.taskId, id, 'the task of the client is the same, that of the node is not')
  t.not(lastOf(agent).taskId, id)
  t.alike(heard(lastOf(agent)), ['user: ask one', 'agent: what of ask one?'])
  await send(world, gateway, { agent: 'bot', message: says('three', { contextId }) })
  const record = ['user: ask one', 'agent: what of ask one?', 'user: two', 'agent: re: two']
  t.alike(heard(lastOf(agent)), record)
  gateway.stop()
  gateway = await gatewayOf(t, owner)
  await send(world, gateway, { agent: 'bot', message: says('four', { contextId }) })
  t.alike(heard(lastOf(agent)), [...record, 'user: three', 'agent: re: three'])
})

test('the first answer without a task is part of the conversation, also after a stop of the gateway', async (t: Assert) => {
  const world = new World(t)
  const agent = talker('reader', { sideEffect: 'read' })
  const owner = await world.owner({ agents: [agent] })
  let gateway = await gatewayOf(t, owner)
  const read = async (message: Message): Promise<string> => {
    const reply = await send(world, gateway, { agent: 'reader', message, mayAnswer: true })
    return reply.kind === 'message' ? (reply.message.contextId ?? '') : 'a task'
  }
  const [one, two] = [await read(says('one')), await read(says('two'))]
  await read(says('more', { contextId: one }))
  t.alike(heard(lastOf(agent)), ['user: one', 'agent: re: one'])
  gateway.stop()
  gateway = await gatewayOf(t, owner)
  await read(says('again', { contextId: two }))
  t.alike(heard(lastOf(agent)), ['user: two', 'agent: re: two'])
  await read(says('last', { contextId: one }))
  t.alike(heard(lastOf(agent)), ['user: one', 'agent: re: one', 'user: more', 'agent: re: more'])
})

test('an answer goes with the ids of the question that it answers, and with none of an earlier one', async (t: Assert) => {
  const world = new World(t)
  const agent = new FakeAgent(agentDefinition('bot', { capabilities: [capability('bot.do')] }), ({ input }) => {
    const { text = '' } = input as { readonly text?: string }
    return { ok: true, result: { a2a: { state: 'input-required', ...(text === 'one' ? { taskId: 'far' } : {}) } } }
  })
  const gateway = await gatewayOf(t, await world.owner({ agents: [agent] }))
  const { id } = taskOf(await send(world, gateway, { agent: 'bot', message: says('one') })).task
  await send(world, gateway, { agent: 'bot', message: says('two', { taskId: id }) })
  t.alike(lastOf(agent).conversation?.thread, { taskId: 'far' })
  await send(world, gateway, { agent: 'bot', message: says('three', { taskId: id }) })
  t.absent(lastOf(agent).conversation?.thread)
})

test('events in the middle of a long task that an agent does not get are counted, and its history is cut', async (t: Assert) => {
  const world = new World(t)
  const agent = new FakeAgent(agentDefinition('bot', { capabilities: [capability('bot.do')] }), ({ input }, run) => {
    const { text } = input as { readonly text?: string }
    if (text === 'again') return { ok: true, result: 'done' }
    for (let at = 0; at < Number(text); at++)
      run.progress({ a2a: { artifact: { artifactId: 'a', parts: [{ text: 'x' }] }, append: at > 0 } })
    return { ok: true, result: { a2a: { state: 'input-required', message: 'More?' } } }
  })
  const gateway = await gatewayOf(t, await world.owner({ agents: [agent] }))
  for (const [count, leftOut] of [
    [1200, 181],
    [900, undefined]
  ] as const) {
    const { id } = taskOf(await send(world, gateway, { agent: 'bot', message: says(`${count}`) })).task
    await send(world, gateway, { agent: 'bot', message: says('again', { taskId: id }) })
    const { history = [], isCut } = lastOf(agent).conversation ?? {}
    const [asked, answer] = history
    t.alike([asked?.metadata, answer?.metadata?.['leftOut'], isCut], [undefined, leftOut, leftOut !== undefined])
    t.is(answer?.parts[0]?.text?.length, count - (leftOut ?? 0))
  }
})

test('a conversation is one of a caller, a context and an agent', async (t: Assert) => {
  const world = new World(t)
  const [agent, other] = [talker('bot'), talker('other')]
  const gateway = await gatewayOf(t, await world.owner({ agents: [agent, other] }))
  const says2 = (text: string) => says(text, { contextId: 'c1' })
  await send(world, gateway, { agent: 'bot', message: says2('mine') })
  await send(world, gateway, { agent: 'bot', message: says2('of another'), by: BOB })
  t.alike([heard(lastOf(agent)), lastOf(agent).conversation?.caller.id], [[], 'tok_b'])
  await send(world, gateway, { agent: 'other', message: says2('elsewhere') })
  t.alike(heard(lastOf(other)), [])
  await send(world, gateway, { agent: 'bot', message: says('another context', { contextId: 'c2' }) })
  t.alike(heard(lastOf(agent)), [])
  await send(world, gateway, { agent: 'bot', message: says2('more') })
  t.alike(heard(lastOf(agent)), ['user: mine', 'agent: re: mine'])
})

const PARTS: readonly Part[] = [
  { text: 'look', metadata: { lang: 'en' } },
  { raw: Buffer.from('picture').toString('base64'), mediaType: 'text/plain', filename: 'a.txt' },
  { data: { n: 1 }, mediaType: 'application/json' },
  { text: 'at it' },
  { url: 'https://example.org/b', filename: 'b' },
  { data: [2] }
]

test('an agent of another node gets the message as it came, and the conversation', async (t: Assert) => {
  const world = new World(t)
  const agent = talker('bot', { inputModes: ['*/*'] })
  const owner = await world.owner()
  const far = await world.member('far', { agents: [agent], terms: { tier: 0 } })
  await world.link(owner, far)
  let gateway = await gatewayOf(t, owner)
  const name = { agent: `bot@${far.id}` }
  const message = { ...says('x'), parts: PARTS, metadata: { k: [1] }, referenceTaskIds: ['task_before'] }
  const { task } = taskOf(await send(world, gateway, { ...name, message }))
  const { conversation } = lastOf(agent)
  t.alike(conversation?.message, { ...message, contextId: task.contextId, taskId: task.id })
  t.alike(conversation?.caller, { kind: 'token', id: 'tok_a', node: owner.id })
  gateway.stop()
  gateway = await gatewayOf(t, owner)
  for (const parts of [[{ data: { text: 'ask' } }], [{ text: '{"text":"a"}' }], [{ text: 'plain' }], [{ data: 7 }]]) {
    await send(world, gateway, { ...name, message: { ...says('', { contextId: task.contextId }), parts } })
    t.alike(lastOf(agent).conversation?.message.parts, parts)
  }
  t.is(heard(lastOf(agent)).length, 8)
  t.is(heard(lastOf(agent))[0], 'user: look+a.txt+{"n":1}+at it+b+[2]')
})

test('an agent of another node gets content that fits an envelope once, also when the caller restarts', async (t: Assert) => {
  const world = new World(t)
  const agent = talker('bot', { inputModes: ['*/*'] })
  const ledger = createMemoryLedger()
  const owner = await world.owner({ ledger })
  const far = await world.member('far', { agents: [agent], terms: { tier: 0 } })
  await world.link(owner, far)
  world.net.disconnect(owner.id, far.id)
  await world.settle()
  const gateway = await gatewayOf(t, owner)
  const bulk = { data: { list: Array.from({ length: 700 }, () => 'y'.repeat(1000)) } }
  for (const part of [{ raw: 'a'.repeat(10_000_000) }, bulk]) {
    // Without a link, the request is stored until there is one.
    const sent = gateway.send(ALICE, request({ ...says(''), parts: [part] }, { agent: `bot@${far.id}`, wait: false }))
    await world.settle()
    const { task } = taskOf(await sent)
    t.is(task.state, 'submitted', JSON.stringify(task.message?.parts))
  }
  gateway.stop()
  await owner.core.close()
  await world.link(await world.owner({ ledger, store: owner.store }), far)
  t.is(agent.tasks.length, 2)
})

test('a history is bounded in messages and bytes: large content is left out, and the agent knows', async (t: Assert) => {
  const world = new World(t)
  const agent = talker('bot', { inputModes: ['*/*'] })
  const gateway = await gatewayOf(t, await world.owner({ agents: [agent] }))
  const large = { raw: 'a'.repeat(400_000), mediaType: 'image/png', filename: 'p.png' }
  const say = (parts: readonly Part[]) =>
    send(world, gateway, { agent: 'bot', message: { ...says('', { contextId: 'c' }), parts } })
  await say([{ text: 'see' }, large])
  t.alike(lastOf(agent).conversation?.message.parts[1], large)
  await say([{ text: 'x'.repeat(100_000) }])
  t.alike(lastOf(agent).conversation?.history[0]?.parts[1], {
    text: '',
    filename: 'p.png',
    mediaType: 'image/png',
    metadata: { leftOut: 400_000 }
  })
  for (let n = 0; n < 40; n++) await say([{ text: `${n}`.repeat(2000) }])
  const { history = [], isCut } = lastOf(agent).conversation ?? {}
  t.is(isCut, true)
  t.ok(history.length <= MAX_HISTORY && historyBytes(history) <= MAX_HISTORY_BYTES)
  t.is(history.at(-1)?.parts[0]?.text, `re: ${'38'.repeat(2000)}`)
})

test('messages of the contexts that were used last hold 8 MiB of memory, and others are read again', async (t: Assert) => {
  const clock = new ManualClock()
  const telemetry = new MemoryTelemetry({ clock, level: 'warn', format: 'text', write: () => {} })
  const reads: string[] = []
  const text = 'x'.repeat(30_000)
  const eventOf = (generation: number): GatewayEvent => {
    const message = { ...says('', { messageId: `m${generation}` }), parts: Array.from({ length: 4 }, () => ({ text })) }
    return { generation, at: generation, type: 'message', message }
  }
  const conversations = new Conversations({
    index: {
      inContext: (_owner, id) => ({ tasks: [{ id, agent: 'bot@n', generation: 2 } as GatewayTask], isCut: false }),
      get: () => undefined,
      all: () => [].values(),
      owners: () => [].values()
    },
    log: {
      events: (id) => {
        reads.push(id)
        return Promise.resolve([eventOf(1), eventOf(2)])
      }
    },
    answers: new AnswerLog({ clock, ledger: createMemoryLedger(), telemetry })
  })
  const look = (context: number) =>
    conversations.before({ owner: 'token:a', contextId: `c${context}`, agent: 'bot@n' }, 'new')
  for (let context = 0; context < 100; context++) await look(context)
  const { messages } = await look(99)
  t.ok(historyBytes(messages) > 240_000)
  t.is(reads.length, 100, 'the last one is in memory')
  const kept = Math.floor(8_388_608 / historyBytes(messages))
  for (let context = 99; context > 99 - kept; context--) await look(context)
  t.is(reads.length, 100, `${kept} contexts are in memory`)
  await look(99 - kept)
  t.alike(reads.slice(100), [`c${99 - kept}`], 'no more than these')
})

test('an earlier message that is cut does not keep the whole one in memory', (t: Assert) => {
  v8.setFlagsFromString('--expose-gc')
  const collect = vm.runInNewContext('gc') as () => void
  collect()
  const before = process.memoryUsage().heapUsed
  const kept = Array.from({ length: 64 }, (_, at) => earlier(says(`${at} ${'x'.repeat(1024 * 1024)}`)))
  collect()
  const bytes = process.memoryUsage().heapUsed - before
  t.ok(bytes < 8 * 1024 * 1024, `${bytes} bytes for ${kept.length} messages`)
})

interface Turn {
  readonly context: number
  readonly isAnswer: boolean
  readonly asks: boolean
  readonly restarts: boolean
  readonly direct: boolean
}

/** Runs turns, and compares the history of each with the record of its client. */
async function follow(t: Assert, turns: readonly Turn[], hops: 0 | 1): Promise<void> {
  const world = new World(t)
  const [agent, reader] = [talker('bot'), talker('reader', { sideEffect: 'read' })]
  const owner = await world.owner(hops === 0 ? { agents: [agent, reader] } : {})
  const far: FakeNode = hops === 0 ? owner : await world.member('far', { agents: [agent, reader], terms: { tier: 0 } })
  if (hops === 1) await world.link(owner, far)
  let gateway = await gatewayOf(t, owner)
  const records = new Map<string, string[]>()
  const waiting = new Map<string, string>()
  for (const [at, { context, isAnswer, asks, restarts, direct }] of turns.entries()) {
    if (restarts) {
      gateway.stop()
      gateway = await gatewayOf(t, owner)
    }
    // After a restart, tasks of one millisecond have no order.
    world.clock.advance(1)
    const [name, key] = [direct ? 'reader' : 'bot', `${direct ? 'reader' : 'bot'} ${context}`]
    const record = records.get(key) ?? []
    const taskId = isAnswer ? waiting.get(key) : undefined
    const message = says(`${asks && !direct ? 'ask' : 'say'} ${at}`, {
      contextId: `c${context}`,
      ...(taskId === undefined ? {} : { taskId })
    })
    const reply: GatewayReply = await send(world, gateway, { agent: `${name}@${far.id}`, message, mayAnswer: true })
    t.alike(heard(lastOf(direct ? reader : agent)), record.slice(-MAX_HISTORY))
    if (taskId !== undefined) waiting.delete(key)
    const said =
      reply.kind === 'message'
        ? reply.message
        : (reply.snapshot.task.message ?? { role: 'agent', parts: reply.snapshot.artifacts.at(-1)?.parts ?? [] })
    records.set(key, [...record, line(message), line(said as Message)])
    if (reply.kind === 'task' && reply.snapshot.task.state === 'input-required')
      waiting.set(key, reply.snapshot.task.id)
  }
}

for (const hops of [0, 1] as const)
  test(`for any turns, an agent ${hops === 0 ? 'of the node' : 'one hop away'} sees what its client saw before each`, async (t: Assert) => {
    const turn = fc.record({
      context: fc.nat(1),
      isAnswer: fc.boolean(),
      asks: fc.boolean(),
      restarts: fc.boolean(),
      direct: fc.boolean()
    })
    await fc.assert(
      fc.asyncProperty(fc.array(turn, { maxLength: 12 }), (turns) => follow(t, turns, hops)),
      { numRuns: 12 }
    )
  })
