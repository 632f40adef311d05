import type { NodeId } from '../../kit/ids.js'
import { addressText, type AgentCard } from '../../domain/card/card.js'
import { isVisibleTo } from '../../domain/card/registry.js'
import type { RoutingRules } from '../../domain/routing/decide.js'
import { type CallerAuthority, effectiveParty, mayAddress } from '../../domain/routing/effective.js'
import type { AgentHost } from '../agents/agent-host.js'
import type { Directory } from './directory.js'

/** Dependencies of {@link Visibility}. */
export interface VisibilityDeps {
  readonly self: NodeId
  readonly directory: Directory
  readonly agents: Pick<AgentHost, 'isReserved'>
  rules(): RoutingRules
}

type Card = Pick<AgentCard, 'id' | 'sandboxId'>

/** Which agents a caller finds: inside a sandbox no agents outside it, except those on the mesh's allow list. */
export class Visibility {
  readonly #deps: VisibilityDeps

  constructor(deps: VisibilityDeps) {
    this.#deps = deps
  }

  /**
   * True when a caller of this node finds an agent, inside its own sandbox and the node's. Some are for the operator
   * alone.
   */
  toCaller(card: Card & { readonly nodeId: NodeId }, by: CallerAuthority): boolean {
    const { self, directory, agents } = this.#deps
    if (by.isOperator !== true && card.nodeId === self && agents.isReserved(card.id)) return false
    if (!mayAddress(card.id, by)) return false
    const certificate = directory.certificate(self)
    if (certificate === null) return false
    return this.#isSeen(
      addressText({ agentId: card.id, nodeId: card.nodeId }),
      card,
      effectiveParty({ certificate, card: null, hops: [by] }).sandboxId
    )
  }

  /** True when a peer finds an agent of this node. */
  toPeer(card: Card, peer: NodeId): boolean {
    const { self, directory } = this.#deps
    return this.#isSeen(
      addressText({ agentId: card.id, nodeId: self }),
      card,
      directory.certificate(peer)?.sandboxId ?? null
    )
  }

  /**
   * True when a peer must know the card of an agent of this node. That includes an agent it does not find but that may
   * write to it: without the card the peer could not identify the sender.
   */
  isVisibleTo(card: Card, peer: NodeId): boolean {
    const { crossSandboxAllowList } = this.#deps.rules().sandbox
    return card.sandboxId === undefined || crossSandboxAllowList.length > 0 || this.toPeer(card, peer)
  }

  #isSeen(address: string, card: Card, sandboxId: string | null): boolean {
    const { enforced, crossSandboxAllowList } = this.#deps.rules().sandbox
    return !enforced || isVisibleTo({ ...card, address }, sandboxId, crossSandboxAllowList)
  }
}
