import type { ErrorBody } from '../../kit/errors.js'
import { Emitter, type Unsubscribe } from '../../kit/events.js'
import type { SwarmCounts, SwarmEvent, SwarmResults } from '../../ports/swarm-api.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { SwarmRow } from './store.js'
import { bytesOf } from './outcomes.js'

/** The count to which each outcome belongs. */
const FATES = {
  completed: 'completed',
  failed: 'failed',
  unknown: 'failed',
  skipped: 'skipped',
  canceled: 'skipped'
} as const

/** The events so far, and the end of a subscription to later ones. */
export interface Following {
  readonly past: readonly SwarmEvent[]
  readonly stop: Unsubscribe
}

/** The reported events of a swarm, and the outcomes of its items. */
export class SwarmEventLog {
  readonly #events: SwarmEvent[] = []
  readonly #live: Emitter<SwarmEvent>
  readonly #rows = new Map<number, SwarmRow>()
  /** The last reported state of each sub-task. */
  readonly #stages = new Map<string, string>()
  #bytes = 0

  constructor(telemetry: Telemetry) {
    this.#live = new Emitter((error) => telemetry.log('error', 'a swarm listener failed', { error: String(error) }))
  }

  /**
   * Reports an event to all listeners. The state of a sub-task is reported once: a new coordinator begins with all of
   * them.
   */
  tell(event: SwarmEvent): void {
    if (event.type === 'stage') {
      const standing = `${event.status} ${event.reason}`
      if (this.#stages.get(event.stage) === standing) return
      this.#stages.set(event.stage, standing)
    }
    this.#events.push(event)
    this.#live.emit(event)
  }

  /** Reports the outcome of an item; a known one is not reported again. */
  settled(row: SwarmRow): void {
    if (this.#rows.has(row.index)) return
    this.#rows.set(row.index, row)
    this.#bytes += bytesOf(row)
    const { durationMs: _durationMs, ...reported } = row.row
    this.tell({ type: 'item', ...reported })
  }

  /** The events so far, and a subscription to later ones. */
  follow(listener: (event: SwarmEvent) => void): Following {
    return { past: [...this.#events], stop: this.#live.on(listener) }
  }

  /** Approximate bytes of the reported outcomes. */
  get bytes(): number {
    return this.#bytes
  }

  /** By index of the item. */
  get rows(): ReadonlyMap<number, SwarmRow> {
    return this.#rows
  }

  /** The outcomes so far, in the order of the items. */
  results(): SwarmResults['results'] {
    return [...this.#rows.values()].sort((a, b) => a.index - b.index).map(({ row }) => row)
  }

  /** Counts of items by outcome. */
  counts(total: number): SwarmCounts {
    const counts = { completed: 0, failed: 0, skipped: 0, unknown: 0 }
    for (const { row } of this.#rows.values()) {
      counts[FATES[row.status]]++
      if (row.status === 'unknown') counts.unknown++
    }
    const { completed, failed, skipped, unknown } = counts
    return { total, completed, failed, ...(skipped === 0 ? {} : { skipped }), ...(unknown === 0 ? {} : { unknown }) }
  }

  /** The first failure, for the swarm's own outcome. */
  firstError(): ErrorBody | null {
    for (const { row } of this.#rows.values())
      if (row.error !== null && FATES[row.status] === 'failed') return row.error
    return null
  }
}
