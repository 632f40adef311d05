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

/** A message to record and deliver. */
export interface Outgoing {
  readonly messageId: string
  /** The request of the message; null when it has none. */
  readonly requestId: string | null
  /** The encoded envelope. */
  readonly envelope: Uint8Array
  /** Unix milliseconds after which an undelivered message is given up. */
  readonly expiresAt: number
}

/** A message that was given up. */
export type GivenUp = Pick<Outgoing, 'messageId' | 'requestId'>

/** Dependencies of the sending end of a lane. */
export interface OutgoingLaneDeps extends Pick<TidyLedger, 'commit' | 'tidy'> {
  readonly clock: Clock
  readonly ledger: Pick<Ledger, 'get'>
  readonly telemetry: Telemetry
  /** In [0, 1). */
  readonly chance: () => number
  /** Unix milliseconds; the clock for expiry. */
  readonly expiryNow: () => number
  /** Sends a message of the lane to its node. @throws NodeError when it was not sent. */
  send(frame: ReliableFrame): void
  /** Tells its node the lowest number that comes, and asks for the last one it has. */
  greet(base: number): void
  /** A message of this request is durable at its receiver. */
  onAcknowledged(requestId: string): void
  onGivenUp(messages: readonly GivenUp[]): void
  /** Messages of these requests were given up and never reached their node. A request is named once per message. */
  onUndelivered(requestIds: readonly string[]): void
}

/** The sending end of one lane: performs the effects of its state machine, and sends messages in order. */
export class OutgoingLane {
  readonly lane: Lane
  readonly #deps: OutgoingLaneDeps
  readonly #state: LaneSender
  readonly #messages: LaneMessages
  /** Commits under way, by message number, in order. */
  readonly #recording = new Map<number, Promise<void>>()
  readonly #numbering = new Renumbering()
  #toSend: Unacked[] = []
  #isSending = false

  constructor(
    deps: OutgoingLaneDeps,
    lane: Lane,
    stored: { readonly next: number; readonly live: readonly StoredMessage[] }
  ) {
    this.lane = lane
    this.#deps = deps
    this.#state = openSender(stored.next, stored.live)
    this.#messages = new LaneMessages(lane, stored.live)
  }

  /** Number of the next message. */
  get next(): number {
    return this.#state.next
  }

  /** Is there no path to its receiver? */
  get isDown(): boolean {
    return this.#state.link === 'down'
  }

  /** Questions in a row that its receiver did not answer. */
  get silence(): number {
    return this.#state.retries
  }

  /** Messages that are not acknowledged, in order. */
  get messages(): { readonly messageId: string; readonly seq: number }[] {
    return this.#state.live.flatMap(({ messageId, seq, isVoid }) => (isVoid ? [] : [{ messageId, seq }]))
  }

  /** Count and bytes of messages that are not acknowledged. */
  get load(): { readonly count: number; readonly bytes: number } {
    return { count: this.#state.live.length, bytes: this.#messages.bytes }
  }

  /**
   * Records a message together with other changes. Resolves when all of it is durable and the message is on its way.
   * @throws NodeError the ledger's error; then no change was made.
   */
  async record(message: Outgoing, also: () => readonly LedgerChange[]): Promise<void> {
    while (this.#numbering.pending !== null) await this.#numbering.pending
    // Not earlier: a later change of the same record would be overwritten.
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
    // A message that was not sent at once is read again before it is sent.
    if (this.#state.sent < seq) this.#messages.dropContent(messageId)
  }

  /** Is a message of the request not acknowledged yet? */
  holds(requestId: string): boolean {
    return this.#state.live.some((message) => !message.isVoid && this.#messages.requestOf(message) === requestId)
  }

  /**
   * A relay refused a transmission of a message. True: no other transmission is under way, nor was one acknowledged.
   */
  refused(messageId: string): boolean {
    return this.#messages.refused(messageId)
  }

  /** Gives up the unacknowledged messages of a request: they are not delivered any more, unless they were already. */
  giveUp(requestId: string): void {
    const ofRequest = this.#state.live.filter((message) => this.#messages.requestOf(message) === requestId)
    const messageIds = new Set(ofRequest.map(({ messageId }) => messageId))
    if (messageIds.size > 0) this.step({ type: 'give-up', messageIds })
  }

  /** The changes that remove the lane from the ledger. */
  async removal(): Promise<LedgerChange[]> {
    await Promise.allSettled([...this.#recording.values(), this.#numbering.pending])
    return this.#messages.removal(this.#state.live)
  }

  /** Applies an input to the lane. */
  step(input: SenderInput): void {
    if (this.#numbering.defers(input)) return
    // Expired messages are not sent over a new link.
    if (input.type === 'up') this.tick()
    for (const effect of stepSender(this.#state, input, this.#deps.clock.monotonic())) {
      if (input.type === 'ack' && effect.type === 'forget') this.#tellAcknowledged(effect.messages)
      this.#perform(effect)
    }
  }

  #tellAcknowledged(messages: readonly Unacked[]): void {
    for (const message of messages) {
      const requestId = message.isVoid ? null : this.#messages.requestOf(message)
      if (requestId !== null) this.#deps.onAcknowledged(requestId)
    }
  }

  /** Applies the passing of time. */
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
          effect.messages.map((message) => ({
            messageId: message.messageId,
            requestId: this.#messages.requestOf(message)
          }))
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

  /**
   * Removal becomes durable first: a crash must not bring back a message reported as undelivered. Until then it stays
   * unknown.
   */
  #tellUndelivered(requestIds: readonly string[]): void {
    if (requestIds.length === 0) return
    this.#deps.commit([]).then(
      () => this.#deps.onUndelivered(requestIds),
      (error: unknown) =>
        this.#deps.telemetry.log('warn', 'what never got to its node stays unknown', { reason: messageOf(error) })
    )
  }

  /**
   * Gives all unacknowledged messages new numbers from `first` on, in one commit: a crash leaves the old ones or the
   * new ones.
   * Resolves to whether the ledger took them. Never rejects.
   */
  renumber(first: number): Promise<boolean> {
    return this.#numbering.run(async (commitIn) => {
      await Promise.allSettled(this.#recording.values())
      const isTaken = await commitIn(() => this.#commitNumbers(first))
      if (isTaken) this.step({ type: 'renumbered', first })
      const messageIds = this.#numbering.takeUnwanted()
      if (messageIds.size > 0) this.step({ type: 'give-up', messageIds })
      return isTaken
    })
  }

  async #commitNumbers(first: number): Promise<boolean> {
    try {
      await this.#deps.commit(this.#messages.renumbered(this.#state.live, first))
      return true
    } catch (error) {
      // The receiver is asked again soon.
      this.#note('a lane could not be numbered anew', error)
      return false
    }
  }

  /** Sends in order; a message that must be read first holds up the later ones. */
  #sendAll(): void {
    if (this.#isSending) return
    for (let [next] = this.#toSend; next !== undefined; [next] = this.#toSend) {
      const { seq, messageId } = next
      // It may have been acknowledged, given up or renumbered since.
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
    // A live message without content is lost for good; a failed read is repeated.
    if (envelope === null) this.step({ type: 'give-up', messageIds: new Set([messageId]) })
    else if (envelope === undefined) this.#wait(seq)
    else this.#messages.putContent(messageId, envelope)
    this.#sendAll()
  }

  /** Sends nothing from this number on for now, until there is room or a new link. */
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

/**
 * The renumbering of a lane. While its commit is under way no message is removed: the commit covers all messages of its
 * start.
 */
class Renumbering {
  /** Messages given up during the commit. */
  #unwanted = new Set<string>()
  #pending: Promise<boolean> | null = null
  #isCommitting = false

  /** Resolves when the renumbering under way has ended; null when there is none. */
  get pending(): Promise<boolean> | null {
    return this.#pending
  }

  /** Runs a renumbering, or joins the one under way. `commitIn` runs its commit. */
  run(
    renumber: (commitIn: (commit: () => Promise<boolean>) => Promise<boolean>) => Promise<boolean>
  ): Promise<boolean> {
    this.#pending ??= renumber((commit) => this.#during(commit)).finally(() => {
      this.#pending = null
    })
    return this.#pending
  }

  async #during(commit: () => Promise<boolean>): Promise<boolean> {
    this.#isCommitting = true
    const isTaken = await commit()
    this.#isCommitting = false
    return isTaken
  }

  /**
   * May an input that removes messages not be applied now? Messages given up are remembered; ticks and acknowledgements
   * come again.
   */
  defers(input: SenderInput): boolean {
    if (!this.#isCommitting) return false
    if (input.type === 'give-up') for (const messageId of input.messageIds) this.#unwanted.add(messageId)
    return input.type === 'give-up' || input.type === 'ack' || input.type === 'tick'
  }

  /** Removes and returns the messages given up during the commit. */
  takeUnwanted(): ReadonlySet<string> {
    const unwanted = this.#unwanted
    this.#unwanted = new Set()
    return unwanted
  }
}
