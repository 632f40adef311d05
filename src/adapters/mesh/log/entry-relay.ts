import c from 'compact-encoding'
import type { Channel } from 'protomux'
import type Protomux from 'protomux'
import { type Clock, wait } from '../../../kit/clock.js'
import type { NodeId } from '../../../kit/ids.js'

/** An entry handed over is answered within this time, in milliseconds. */
const ANSWER_TIMEOUT_MS = 5000
/** Largest log entry that is taken from a peer, in bytes. */
const MAX_ENTRY_BYTES = 96 * 1024
/** Entries of one peer that may wait for their append at once. */
const MAX_ENTRIES_WAITING = 64
/** Answers that may wait for a peer that does not read. */
const MAX_ANSWERS_UNREAD = 64
/** An entry's number, before the entry and before its answer. */
const NUMBER_BYTES = 4

/** A peer has this long to answer before another one is asked as well, in milliseconds. */
const PATIENCE_MS = 500

/** The source of an entry that a node hands on, and whether it was handed over before. */
export interface EntryRelayOptions {
  /** A node said that the entry was appended, and the log does not show it. Default: false. */
  readonly isAgain?: boolean
  /** The peer that handed it in; null: it is an entry of this node. Default: null. */
  readonly from?: NodeId | null
  /** Every peer is to have it, writer or not, but the one that handed it in. Default: false. */
  readonly isForAll?: boolean
}

/**
 * Hands an entry to one relay after the other until one reports that it appended it; a silent one does not hold up the
 * rest. `atOnce`: to all of them together, e.g. after an untrue report. False: nobody has appended it. Never rejects.
 */
export async function handToAny(
  relays: readonly Pick<EntryRelay, 'hand'>[],
  entry: Uint8Array,
  { clock, atOnce }: { readonly clock: Clock; readonly atOnce: boolean }
): Promise<boolean> {
  const answers: Promise<boolean>[] = []
  for (const relay of relays) {
    answers.push(relay.hand(entry))
    if (!atOnce && (await Promise.race([anyYes(answers), wait(clock, PATIENCE_MS)])) === true) return true
  }
  return anyYes(answers)
}

/** True as soon as one is; false when none is. */
function anyYes(answers: readonly Promise<boolean>[]): Promise<boolean> {
  return new Promise((resolve) => {
    const received = answers.map((answer) => answer.then((isYes) => (isYes ? resolve(true) : undefined)))
    void Promise.all(received).then(() => resolve(false))
  })
}

/** Dependencies of {@link EntryRelay}. */
export interface EntryRelayDeps {
  readonly peer: NodeId
  readonly mux: Protomux
  readonly clock: Clock
  onMalformed(reason: string): void
  /** Brings a peer's entry into the log, by this node or a writer with a link to it; false when neither did. */
  appendFor(entry: Uint8Array, peer: NodeId): Promise<boolean>
}

/** Hands log entries to the peer, and takes the peer's. Message 0: number and entry; message 1: number and 1 or 0. */
export class EntryRelay {
  readonly #deps: EntryRelayDeps
  readonly #channel: Channel | null
  readonly #answers = new Map<number, (isAppended: boolean) => void>()
  #next = 1
  /** Entries of the peer on their way into the log. */
  #appending = 0
  /** Answers since the peer last had read everything. */
  #unread = 0

  constructor(deps: EntryRelayDeps) {
    this.#deps = deps
    this.#channel = deps.mux.createChannel({
      protocol: 'a2a-node/log',
      messages: [
        { encoding: c.raw, onmessage: (raw) => this.#onEntry(raw) },
        { encoding: c.raw, onmessage: (raw) => this.#onAnswer(raw) }
      ],
      onclose: () => {
        for (const answer of [...this.#answers.values()]) answer(false)
      }
    })
    this.#channel?.open()
  }

  /** Hands over an encoded entry. True: the peer has appended it. */
  hand(entry: Uint8Array): Promise<boolean> {
    const channel = this.#channel
    if (channel === null || channel.closed) return Promise.resolve(false)
    const number = this.#next++
    return new Promise((resolve) => {
      const finish = (isAppended: boolean): void => {
        this.#deps.clock.clear(timer)
        this.#answers.delete(number)
        resolve(isAppended)
      }
      const timer = this.#deps.clock.after(ANSWER_TIMEOUT_MS, () => finish(false))
      this.#answers.set(number, finish)
      channel.messages[0]?.send(numbered(number, entry))
    })
  }

  #onEntry(raw: Uint8Array): void {
    if (raw.byteLength <= NUMBER_BYTES || raw.byteLength > MAX_ENTRY_BYTES + NUMBER_BYTES) {
      return this.#deps.onMalformed('a log entry of no sensible size')
    }
    const number = numberOf(raw)
    if (this.#appending >= MAX_ENTRIES_WAITING) return this.#answer(number, false)
    this.#appending++
    this.#deps
      .appendFor(raw.slice(NUMBER_BYTES), this.#deps.peer)
      .catch(() => false)
      .then((isAppended) => {
        this.#appending--
        this.#answer(number, isAppended)
      })
      .catch(() => {})
  }

  #answer(number: number, isAppended: boolean): void {
    this.#channel?.messages[1]?.send(numbered(number, Uint8Array.of(isAppended ? 1 : 0)))
    this.#unread = this.#deps.mux.drained ? 0 : this.#unread + 1
    if (this.#unread <= MAX_ANSWERS_UNREAD) return
    this.#unread = 0
    this.#deps.onMalformed('a peer that hands in entries and does not read the answers')
  }

  #onAnswer(raw: Uint8Array): void {
    if (raw.byteLength !== NUMBER_BYTES + 1) return this.#deps.onMalformed('an answer of the log channel has 5 bytes')
    this.#answers.get(numberOf(raw))?.(raw[NUMBER_BYTES] === 1)
  }
}

function numbered(number: number, bytes: Uint8Array): Uint8Array {
  const message = new Uint8Array(NUMBER_BYTES + bytes.byteLength)
  new DataView(message.buffer).setUint32(0, number)
  message.set(bytes, NUMBER_BYTES)
  return message
}

function numberOf(message: Uint8Array): number {
  return new DataView(message.buffer, message.byteOffset, NUMBER_BYTES).getUint32(0)
}
