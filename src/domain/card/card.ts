import type { NodeId } from '../../kit/ids.js'
import type { AgentProvider } from '../../kit/names/provider.js'
import type { Tier } from '../routing/tier.js'

export { OPERATOR } from '../../kit/names/rule.js'

/** How an agent is reached. */
export interface AgentEndpoint {
  readonly transport: 'local' | 'hyperswarm' | 'websocket'
  /** Node key (z32) or URL; `tcp://host:port` of `hyperswarm` is its stream over TCP. */
  readonly address?: string
}

/** Possible side effects of a capability, for policy rules, from none to any. */
export const SIDE_EFFECTS = ['none', 'read', 'write', 'exec'] as const

/** One of {@link SIDE_EFFECTS}. */
export type SideEffect = (typeof SIDE_EFFECTS)[number]

/** Tag of a capability that its agent refuses for certain, since its owner granted nothing for it. */
export const NOT_GRANTED = 'not granted'

/** One thing an agent can do. The A2A gateway calls it a skill. */
export interface CapabilityDescriptor {
  /** e.g. `text.stats`; at most 128 characters. */
  readonly id: string
  readonly name: string
  readonly description: string
  readonly inputSchema: unknown
  readonly outputSchema: unknown
  /** May be repeated after an unknown outcome. Default false. */
  readonly idempotent?: boolean
  /** Default 'exec'. */
  readonly sideEffect?: SideEffect
  /** The capability `send` uses; without a mark the first of the card. */
  readonly default?: boolean
  readonly tags?: readonly string[]
  readonly examples?: readonly string[]
  readonly inputModes?: readonly string[]
  readonly outputModes?: readonly string[]
}

/** An agent's description, the part that its node signs. */
export interface CardBody {
  /** Unique on its node; 1..64 of `[a-z0-9._-]`. */
  readonly id: string
  readonly name: string
  /** Version of the agent (semver). */
  readonly version: string
  readonly description: string
  readonly tier: Tier
  /** Published protocol strings, e.g. `a2a/1.0`. */
  readonly protocols: readonly string[]
  readonly endpoints: readonly AgentEndpoint[]
  readonly capabilities: readonly CapabilityDescriptor[]
  /** Rises by one at each local change; kept as it is for remote cards. */
  readonly revision: number
  readonly sandboxId?: string
  /** Labels of its node, e.g. `gpu` or `zone=eu`; absent without any. */
  readonly labels?: readonly string[]
  /** Its node only passes work on to an agent outside of the mesh: others with the same capability go before it. */
  readonly external?: true
}

/** The card as a reader holds it (spec a2a-mcp-mesh, AgentCard): the signed body and fields beside it. */
export interface AgentCard extends CardBody {
  readonly origin: 'local' | 'remote'
  /** Unix milliseconds. */
  readonly lastSeenAt: number
  /**
   * The organization that offers it. Unsigned: its node sends it over its own links, since nodes of an earlier build
   * refuse cards with unknown members. Absent: none, or not received.
   */
  readonly provider?: AgentProvider
}

/** `id@node`: with the node key on the wire and in tables, with the node's name for people. */
export interface AgentAddress {
  readonly agentId: string
  readonly nodeId: NodeId
}

/** `{agentId, nodeId}` as `agentId@nodeId`. */
export function addressText(address: AgentAddress): string {
  return `${address.agentId}@${address.nodeId}`
}

/** The node in the text of an address. */
export function nodeOfAddress(text: string): string {
  return text.slice(text.lastIndexOf('@') + 1)
}

/** The capability that `send` uses: the one marked `default`, else the first; null for an agent without any. */
export function defaultCapability(card: Pick<CardBody, 'capabilities'>): CapabilityDescriptor | null {
  return card.capabilities.find((one) => one.default === true) ?? card.capabilities[0] ?? null
}

/** `agentId@nodeId` taken apart; null when it is no such address. */
export function parseAddress(text: string): AgentAddress | null {
  const at = text.lastIndexOf('@')
  return at <= 0 || at === text.length - 1 ? null : { agentId: text.slice(0, at), nodeId: text.slice(at + 1) }
}
