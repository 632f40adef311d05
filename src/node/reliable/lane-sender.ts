import type { Clock } from '../../kit/clock.js'
import { messageOf, asNodeError } from '../../kit/errors.js'
import { KEYS, laneText, type Lane, rangeOf, readMessageKey } from '../../domain/reliable/keys.js'
import {
  baseOf,
  openSender,
  stepSender,
  type LaneSender,
  type SenderEffect,
  type SenderInput,
  type Unacked
} from '../../domain/reliable/lane-sender.js'
import { messageRecord, senderRecord } from '../../domain/reliable/records.js'
import type { ReliableFrame } from '../../domain/reliable/frame.js'
import type { Ledger, LedgerChange } from '../../ports/ledger.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { parseAddress } from '../../domain/card/card.js'
import { ledgerEntries } from '../ledger/scan.js'

/** A message to be recorded and delivered. */
export interface Outgoing {
  readonly messageId: string
  /** Of the request that it belongs to; null for none. */
  readonly requestId: string | null
  /** The encoded envelope. */
  readonly envelope: Uint8Array
  /** Unix milliseconds; not delivered by then, it is given up. */
  readonly expiresAt: number
}

/** A message that was given up. */
export type GivenUp = Pick<Outgoing, 'messageId' | 'requestId'>

/** What the sending end of a lane needs. */
export interface OutgoingLaneDeps {
  readonly clock: Clock
  readonly ledger: Pick<Ledger, 'get'>
  readonly telemetry: Telemetry
  /** In [0, 1). */
  readonly chance: () => number
  /** Unix milliseconds by which messages expire. */
  readonly expiryNow: () => number
  /** Sends a message of the lane to its node. @throws NodeError when it was not sent. */
  send(frame: ReliableFrame): void
  /** Tells its node the lowest number that comes, and asks which it has. */
  greet(base: number): void
  /** Commits changes, behind those that were to be tidied. @throws NodeError what the ledger refuses. */
  commit(changes: readonly LedgerChange[]): Promise<void>
  /** Makes changes when there is time, or with the next commit. A crash before them does no harm. */
  tidy(changes: readonly LedgerChange[]): void
  /** A message of this request is durable at its receiver. */
  onAcknowledged(requestId: string): void
  onGivenUp(messages: readonly GivenUp[]): void
  /** Messages of these requests, one for each time that it is named, were given up, and certainly never reached their node. */
  onUndelivered(requestIds: readonly string[]): void
}

/** What the ledger holds of a message, and its number. */
type StoredMessage = Unacked & { readonly requestId: string | null }

/** The sending end of one lane: keeps its machine, its records and its messages on their way together. */
export class OutgoingLane {
  readonly lane: Lane
  readonly #text: string
  /** Of its record, which each message changes. */
  readonly #key: string
  readonly #deps: OutgoingLaneDeps
  readonly #state: LaneSender
  readonly #requests = new Map<string, string | null>()
  /** How often messages were sent that are not acknowledged, less the times that a relay said it did not pass them on. */
  readonly #transmissions = new Map<string, number>()
  /** Contents that were recorded a moment ago, so that they need not be read again. */
  readonly #fresh = new Map<string, Uint8Array>()
  /** By the numbers of what is being recorded, in order. */
  readonly #recording = new Map<number, Promise<void>>()
  #renumbering: Promise<boolean> | null = null
  /** Are new numbers being committed? Meanwhile no message is removed: the commit numbers all that there were. */
  #isNumbering = false
  /** Messages that were given up meanwhile. */
  readonly #unwanted = new Set<string>()
  #bytes: number
  #toSend: Unacked[] = []
  #isSending = false

  constructor(deps: OutgoingLaneDeps, lane: Lane, stored: { readonly next: number; readonly live: readonly StoredMessage[] }) {
    this.lane = lane
    this.#text = laneText(lane)
    this.#key = KEYS.sender(this.#text)
    this.#deps = deps
    this.#state = openSender(stored.next, stored.live)
    this.#bytes = bytesOf(stored.live)
    for (const { messageId, requestId } of stored.live) {
      this.#requests.set(messageId, requestId)
      // The process before may have sent it.
      this.#transmissions.set(messageId, 1)
    }
  }

  /** Number of the next message. */
  get next(): number {
    return this.#state.next
  }

  /** Has it no path to its receiver? */
  get isDown(): boolean {
    return this.#state.link === 'down'
  }

  /** Times in a row that its receiver was asked and nothing came back. */
  get silence(): number {
    return this.#state.retries
  }

  /** What is not acknowledged, in order. */
  get messages(): { readonly messageId: string; readonly seq: number }[] {
    return this.#state.live.flatMap(({ messageId, seq, isVoid }) => (isVoid ? [] : [{ messageId, seq }]))
  }

  /** Messages that are not acknowledged, and their bytes. */
  get load(): { readonly count: number; readonly bytes: number } {
    return { count: this.#state.live.length, bytes: this.#bytes }
  }

  /**
   * Records a message together with other changes. When it resolves all of it is durable, and the message on its way.
   * @throws NodeError what the ledger refuses; then none of it is there.
   */
  async record(message: Outgoing, also: () => readonly LedgerChange[]): Promise<void> {
    while (this.#renumbering !== null) await this.#renumbering
    // Not before: a later change of the same record would be overtaken.
    const changes = also()
    const { messageId, requestId, envelope, expiresAt } = message
    const seq = this.#state.next++
    const known: StoredMessage = { seq, messageId, bytes: envelope.byteLength, expiresAt, isVoid: false, requestId }
    const commit = this.#deps.commit([
      ...changes,
      { key: KEYS.message(this.#text, seq), value: messageRecord.encode(known), isNew: true },
      { key: KEYS.content(messageId), value: envelope, isNew: true },
      { key: this.#key, value: senderRecord.encode({ next: seq + 1 }) }
    ])
    this.#recording.set(seq, commit)
    try {
      await commit
    } catch (error) {
      this.#recording.delete(seq)
      this.step({ type: 'unrecorded', pending: Math.max(0, ...this.#recording.keys()) })
      throw error
    }
    this.#recording.delete(seq)
    this.#bytes += known.bytes
    this.#requests.set(messageId, requestId)
    this.#fresh.set(messageId, envelope)
    this.step({ type: 'recorded', messages: [known] })
    // What did not leave at once is read when it does.
    if (this.#state.sent < seq) this.#fresh.delete(messageId)
  }

  /** Is a message of the request not acknowledged yet? */
  holds(requestId: string): boolean {
    return this.#state.live.some(({ messageId, isVoid }) => !isVoid && this.#requests.get(messageId) === requestId)
  }

  /** A relay did not pass a transmission of a message on. True: no other transmission of it is under way, nor was one acknowledged. */
  refused(messageId: string): boolean {
    const left = (this.#transmissions.get(messageId) ?? 0) - 1
    if (left > 0) this.#transmissions.set(messageId, left)
    else this.#transmissions.delete(messageId)
    return left === 0
  }

  /** Gives up what is not acknowledged of a request: it is not delivered any more, if it was not yet. */
  giveUp(requestId: string): void {
    const messageIds = new Set(
      this.#state.live.flatMap(({ messageId }) => (this.#requests.get(messageId) === requestId ? [messageId] : []))
    )
    if (messageIds.size > 0) this.step({ type: 'give-up', messageIds })
  }

  /** The changes that remove the lane from the ledger. */
  async removal(): Promise<LedgerChange[]> {
    await Promise.allSettled([...this.#recording.values(), this.#renumbering])
    const messages = this.#state.live.flatMap(({ seq, messageId }) => [KEYS.message(this.#text, seq), KEYS.content(messageId)])
    return [this.#key, ...messages].map((key) => ({ key, value: null }))
  }

  /** Tells the lane what happened. */
  step(input: SenderInput): void {
    if (this.#isNumbering && this.#isDeferred(input)) return
    // What is over by now is not sent over a new link.
    if (input.type === 'up') this.tick()
    for (const effect of stepSender(this.#state, input, this.#deps.clock.monotonic())) {
      if (input.type === 'ack' && effect.type === 'forget') this.#tellAcknowledged(effect.messages)
      this.#perform(effect)
    }
  }

  /** Does an input remove messages? What is given up is remembered; ticks and acknowledgements come again. */
  #isDeferred(input: SenderInput): boolean {
    if (input.type === 'give-up') for (const messageId of input.messageIds) this.#unwanted.add(messageId)
    return input.type === 'give-up' || input.type === 'ack' || input.type === 'tick'
  }

  #tellAcknowledged(messages: readonly Unacked[]): void {
    for (const { messageId, isVoid } of messages) {
      const requestId = isVoid ? null : (this.#requests.get(messageId) ?? null)
      if (requestId !== null) this.#deps.onAcknowledged(requestId)
    }
  }

  /** Time passed. */
  tick(): void {
    if (this.#state.live.length === 0 && this.#state.askAt === null) return
    this.step({ type: 'tick', chance: this.#deps.chance(), wall: this.#deps.expiryNow() })
  }

  #perform(effect: SenderEffect): void {
    switch (effect.type) {
      case 'greet':
        return this.#deps.greet(baseOf(this.#state))
      case 'send':
        this.#toSend.push(...effect.messages)
        return this.#sendAll()
      case 'expired':
        return this.#deps.onGivenUp(
          effect.messages.map(({ messageId }) => ({ messageId, requestId: this.#requests.get(messageId) ?? null }))
        )
      case 'undelivered':
        return this.#tellUndelivered(effect.messages.flatMap(({ requestId }) => requestId ?? []))
      case 'forget':
        return this.#forget(effect.messages)
      case 'blank':
        return this.#blank(effect.messages)
      case 'renumber':
        void this.renumber(effect.first)
    }
  }

  /** A crash must not bring back what is said never to get there: its removal is durable first. Until then it stays unknown. */
  #tellUndelivered(requestIds: readonly string[]): void {
    if (requestIds.length === 0) return
    this.#deps.commit([]).then(
      () => this.#deps.onUndelivered(requestIds),
      (error: unknown) => this.#deps.telemetry.log('warn', 'what never got to its node stays unknown', { reason: messageOf(error) })
    )
  }

  #forget(messages: readonly Unacked[]): void {
    this.#bytes -= bytesOf(messages)
    const changes = messages.flatMap(({ seq, messageId }) => {
      this.#requests.delete(messageId)
      this.#transmissions.delete(messageId)
      this.#fresh.delete(messageId)
      return [
        { key: KEYS.message(this.#text, seq), value: null },
        { key: KEYS.content(messageId), value: null }
      ]
    })
    this.#deps.tidy(changes)
  }

  #blank(messages: readonly Unacked[]): void {
    this.#bytes -= bytesOf(messages)
    this.#deps.tidy(
      messages.flatMap((message) => {
        this.#fresh.delete(message.messageId)
        this.#transmissions.delete(message.messageId)
        const requestId = this.#requests.get(message.messageId) ?? null
        return [
          { key: KEYS.message(this.#text, message.seq), value: messageRecord.encode({ ...message, requestId, bytes: 0, isVoid: true }) },
          { key: KEYS.content(message.messageId), value: null }
        ]
      })
    )
  }

  /**
   * New numbers, from `first` on, for all that is not acknowledged, in one commit: a crash leaves the old ones or the new. Resolves
   * to whether the ledger took them. Never rejects.
   */
  renumber(first: number): Promise<boolean> {
    this.#renumbering ??= this.#renumber(first).finally(() => {
      this.#renumbering = null
    })
    return this.#renumbering
  }

  async #renumber(first: number): Promise<boolean> {
    await Promise.allSettled(this.#recording.values())
    this.#isNumbering = true
    const isTaken = await this.#commitNumbers(first)
    this.#isNumbering = false
    if (isTaken) this.step({ type: 'renumbered', first })
    const messageIds = new Set(this.#unwanted)
    this.#unwanted.clear()
    if (messageIds.size > 0) this.step({ type: 'give-up', messageIds })
    return isTaken
  }

  async #commitNumbers(first: number): Promise<boolean> {
    const { live } = this.#state
    const changes: LedgerChange[] = live.map(({ seq }) => ({ key: KEYS.message(this.#text, seq), value: null }))
    for (const [at, message] of live.entries()) {
      const record = messageRecord.encode({ ...message, requestId: this.#requests.get(message.messageId) ?? null })
      changes.push({ key: KEYS.message(this.#text, first + at), value: record })
    }
    const value = senderRecord.encode({ next: first + live.length })
    try {
      await this.#deps.commit([...changes, { key: this.#key, value }])
      return true
    } catch (error) {
      // It is asked again soon.
      this.#note('a lane could not be numbered anew', error)
      return false
    }
  }

  /** One after the other, in order; what has to be read first holds up those behind it. */
  #sendAll(): void {
    if (this.#isSending) return
    for (let [next] = this.#toSend; next !== undefined; [next] = this.#toSend) {
      const { seq, messageId } = next
      // It may have been acknowledged, given up or numbered anew since.
      const message = this.#state.live.find((one) => one.seq === seq && one.messageId === messageId)
      const envelope = message === undefined || message.isVoid ? null : this.#fresh.get(messageId)
      if (envelope === undefined) return void this.#read(next)
      this.#toSend.shift()
      if (message !== undefined) this.#sendOne(message, envelope)
    }
  }

  async #read({ seq, messageId }: Unacked): Promise<void> {
    this.#isSending = true
    const envelope = await this.#deps.ledger.get(KEYS.content(messageId)).catch((error: unknown) => {
      this.#note('a message could not be read', error)
      return undefined
    })
    this.#isSending = false
    // What is live and not there never comes back; what cannot be read now is read again.
    if (envelope === null) this.step({ type: 'give-up', messageIds: new Set([messageId]) })
    else if (envelope === undefined) this.#wait(seq)
    else if (this.#requests.has(messageId)) this.#fresh.set(messageId, envelope)
    this.#sendAll()
  }

  /** Nothing from this number on is sent for now: it waits for room, or for the next link. */
  #wait(seq: number): void {
    this.#toSend = []
    this.step({ type: 'full', seq })
  }

  #sendOne({ seq, messageId }: Unacked, envelope: Uint8Array | null): void {
    this.#fresh.delete(messageId)
    const { source, target } = this.lane
    const requestId = this.#requests.get(messageId) ?? null
    try {
      this.#deps.send({
        source: source.agentId,
        target: target.agentId,
        seq,
        base: baseOf(this.#state),
        messageId,
        requestId,
        envelope
      })
      this.#transmissions.set(messageId, (this.#transmissions.get(messageId) ?? 0) + 1)
    } catch {
      this.#wait(seq)
    }
  }

  #note(what: string, error: unknown): void {
    this.#deps.telemetry.log('error', what, { lane: this.#text, reason: messageOf(error) })
  }
}

function bytesOf(messages: readonly Unacked[]): number {
  let sum = 0
  for (const { bytes } of messages) sum += bytes
  return sum
}

/** A message that is not acknowledged, as the ledger has it. */
type StoredLane = Unacked & { readonly requestId: string | null }

/** The sending ends of lanes that a ledger holds. `first`: number of the next message of one whose record is damaged. */
export async function storedLanes(
  ledger: Ledger,
  { telemetry, first }: { readonly telemetry: Telemetry; readonly first: number }
): Promise<{ readonly lane: Lane; readonly next: number; readonly live: readonly StoredLane[] }[]> {
  const live = new Map<string, StoredLane[]>()
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
      lanes.push({ lane, next: Math.max(readNext(value, { telemetry, first }), (messages.at(-1)?.seq ?? 0) + 1), live: messages })
  }
  return lanes
}

/** Number of the next message of a lane. */
function readNext(value: Uint8Array, { telemetry, first }: { readonly telemetry: Telemetry; readonly first: number }): number {
  const what = 'the record of a lane is damaged: it begins anew'
  return unlessDamaged(() => senderRecord.decode(value).next, { instead: first, what, telemetry })
}

/** Nothing is sent in the place of a damaged one. */
function readMessage(seq: number, value: Uint8Array, telemetry: Telemetry): StoredLane {
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

/** The lane of such a text; null when it is none. */
function readLane(text: string): Lane | null {
  const [source, target] = text.split('>').map(parseAddress)
  return source === undefined || source === null || target === undefined || target === null ? null : { source, target }
}
