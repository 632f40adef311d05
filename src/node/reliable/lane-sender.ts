import type { Clock } from '../../kit/clock.js'
import { messageOf } from '../../kit/errors.js'
import { KEYS, laneText, type Lane } from '../../domain/reliable/keys.js'
import { baseOf, openSender, stepSender } from '../../domain/reliable/lane-sender.js'
import type { LaneSender, SenderEffect, SenderInput, Unacked } from '../../domain/reliable/lane-sender.js'
import type { ReliableFrame } from '../../domain/reliable/frame.js'
import type { Ledger, LedgerChange } from '../../ports/ledger.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { LaneMessages, type StoredMessage } from './lane-messages.js'
import type { TidyLedger } from './tidy-ledger.js'

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
export interface OutgoingLaneDeps extends Pick<TidyLedger, 'commit' | 'tidy'> {
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
  /** A message of this request is durable at its receiver. */
  onAcknowledged(requestId: string): void
  onGivenUp(messages: readonly GivenUp[]): void
  /** Messages of these requests, one for each time that it is named, were given up, and certainly never reached their node. */
  onUndelivered(requestIds: readonly string[]): void
}

/** The sending end of one lane: performs what its machine decides, and sends its messages in order. */
export class OutgoingLane {
  readonly lane: Lane
  readonly #deps: OutgoingLaneDeps
  readonly #state: LaneSender
  readonly #messages: LaneMessages
  /** By the numbers of what is being recorded, in order. */
  readonly #recording = new Map<number, Promise<void>>()
  #renumbering: Promise<boolean> | null = null
  /** Are new numbers being committed? Meanwhile no message is removed: the commit numbers all that there were. */
  #isNumbering = false
  /** Messages that were given up meanwhile. */
  readonly #unwanted = new Set<string>()
  #toSend: Unacked[] = []
  #isSending = false

  constructor(deps: OutgoingLaneDeps, lane: Lane, stored: { readonly next: number; readonly live: readonly StoredMessage[] }) {
    this.lane = lane
    this.#deps = deps
    this.#state = openSender(stored.next, stored.live)
    this.#messages = new LaneMessages(lane, stored.live)
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
    return { count: this.#state.live.length, bytes: this.#messages.bytes }
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
    const commit = this.#deps.commit([...changes, ...this.#messages.recorded(known, message)])
    this.#recording.set(seq, commit)
    try {
      await commit
    } catch (error) {
      this.#recording.delete(seq)
      this.step({ type: 'unrecorded', pending: Math.max(0, ...this.#recording.keys()) })
      throw error
    }
    this.#recording.delete(seq)
    this.#messages.add(known, envelope)
    this.step({ type: 'recorded', messages: [known] })
    // What did not leave at once is read when it does.
    if (this.#state.sent < seq) this.#messages.dropContent(messageId)
  }

  /** Is a message of the request not acknowledged yet? */
  holds(requestId: string): boolean {
    return this.#state.live.some((message) => !message.isVoid && this.#messages.requestOf(message) === requestId)
  }

  /** A relay did not pass a transmission of a message on. True: no other transmission of it is under way, nor was one acknowledged. */
  refused(messageId: string): boolean {
    return this.#messages.refused(messageId)
  }

  /** Gives up what is not acknowledged of a request: it is not delivered any more, if it was not yet. */
  giveUp(requestId: string): void {
    const ofRequest = this.#state.live.filter((message) => this.#messages.requestOf(message) === requestId)
    const messageIds = new Set(ofRequest.map(({ messageId }) => messageId))
    if (messageIds.size > 0) this.step({ type: 'give-up', messageIds })
  }

  /** The changes that remove the lane from the ledger. */
  async removal(): Promise<LedgerChange[]> {
    await Promise.allSettled([...this.#recording.values(), this.#renumbering])
    return this.#messages.removal(this.#state.live)
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
    for (const message of messages) {
      const requestId = message.isVoid ? null : this.#messages.requestOf(message)
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
          effect.messages.map((message) => ({ messageId: message.messageId, requestId: this.#messages.requestOf(message) }))
        )
      case 'undelivered':
        return this.#tellUndelivered(effect.messages.flatMap(({ requestId }) => requestId ?? []))
      case 'forget':
        return this.#deps.tidy(this.#messages.forgotten(effect.messages))
      case 'blank':
        return this.#deps.tidy(this.#messages.blanked(effect.messages))
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
    try {
      await this.#deps.commit(this.#messages.renumbered(this.#state.live, first))
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
      const envelope = message === undefined || message.isVoid ? null : this.#messages.content(messageId)
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
    else this.#messages.putContent(messageId, envelope)
    this.#sendAll()
  }

  /** Nothing from this number on is sent for now: it waits for room, or for the next link. */
  #wait(seq: number): void {
    this.#toSend = []
    this.step({ type: 'full', seq })
  }

  #sendOne(message: Unacked, envelope: Uint8Array | null): void {
    const { seq, messageId } = message
    const { source, target } = this.lane
    this.#messages.dropContent(messageId)
    const requestId = this.#messages.requestOf(message)
    try {
      const [from, to, base] = [source.agentId, target.agentId, baseOf(this.#state)]
      this.#deps.send({ source: from, target: to, seq, base, messageId, requestId, envelope })
      this.#messages.sent(messageId)
    } catch {
      this.#wait(seq)
    }
  }

  #note(what: string, error: unknown): void {
    this.#deps.telemetry.log('error', what, { lane: laneText(this.lane), reason: messageOf(error) })
  }
}
