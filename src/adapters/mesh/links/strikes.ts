import { backoffMs } from '../../../kit/backoff.js'
import { BoundedMap } from '../../../kit/bounded.js'
import type { Clock } from '../../../kit/clock.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Strike } from '../../../ports/mesh.js'
import { RateTable } from '../../../kit/rate.js'

/** Points of each kind of strike. */
const POINTS: Readonly<Record<Strike, number>> = { fault: 100, forged: 50, doubtful: 1 }
/** Points that a peer may collect at once; the same number is forgiven in a minute. */
export const MAX_POINTS = 1000
const FORGIVEN_IN_MS = 60_000
/** Exclusion of a peer in milliseconds: the first, the growth with each further one, and the longest. */
const FIRST_MS = 10_000
const GROWTH = 6
const LONGEST_MS = 3_600_000
/** Milliseconds after which a peer that was not kept out again begins anew with the shortest time. */
const FORGOTTEN_MS = 24 * 3_600_000
/** Peers that are remembered; the oldest are forgotten first. */
const MAX_PEERS = 1024

/** Counts acts of peers that no honest peer does, and decides which peers are kept out, and for how long. */
export class Strikes {
  readonly #clock: Clock
  readonly #points: RateTable
  /** In the order of being kept out. Monotonic times. */
  readonly #out = new BoundedMap<NodeId, { readonly times: number; readonly until: number }>(MAX_PEERS)

  constructor(clock: Clock) {
    this.#clock = clock
    this.#points = new RateTable({ perSecond: MAX_POINTS / (FORGIVEN_IN_MS / 1000), burst: MAX_POINTS }, clock)
  }

  /** Counts a strike. Returns for how many milliseconds the peer is kept out; 0: it may stay, or is out already. */
  add(peer: NodeId, strike: Strike): number {
    if (this.isOut(peer) || this.#points.take(peer, POINTS[strike])) return 0
    const now = this.#clock.monotonic()
    const before = this.#out.get(peer)
    const times = before === undefined || before.until + FORGOTTEN_MS < now ? 1 : before.times + 1
    const forMs = backoffMs({ baseMs: FIRST_MS, maxMs: LONGEST_MS, factor: GROWTH }, times - 1)
    this.#out.setNewest(peer, { times, until: now + forMs })
    return forMs
  }

  /** Is the peer kept out now? */
  isOut(peer: NodeId): boolean {
    return (this.#out.get(peer)?.until ?? Number.NEGATIVE_INFINITY) > this.#clock.monotonic()
  }
}
