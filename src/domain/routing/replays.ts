import type { NodeId } from '../../kit/ids.js'

/** Largest difference between the time of a forwarded message and the reader's, in milliseconds. */
export const MAX_AGE_MS = 300_000
/** Forwarded messages of one origin that are remembered: 50 a second for as long as its time may pass, and a burst. */
const MAX_PER_ORIGIN = 32_768
/**
 * Forwarded messages that are remembered in all: 400 a second for as long. An origin has no more of them than it leaves
 * free.
 */
const MAX_IN_ALL = 262_144

/** Freshness of a message: new, a repeat, outside the time window, or beyond the capacity. */
export type Freshness = 'new' | 'repeated' | 'untimely' | 'full'

/**
 * Recent forwarded messages, so that none counts twice: every relay can send one again. Messages older than the window
 * are refused by their time. A node that has just started has no memory, so it refuses messages signed before. Bounded;
 * no entry is forgotten early. Every call gets the time (unix milliseconds).
 */
export class Replays {
  readonly #startedAt: number
  readonly #byOrigin = new Map<NodeId, Map<string, number>>()
  #size = 0

  constructor(startedAt: number) {
    this.#startedAt = startedAt
  }

  /** Is a time (unix milliseconds) near enough to the reader's, for messages that may safely repeat? */
  static isTimely(timestamp: number, now: number): boolean {
    return Math.abs(now - timestamp) <= MAX_AGE_MS
  }

  /** Freshness of a message of this time; records nothing. */
  judge(
    { origin, id, timestamp }: { readonly origin: NodeId; readonly id: string; readonly timestamp: number },
    now: number
  ): Freshness {
    if (!Replays.isTimely(timestamp, now) || timestamp < this.#startedAt) return 'untimely'
    const ofOrigin = this.#byOrigin.get(origin)
    if (ofOrigin?.has(id) === true) return 'repeated'
    this.#forget(ofOrigin, origin, now)
    if (this.#isFull(ofOrigin)) for (const [one, ids] of [...this.#byOrigin]) this.#forget(ids, one, now)
    return this.#isFull(ofOrigin) ? 'full' : 'new'
  }

  /** Remembers a message that was new, for as long as its time would let it pass. */
  add({ origin, id, timestamp }: { readonly origin: NodeId; readonly id: string; readonly timestamp: number }): void {
    const ofOrigin = this.#byOrigin.get(origin) ?? new Map<string, number>()
    this.#byOrigin.set(origin, ofOrigin)
    if (!ofOrigin.has(id)) this.#size++
    ofOrigin.set(id, timestamp + MAX_AGE_MS)
  }

  /** How many are remembered. */
  get size(): number {
    return this.#size
  }

  #isFull(ids: Map<string, number> | undefined): boolean {
    return (ids?.size ?? 0) >= Math.min(MAX_PER_ORIGIN, MAX_IN_ALL - this.#size)
  }

  /** In the order of arrival: those that stand first end first, but for clocks that differ. */
  #forget(ids: Map<string, number> | undefined, origin: NodeId, now: number): void {
    for (const [id, endsAt] of ids ?? []) {
      if (endsAt >= now) break
      ids?.delete(id)
      this.#size--
    }
    if (ids?.size === 0) this.#byOrigin.delete(origin)
  }
}
