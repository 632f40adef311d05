import { utf8 } from '../../kit/ids.js'
import { jsonFault, type JsonLimits, SIZED_LIMITS } from '../../kit/json.js'
import { copied } from '../../kit/text.js'
import { boundedHistory, historyBytes, type History, MAX_HISTORY_BYTES } from './conversation.js'
import { GrowingArtifacts } from './growing-artifacts.js'
import { MAX_PARTS, type Message, type Part } from './message.js'
import { type GatewayEvent, type GatewayTask, RESTING_STATES } from './task.js'

/** Bytes of JSON of one part of an earlier message. */
export const MAX_HISTORY_PART = 32_768
/** Depth of values in earlier messages, so that they fit an envelope. */
const PART_LIMITS: JsonLimits = { ...SIZED_LIMITS, maxDepth: 16 }

/** A message of a conversation, and when it came: unix milliseconds. */
export interface HistoryEntry {
  readonly at: number
  readonly message: Message
}

/** A message of a client and its answer. */
export type ContextExchange = readonly [asked: HistoryEntry, answer: HistoryEntry]

/** The client, context and agent (`agentId@nodeId`) of a conversation. */
export type ContextPlace = Pick<GatewayTask, 'owner' | 'contextId' | 'agent'>

/** A message of a context, with its client and its agent. */
export type ContextEntry = HistoryEntry & Pick<ContextPlace, 'owner' | 'agent'>

/** Messages of a context, the oldest first. `isCut`: older ones, or some in between, are left out. */
export interface ContextEntries {
  readonly entries: readonly ContextEntry[]
  readonly isCut: boolean
}

/** The messages of some events of a task. */
export interface TurnFold {
  readonly entries: readonly HistoryEntry[]
  /** Generation of the last event that is in a message; later ones belong to a message that is not complete. */
  readonly generation: number
}

/**
 * The messages that a client and an agent exchanged by the events of a task, which follow each other: the client's as
 * they came, and one of the agent where the task came to rest, with its artifacts since the client's and its words.
 * `metadata.leftOut` of a message: the number of missing events before its last one.
 */
export function foldTurns(taskId: string, events: readonly GatewayEvent[], from: number): TurnFold {
  const entries: HistoryEntry[] = []
  let generation = from
  let artifacts = new GrowingArtifacts()
  let [last, leftOut] = [from, 0]
  for (const event of events) {
    leftOut += event.generation - last - 1
    last = event.generation
    if (event.type === 'artifact') {
      artifacts.take(event.artifact, event.append)
      continue
    }
    if (event.type === 'status' && !RESTING_STATES.has(event.state)) continue
    generation = event.generation
    const { at } = event
    const add = (message: Message): void => {
      const metadata = leftOut === 0 ? {} : { metadata: { ...message.metadata, leftOut } }
      entries.push({ at, message: earlier({ ...message, taskId, ...metadata }) })
      leftOut = 0
    }
    if (event.type === 'message') add(event.message)
    else {
      const parts = [...artifacts.all().flatMap(({ parts: all }) => joined(all)), ...(event.message?.parts ?? [])]
      const messageId = event.message?.messageId ?? `${taskId}.${event.generation}`
      if (parts.length > 0) add({ messageId, role: 'agent', parts })
    }
    artifacts = new GrowingArtifacts()
  }
  return { entries, generation }
}

/** Adjacent texts without details as one. */
function joined(parts: readonly Part[]): readonly Part[] {
  const all: Part[] = []
  for (const part of parts) {
    const last = all.at(-1)
    if (last !== undefined && isPlain(last) && isPlain(part)) all[all.length - 1] = { text: `${last.text}${part.text}` }
    else all.push(part)
  }
  return all
}

function isPlain(part: Part): boolean {
  return part.text !== undefined && Object.keys(part).length === 1
}

/** A message as a later turn sees it: large content is cut or left out, which `metadata.leftOut` of the part says. */
export function earlier({ messageId, role, parts, taskId, metadata }: Message): Message {
  let left = MAX_HISTORY_BYTES / 2
  const kept = parts.slice(0, MAX_PARTS).map((part) => {
    const short = earlierPart(part, left)
    left -= bytesIn(short)
    return short
  })
  const isSmall = metadata !== undefined && isWithin(metadata, MAX_HISTORY_PART)
  return {
    messageId,
    role,
    parts: kept,
    ...(taskId === undefined ? {} : { taskId }),
    ...(isSmall ? { metadata } : {})
  }
}

function earlierPart(part: Part, left: number): Part {
  const { text, filename, mediaType } = part
  if (isWithin(part, Math.min(left, MAX_HISTORY_PART))) return part
  // Never half of a character; a character takes at most six bytes.
  const begin = (text ?? '').slice(0, Math.max(0, Math.min(MAX_HISTORY_PART, left) / 6))
  const cut = copied(begin.replace(/[\uD800-\uDBFF]$/, ''))
  return {
    text: cut,
    ...(filename === undefined ? {} : { filename }),
    ...(mediaType === undefined ? {} : { mediaType }),
    metadata: { leftOut: (text ?? part.raw ?? JSON.stringify(part)).length - cut.length }
  }
}

function isWithin(value: object, bytes: number): boolean {
  return jsonFault(value, PART_LIMITS) === null && bytesIn(value) <= bytes
}

function bytesIn(value: object): number {
  return utf8(JSON.stringify(value)).byteLength
}

/** The newest messages of one context. Changed in place. */
export class ConversationWindow {
  #history: History = { messages: [], isCut: false }
  #bytes = 0

  /** Bytes of its messages. */
  get bytes(): number {
    return this.#bytes
  }

  /** Adds messages, which came after all others. */
  add(entries: readonly HistoryEntry[]): void {
    if (entries.length === 0) return
    const messages = [...this.#history.messages, ...entries.map(({ message }) => message)]
    this.#history = boundedHistory({ messages, isCut: this.#history.isCut })
    this.#bytes = historyBytes(this.#history.messages)
  }

  /** Older messages were left out. */
  cut(): void {
    this.#history = { ...this.#history, isCut: true }
  }

  /** The messages before one of them; all when it is not among them. */
  before(messageId: string): History {
    const { messages, isCut } = this.#history
    const at = messages.findLastIndex((one) => one.role === 'user' && one.messageId === messageId)
    return at === -1 ? this.#history : { messages: messages.slice(0, at), isCut }
  }
}
