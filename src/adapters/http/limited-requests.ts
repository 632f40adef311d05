import type { Clock } from '../../kit/clock.js'
import type { Problem } from '../../ports/node-api.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { type AddressRule, LIMITED_REQUESTS, type LimitedAddress } from './address-limit.js'

/** How long `status` shows refused requests after the last one, in milliseconds. */
const SHOWN_MS = 600_000
/** Least time between two log lines, in milliseconds. */
const LOG_MS = 60_000

/**
 * HTTP requests that were refused since their address sent too many without a valid token: for metrics, log and
 * `status`.
 */
export class LimitedRequests {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #telemetry: Pick<Telemetry, 'count' | 'log'>
  /** By the limit: how many, and the last one with its monotonic milliseconds. */
  readonly #refused = new Map<AddressRule, { readonly count: number; readonly address: string; readonly at: number }>()
  #loggedAt = Number.NEGATIVE_INFINITY

  constructor({
    clock,
    telemetry
  }: { readonly clock: Pick<Clock, 'monotonic'>; readonly telemetry: Pick<Telemetry, 'count' | 'log'> }) {
    this.#clock = clock
    this.#telemetry = telemetry
  }

  /** Counts a refused request. */
  add({ rule, address }: LimitedAddress): void {
    const at = this.#clock.monotonic()
    const before = this.#refused.get(rule)
    const count = before === undefined || isOver(before, at) ? 1 : before.count + 1
    this.#refused.set(rule, { count, address, at })
    this.#telemetry.count('http_limited', rule)
    if (at - this.#loggedAt < LOG_MS) return
    this.#loggedAt = at
    this.#telemetry.log('warn', 'an address sends too many HTTP requests without a valid token', {
      address,
      limit: rule
    })
  }

  /** One problem for each limit, until ten minutes after its last refused request. */
  problems(): readonly Problem[] {
    const now = this.#clock.monotonic()
    return [...this.#refused].flatMap(([rule, last]) => {
      if (isOver(last, now)) return []
      const { count, address } = last
      const requests = `${count} ${count === 1 ? 'request' : 'requests'}`
      const message = `HTTP refused ${requests}: too many ${LIMITED_REQUESTS[rule]} from one address (the last: ${address})`
      return [{ code: 'OVERLOADED', message, next: 'a2a-node metrics' }]
    })
  }
}

function isOver({ at }: { readonly at: number }, now: number): boolean {
  return now - at > SHOWN_MS
}
