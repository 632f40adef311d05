import { asNodeError, NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { isRecord } from '../../kit/json.js'
import { shown } from '../../kit/text.js'
import { type AgentAddress, OPERATOR, parseAddress } from '../../domain/card/card.js'
import type { RegisteredCard } from '../../domain/card/registry.js'
import type { RoutingParty } from '../../domain/routing/decide.js'
import { tierFromText, TIERS, tierText } from '../../domain/routing/tier.js'
import type { NodeCore } from '../node.js'

/** Which agents a caller finds. */
type Sees = (card: RegisteredCard) => boolean

/**
 * Whom `policy test` means by its sender: anybody of a tier, a node (its operator) or an agent; of a bare name the node, then
 * this node's own agent, then that of any other.
 * @throws NodeError REVOKED, PEER_NOT_FOUND, AGENT_NOT_FOUND, AMBIGUOUS_NAME.
 */
export function senderParty(node: NodeCore, text: string, sees: Sees): RoutingParty {
  const anybody = anybodyOf(text)
  if (anybody !== null) return anybody
  if (text.includes('@')) return agentParty(node, text, sees)
  const missing: NodeError[] = []
  for (const find of [operatorOf, agentOf]) {
    try {
      return partyOf(node, find(node, text, sees))
    } catch (error) {
      const known = asNodeError(error)
      if (known.code !== 'PEER_NOT_FOUND' && (known.code !== 'AGENT_NOT_FOUND' || find === operatorOf)) throw known
      missing.push(known)
    }
  }
  const nearest = [...new Set(missing.flatMap(({ data }) => nearestOf(data)))].slice(0, 3)
  const hint = nearest.length === 0 ? '' : `; did you mean ${nearest.join(' or ')}?`
  throw new NodeError('PEER_NOT_FOUND', `no node and no agent "${shown(text)}" in the mesh${hint}${tierHint(text)}`, {
    data: { nearest },
    next: ['a2a-node peers --all', 'a2a-node agents']
  })
}

/** Whom `policy test` means by its target: any agent of this node of a tier, or an agent. @throws NodeError as {@link senderParty}. */
export function targetParty(node: NodeCore, text: string, sees: Sees): RoutingParty {
  const anybody = anybodyOf(text)
  if (anybody !== null) return anybody
  try {
    return agentParty(node, text, sees)
  } catch (error) {
    const named = asNodeError(error).code === 'AGENT_NOT_FOUND' ? nodeNamed(node, text) : null
    if (named === null) throw withTiers(error, text)
    const agents = node.registry.listAll().filter((card) => card.nodeId === named && card.id !== OPERATOR && sees(card))
    const candidates = agents.slice(0, 8).map(({ address }) => node.directory.shownAddress(address))
    const message = `${node.directory.ref(named).name} is a node; name one of its agents`
    throw new NodeError('AGENT_NOT_FOUND', message, { data: { candidates }, cause: error })
  }
}

/** The node of an end of the message; null for anybody of a tier. */
export function nodeOf({ address }: RoutingParty): NodeId | null {
  return parseAddress(address)?.nodeId ?? null
}

function anybodyOf(text: string): RoutingParty | null {
  const tier = tierFromText(text)
  // No address: no rule for an agent or a node is for it.
  return tier === null ? null : { address: '', tier, sandboxId: null }
}

function operatorOf(node: NodeCore, text: string): AgentAddress {
  return { agentId: OPERATOR, nodeId: node.directory.node(text) }
}

/** The policy is this node's: a bare name means its own agent when it has one. */
function agentOf(node: NodeCore, text: string, sees: Sees): AgentAddress {
  const own = { agentId: text, nodeId: node.self }
  const card = node.directory.card(own)
  return card === undefined || !sees(card) ? node.directory.agent(text, sees) : own
}

function agentParty(node: NodeCore, text: string, sees: Sees): RoutingParty {
  try {
    return partyOf(node, agentOf(node, text, sees))
  } catch (error) {
    // The cards of a node that was put out are gone with it.
    const named = text.includes('@') ? nodeNamed(node, text.slice(text.indexOf('@') + 1)) : null
    if (named !== null) checkMember(node, named)
    throw error
  }
}

function nodeNamed(node: NodeCore, text: string): NodeId | null {
  try {
    return node.directory.node(text)
  } catch {
    return null
  }
}

function partyOf(node: NodeCore, address: AgentAddress): RoutingParty {
  const party = node.directory.party(address)
  if (party !== null) return party
  checkMember(node, address.nodeId)
  const { name } = node.directory.ref(address.nodeId)
  const message = `this node has no card of ${node.directory.shownAddress(address)} yet; it gets it when it is linked to ${shown(name)}`
  throw new NodeError('AGENT_NOT_FOUND', message, { next: ['a2a-node peers --all'] })
}

/** Of a node that was put out nothing is decided on: it has no link. */
function checkMember({ deps: parts, directory }: NodeCore, nodeId: NodeId): void {
  const revoked = parts.log.view().members.get(nodeId)?.revoked ?? null
  if (revoked === null) return
  const { name } = directory.ref(nodeId)
  const by = directory.ref(revoked.by).name
  const message = `${shown(name)} was put out of the mesh by ${shown(by)}: it has no link, so nothing passes between it and this node`
  throw new NodeError('REVOKED', message, { next: ['a2a-node peers --all'] })
}

/** Whoever types what looks like a tier and is none reads which there are. */
function tierHint(text: string): string {
  return /^l\d+$/i.test(text) ? `; the tiers are ${TIERS.map(tierText).join(', ')}` : ''
}

function withTiers(error: unknown, text: string): unknown {
  const known = asNodeError(error)
  const hint = known.code === 'AGENT_NOT_FOUND' ? tierHint(text) : ''
  return hint === '' ? error : new NodeError(known.code, known.message + hint, { data: known.data, next: known.next, cause: error })
}

function nearestOf(data: unknown): string[] {
  const nearest = isRecord(data) ? data['nearest'] : null
  return Array.isArray(nearest) ? nearest.filter((one) => typeof one === 'string') : []
}
