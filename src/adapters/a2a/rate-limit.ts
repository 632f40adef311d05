import type { Clock } from '../../kit/clock.js'
import { RateTable } from '../../kit/rate.js'
import type { Principal } from '../../ports/node-api.js'

/** How often one caller may call. */
export interface CallRate {
  readonly perMinute: number
  /** At once, after a pause. */
  readonly burst: number
}

/** Counts the calls of each caller: a token has a bucket of its own. */
export class CallLimit {
  readonly #table: RateTable

  constructor({ perMinute, burst }: CallRate, clock: Clock) {
    this.#table = new RateTable({ perSecond: perMinute / 60, burst }, clock)
  }

  /** Counts a call: 0 when it may go on, else the whole seconds after which the next one may (`Retry-After`). */
  take({ kind, name, id }: Pick<Principal, 'kind' | 'name' | 'id'>): number {
    const key = `${kind} ${id ?? name}`
    return this.#table.take(key) ? 0 : Math.max(1, Math.ceil(this.#table.waitMs(key) / 1000))
  }
}
