import { type Clock, wait } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { TokenBucket } from '../../kit/rate.js'
import { frameCost } from '../../domain/channel/credit.js'
import {
  creditFault,
  creditFor,
  FIRST_CREDIT,
  FIRST_WINDOW,
  moreCredit,
  takeFrame,
  URGENT_CREDIT,
  type CreditWindow
} from '../../domain/channel/credit.js'
import { encodeMessage, FRESH_READER, readFrame } from '../../domain/channel/frames.js'
import type { ChannelMessage, MessageFrames } from '../../domain/channel/frames.js'
import type { Link } from '../../ports/mesh.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { CreditAsker } from './credit-shares.js'
import type { PeerBudget } from './send-budget.js'

/** The most waiting messages for one peer. */
const MAX_QUEUED = 1000

/** A waiting message, as frames. */
interface Queued extends UnsentFrame {
  readonly frames: MessageFrames
}

/** An unsent message, and its bytes in the budget. */
export interface UnsentFrame {
  readonly message: ChannelMessage
  readonly bytes: number
}

/** Dependencies of {@link LinkChannel} beside its link. */
export interface LinkChannelDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Send rate to a peer without flow control, over this link and earlier ones. */
  readonly pace: TokenBucket
  /** Receive rate from such a peer. */
  readonly arrivals: TokenBucket
  /** True when other peers or callers use this node now. */
  isBusy(): boolean
  /** Requests credit for the peer, in its turn, while others use the node. */
  askCredit(asker: Omit<CreditAsker, 'peer'>): void
  /** Counts the bytes of waiting messages. */
  readonly budget: PeerBudget
}

/**
 * Messages over one link, in order: splits and joins large ones, waits for the stream to drain, and keeps to the peer's
 * credit.
 */
export class LinkChannel {
  readonly link: Link
  readonly #deps: LinkChannelDeps
  /** Tokens spent since the link opened. */
  #spent = 0
  /** The peer's credit before its last frame. */
  #given = FIRST_CREDIT
  #window = FIRST_WINDOW
  #isAsking = false
  #goOn: (() => void)[] = []
  #reader = FRESH_READER
  #nextStreamId = 1
  #queue: Queued[] = []
  #pumping = false
  /** The stream's buffer is full: the peer reads more slowly than this node sends. */
  #isBehind = false

  constructor(link: Link, deps: LinkChannelDeps) {
    this.link = link
    this.#deps = deps
  }

  /**
   * Queues one message behind earlier ones.
   * @throws NodeError CHANNEL_CLOSED when the link is closed; OVERLOADED when too much waits already.
   */
  send(message: ChannelMessage): void {
    if (this.link.closed) throw new NodeError('CHANNEL_CLOSED', 'the channel to the peer is closed')
    const frames = encodeMessage(message, () => this.#nextStreamId++)
    const { single, bytes } = frames
    if (!this.#pumping && single !== null && this.#spend(frameCost(single))) {
      this.#put(single)
      if (this.#isBehind) this.#pump()
      return
    }
    if (this.#queue.length >= MAX_QUEUED || !this.#deps.budget.take(bytes)) {
      throw new NodeError('OVERLOADED', 'too much waits for this peer; it reads more slowly than this node sends')
    }
    this.#queue.push({ message, frames, bytes })
    this.#pump()
  }

  /** True when messages wait here or in the stream's buffer. */
  get isBusy(): boolean {
    return this.#queue.length > 0 || this.#pumping || this.#isBehind
  }

  /** Queues an unsent message of another link, with its bytes in the budget. */
  resume({ message, bytes }: UnsentFrame): void {
    this.#queue.push({ message, frames: encodeMessage(message, () => this.#nextStreamId++), bytes })
    this.#pump()
  }

  /**
   * Sends before all waiting messages: for pings, whose frames are complete. Sends nothing to a peer that does not
   * read.
   */
  sendNow(message: ChannelMessage): void {
    const { credit } = this.link
    if (this.#isBehind || (credit !== null && this.#spent >= credit + URGENT_CREDIT)) return
    for (const frame of encodeMessage(message, () => this.#nextStreamId++)) {
      const cost = frameCost(frame)
      if (!this.#spend(cost)) this.#spent += cost
      this.#put(frame)
    }
    if (this.#isBehind) this.#pump()
  }

  /** The peer gave more credit, or has no flow control. */
  onCredit(): void {
    const { credit } = this.link
    const fault = credit === null ? null : creditFault(credit, { given: this.#given, spent: this.#spent })
    if (fault !== null) return this.link.fault(fault)
    this.#given = credit ?? this.#given
    this.#wake()
  }

  /** The link is closed: ends all waits for credit. */
  onClosed(): void {
    this.#wake()
  }

  #wake(): void {
    for (const goOn of this.#goOn.splice(0)) goOn()
  }

  /** Spends the cost of a frame if it may leave now. The last frame may cost more than the remaining credit. */
  #spend(cost: number): boolean {
    const { credit } = this.link
    if (credit === null ? !this.#deps.pace.take(cost) : this.#spent >= credit) return false
    this.#spent += cost
    return true
  }

  /** Waits until the frame may leave, or the link is closed. */
  async #untilSpent(cost: number): Promise<void> {
    const { clock, pace } = this.#deps
    while (!this.link.closed && !this.#spend(cost)) {
      if (this.link.credit === null) await wait(clock, pace.waitMs(cost))
      else await new Promise<void>((resolve) => this.#goOn.push(resolve))
    }
  }

  #put(frame: Uint8Array): void {
    if (!this.link.send(frame)) this.#isBehind = true
  }

  async #caughtUp(): Promise<void> {
    await this.link.drained()
    this.#isBehind = false
  }

  /** The unsent messages of a closed link, in order. They keep their bytes in the budget. */
  takeUnsent(): UnsentFrame[] {
    return this.#queue.splice(0).map(({ message, bytes }) => ({ message, bytes }))
  }

  /**
   * Takes one frame of the peer. Returns the message it completes, or null. A fault breaks the order, so it cuts the
   * link.
   */
  receive(frame: Uint8Array): ChannelMessage | null {
    if (!this.#isTaken(frameCost(frame))) {
      this.link.fault('more messages than it has credit for')
      return null
    }
    const step = readFrame(this.#reader, frame)
    this.#reader = step.state
    if (step.fault !== null) this.link.fault(step.fault)
    return step.message
  }

  #isTaken(cost: number): boolean {
    if (this.link.credit === null) return this.#deps.arrivals.take(cost)
    const window = takeFrame(this.#window, cost)
    if (window === null) return false
    this.#window = window
    this.#giveCredit()
    return true
  }

  #giveCredit(): void {
    if (this.#isAsking) return
    const more = this.#moreCredit()
    if (more === this.#window) return
    if (!this.#deps.isBusy()) return this.#give(more)
    this.#isAsking = true
    const tokens = (): number => this.#moreCredit().limit - this.#window.limit
    const give = (): void => {
      this.#isAsking = false
      this.#give(this.#moreCredit())
    }
    this.#deps.askCredit({ tokens, give })
  }

  #moreCredit(): CreditWindow {
    if (this.link.closed) return this.#window
    return moreCredit(this.#window, this.#deps.isBusy() ? creditFor(this.link.rttMs()) : null)
  }

  #give(window: CreditWindow): void {
    // During the wait for its turn, the round trip may have shortened, so that the present window is enough.
    if (window === this.#window) return
    this.#window = window
    this.link.grant(window.limit)
  }

  #pump(): void {
    if (this.#pumping) return
    this.#pumping = true
    this.#drain().catch((error: unknown) => {
      this.#deps.telemetry.log('error', 'a channel stopped', { peer: this.link.peer, reason: String(error) })
    })
  }

  async #drain(): Promise<void> {
    await this.#caughtUp()
    for (let next = this.#queue[0]; next !== undefined && !this.link.closed; next = this.#queue[0]) {
      let left = next.frames.count
      for (const frame of next.frames) {
        const cost = frameCost(frame)
        // A peer cuts a link that exceeds its credit.
        if (!this.#spend(cost)) await this.#untilSpent(cost)
        // If the link closed with a part unsent, the message stays for the next link.
        if (this.link.closed) break
        this.#put(frame)
        if (--left === 0) this.#sent(next)
        if (this.#isBehind) await this.#caughtUp()
      }
    }
    this.#pumping = false
  }

  /** All of a message was passed to the link: it is not sent again, even if the link fails. */
  #sent({ bytes }: Queued): void {
    this.#queue.shift()
    this.#deps.budget.leave(bytes)
  }
}
