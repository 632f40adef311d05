import type { NodeId } from '../kit/ids.js'
import type { SeatMessageOf } from '../domain/swarm/seat-message.js'
import type { AcceptedSwarm } from './accepted-swarm.js'
import type { ContentName } from './swarm-contents.js'
import type { SwarmSeatParts } from './swarm-seat.js'

/** Who does not coordinate asks what was accepted every so many milliseconds. */
const FOLLOW_MS = 1000

/** What participants of one swarm tell each other of what was accepted. */
export class SwarmFollowing {
  readonly #parts: Pick<SwarmSeatParts, 'clock' | 'self' | 'tell'>
  readonly #swarm: string
  readonly #others: readonly NodeId[]
  readonly #accepted: AcceptedSwarm
  #askedAt = Number.NEGATIVE_INFINITY

  constructor(
    parts: Pick<SwarmSeatParts, 'clock' | 'self' | 'tell'>,
    { swarm, voters, accepted }: { readonly swarm: string; readonly voters: readonly NodeId[]; readonly accepted: AcceptedSwarm }
  ) {
    this.#parts = parts
    this.#swarm = swarm
    this.#others = voters.filter((node) => node !== parts.self)
    this.#accepted = accepted
  }

  /** Time passed, and this node does not coordinate: it asks who does, or all. */
  tick(coordinator: NodeId | null): void {
    const { clock, self, tell } = this.#parts
    const now = clock.monotonic()
    if (now - this.#askedAt < FOLLOW_MS) return
    this.#askedAt = now
    const { isWhole, size } = this.#accepted.records
    const have = isWhole ? size : 0
    for (const node of coordinator === null || coordinator === self ? this.#others : [coordinator]) {
      tell(node, { name: 'swarm', body: { kind: 'follow', swarm: this.#swarm, have, from: 0 } })
    }
    this.#accepted.take([], self)
  }

  /** Tells somebody who asks, unless all of it is known there. */
  answer(from: NodeId, { have, from: index }: SeatMessageOf<'follow'>): void {
    const { records } = this.#accepted
    if (have < records.size) this.#parts.tell(from, { name: 'swarm', body: records.page(this.#swarm, index) })
  }

  /** Somebody tells. */
  heard(from: NodeId, { epoch, total, items, next }: SeatMessageOf<'accepted'>): void {
    const { records } = this.#accepted
    this.#accepted.take(records.add(items, { total, epoch }), from)
    if (next === null) return
    this.#parts.tell(from, { name: 'swarm', body: { kind: 'follow', swarm: this.#swarm, have: records.size, from: next } })
  }

  /** Tells all others what was accepted just now. */
  announce(epoch: number, accepted: readonly ContentName[]): void {
    const { records } = this.#accepted
    const items = records.add(accepted, { total: 0, epoch })
    if (items.length === 0) return
    const body = { kind: 'accepted', swarm: this.#swarm, epoch, total: records.size, items, next: null } as const
    for (const node of this.#others) this.#parts.tell(node, { name: 'swarm', body })
  }
}
