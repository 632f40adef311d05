import type { NodeId } from '../../kit/ids.js'
import { needsOf } from '../../domain/swarm/expand.js'
import type { StageWants } from '../../domain/swarm/expand.js'
import type { Recruit, SwarmInput } from '../../domain/swarm/types.js'
import type { LeftOut } from '../../ports/swarm-api.js'
import type { SwarmHead } from './store.js'
import { SwarmOffers } from './offers.js'
import type { Declined, SwarmOffersDeps } from './offers.js'

/** For whom is recruited, and who is told. */
export interface Recruiting {
  readonly head: SwarmHead
  /** May what an agent began of a capability be given to another? */
  isRepeatable(agent: string, capability: string): boolean
  onInput(input: SwarmInput): void
  /** One more is left out. */
  onLeftOut(leftOut: LeftOut): void
}

/** The offers of one swarm: one kind of offer for each kind of agent that it needs. */
export class Recruiter {
  readonly #recruiting: Recruiting
  readonly #wants: readonly StageWants[]
  readonly #offers: readonly SwarmOffers[]

  constructor(deps: SwarmOffersDeps, recruiting: Recruiting) {
    this.#recruiting = recruiting
    this.#wants = needsOf(recruiting.head.stages).wants
    this.#offers = this.#wants.map((wants, need) => this.#create(deps, wants, need))
  }

  #create(deps: SwarmOffersDeps, { capability, further = [] }: StageWants, need: number): SwarmOffers {
    const { head, isRepeatable, onInput } = this.#recruiting
    const { request, onBehalfOf, itemCount } = head
    const known = ({ agent, slots }: Recruit): Recruit => ({ agent, slots, need, isRepeatable: isRepeatable(agent, capability) })
    return new SwarmOffers(deps, {
      request,
      capabilities: [capability, ...further],
      ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
      itemCount,
      leftOut: head.leftOut.filter((one) => one.capability === undefined || one.capability === capability),
      onRecruited: (recruits) => onInput({ type: 'recruited', agents: recruits.map(known) }),
      onAccepted: (recruit) => onInput({ type: 'accepted', ...known(recruit) }),
      onLeft: (declined) => this.#left(declined, need)
    })
  }

  #left({ agent, leftOut, error }: Declined, need: number): void {
    const { onInput, onLeftOut } = this.#recruiting
    onLeftOut(this.#wants.length === 1 ? leftOut : { ...leftOut, capability: this.#wants[need]?.capability ?? '' })
    onInput({ type: 'left', agent, reason: leftOut.rule, error, need })
  }

  /** Does any of them wait for the first answers? */
  get isRecruiting(): boolean {
    return this.#offers.some((one) => one.isRecruiting)
  }

  /** Agents that could, but do not take part. */
  get leftOut(): readonly LeftOut[] {
    const all = this.#offers.flatMap((offers, need) => {
      const capability = this.#wants[need]?.capability
      return offers.leftOut.map((one) => (this.#wants.length === 1 || capability === undefined ? one : { ...one, capability }))
    })
    return [...new Map(all.map((one) => [`${one.capability ?? ''} ${one.agent}`, one])).values()]
  }

  /** Offers a part to every agent that was not asked yet, by need. */
  offer(allowed: readonly (readonly string[])[]): void {
    for (const [need, offers] of this.#offers.entries()) offers.offer(allowed[need] ?? [])
  }

  /** A peer is gone: its agents may be asked again when it is back. Returns those that were asked. */
  lost(peer: NodeId): string[] {
    return [...new Set(this.#offers.flatMap((offers) => offers.lost(peer)))]
  }

  /** Agents that no longer exist, of those asked, by need. */
  removed(known: readonly ReadonlySet<string>[]): { readonly agent: string; readonly need: number }[] {
    return this.#offers.flatMap((offers, need) => offers.removed(known[need] ?? new Set()).map((agent) => ({ agent, need })))
  }

  /** The swarm has ended. */
  stop(): void {
    for (const offers of this.#offers) offers.stop()
  }
}
