import type { Clock, Timer } from '../../kit/clock.js'
import { messageOf } from '../../kit/errors.js'
import type { RequestRecord } from '../../domain/reliable/records.js'
import type { Problem } from '../../ports/node-api.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { NodeEvents } from '../observe/events.js'
import type { RequestStore } from './store.js'
import type { Requests } from './caller/requests.js'

/** How often requests without an outcome are checked, in milliseconds. */
const CHECK_MS = 60_000

/** What checking requests needs. */
export interface OrphansDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly events: NodeEvents
  readonly requestStore: Pick<RequestStore, 'pending'>
  readonly requests: Pick<Requests, 'orphans' | 'knows' | 'resume'>
}

/**
 * Checks an invariant of this node: a lane, a queue or a peer holds each request without an outcome. A request that none of them
 * holds is an orphan: it is reported, and sent again, as a query when it may not be repeated.
 */
export class Orphans {
  readonly #deps: OrphansDeps
  #timer: Timer | null = null
  /** Orphans of the last check. */
  #count = 0
  /** Requests that were in the ledger alone at the last check: the end of such a request may be on its way there. */
  #suspects = new Set<string>()
  #isStopped = false

  constructor(deps: OrphansDeps) {
    this.#deps = deps
  }

  /** Begins to check. */
  start(): void {
    this.#timer = this.#deps.clock.every(CHECK_MS, () => void this.check())
  }

  /** Checks no more. */
  stop(): void {
    this.#isStopped = true
    this.#deps.clock.clear(this.#timer)
  }

  /** For `status`: what the last check found. */
  problems(): readonly Problem[] {
    if (this.#count === 0) return []
    const message = `${this.#count} requests without an outcome were held by no lane, queue or peer; they are sent again`
    return [{ code: 'REQUEST_ORPHANED', message, next: 'a2a-node tasks' }]
  }

  /** Checks now. Never rejects. */
  async check(): Promise<void> {
    const { requests, events, telemetry } = this.#deps
    try {
      const lost = await this.#unknown()
      const orphans = requests.orphans()
      for (const request of orphans) request.tend()
      this.#count = lost + orphans.length
    } catch (error) {
      return telemetry.log('error', 'requests without an outcome could not be checked', { reason: messageOf(error) })
    }
    if (this.#count === 0) return
    telemetry.count('errors', 'orphan', this.#count)
    events.add('delivery-failed', 'requests without an outcome were held by no lane, queue or peer', {
      code: 'REQUEST_ORPHANED',
      requests: this.#count
    })
  }

  /** Requests that only the ledger knows, at two checks in a row: this process takes them up. Gives how many there are. */
  async #unknown(): Promise<number> {
    const { clock, requestStore, requests } = this.#deps
    const suspects = new Set<string>()
    let count = 0
    for await (const record of requestStore.pending()) {
      if (this.#isStopped) return 0
      const { requestId, role, expiresAt } = record
      if (role !== 'caller' || expiresAt <= clock.now() || isGivenUp(record) || requests.knows(requestId)) continue
      suspects.add(requestId)
      if (!this.#suspects.has(requestId)) continue
      requests.resume(record)
      count++
    }
    this.#suspects = suspects
    return count
  }
}

/** Is its outcome unknown for good, as that of a request to a node that was put out of the mesh? */
function isGivenUp({ status, retryAt }: RequestRecord): boolean {
  return status === 'unknown' && retryAt === null
}
