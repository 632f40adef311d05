import { asNodeError } from '../../kit/errors.js'
import { parseAddress } from '../../domain/card/card.js'
import { KEYS, laneText, type Lane, rangeOf, readMessageKey } from '../../domain/reliable/keys.js'
import type { Unacked } from '../../domain/reliable/lane-sender.js'
import { messageRecord, senderRecord } from '../../domain/reliable/records.js'
import type { Ledger, LedgerChange } from '../../ports/ledger.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { Outgoing } from './lane-sender.js'
import { ledgerEntries } from '../ledger/scan.js'

/** A message on record that is not acknowledged, and its request. */
export type StoredMessage = Unacked & { readonly requestId: string | null }

/**
 * The messages of a lane that are not acknowledged: requests, transmission counts, contents in memory, and ledger
 * changes.
 */
export class LaneMessages {
  readonly #text: string
  /** Key of the sender's record, which each message changes. */
  readonly #key: string
  readonly #requests = new Map<string, string | null>()
  /** Transmissions of each message, less those that a relay refused. */
  readonly #transmissions = new Map<string, number>()
  /** Contents that were recorded or read a moment ago. */
  readonly #contents = new Map<string, Uint8Array>()
  #bytes: number

  constructor(lane: Lane, stored: readonly StoredMessage[]) {
    this.#text = laneText(lane)
    this.#key = KEYS.sender(this.#text)
    this.#bytes = bytesOf(stored)
    for (const { messageId, requestId } of stored) {
      this.#requests.set(messageId, requestId)
      // The previous process may have sent it.
      this.#transmissions.set(messageId, 1)
    }
  }

  /** Bytes of all messages. */
  get bytes(): number {
    return this.#bytes
  }

  /** The request of a message; null when it has none. */
  requestOf({ messageId }: Pick<Unacked, 'messageId'>): string | null {
    return this.#requests.get(messageId) ?? null
  }

  /** The content of a message, if it is in memory. */
  content(messageId: string): Uint8Array | undefined {
    return this.#contents.get(messageId)
  }

  /** Keeps the content of an unacknowledged message until it is sent. */
  putContent(messageId: string, content: Uint8Array): void {
    if (this.#requests.has(messageId)) this.#contents.set(messageId, content)
  }

  /** Drops a content from memory; the ledger still has it. */
  dropContent(messageId: string): void {
    this.#contents.delete(messageId)
  }

  /** Counts a transmission of a message. */
  sent(messageId: string): void {
    this.#transmissions.set(messageId, (this.#transmissions.get(messageId) ?? 0) + 1)
  }

  /**
   * A relay refused a transmission of a message. True: no other transmission is under way, nor was one acknowledged.
   */
  refused(messageId: string): boolean {
    const left = (this.#transmissions.get(messageId) ?? 0) - 1
    if (left > 0) this.#transmissions.set(messageId, left)
    else this.#transmissions.delete(messageId)
    return left === 0
  }

  /** A message is durable. */
  add({ messageId, requestId, bytes }: StoredMessage, content: Uint8Array): void {
    this.#bytes += bytes
    this.#requests.set(messageId, requestId)
    this.#contents.set(messageId, content)
  }

  /** The changes that record a message with its content. */
  recorded(message: StoredMessage, { messageId, envelope }: Outgoing): LedgerChange[] {
    return [
      { key: KEYS.message(this.#text, message.seq), value: messageRecord.encode(message), isNew: true },
      { key: KEYS.content(messageId), value: envelope, isNew: true },
      { key: this.#key, value: senderRecord.encode({ next: message.seq + 1 }) }
    ]
  }

  /** The changes that remove messages. */
  forgotten(messages: readonly Unacked[]): LedgerChange[] {
    this.#bytes -= bytesOf(messages)
    return messages.flatMap(({ seq, messageId }) => {
      this.#requests.delete(messageId)
      this.#transmissions.delete(messageId)
      this.#contents.delete(messageId)
      return [
        { key: KEYS.message(this.#text, seq), value: null },
        { key: KEYS.content(messageId), value: null }
      ]
    })
  }

  /** The changes that remove contents but keep the numbers of messages. */
  blanked(messages: readonly Unacked[]): LedgerChange[] {
    this.#bytes -= bytesOf(messages)
    return messages.flatMap((message) => {
      this.#contents.delete(message.messageId)
      this.#transmissions.delete(message.messageId)
      return [
        { key: KEYS.message(this.#text, message.seq), value: this.#encoded({ ...message, bytes: 0, isVoid: true }) },
        { key: KEYS.content(message.messageId), value: null }
      ]
    })
  }

  /** The changes that give messages new numbers, from `first` on. */
  renumbered(messages: readonly Unacked[], first: number): LedgerChange[] {
    return [
      ...messages.map(({ seq }) => ({ key: KEYS.message(this.#text, seq), value: null })),
      ...messages.map((message, at) => ({ key: KEYS.message(this.#text, first + at), value: this.#encoded(message) })),
      { key: this.#key, value: senderRecord.encode({ next: first + messages.length }) }
    ]
  }

  /** The changes that remove the lane and these messages. */
  removal(messages: readonly Unacked[]): LedgerChange[] {
    const keys = messages.flatMap(({ seq, messageId }) => [KEYS.message(this.#text, seq), KEYS.content(messageId)])
    return [this.#key, ...keys].map((key) => ({ key, value: null }))
  }

  #encoded(message: Unacked): Uint8Array {
    return messageRecord.encode({ ...message, requestId: this.requestOf(message) })
  }
}

function bytesOf(messages: readonly Unacked[]): number {
  let sum = 0
  for (const { bytes } of messages) sum += bytes
  return sum
}

/** The sending ends of lanes in the ledger. `first`: number of the next message of a lane with a damaged record. */
export async function storedLanes(
  ledger: Ledger,
  { telemetry, first }: { readonly telemetry: Telemetry; readonly first: number }
): Promise<{ readonly lane: Lane; readonly next: number; readonly live: readonly StoredMessage[] }[]> {
  const live = new Map<string, StoredMessage[]>()
  for await (const { key, value } of ledgerEntries(ledger, rangeOf('out'))) {
    const { lane, seq } = readMessageKey(key)
    const messages = live.get(lane) ?? []
    messages.push(readMessage(seq, value, telemetry))
    live.set(lane, messages)
  }
  const lanes = []
  for await (const { key, value } of ledgerEntries(ledger, rangeOf('lane-out'))) {
    const text = key.slice(KEYS.sender('').length)
    const lane = readLane(text)
    const messages = live.get(text) ?? []
    if (lane !== null)
      lanes.push({
        lane,
        next: Math.max(readNext(value, { telemetry, first }), (messages.at(-1)?.seq ?? 0) + 1),
        live: messages
      })
  }
  return lanes
}

/** Number of the next message of a lane. */
function readNext(
  value: Uint8Array,
  { telemetry, first }: { readonly telemetry: Telemetry; readonly first: number }
): number {
  const what = 'the record of a lane is damaged: it begins anew'
  return unlessDamaged(() => senderRecord.decode(value).next, { instead: first, what, telemetry })
}

/** A damaged message keeps its number, but nothing is sent for it. */
function readMessage(seq: number, value: Uint8Array, telemetry: Telemetry): StoredMessage {
  const instead = { messageId: `damaged ${seq}`, requestId: null, bytes: 0, expiresAt: 0, isVoid: true }
  const what = `the record of message ${seq} of a lane is damaged: it is not sent`
  return { seq, ...unlessDamaged(() => messageRecord.decode(value), { instead, what, telemetry }) }
}

/** One damaged record must hold up neither its lane nor the start of the node. */
function unlessDamaged<T>(
  read: () => T,
  { instead, what, telemetry }: { readonly instead: T; readonly what: string; readonly telemetry: Telemetry }
): T {
  try {
    return read()
  } catch (error) {
    if (asNodeError(error).code !== 'STORE_DAMAGED') throw error
    telemetry.count('errors', 'ledger')
    telemetry.log('error', what)
    return instead
  }
}

/** The lane of such a text; null when the text is no lane. */
function readLane(text: string): Lane | null {
  const [source, target] = text.split('>').map(parseAddress)
  return source === undefined || source === null || target === undefined || target === null ? null : { source, target }
}
