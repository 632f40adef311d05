import { backoffMs } from '../../../kit/backoff.js'
import type { Clock } from '../../../kit/clock.js'
import { PATIENCE } from './request-codec.js'

/** What a lane needs to know of a request. */
export interface QueuedRequest {
  /** Does its caller wait for it? */
  readonly isAwaited: boolean
  /** When it may be sent again, on the monotonic clock. */
  readonly dueAt: number
}

/**
 * The requests to one peer that have not ended: those that are with it, and those that wait for it to come back or to have room.
 * However many wait, taking the next ones looks at those that are with the peer, not at the rest.
 */
export class PeerQueue<T extends QueuedRequest> {
  readonly #sent = new Set<T>()
  /** They wait, and may be sent when there is room. */
  readonly #ready = new Set<T>()
  /** They wait for their time as well. */
  readonly #later = new Set<T>()
  #nextDueAt = Number.POSITIVE_INFINITY

  /** All of them. */
  all(): T[] {
    return [...this.#sent, ...this.#ready, ...this.#later]
  }

  /** How many wait. */
  get waiting(): number {
    return this.#ready.size + this.#later.size
  }

  /** Does it wait? */
  isWaiting(request: T): boolean {
    return this.#ready.has(request) || this.#later.has(request)
  }

  /** It is with the peer, or on its way there. */
  send(request: T): void {
    this.remove(request)
    this.#sent.add(request)
  }

  /** It waits, behind those that wait already. */
  wait(request: T, now: number): void {
    if (this.isWaiting(request)) return
    this.#sent.delete(request)
    if (request.dueAt <= now) this.#ready.add(request)
    else this.#hold(request)
  }

  /** Takes it out. Returns whether none is left. */
  remove(request: T): boolean {
    for (const part of [this.#sent, this.#ready, this.#later]) part.delete(request)
    return this.#sent.size === 0 && this.waiting === 0
  }

  /** Those to send now, so that at most `window` are with the peer; they count as sent. */
  next(now: number, window: number): T[] {
    if (this.waiting === 0) return []
    if (now >= this.#nextDueAt) this.#wake(now)
    let budget = window
    for (const request of this.#sent) if (request.isAwaited) budget--
    const taken: T[] = []
    for (const request of this.#ready) {
      if (taken.length >= budget) break
      taken.push(request)
    }
    for (const request of taken) this.send(request)
    return taken
  }

  #wake(now: number): void {
    const waiting = [...this.#later]
    this.#later.clear()
    this.#nextDueAt = Number.POSITIVE_INFINITY
    for (const request of waiting) {
      if (request.dueAt <= now) this.#ready.add(request)
      else this.#hold(request)
    }
  }

  #hold(request: T): void {
    this.#later.add(request)
    this.#nextDueAt = Math.min(this.#nextDueAt, request.dueAt)
  }
}

/** The copies of one request that went to its peer, and how many of them the peer said it did not do. */
export class DeliveryAttempts {
  #sent: number
  #denied = 0

  /** `sent`: by the processes before. */
  constructor(sent: number) {
    this.#sent = sent
  }

  /** May its peer have one of them? */
  get isOut(): boolean {
    return this.#denied < this.#sent
  }

  /** One more is about to be sent: an agent of this node answers before it is. */
  sending(): void {
    this.#sent++
  }

  /** It was not sent. */
  notSent(): void {
    this.#sent--
  }

  /** Was all but one denied, so that none is under way once that is as well? */
  get isLast(): boolean {
    return this.#denied + 1 >= this.#sent
  }

  /** The peer did not do one of them. True: nor any other. */
  denied(): boolean {
    return ++this.#denied >= this.#sent
  }
}

/** When the peer of a request last said that it has it, and for how long it may say nothing. */
export class LivenessTimer {
  readonly #clock: Clock
  readonly #leaseMs: number
  /** null: its peer never said so. */
  #at: number | null = null
  /** Times that it was asked again since its peer last said so. */
  #repeats = 0

  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock
    this.#leaseMs = leaseMs
  }

  /** Its peer says that it has it. */
  onHeartbeat(): void {
    this.#at = this.#clock.monotonic()
    this.#repeats = 0
  }

  /** Is its peer expected to name it? */
  get isExpected(): boolean {
    return this.#at !== null
  }

  /** Its peer is there again, and has as long as before. */
  isBack(): void {
    if (this.#at !== null) this.#at = this.#clock.monotonic()
  }

  /** It is not with its peer. */
  forget(): void {
    this.#at = null
  }

  /** Did its peer have it, and says nothing of it for too long? */
  get isLost(): boolean {
    if (this.#at === null) return false
    const patience = { baseMs: this.#leaseMs, maxMs: Math.max(this.#leaseMs, PATIENCE.maxMs) }
    return this.#clock.monotonic() - this.#at > backoffMs(patience, this.#repeats)
  }

  /** It is asked again: the peer gets more time with each. */
  askedAgain(): void {
    this.#at = this.#clock.monotonic()
    this.#repeats++
  }
}
