import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { encodePayload } from '../../../src/domain/envelope/codec.js'
import { inputOf } from '../../../src/domain/gateway/content.js'
import {
  type Conversation,
  MAX_HISTORY_BYTES,
  historyBytes,
  packConversation,
  unpackConversation
} from '../../../src/domain/gateway/conversation.js'
import { ConversationWindow, earlier, foldTurns } from '../../../src/domain/gateway/conversation-turns.js'
import type { Message, Part } from '../../../src/domain/gateway/message.js'
import type { GatewayEvent } from '../../../src/domain/gateway/task.js'
import { readRequest } from '../../../src/domain/task/payloads.js'

const about = {
  filename: fc.string({ maxLength: 4 }),
  metadata: fc.dictionary(fc.string({ maxLength: 3 }), fc.integer())
}
const json = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<unknown>
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ text: fc.string(), ...about }, { requiredKeys: ['text'] }),
  fc.record({ raw: fc.base64String(), ...about }, { requiredKeys: ['raw'] }),
  fc.record({ url: fc.webUrl(), ...about }, { requiredKeys: ['url'] }),
  fc.record({ data: json, ...about }, { requiredKeys: ['data'] })
)
const parts = fc.array(part, { minLength: 1, maxLength: 6 })

const conversationOf = (message: Message, history: readonly Message[] = []): Conversation => ({
  contextId: 'c',
  taskId: 't',
  message,
  history,
  isCut: false,
  caller: { kind: 'token', id: 'tok' },
  thread: { taskId: 'far' }
})
const says = (own: readonly Part[]): Message => ({ messageId: 'm', role: 'user', parts: own, metadata: { a: [1] } })
/** As the wire carries it: JSON. */
const sent = (value: unknown): unknown => JSON.parse(JSON.stringify(value)) as unknown

test('a conversation beside its input comes back as it was, and repeats no content of the input', (t: Assert) => {
  fc.assert(
    fc.property(parts, (own) => {
      const conversation = conversationOf(says(own), [says([{ text: 'before' }])])
      const input = inputOf(own)
      t.alike(unpackConversation(sent(packConversation(conversation, input)), sent(input)), sent(conversation))
    })
  )
  const large = [{ raw: 'a'.repeat(400_000) }, { text: 'b'.repeat(400_000) }, { data: ['c'.repeat(400_000)] }]
  t.ok(JSON.stringify(packConversation(conversationOf(says(large)), inputOf(large))).length < 1000)
})

test('a content of the input is the content of one part, however often a peer names it', (t: Assert) => {
  const input = { text: 'a', data: [{ big: 'x' }], files: [{ bytes: 'AAAA' }] }
  const good = packConversation(conversationOf(says([{ text: 'a' }, { data: { big: 'x' } }, { raw: 'AAAA' }])), input)
  const read = (own: readonly unknown[]) =>
    unpackConversation({ ...good, message: { ...good.message, parts: own } }, input)
  t.ok(unpackConversation(good, input))
  for (const place of [['data', 0], ['files', 0], ['input']]) t.is(read([{ in: place }, { in: place }]), null)
  const items = { data: [Array.from({ length: 20_000 }, () => 0)] }
  const many = { ...good.message, parts: Array.from({ length: 20_000 }, () => ({ in: ['data', 0] })) }
  const start = performance.now()
  t.is(unpackConversation({ ...good, message: many }, items), null)
  t.ok(performance.now() - start < 1000, 'its time does not grow with their product')
})

test('a JSON object in several long texts is one content', (t: Assert) => {
  const text = JSON.stringify({ list: Array.from({ length: 8000 }, (_, at) => at) })
  const half = text.indexOf(',', text.length / 2)
  const own = [{ text: text.slice(0, half) }, { text: text.slice(half) }]
  const input = inputOf(own)
  const packed = packConversation(conversationOf(says(own)), input)
  t.alike(unpackConversation(sent(packed), sent(input))?.message.parts, [{ data: JSON.parse(text) as unknown }])
})

test('a conversation leaves the space of its input, and large metadata, out of the envelope', (t: Assert) => {
  const history = Array.from({ length: 60 }, () => says([{ text: 'x'.repeat(4000) }]))
  const packed = (input: unknown) => packConversation(conversationOf(says([{ data: input }]), history), input)
  t.is(packed({}).history.length, 60)
  const long = Array.from({ length: 700 }, () => 'y'.repeat(1000))
  const short = packed({ long })
  t.ok(short.isCut && short.history.length < 25 && short.history.length > 10, `${short.history.length}`)
  const heavy = { ...says([{ text: 'a' }]), metadata: { big: 'z'.repeat(100_000).split('') } }
  t.absent('metadata' in packConversation(conversationOf(heavy), { text: 'a' }).message)
})

test('an input that fits an envelope fits it beside any conversation', (t: Assert) => {
  const history = Array.from({ length: 12 }, () => says([{ text: 'x'.repeat(20_000) }]))
  const files = Array.from({ length: 58 }, () => ({ raw: 'A'.repeat(20_000) }))
  const bulk = [{ data: { list: Array.from({ length: 1020 }, () => 'y'.repeat(1000)) } }]
  const metadata = { list: Array.from({ length: 60 }, () => 'z'.repeat(1000)) }
  for (const own of [files, bulk]) {
    const input = inputOf(own)
    const conversation = packConversation(conversationOf({ ...says(own), metadata }, history), input)
    t.ok(encodePayload({ input, conversation }).byteLength > 0)
  }
})

test('a conversation of a peer that is none is refused with its request, and bytes have no place in it', (t: Assert) => {
  const good = packConversation(conversationOf(says([{ text: 'a' }])), { text: 'a' })
  const request = { requestId: 'r', attempt: 1, capability: null, input: { text: 'a' } }
  t.ok(readRequest({ ...request, conversation: good }))
  t.absent(readRequest(request)?.conversation)
  const wrong: unknown[] = [
    null,
    [],
    { ...good, contextId: 'x'.repeat(300) },
    { ...good, caller: {} },
    { ...good, history: [{ role: 'user' }] },
    { ...good, history: [{ ...says([]), parts: [{ data: new Uint8Array(8) }] }] },
    { ...good, message: { ...good.message, parts: [{ in: ['files', 3] }] } },
    { ...good, message: { ...good.message, parts: [{ in: ['data', -1] }] } },
    { ...good, message: { ...good.message, parts: [{ in: ['constructor', 0] }] } }
  ]
  for (const conversation of wrong) t.is(readRequest({ ...request, conversation }), null, JSON.stringify(conversation))
  const bytes = { ...good, message: { ...good.message, parts: [{ in: ['input'] }] } }
  t.is(readRequest({ ...request, input: { b: new Uint8Array(2) }, conversation: bytes }), null)
  fc.assert(fc.property(fc.anything(), fc.anything(), (value, input) => void unpackConversation(value, input)))
})

test('a history has the messages at rests alone, with the artifacts of each turn, in any pieces', (t: Assert) => {
  const head = { generation: 1, at: 1 }
  const piece = (text: string, append: boolean): GatewayEvent => ({
    ...head,
    type: 'artifact',
    artifact: { artifactId: 'a', parts: [{ text }] },
    append,
    lastChunk: false
  })
  const status = (state: 'working' | 'completed', words?: string): GatewayEvent => {
    const message =
      words === undefined ? {} : { message: { messageId: words, role: 'agent' as const, parts: [{ text: words }] } }
    return { ...head, type: 'status', state, ...message }
  }
  const events = [
    { ...head, type: 'message' as const, message: says([{ text: 'q' }]) },
    status('working', 'busy'),
    piece('o', false)
  ]
  t.is(foldTurns('t', events, 0).entries.length, 1)
  const { entries } = foldTurns('t', [...events, piece('n', true), piece('e', true), status('completed', 'end')], 0)
  t.alike(
    entries.map(({ message }) => message.parts),
    [[{ text: 'q' }], [{ text: 'one' }, { text: 'end' }].map((one) => one)]
  )
  const huge = earlier(says(Array.from({ length: 64 }, () => ({ text: 'h'.repeat(30_000) }))))
  const window = new ConversationWindow()
  window.add([
    { at: 1, message: says([{ text: 'x' }]) },
    { at: 2, message: huge }
  ])
  const { messages } = window.before('none')
  t.ok(messages.length === 2 && historyBytes(messages) <= MAX_HISTORY_BYTES, 'one message never fills it alone')
})
