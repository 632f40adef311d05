import type { NodeStore } from '../../src/ports/storage.js'
import { canonicalJson } from '../../src/kit/json.js'

/** Stored documents in memory; a restarted node is given the same one. */
export class FakeStore implements NodeStore {
  readonly #documents = new Map<string, string>()
  /** Writes so far. */
  writes = 0
  /** What the next writes fail with. */
  fault: Error | null = null

  read<T>(name: string): Promise<T | null> {
    const text = this.#documents.get(name)
    return Promise.resolve(text === undefined ? null : (JSON.parse(text) as T))
  }

  async write(name: string, value: unknown): Promise<void> {
    await Promise.resolve()
    if (this.fault !== null) throw this.fault
    this.#documents.set(name, canonicalJson(value))
    this.writes++
  }

  remove(name: string): Promise<void> {
    this.#documents.delete(name)
    return Promise.resolve()
  }
}
