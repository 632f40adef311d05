import { NodeError } from '../../src/kit/errors.js'
import { utf8 } from '../../src/kit/ids.js'
import type { Ledger, LedgerChanges, LedgerEntry, LedgerRange, LedgerSize } from '../../src/ports/ledger.js'
import { assertChanges } from '../../src/adapters/storage/ledger/durable-ledger.js'

/** A ledger that ends with its process. */
export function createMemoryLedger(): Ledger {
  return new MemoryLedger()
}

class MemoryLedger implements Ledger {
  readonly #values = new Map<string, Uint8Array>()
  readonly #keys: string[] = []
  #commits = 0
  #isClosed = false

  get(key: string): Promise<Uint8Array | null> {
    return Promise.resolve(this.#values.get(key) ?? null)
  }

  list({ from, to, limit, isReverse = false }: LedgerRange): Promise<LedgerEntry[]> {
    const keys = this.#keys.slice(this.#placeOf(from), this.#placeOf(to))
    if (isReverse) keys.reverse()
    return Promise.resolve(
      keys.slice(0, Math.max(0, limit)).map((key) => ({ key, value: this.#values.get(key) ?? new Uint8Array(0) }))
    )
  }

  commit(given: LedgerChanges): Promise<void> {
    if (this.#isClosed) return Promise.reject(new NodeError('INTERNAL', 'the ledger is closed'))
    return new Promise((done) => {
      const changes = typeof given === 'function' ? given() : given
      assertChanges(changes)
      for (const { key, value } of changes) this.#change(key, value)
      this.#commits++
      done()
    })
  }

  compact(): Promise<void> {
    return Promise.resolve()
  }

  size(): Promise<LedgerSize> {
    return Promise.resolve({ commits: this.#commits, bytes: 0 })
  }

  close(): Promise<void> {
    this.#isClosed = true
    return Promise.resolve()
  }

  #change(key: string, value: Uint8Array | string | null): void {
    const isThere = this.#values.has(key)
    // A copy: the caller may change its bytes later.
    if (value !== null) this.#values.set(key, typeof value === 'string' ? utf8(value) : new Uint8Array(value))
    else this.#values.delete(key)
    if (isThere === (value !== null)) return
    const place = this.#placeOf(key)
    if (isThere) this.#keys.splice(place, 1)
    else this.#keys.splice(place, 0, key)
  }

  /** The place of the first key that is not before this one. */
  #placeOf(key: string): number {
    let low = 0
    let high = this.#keys.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#keys[middle] ?? key) < key) low = middle + 1
      else high = middle
    }
    return low
  }
}
