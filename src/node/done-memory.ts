import type { NodeId } from '../kit/ids.js'
import { Oldest } from '../kit/oldest.js'
import { trimFairly } from './fair-share.js'
import { sizeOf } from './size.js'

/** Finished requests that are remembered. */
const MAX_ENTRIES = 4096
/** Bytes of their answers together. */
const MAX_BYTES = 32 * 1024 * 1024

/** An answer as it is remembered; `null` when only that there was one. */
export type Remembered = { readonly payload: unknown } | null

/** What is remembered for one peer. */
class Share {
  readonly #entries = new Map<string, { payload: unknown; bytes: number }>()
  /** Keys of entries with a payload, oldest first. */
  readonly #full = new Set<string>()
  readonly #oldest = new Oldest(this.#entries)
  bytes = 0

  get size(): number {
    return this.#entries.size
  }

  get(key: string): Remembered | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    return this.#full.has(key) ? { payload: entry.payload } : null
  }

  add(key: string, payload: unknown): void {
    this.#remove(key)
    const bytes = sizeOf(payload)
    this.#entries.set(key, { payload, bytes })
    this.#full.add(key)
    this.bytes += bytes
  }

  /** Forgets the oldest answer, not that it was given. */
  emptyOldest(): void {
    const [oldest] = this.#full
    if (oldest !== undefined) this.#empty(oldest)
  }

  /** Forgets the oldest altogether. */
  removeOldest(): void {
    const oldest = this.#oldest.next()
    if (oldest !== undefined) this.#remove(oldest)
  }

  #empty(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined || !this.#full.delete(key)) return
    this.bytes -= entry.bytes
    entry.payload = null
    entry.bytes = 0
  }

  #remove(key: string): void {
    this.#empty(key)
    this.#entries.delete(key)
  }
}

/**
 * The answers of finished requests, so that a request that comes twice is answered, not repeated. Bounded: an old answer
 * is forgotten before the fact that it was given, and the peer for whom most is kept loses its oldest, so none can make
 * this node forget what another asked.
 */
export class DoneMemory {
  readonly #byPeer = new Map<NodeId, Share>()

  /** The answer to a peer's request; undefined for one that was not done here, or too long ago. */
  get(peer: NodeId, key: string): Remembered | undefined {
    return this.#byPeer.get(peer)?.get(key)
  }

  /** Remembers an answer. */
  add(peer: NodeId, key: string, payload: unknown): void {
    const share = this.#byPeer.get(peer) ?? new Share()
    this.#byPeer.set(peer, share)
    share.add(key, payload)
    trimFairly(this.#byPeer, { most: MAX_BYTES, measure: (one) => one.bytes, drop: (one) => one.emptyOldest() })
    trimFairly(this.#byPeer, { most: MAX_ENTRIES, measure: (one) => one.size, drop: (one) => one.removeOldest() })
  }
}
