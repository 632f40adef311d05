import type { Clock } from '../../../kit/clock.js'
import { RateTable } from '../../../kit/rate.js'
import type { Principal } from '../../../ports/node-api.js'

/** Rate limit of one caller. */
export interface CallRate {
  readonly perMinute: number
  /** Most calls at once, after a pause. */
  readonly burst: number
}

/** Counts the calls of each caller, with a bucket per token. */
export class CallLimit {
  readonly #table: RateTable
  readonly #rate: CallRate

  constructor(rate: CallRate, clock: Clock) {
    this.#rate = rate
    this.#table = new RateTable({ perSecond: rate.perMinute / 60, burst: rate.burst }, clock)
  }

  /** Counts a call: 0 when it is allowed, else the whole seconds until the next one is (`Retry-After`). */
  take(by: RateCaller): number {
    const key = keyOf(by)
    return this.#table.take(key) ? 0 : Math.max(1, Math.ceil(this.#table.waitMs(key) / 1000))
  }

  /** The limit of a caller and its calls left now. */
  left(by: RateCaller): { readonly callsPerMinute: number; readonly callsAtOnce: number; readonly callsLeft: number } {
    const { perMinute, burst } = this.#rate
    return { callsPerMinute: perMinute, callsAtOnce: burst, callsLeft: Math.floor(this.#table.left(keyOf(by))) }
  }
}

type RateCaller = Pick<Principal, 'kind' | 'name' | 'id'>

function keyOf({ kind, name, id }: RateCaller): string {
  return `${kind} ${id ?? name}`
}
