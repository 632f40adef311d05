import { NodeError } from '../../kit/errors.js'
import { shortId } from '../../kit/ids.js'
import type { NodeId } from '../../kit/ids.js'
import { NODE_NAME } from '../../kit/names/rule.js'
import { safeName } from '../../kit/names/safe-name.js'
import { MIN_ID_CHARACTERS } from '../../kit/resolve-id.js'
import { shown } from '../../kit/text.js'
import { type AgentAddress, parseAddress } from '../../domain/card/card.js'
import type { AgentRegistry, RegisteredCard } from '../../domain/card/registry.js'
import type { Certificate, MembershipView } from '../../domain/membership/types.js'
import type { RoutingParty } from '../../domain/routing/decide.js'
import { displayNames, nodesMeant, resolveAgent, resolveNode, splitAddress } from '../../domain/routing/names.js'
import type { AgentName, NodeName } from '../../domain/routing/names.js'
import { effectiveParty } from '../../domain/routing/effective.js'
import type { CertifiedPower } from '../../domain/routing/effective.js'
import type { MemberLog, Membership } from '../../ports/mesh.js'
import type { NodeRef } from '../../ports/node-api.js'
import type { PeerTable } from '../peers/peer-table.js'

/** Dependencies of {@link Directory}. */
export interface DirectoryDeps {
  readonly self: NodeId
  readonly log: MemberLog
  readonly peers: PeerTable
  readonly registry: AgentRegistry
  readonly membership: Pick<Membership, 'certificate'>
}

/** An agent named in a message. */
export interface NamedAgent {
  readonly address: AgentAddress
  /** Its card, and the agent as the rules see it: null when certificate or card is missing. */
  readonly card: RegisteredCard | undefined
  readonly party: RoutingParty | null
}

/** Displayed names, and the state they were computed from. */
interface ShownNames {
  readonly view: MembershipView | null
  readonly links: number
  /** This node's own name. */
  readonly own: string
  /** The names in certificates, in the order of admission. */
  readonly nodes: readonly NodeName[]
  readonly shown: ReadonlyMap<NodeId, string>
  /** By displayed name. */
  readonly ids: ReadonlyMap<string, NodeId>
}

const NO_HOPS: readonly CertifiedPower[] = []
/** The most suggestions for an unknown name. */
const MAX_MEANT = 3

/** Converts between the names that people type and the addresses in messages. */
export class Directory {
  readonly #deps: DirectoryDeps
  #names: ShownNames = { view: null, links: 0, own: '', nodes: [], shown: new Map(), ids: new Map() }
  /** The nodes that a text of a rule may mean, with the present names. */
  #meant = new Map<string, readonly NodeId[]>()

  constructor(deps: DirectoryDeps) {
    this.#deps = deps
  }

  /**
   * Every node with the exact name in its certificate: members (also revoked ones), this node, and connected nodes that
   * the view lacks yet.
   */
  nodes(): readonly NodeName[] {
    return this.#known().nodes
  }

  #namedNodes(): NodeName[] {
    const { log, peers, self } = this.#deps
    const names = new Map<NodeId, string>()
    // In the order of admission: the first node keeps its name, and a later one of the same name gets a longer one.
    const members = [...log.view().members].sort(([, one], [, other]) => one.order - other.order)
    for (const [id, member] of members) names.set(id, member.certificate.body.name)
    for (const id of peers.online()) if (!names.has(id)) names.set(id, peers.link(id)?.certificate.body.name ?? '')
    names.set(self, this.#deps.membership.certificate().body.name)
    return [...names].map(([id, name]) => ({ id, name }))
  }

  /** Id and displayed name of a node. */
  ref(nodeId: NodeId): NodeRef {
    return { id: nodeId, name: this.#known().shown.get(nodeId) ?? shortId(nodeId) }
  }

  /**
   * The nodes that a text in a rule may mean, see {@link nodesMeant}. Fast: computed anew only after changes of members
   * or links. For texts of this node's own files only, as all are kept.
   */
  nodesOfName(text: string): readonly NodeId[] {
    const names = this.#known().shown
    const known = this.#meant.get(text)
    if (known !== undefined) return known
    const meant = nodesMeant(text, names)
    this.#meant.set(text, meant)
    return meant
  }

  /** The names, computed anew only after changes of members or links. */
  #known(): ShownNames {
    const { log, peers } = this.#deps
    const view = log.view()
    const links = peers.generation
    const own = this.#deps.membership.certificate().body.name
    if (this.#names.view !== view || this.#names.links !== links || this.#names.own !== own) {
      const nodes = this.#namedNodes()
      const names = displayNames(nodes)
      this.#names = { view, links, own, nodes, shown: names, ids: new Map([...names].map(([id, name]) => [name, id])) }
      this.#meant = new Map()
    }
    return this.#names
  }

  /** `id@node name` for people and JSON. */
  shownAddress(address: AgentAddress | string): string {
    return this.namer()(address)
  }

  /** A function for many addresses at once: names are computed once. */
  namer(): (address: AgentAddress | string) => string {
    const names = this.#known().shown
    const shownOf = ({ agentId, nodeId }: AgentAddress): string => `${agentId}@${names.get(nodeId) ?? shortId(nodeId)}`
    return (address) => {
      if (typeof address === 'string') {
        const parsed = parseAddress(address)
        return parsed === null ? address : shownOf(parsed)
      }
      return shownOf(address)
    }
  }

  /**
   * Resolves a node name of a person.
   * @throws NodeError PEER_NOT_FOUND (with the nearest names), AMBIGUOUS_NAME (with the candidates).
   */
  node(text: string): NodeId {
    const found = resolveNode(text, this.nodes())
    if (found.kind === 'found') return found.value
    if (found.kind === 'ambiguous') throw ambiguous(text, found.candidates, 'a2a-node peers --all')
    const isShort = text !== '' && this.nodes().some(({ id }) => id.startsWith(text))
    const rule = isShort ? `: the beginning of an id needs at least ${MIN_ID_CHARACTERS} characters` : ''
    throw notFound('PEER_NOT_FOUND', `no node "${shown(text)}" in the mesh${rule}`, found.nearest)
  }

  /**
   * Resolves an agent name of a person. `sees`: true for agents that the caller may see; others count as unknown.
   * @throws NodeError AGENT_NOT_FOUND, AMBIGUOUS_NAME.
   */
  agent(text: string, sees: (card: RegisteredCard) => boolean = () => true): AgentAddress {
    const named = this.#deps.registry.getByAddress(text)
    if (named !== undefined && sees(named)) return nameOf(named)
    const exact = this.#exactly(text, sees)
    if (exact !== undefined) return nameOf(exact)
    const cards = this.#deps.registry.listAll().filter(sees)
    const found = resolveAgent(text, cards.map(nameOf), this.nodes())
    if (found.kind === 'found') return found.value
    if (found.kind === 'ambiguous') throw ambiguous(text, found.candidates, 'a2a-node agents')
    throw notFound('AGENT_NOT_FOUND', `no agent "${shown(text)}" in the mesh`, found.nearest)
  }

  /** The one agent with exactly this name, as {@link resolveAgent} finds it, without a search of all others. */
  #exactly(text: string, sees: (card: RegisteredCard) => boolean): RegisteredCard | undefined {
    const { registry } = this.#deps
    const address = this.#addressOf(text)
    if (address === null) {
      const [card, ...others] = registry.getById(text).filter(sees)
      return others.length === 0 ? card : undefined
    }
    const card = registry.get(address)
    return card !== undefined && sees(card) ? card : undefined
  }

  /**
   * The address of a text in URLs and cards: an id alone is an agent of this node; in `id@node` the node is its key or
   * its displayed name. The agent need not exist; null for an unknown node.
   */
  exactAddress(text: string): AgentAddress | null {
    return text.includes('@') ? this.#addressOf(text) : { agentId: text, nodeId: this.#deps.self }
  }

  /**
   * `id@node` with the node's key or displayed name; null for any other text. A key means its own node, not one with
   * that name.
   */
  #addressOf(text: string): AgentAddress | null {
    const address = splitAddress(text)
    if (address === null) return null
    const { shown: names, ids } = this.#known()
    const nodeId = names.has(address.node)
      ? address.node
      : (ids.get(address.node) ?? ids.get(safeName(address.node, NODE_NAME)))
    return nodeId === undefined ? null : { agentId: address.agentId, nodeId }
  }

  /** The error for a name that exactly matches no agent, with suggestions. */
  noneCalled(text: string, sees: (card: RegisteredCard) => boolean): NodeError {
    const cards = this.#deps.registry.listAll().filter(sees)
    const found = resolveAgent(text, cards.map(nameOf), this.nodes())
    const meant =
      found.kind === 'found'
        ? [this.shownAddress(found.value)]
        : found.kind === 'none'
          ? found.nearest
          : found.candidates
    return notFound('AGENT_NOT_FOUND', `no agent "${shown(text)}" is served here`, meant.slice(0, MAX_MEANT))
  }

  /** The agent of a text, visible or not; null when it names none or several. */
  exactAgent(text: string): AgentAddress | null {
    const found = resolveAgent(text, this.#deps.registry.listAll().map(nameOf), this.nodes())
    return found.kind === 'found' ? found.value : null
  }

  /** The card at an address; undefined for an unknown one. */
  card(address: AgentAddress): RegisteredCard | undefined {
    return this.#deps.registry.get(address)
  }

  /** The certificate in force of a node, including this one; null for strangers and revoked nodes. */
  certificate(nodeId: NodeId): Certificate | null {
    return nodeId === this.#deps.self ? this.#deps.membership.certificate().body : this.#deps.peers.certificate(nodeId)
  }

  /** True for a revoked node. */
  isPutOut(nodeId: NodeId): boolean {
    return (this.#deps.log.view().members.get(nodeId)?.revoked ?? null) !== null
  }

  /**
   * An agent as the rules see it: the weakest of certificate, card and represented caller. null when certificate or
   * card is missing.
   */
  party(address: AgentAddress, onBehalfOf?: CertifiedPower): RoutingParty | null {
    const card = this.card(address)
    return card === undefined ? null : this.#partyOf(card, onBehalfOf === undefined ? NO_HOPS : [onBehalfOf])
  }

  /** The agent at `agentId@nodeId` in a message; null for an invalid address. One look-up if there is a card. */
  named(text: string): NamedAgent | null {
    const card = this.#deps.registry.getByAddress(text)
    // The card's own texts, which the maps share, instead of parts of the message's text.
    if (card !== undefined)
      return { address: { agentId: card.id, nodeId: card.nodeId }, card, party: this.#partyOf(card, NO_HOPS) }
    const address = parseAddress(text)
    return address === null ? null : { address, card, party: null }
  }

  #partyOf(card: RegisteredCard, hops: readonly CertifiedPower[]): RoutingParty | null {
    const certificate = this.certificate(card.nodeId)
    if (certificate === null) return null
    const { tier, sandboxId } = effectiveParty({ certificate, card, hops })
    return { address: card.address, tier, sandboxId }
  }
}

function nameOf(card: RegisteredCard): AgentName {
  return { agentId: card.id, nodeId: card.nodeId }
}

function ambiguous(text: string, candidates: readonly string[], next: string): NodeError {
  return new NodeError('AMBIGUOUS_NAME', `"${shown(text)}" may mean ${candidates.join(' or ')}`, {
    data: { candidates },
    next: [next]
  })
}

function notFound(code: 'PEER_NOT_FOUND' | 'AGENT_NOT_FOUND', message: string, nearest: readonly string[]): NodeError {
  const hint = nearest.length === 0 ? '' : `; did you mean ${nearest.join(' or ')}?`
  return new NodeError(code, message + hint, { data: { nearest } })
}
