import b4a from 'b4a'
import type Hyperbee from 'hyperbee'
import { type Clock, wait } from '../../../kit/clock.js'
import type { MembershipView } from '../../../domain/membership/types.js'
import { buildView, EMPTY_VIEW } from '../../../domain/membership/view.js'

/** The view is rebuilt at most once in this time, in milliseconds: a rebuild reads all records. */
const REBUILD_MS = 50
/**
 * A rest after a slow rebuild, in multiples of its time: frequent changes of a large log must not keep the node busy.
 */
const REST_FACTOR = 4
/** Longest rest, in milliseconds: a revocation must be seen soon. */
const MAX_REST_MS = 1000

/** Rebuilds the membership view from the log's records whenever they changed; it is never accumulated. */
export class ViewReader {
  /** The view as last read. */
  readonly view = (): MembershipView => this.#view
  readonly #bee: () => Hyperbee
  readonly #onChange: (view: MembershipView) => void
  readonly #clock: Clock
  #view: MembershipView = EMPTY_VIEW
  #version = -1
  #hash: Uint8Array | null = null
  /** One rebuild at a time; a change during a rebuild asks for one more. */
  #rebuilding: Promise<void> | null = null
  #isStale = false
  /** When the view may be rebuilt again, monotonic milliseconds. */
  #nextAt = Number.NEGATIVE_INFINITY
  #isClosed = false

  /** `bee`: the records as they are now. `onChange` must not throw. */
  constructor(bee: () => Hyperbee, onChange: (view: MembershipView) => void, clock: Clock) {
    this.#bee = bee
    this.#clock = clock
    this.#onChange = onChange
  }

  /** Resolves when the view shows at least the present records. */
  refresh(): Promise<void> {
    this.#isStale = true
    this.#rebuilding ??= this.#rebuild().finally(() => {
      this.#rebuilding = null
    })
    return this.#rebuilding
  }

  /** Stops reading; resolves when no read is under way. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#rebuilding?.catch(() => {})
  }

  async #rebuild(): Promise<void> {
    while (this.#isStale && !this.#isClosed) {
      const from = this.#clock.monotonic()
      if (this.#nextAt > from) {
        await wait(this.#clock, this.#nextAt - from)
        continue
      }
      this.#isStale = false
      const snapshot = this.#bee().snapshot()
      try {
        if (!(await this.#read(snapshot))) continue
      } finally {
        await snapshot.close()
      }
      this.#onChange(this.#view)
      const tookMs = this.#clock.monotonic() - from
      this.#nextAt = Math.max(from + REBUILD_MS, from + tookMs + Math.min(MAX_REST_MS, REST_FACTOR * tookMs))
    }
  }

  /** False when the view shows it already. */
  async #read(snapshot: Hyperbee): Promise<boolean> {
    // A reorder of unsigned entries can leave the version as it was with other content.
    const hash = snapshot.core.length === 0 ? null : await snapshot.core.treeHash()
    if (snapshot.version === this.#version && hash !== null && this.#hash !== null && b4a.equals(hash, this.#hash))
      return false
    const records: [string, unknown][] = []
    for await (const { key, value } of snapshot.createReadStream()) records.push([key, value])
    this.#view = buildView(records)
    this.#version = snapshot.version
    this.#hash = hash
    return true
  }
}
