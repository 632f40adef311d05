import { BoundedSet } from '../../kit/bounded.js'
import type { Clock } from '../../kit/clock.js'
import type { NodeId } from '../../kit/ids.js'
import { isRecord } from '../../kit/json.js'
import type { Verify } from '../../kit/sign.js'
import { addressText } from '../../domain/card/card.js'
import { readProviders } from '../../domain/card/provider.js'
import type { AgentRegistry } from '../../domain/card/registry.js'
import { cardBytes, checkSignedCard } from '../../domain/card/schema.js'
import { MAX_CARDS, MAX_CARDS_BYTES } from '../../domain/membership/fold/card.js'
import type { Certificate, MembershipView, SignedCard } from '../../domain/membership/types.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { ProviderStore } from './provider-store.js'

/** The most remembered refused cards, so that each is checked and logged once. */
const MAX_REFUSED = 1024

/** Dependencies of {@link RemoteCards}. */
export interface RemoteCardsDeps {
  readonly clock: Clock
  readonly verify: Verify
  readonly telemetry: Telemetry
  readonly registry: AgentRegistry
  readonly self: NodeId
  readonly providers: ProviderStore
  /** The certificate in force of any connected or known node. */
  certificateOf(node: NodeId): Certificate | null
}

/** The cards of all other nodes: from the log, and newer ones from the peers themselves. Bounded per node. */
export class RemoteCards {
  readonly #deps: RemoteCardsDeps
  /** Revisions in the log's last view, by node and agent id. */
  readonly #logged = new Map<NodeId, Map<string, number>>()
  /** Removed addresses whose card is still in the log, with the last removed revision. */
  readonly #gone = new Map<string, number>()
  readonly #refused = new BoundedSet<string>(MAX_REFUSED)
  /** Agents of connected nodes that cannot work, each with the time of the report, in unix milliseconds. */
  readonly #unable = new Map<NodeId, ReadonlyMap<string, number>>()
  #isOn = true

  constructor(deps: RemoteCardsDeps) {
    this.#deps = deps
  }

  /** True while cards of other nodes are taken. */
  get isOn(): boolean {
    return this.#isOn
  }

  /** Takes cards of other nodes again, those of the log at once. */
  enable(view: MembershipView): void {
    this.#isOn = true
    this.#gone.clear()
    this.fromView(view)
  }

  /** Stops taking cards of other nodes, and removes theirs from the registry. */
  disable(): void {
    const { registry } = this.#deps
    this.#isOn = false
    for (const card of registry.getRemoteCards()) registry.unregister(card.address)
  }

  /** Updates to the log's cards: adds new ones, and removes those that the log removed and those of revoked nodes. */
  fromView(view: MembershipView): void {
    const { self } = this.#deps
    for (const [nodeId, member] of view.members) {
      if (nodeId === self) continue
      const cards = member.revoked === null ? view.cards.get(nodeId) : undefined
      this.#dropUnlogged(nodeId, cards)
      if (member.revoked !== null) this.#removeNode(nodeId)
      else this.#mergeAll(nodeId, this.#notGone(nodeId, [...(cards?.values() ?? [])]), member.certificate.body)
    }
    // The log is not final at once: it may take back entries of a node.
    for (const nodeId of [...this.#logged.keys()]) if (!view.members.has(nodeId)) this.#dropUnlogged(nodeId, undefined)
  }

  /** The last link to a peer closed: removes the cards of a node that the log does not know. */
  onOffline(peer: NodeId): void {
    this.#unable.delete(peer)
    if (this.#deps.certificateOf(peer) === null) this.#deps.registry.removeNode(peer)
  }

  /** Takes cards of a peer about itself: any JSON. `all`: the ids of all its agents; null when not given. */
  fromPeer(peer: NodeId, cards: readonly unknown[], all: readonly string[] | null): void {
    const certificate = this.#deps.certificateOf(peer)
    if (certificate === null) return
    this.#mergeAll(peer, cards.slice(0, MAX_CARDS), certificate)
    if (all === null) return
    const named = new Set(all)
    for (const card of this.#deps.registry.ofNode(peer))
      if (!named.has(card.id)) this.#remove(card.address, card.revision)
  }

  /** Takes the providers of agents of a peer: any JSON. */
  providersFromPeer(peer: NodeId, providers: readonly unknown[]): void {
    const { registry, providers: kept } = this.#deps
    for (const one of readProviders(providers)) if (registry.setProvider(peer, one)) kept.put(peer, one)
  }

  /** Takes the ids of all agents of a peer that cannot work; at most `MAX_NAMED_AGENTS`. */
  unableFromPeer(peer: NodeId, agents: readonly string[]): void {
    const [before, now] = [this.#unable.get(peer), this.#deps.clock.now()]
    if (agents.length === 0) this.#unable.delete(peer)
    else this.#unable.set(peer, new Map(agents.map((id) => [id, before?.get(id) ?? now])))
  }

  /** When its node reported that an agent cannot work, in unix milliseconds; null: it did not. */
  unableSince(node: NodeId, agentId: string): number | null {
    return this.#unable.get(node)?.get(agentId) ?? null
  }

  /** A peer reports removed agents, each with a revision. */
  removedByPeer(peer: NodeId, agents: readonly { readonly id: string; readonly revision: number }[]): void {
    for (const { id, revision } of agents) this.#remove(addressText({ agentId: id, nodeId: peer }), revision)
  }

  #removeNode(nodeId: NodeId): void {
    this.#deps.registry.removeNode(nodeId)
    this.#deps.providers.forget(nodeId)
  }

  #remove(address: string, revision: number): void {
    const known = this.#deps.registry.getByAddress(address)
    if (known === undefined || known.origin === 'local' || known.revision > revision) return
    this.#deps.registry.unregister(address)
    // The log follows later: until then it must not restore the card.
    if (this.#logged.get(known.nodeId)?.has(known.id) === true) this.#gone.set(address, revision)
  }

  /** Removes cards that left the log, unless their node sent a newer one meanwhile. */
  #dropUnlogged(nodeId: NodeId, cards: ReadonlyMap<string, SignedCard> | undefined): void {
    const { registry } = this.#deps
    for (const [agentId, revision] of this.#logged.get(nodeId) ?? []) {
      if (cards?.has(agentId) === true) continue
      const address = addressText({ agentId, nodeId })
      this.#gone.delete(address)
      if ((registry.getByAddress(address)?.revision ?? Number.POSITIVE_INFINITY) <= revision)
        registry.unregister(address)
    }
    if (cards === undefined) this.#logged.delete(nodeId)
    else this.#logged.set(nodeId, new Map([...cards].map(([agentId, { body }]) => [agentId, body.revision])))
  }

  #notGone(nodeId: NodeId, cards: readonly SignedCard[]): readonly SignedCard[] {
    return cards.filter(({ body }) => {
      const gone = this.#gone.get(addressText({ agentId: body.id, nodeId }))
      return gone === undefined || body.revision > gone
    })
  }

  /** Logs one line for any number of refused cards: a peer must not be able to fill the disk with small messages. */
  #mergeAll(nodeId: NodeId, cards: readonly unknown[], certificate: Certificate): void {
    const faults = cards.flatMap((signed) => this.#merge(nodeId, signed, certificate) ?? [])
    if (faults.length === 0) return
    const { telemetry } = this.#deps
    telemetry.count('errors', 'card', faults.length)
    telemetry.log('warn', 'cards were refused', { peer: nodeId, count: faults.length, reason: faults[0] })
  }

  /** Takes a card newer than the known one. Returns the reason of a refusal, once; else null. */
  #merge(nodeId: NodeId, signed: unknown, certificate: Certificate): string | null {
    const { registry, verify, clock, providers } = this.#deps
    if (!this.#isOn) return null
    const name = isRecord(signed) && isRecord(signed.body) ? signed.body : {}
    const { id, revision } = name
    if (typeof id !== 'string' || typeof revision !== 'number') return 'not a signed card'
    const address = addressText({ agentId: id, nodeId })
    const known = registry.getByAddress(address)
    if (known !== undefined && known.revision >= revision) return null
    const key = `${address.slice(0, 128)}/${revision}/${certificate.serial}`
    if (this.#refused.has(key)) return null
    if (known === undefined && registry.ofNode(nodeId).length >= MAX_CARDS) return this.#refuse(key, 'too many cards')
    const checked = checkSignedCard(signed, { certificate, verify })
    if (!checked.ok) return this.#refuse(key, checked.reason)
    const bytes = registry.bytesOf(nodeId, id) + (cardBytes(checked.card) ?? 0)
    if (bytes > MAX_CARDS_BYTES) return this.#refuse(key, 'too many bytes of cards')
    this.#gone.delete(address)
    registry.merge(checked.card, nodeId, clock.now())
    const provider = providers.of(nodeId, checked.card)
    if (provider !== null) registry.setProvider(nodeId, { ...checked.card, provider })
    return null
  }

  #refuse(key: string, reason: string): string {
    this.#refused.add(key)
    return reason
  }
}
