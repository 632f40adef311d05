import type { NodeId } from '../../../kit/ids.js'
import type { ParticipantMessageOf } from '../../../domain/swarm/participant-message.js'
import type { CommittedResults } from './committed-results.js'
import type { CancelRequest } from './cancel-request.js'
import type { ContentName } from './content-transfer.js'
import type { ParticipantDeps } from './participant.js'

/** Who does not coordinate asks what was accepted every so many milliseconds. */
const FOLLOW_MS = 1000

/** What is followed. */
export interface Followed {
  readonly swarm: string
  readonly voters: readonly NodeId[]
  readonly accepted: CommittedResults
  readonly cancelRequest: Pick<CancelRequest, 'isOpen'>
}

/** What participants of one swarm tell each other of what was accepted, and whether it is to go on. */
export class FollowerSync {
  readonly #deps: Pick<ParticipantDeps, 'clock' | 'self' | 'tell'>
  readonly #swarm: string
  readonly #others: readonly NodeId[]
  readonly #accepted: CommittedResults
  readonly #cancelRequest: Pick<CancelRequest, 'isOpen'>
  #askedAt = Number.NEGATIVE_INFINITY

  constructor(deps: Pick<ParticipantDeps, 'clock' | 'self' | 'tell'>, { swarm, voters, accepted, cancelRequest }: Followed) {
    this.#deps = deps
    this.#swarm = swarm
    this.#others = voters.filter((node) => node !== deps.self)
    this.#accepted = accepted
    this.#cancelRequest = cancelRequest
  }

  /** Time passed, and this node does not coordinate: it asks who does, or all. */
  tick(coordinator: NodeId | null): void {
    if (this.#deps.clock.monotonic() - this.#askedAt >= FOLLOW_MS) this.ask(coordinator)
  }

  /** Asks at once. */
  ask(coordinator: NodeId | null): void {
    const { clock, self, tell } = this.#deps
    this.#askedAt = clock.monotonic()
    const { isWhole, size } = this.#accepted.records
    const have = isWhole ? size : 0
    for (const node of coordinator === null || coordinator === self ? this.#others : [coordinator]) {
      tell(node, { name: 'swarm', body: { kind: 'follow', swarm: this.#swarm, have, from: 0 } })
      if (this.#cancelRequest.isOpen) tell(node, { name: 'swarm', body: { kind: 'cancel', swarm: this.#swarm } })
    }
    this.#accepted.take([], self)
  }

  /** Tells somebody who asks; when all of it is known there, only that it is coordinated, and in which epoch. */
  answer(from: NodeId, { have, from: index }: ParticipantMessageOf<'follow'>): void {
    const { records } = this.#accepted
    const page = records.page(this.#swarm, index)
    this.#deps.tell(from, { name: 'swarm', body: have < records.size ? page : { ...page, items: [], next: null } })
  }

  /** Somebody tells. */
  onMessage(from: NodeId, { epoch, total, items, next }: ParticipantMessageOf<'accepted'>): void {
    this.#accepted.take(this.#accepted.learn(items, { total, epoch }), from)
    if (next === null) return
    this.#deps.tell(from, { name: 'swarm', body: { kind: 'follow', swarm: this.#swarm, have: this.#accepted.records.size, from: next } })
  }

  /** Tells all others what was accepted just now. */
  announce(epoch: number, accepted: readonly ContentName[]): void {
    const items = this.#accepted.learn(accepted, { total: 0, epoch })
    if (items.length === 0) return
    const body = { kind: 'accepted', swarm: this.#swarm, epoch, total: this.#accepted.records.size, items, next: null } as const
    for (const node of this.#others) this.#deps.tell(node, { name: 'swarm', body })
  }
}
