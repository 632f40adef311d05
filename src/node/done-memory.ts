import { sizeOf } from './size.js'

/** Finished requests that are remembered. */
const MAX_ENTRIES = 4096
/** Bytes of their answers together. */
const MAX_BYTES = 32 * 1024 * 1024

/** An answer as it is remembered; `null` when only that there was one. */
export type Remembered = { readonly payload: unknown } | null

/**
 * The answers of finished requests, so that a request that comes twice is answered, not repeated. Bounded: an old answer
 * is forgotten before the fact that it was given.
 */
export class DoneMemory {
  readonly #entries = new Map<string, { payload: unknown; bytes: number }>()
  /** Keys of entries with a payload, oldest first. */
  readonly #full = new Set<string>()
  #bytes = 0

  /** The answer to a request; undefined for one that was not done here, or too long ago. */
  get(key: string): Remembered | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    return this.#full.has(key) ? { payload: entry.payload } : null
  }

  /** Remembers an answer. */
  add(key: string, payload: unknown): void {
    this.#remove(key)
    const bytes = sizeOf(payload)
    this.#entries.set(key, { payload, bytes })
    this.#full.add(key)
    this.#bytes += bytes
    for (const oldest of this.#full) {
      if (this.#bytes <= MAX_BYTES) break
      this.#empty(oldest)
    }
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= MAX_ENTRIES) break
      this.#remove(oldest)
    }
  }

  #empty(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined || !this.#full.delete(key)) return
    this.#bytes -= entry.bytes
    entry.payload = null
    entry.bytes = 0
  }

  #remove(key: string): void {
    this.#empty(key)
    this.#entries.delete(key)
  }
}
