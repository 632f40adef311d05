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
