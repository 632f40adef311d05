import type { Clock } from '../../kit/clock.js'
import type { Problem } from '../../ports/node-api.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { LIMITED_REQUESTS, type LimitedAddress } from './address-limit.js'

/** How long `status` shows refused requests after the last one, in milliseconds. */
const SHOWN_MS = 600_000
/** Least time between two log lines, in milliseconds. */
const LOG_MS = 60_000

/** HTTP requests that were refused since their address sent too many without a valid token: for metrics, log and `status`. */
export class LimitedRequests {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #telemetry: Pick<Telemetry, 'count' | 'log'>
  #count = 0
  #last: (LimitedAddress & { readonly at: number }) | null = null
  #loggedAt = Number.NEGATIVE_INFINITY

  constructor({ clock, telemetry }: { readonly clock: Pick<Clock, 'monotonic'>; readonly telemetry: Pick<Telemetry, 'count' | 'log'> }) {
    this.#clock = clock
    this.#telemetry = telemetry
  }

  /** Counts a refused request. */
  add({ rule, address }: LimitedAddress): void {
    const at = this.#clock.monotonic()
    if (this.#isOver(at)) this.#count = 0
    this.#count += 1
    this.#last = { rule, address, at }
    this.#telemetry.count('http_limited', rule)
    if (at - this.#loggedAt < LOG_MS) return
    this.#loggedAt = at
    this.#telemetry.log('warn', 'an address sends too many HTTP requests without a valid token', { address, limit: rule })
  }

  /** One problem until ten minutes after the last refused request. */
  problems(): readonly Problem[] {
    if (this.#last === null || this.#isOver(this.#clock.monotonic())) return []
    const { rule, address } = this.#last
    const message = `HTTP refused ${this.#count} ${this.#count === 1 ? 'request' : 'requests'}: too many ${LIMITED_REQUESTS[rule]} from one address (the last: ${address})`
    return [{ code: 'OVERLOADED', message, next: 'a2a-node metrics' }]
  }

  #isOver(now: number): boolean {
    return this.#last !== null && now - this.#last.at > SHOWN_MS
  }
}
