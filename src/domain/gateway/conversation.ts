import { utf8 } from '../../kit/ids.js'
import { hasBytes, isRecord, jsonFault, type JsonLimits, SIZED_LIMITS } from '../../kit/json.js'
import { MAX_CLIENT_ID, MAX_PARTS, type Message, type Part, readMessage } from './message.js'

/** Most earlier messages of a conversation that its agent gets. */
export const MAX_HISTORY = 64
/** Most bytes of JSON of those messages together; the older ones are left out. */
export const MAX_HISTORY_BYTES = 262_144
/** Bytes of JSON of the details of a message for an agent of another node; further ones are left out. */
const MAX_DETAIL_BYTES = 65_536
/** Bytes of JSON that an input and its conversation may take in an envelope, long texts apart. */
const MAX_SENT_BYTES = 786_432
/** Texts from this length on travel beside the JSON of an envelope. */
const LONG_TEXT = 16_384
/** Depth of values beside the input, so that they fit an envelope wherever they are. */
const DETAIL_LIMITS: JsonLimits = { ...SIZED_LIMITS, maxDepth: 20 }

/** The caller, as the node says at which it asked. */
export interface ConversationCaller {
  /** Kind of its credential: `token`, `client` (OAuth), `peer`, `operator`. */
  readonly kind: string
  /** The same for all calls with the credential. */
  readonly id: string
  /** Key of the node at which it asked. */
  readonly node?: string
}

/** Ids that an agent gave with its question. */
export interface AgentThread {
  readonly taskId?: string
  readonly contextId?: string
}

/** Earlier messages of a conversation, the oldest first. */
export interface History {
  readonly messages: readonly Message[]
  /** Were there older ones, which are left out? */
  readonly isCut: boolean
}

/** The conversation of a client with an agent, of which a task is one turn. */
export interface Conversation {
  readonly contextId: string
  /** Id of the client's task, the same in all its turns. */
  readonly taskId: string
  /** The message of this turn. */
  readonly message: Message
  /** Earlier messages of the client and the agent in the context, at most {@link MAX_HISTORY}, the oldest first. */
  readonly history: readonly Message[]
  /** Were there older messages, which are left out? */
  readonly isCut: boolean
  readonly caller: ConversationCaller
  /** The ids beside the agent's question that the message answers; absent for none. */
  readonly thread?: AgentThread
}

/** No earlier messages. */
export const NO_HISTORY: History = { messages: [], isCut: false }

const sizes = new WeakMap<Message, number>()

/** Bytes of a message as JSON, long texts included. Measured once. */
export function bytesOf(message: Message): number {
  let bytes = sizes.get(message)
  if (bytes === undefined) sizes.set(message, (bytes = utf8(JSON.stringify(message)).byteLength))
  return bytes
}

/** Bytes of earlier messages together. */
export function historyBytes(messages: readonly Message[]): number {
  let bytes = 0
  for (const message of messages) bytes += bytesOf(message)
  return bytes
}

/** The newest messages within the bounds. */
export function boundedHistory({ messages, isCut }: History, maxBytes = MAX_HISTORY_BYTES): History {
  let bytes = 0
  let from = messages.length
  while (from > 0 && messages.length - from < MAX_HISTORY) {
    const message = messages[from - 1]
    bytes += message === undefined ? 0 : bytesOf(message)
    if (bytes > maxBytes) break
    from--
  }
  return from === 0 ? { messages, isCut } : { messages: messages.slice(from), isCut: true }
}

/** The ids of a thread that an agent gave; null for none. Total. */
export function readThread(value: unknown): AgentThread | null {
  if (!isRecord(value)) return null
  const [taskId, contextId] = [idOf(value['taskId']), idOf(value['contextId'])]
  if (taskId === null && contextId === null) return null
  return { ...(taskId === null ? {} : { taskId }), ...(contextId === null ? {} : { contextId }) }
}

function idOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' && value.length <= MAX_CLIENT_ID ? value : null
}

/** A conversation as a request carries it: content that the input holds is not repeated. JSON. */
export type PackedConversation = Omit<Conversation, 'message'> & { readonly message: object }

/** The conversation beside an input, bounded so that both fit one envelope. */
export function packConversation(conversation: Conversation, input: unknown): PackedConversation {
  const { message, history, isCut, ...rest } = conversation
  const inputBytes = jsonBytes(input)
  const details = new Details(Math.min(MAX_DETAIL_BYTES, MAX_SENT_BYTES - inputBytes))
  const { parts, metadata, ...head } = message
  const packed = packParts(parts, input, details)
  const about = details.kept('metadata', metadata)
  const left = MAX_SENT_BYTES - inputBytes - jsonBytes(packed) - jsonBytes(about)
  const bounded = boundedHistory({ messages: history, isCut }, Math.min(MAX_HISTORY_BYTES, Math.max(0, left)))
  return { ...rest, message: { ...head, parts: packed, ...about }, history: bounded.messages, isCut: bounded.isCut }
}

/** Reads the conversation beside an input as a peer sent it; null for an invalid one. Total. */
export function unpackConversation(value: unknown, input: unknown): Conversation | null {
  // Bytes have no place in it, and would take many times their size as JSON.
  if (!isRecord(value) || hasBytes(value)) return null
  const { message, history, isCut, caller } = value
  const [contextId, taskId] = [idOf(value['contextId']), idOf(value['taskId'])]
  if (contextId === null || taskId === null || !isRecord(message) || !Array.isArray(history) || !isRecord(caller))
    return null
  const [kind, id] = [idOf(caller['kind']), idOf(caller['id'])]
  const current = readMessage({ ...message, parts: unpackParts(message['parts'], input) })
  if (!current.ok || kind === null || id === null) return null
  const messages: Message[] = []
  for (const one of history.slice(-MAX_HISTORY) as unknown[]) {
    const read = readMessage(one)
    if (!read.ok) return null
    messages.push(read.value)
  }
  const bounded = boundedHistory({ messages, isCut: isCut === true || messages.length < history.length })
  const thread = readThread(value['thread'])
  return {
    contextId,
    taskId,
    message: current.value,
    history: bounded.messages,
    isCut: bounded.isCut,
    caller: { kind, id },
    ...(thread === null ? {} : { thread })
  }
}

/** Details beside the content of a message, as far as they fit. */
class Details {
  #left: number

  constructor(left: number) {
    this.#left = left
  }

  kept(name: string, value: unknown): Readonly<Record<string, unknown>> {
    if (value === undefined || jsonFault(value, DETAIL_LIMITS) !== null) return {}
    const bytes = jsonBytes(value)
    if (bytes > this.#left) return {}
    this.#left -= bytes
    return { [name]: value }
  }
}

/** The place of a content in an input: a number of characters of its text, an item of its lists, or all of it. */
type ContentPlace = readonly ['text' | 'data' | 'files', number] | readonly ['input']

/** A part whose content is in the input, or in the part itself (`in` is absent). */
interface PackedPart extends Part {
  readonly in?: ContentPlace
}

/**
 * The parts with the places of their contents in the input, which was made of them. Of a long text that is a JSON
 * object, in one part or several, the input has the value alone: they become that.
 */
function packParts(parts: readonly Part[], input: unknown, details: Details): readonly PackedPart[] {
  const texts = parts.flatMap(({ text }) => (text === undefined ? [] : [text]))
  const isText = isRecord(input) && input['text'] === texts.join('\n')
  const isLong = !isText && texts.some((text) => text.length > LONG_TEXT)
  const isWhole = isLong || (parts.length === 1 && isRecord(parts[0]?.data))
  let [file, item] = [0, 0]
  const placeOf = ({ text, data }: Part): ContentPlace | null => {
    if (isWhole) return ['input']
    if (text !== undefined) return isText ? ['text', text.length] : null
    if (data !== undefined) return ['data', item++]
    return ['files', file++]
  }
  return (isWhole ? parts.slice(0, 1) : parts).map((part): PackedPart => {
    const place = placeOf(part)
    const { text, filename, mediaType, metadata } = part
    const about = {
      ...(filename === undefined ? {} : { filename }),
      ...(mediaType === undefined ? {} : { mediaType }),
      ...details.kept('metadata', metadata)
    }
    return place === null ? { text: text ?? '', ...about } : { ...about, in: place }
  })
}

/**
 * The parts with their contents. A place that is none leaves a part without content, which no message has; so does a
 * place that another part had, or a few bytes would name the same content many times.
 */
function unpackParts(packed: unknown, input: unknown): unknown {
  if (!Array.isArray(packed) || packed.length > MAX_PARTS) return null
  const values = isRecord(input) ? input : {}
  const text = typeof values['text'] === 'string' ? values['text'] : ''
  const next = { data: 0, files: 0 }
  let at = 0
  return packed.map((part: unknown) => {
    if (!isRecord(part) || !Array.isArray(part['in'])) return part
    const { in: place, ...about } = part
    const [where, which] = place as unknown[]
    const number = typeof which === 'number' && Number.isSafeInteger(which) && which >= 0 ? which : 0
    if (where === 'input') return packed.length > 1 || hasBytes(input) ? {} : { ...about, data: input }
    if (where === 'text') {
      const from = at
      at += number + 1
      return { ...about, text: text.slice(from, from + number) }
    }
    if ((where !== 'data' && where !== 'files') || number !== next[where]++) return {}
    const list = values[where]
    const item: unknown = Array.isArray(list) ? list[number] : undefined
    if (where === 'data') return hasBytes(item) ? {} : { ...about, data: item }
    const { bytes: raw, url } = isRecord(item) ? item : {}
    return raw === undefined ? { ...about, url } : { ...about, raw }
  })
}

/** Bytes of a value as JSON, without long texts, which travel beside it. */
function jsonBytes(value: unknown): number {
  const isShort = (_key: string, item: unknown): unknown =>
    item instanceof Uint8Array || (typeof item === 'string' && item.length > LONG_TEXT) ? null : item
  return utf8(JSON.stringify(value, isShort) ?? '').byteLength
}
