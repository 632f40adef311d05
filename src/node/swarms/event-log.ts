import type { ErrorBody } from '../../kit/errors.js'
import { Emitter, type Unsubscribe } from '../../kit/events.js'
import type { SwarmCounts, SwarmEvent, SwarmResults } from '../../ports/swarm-api.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { SwarmRow } from './store.js'
import { bytesOf } from './outcomes.js'

/** Under what each outcome counts. */
const FATES = { completed: 'completed', failed: 'failed', unknown: 'failed', skipped: 'skipped', canceled: 'skipped' } as const

/** What has happened so far, and the end of a subscription to what comes. */
export interface Following {
  readonly past: readonly SwarmEvent[]
  readonly stop: Unsubscribe
}

/** What was told of a swarm: its events, and the outcomes of its items. */
export class SwarmEventLog {
  readonly #events: SwarmEvent[] = []
  readonly #live: Emitter<SwarmEvent>
  readonly #rows = new Map<number, SwarmRow>()
  /** Where each sub-task stands, as it was told last. */
  readonly #stages = new Map<string, string>()
  #bytes = 0

  constructor(telemetry: Telemetry) {
    this.#live = new Emitter((error) => telemetry.log('error', 'a swarm listener failed', { error: String(error) }))
  }

  /** Tells whoever follows it. Where a sub-task stands is told once: whoever coordinates next begins with all of them. */
  tell(event: SwarmEvent): void {
    if (event.type === 'stage') {
      const standing = `${event.status} ${event.reason}`
      if (this.#stages.get(event.stage) === standing) return
      this.#stages.set(event.stage, standing)
    }
    this.#events.push(event)
    this.#live.emit(event)
  }

  /** An item has its outcome. Of one that was told nothing is told again. */
  settled(row: SwarmRow): void {
    if (this.#rows.has(row.index)) return
    this.#rows.set(row.index, row)
    this.#bytes += bytesOf(row)
    const { durationMs: _durationMs, ...reported } = row.row
    this.tell({ type: 'item', ...reported })
  }

  /** What has happened so far, and a subscription to what comes. */
  follow(listener: (event: SwarmEvent) => void): Following {
    return { past: [...this.#events], stop: this.#live.on(listener) }
  }

  /** About how many bytes the outcomes that were told hold. */
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

  /** Items by fate. */
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
    for (const { row } of this.#rows.values()) if (row.error !== null && FATES[row.status] === 'failed') return row.error
    return null
  }
}
