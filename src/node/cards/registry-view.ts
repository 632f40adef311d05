import type { NodeId } from '../../kit/ids.js'
import type { AgentRegistry, RegisteredCard } from '../../domain/card/registry.js'
import type { Tier } from '../../domain/routing/tier.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { RemoteCards } from './remote-cards.js'

/** Dependencies of {@link RegistryView}. */
export interface RegistryViewDeps {
  readonly registry: AgentRegistry
  readonly remoteCards: RemoteCards
  readonly log: MemberLog
}

/**
 * A read-only view of a running node's registry (spec a2a-mcp-mesh, AgentRegistry): every change comes from signed
 * cards. To register an agent, attach it. {@link AgentRegistry.deserialize} makes a separate registry from the text.
 */
export class RegistryView {
  readonly #deps: RegistryViewDeps

  constructor(deps: RegistryViewDeps) {
    this.#deps = deps
  }

  /** The cards of an agent id, one per node. */
  getById(agentId: string): readonly RegisteredCard[] {
    return this.#deps.registry.getById(agentId)
  }

  /** The card at `agentId@nodeId`. */
  getByAddress(address: string): RegisteredCard | undefined {
    return this.#deps.registry.getByAddress(address)
  }

  /** The cards with a capability. */
  findByCapability(capabilityId: string): readonly RegisteredCard[] {
    return this.#deps.registry.findByCapability(capabilityId)
  }

  /** The cards of a tier. */
  findByTier(tier: Tier): readonly RegisteredCard[] {
    return this.#deps.registry.findByTier(tier)
  }

  /** The cards of a node. */
  ofNode(nodeId: NodeId): readonly RegisteredCard[] {
    return this.#deps.registry.ofNode(nodeId)
  }

  /** Every card. */
  listAll(): readonly RegisteredCard[] {
    return this.#deps.registry.listAll()
  }

  /** The cards of this node's agents. */
  getLocalCards(): readonly RegisteredCard[] {
    return this.#deps.registry.getLocalCards()
  }

  /** The cards of other nodes' agents. */
  getRemoteCards(): readonly RegisteredCard[] {
    return this.#deps.registry.getRemoteCards()
  }

  /** The agents that an agent of a sandbox (null: none) finds; `allowList` adds agent ids or addresses beyond it. */
  visibleTo(sandboxId: string | null, allowList: readonly string[] = []): readonly RegisteredCard[] {
    return this.#deps.registry.visibleTo(sandboxId, allowList)
  }

  /** All cards as JSON text. */
  serialize(): string {
    return this.#deps.registry.serialize()
  }

  /** True unless the discovery of agents of other nodes is off. */
  get isDiscovering(): boolean {
    return this.#deps.remoteCards.isOn
  }

  /** Turns discovery on: cards in the log count at once, others as their nodes send them. */
  enableDiscovery(): void {
    this.#deps.remoteCards.enable(this.#deps.log.view())
  }

  /**
   * Turns discovery off, and forgets the agents of other nodes: they cannot be reached from here, nor admitted, as
   * senders without a card are refused. Others still find this node's agents.
   */
  disableDiscovery(): void {
    this.#deps.remoteCards.disable()
  }
}
