import type { Clock } from '../../../kit/clock.js'
import { RateTable } from '../../../kit/rate.js'
import type { Principal } from '../../../ports/node-api.js'

/** How often one caller may call. */
export interface CallRate {
  readonly perMinute: number
  /** At once, after a pause. */
  readonly burst: number
}

/** Counts the calls of each caller: a token has a bucket of its own. */
export class CallLimit {
  readonly #table: RateTable
  readonly #rate: CallRate

  constructor(rate: CallRate, clock: Clock) {
    this.#rate = rate
    this.#table = new RateTable({ perSecond: rate.perMinute / 60, burst: rate.burst }, clock)
  }

  /** Counts a call: 0 when it may go on, else the whole seconds after which the next one may (`Retry-After`). */
  take(by: RateCaller): number {
    const key = keyOf(by)
    return this.#table.take(key) ? 0 : Math.max(1, Math.ceil(this.#table.waitMs(key) / 1000))
  }

  /** What a caller may do: the limit, and how many calls it has left of it now. */
  left(by: RateCaller): { readonly callsPerMinute: number; readonly callsAtOnce: number; readonly callsLeft: number } {
    const { perMinute, burst } = this.#rate
    return { callsPerMinute: perMinute, callsAtOnce: burst, callsLeft: Math.floor(this.#table.left(keyOf(by))) }
  }
}

type RateCaller = Pick<Principal, 'kind' | 'name' | 'id'>

function keyOf({ kind, name, id }: RateCaller): string {
  return `${kind} ${id ?? name}`
}
