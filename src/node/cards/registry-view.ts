import type { NodeId } from '../../kit/ids.js'
import type { AgentRegistry, RegisteredCard } from '../../domain/card/registry.js'
import type { Tier } from '../../domain/routing/tier.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { RemoteCards } from './remote-cards.js'

/** What following the registry needs. */
export interface RegistryViewDeps {
  readonly registry: AgentRegistry
  readonly remoteCards: RemoteCards
  readonly log: MemberLog
}

/**
 * The registry of a running node, to be read (spec a2a-mcp-mesh, AgentRegistry): every change of it comes from signed cards.
 * Agents are registered by attaching them. {@link AgentRegistry.deserialize} makes a registry of its own of the text.
 */
export class RegistryView {
  readonly #deps: RegistryViewDeps

  constructor(deps: RegistryViewDeps) {
    this.#deps = deps
  }

  /** The cards of an agent id, one a node. */
  getById(agentId: string): readonly RegisteredCard[] {
    return this.#deps.registry.getById(agentId)
  }

  /** The card at `agentId@nodeId`. */
  getByAddress(address: string): RegisteredCard | undefined {
    return this.#deps.registry.getByAddress(address)
  }

  /** The cards that have a capability. */
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

  /** What an agent of a sandbox (null: none) finds; `allowList` names agent ids or addresses beyond it. */
  visibleTo(sandboxId: string | null, allowList: readonly string[] = []): readonly RegisteredCard[] {
    return this.#deps.registry.visibleTo(sandboxId, allowList)
  }

  /** All cards as JSON text. */
  serialize(): string {
    return this.#deps.registry.serialize()
  }

  /** Are agents of other nodes found? True unless turned off. */
  get isDiscovering(): boolean {
    return this.#deps.remoteCards.isOn
  }

  /** Finds agents of other nodes again: those that the log has at once, others as their nodes tell of them. */
  enableDiscovery(): void {
    this.#deps.remoteCards.enable(this.#deps.log.view())
  }

  /**
   * Forgets the agents of other nodes and takes no cards of them: they cannot be reached from here, nor let in, as senders
   * without a card are refused. This node's own agents stay known to others.
   */
  disableDiscovery(): void {
    this.#deps.remoteCards.disable()
  }
}
