import type { NodeId } from '../../kit/ids.js'
import { addressText, type AgentCard } from '../../domain/card/card.js'
import { isVisibleTo } from '../../domain/card/registry.js'
import type { RoutingRules } from '../../domain/routing/decide.js'
import { type CallerAuthority, effectiveParty } from '../../domain/routing/effective.js'
import type { AgentHost } from '../agents/agent-host.js'
import type { Directory } from './directory.js'

/** What says who finds whom. */
export interface VisibilityDeps {
  readonly self: NodeId
  readonly directory: Directory
  readonly agents: Pick<AgentHost, 'isReserved'>
  rules(): RoutingRules
}

type Card = Pick<AgentCard, 'id' | 'sandboxId'>

/** Who finds which agents: nobody inside a sandbox finds anyone outside it, save whom the mesh's allow list names. */
export class Visibility {
  readonly #deps: VisibilityDeps

  constructor(deps: VisibilityDeps) {
    this.#deps = deps
  }

  /** Does a caller of this node find an agent? It is in its own sandbox and in that of this node. Some are for the operator alone. */
  toCaller(card: Card & { readonly nodeId: NodeId }, by: CallerAuthority): boolean {
    const { self, directory, agents } = this.#deps
    if (by.isOperator !== true && card.nodeId === self && agents.isReserved(card.id)) return false
    const certificate = directory.certificate(self)
    if (certificate === null) return false
    return this.#isSeen(
      addressText({ agentId: card.id, nodeId: card.nodeId }),
      card,
      effectiveParty({ certificate, card: null, hops: [by] }).sandboxId
    )
  }

  /** Does a peer find an agent of this node? */
  toPeer(card: Card, peer: NodeId): boolean {
    const { self, directory } = this.#deps
    return this.#isSeen(addressText({ agentId: card.id, nodeId: self }), card, directory.certificate(peer)?.sandboxId ?? null)
  }

  /**
   * Must a peer know the card of an agent of this node? Also one that it does not find, when the agent may write to it:
   * without the card the peer could not tell who writes.
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
