import { NodeError } from '../../kit/errors.js'
import { flat, isKeyText, type NodeId } from '../../kit/ids.js'
import type { AgentProvider } from '../../kit/names/provider.js'
import { isRecord, jsonSyntaxReason } from '../../kit/json.js'
import type { Tier } from '../routing/tier.js'
import { type AgentAddress, type AgentCard, addressText, type CardBody } from './card.js'
import type { ProviderNotice } from './provider.js'
import { cardBodyOf, cardBytes, validateCard } from './schema.js'

/** Version of {@link AgentRegistry.serialize}'s form. */
const SCHEMA = 1

/** A card in the registry, with its place in the mesh. */
export interface RegisteredCard extends AgentCard {
  readonly nodeId: NodeId
  /** `agentId@nodeId`. */
  readonly address: string
}

/**
 * Does an agent of sandbox `sandboxId` (null: none) find this card? In a sandbox: cards of the same one, or allowed by
 * id or address.
 */
export function isVisibleTo(
  card: Pick<RegisteredCard, 'id' | 'address' | 'sandboxId'>,
  sandboxId: string | null,
  allowList: readonly string[] = []
): boolean {
  return (
    sandboxId === null ||
    card.sandboxId === sandboxId ||
    allowList.includes(card.id) ||
    allowList.includes(card.address)
  )
}

/**
 * The cards of all agents known, by address `agentId@nodeId` (spec a2a-mcp-mesh, AgentRegistry). Deterministic: it has
 * no clock; lists are in the order of first registration. Look-ups by address, id, capability, tier and node are
 * indexed.
 */
export class AgentRegistry {
  readonly #cards = new Map<string, RegisteredCard>()
  /** By node, then by agent id: found without making an address. */
  readonly #places = new Map<NodeId, Map<string, RegisteredCard>>()
  /** Bytes of the cards of each node together, and of each card as it was counted. */
  readonly #bytes = new Map<NodeId, number>()
  readonly #sizes = new WeakMap<RegisteredCard, number>()
  readonly #byId = new CardIndex<string>()
  readonly #byCapability = new CardIndex<string>()
  readonly #byTier = new CardIndex<Tier>()
  readonly #byNode = new CardIndex<NodeId>()
  readonly #byOrigin = new CardIndex<AgentCard['origin']>()

  /**
   * Registers an agent of this node. The first time its revision is kept; registering the same id again stores the new
   * card with the stored revision + 1. `lastSeenAt` is the card's own, 0 without one.
   * @throws NodeError INVALID_CARD naming every missing or incorrect field.
   */
  register(card: CardBody | AgentCard, nodeId: NodeId): RegisteredCard {
    const body = checked(card)
    const known = this.#cards.get(addressText({ agentId: body.id, nodeId }))
    const revision = known === undefined ? body.revision : known.revision + 1
    return this.#store({ ...body, revision, origin: 'local', lastSeenAt: seenAt(card), ...providerOf(card) }, nodeId)
  }

  /**
   * Stores a card of this node whose revision its caller keeps (it is taken as it is).
   * @throws NodeError INVALID_CARD naming every missing or incorrect field.
   */
  put(card: CardBody | AgentCard, nodeId: NodeId): RegisteredCard {
    return this.#store({ ...checked(card), origin: 'local', lastSeenAt: seenAt(card), ...providerOf(card) }, nodeId)
  }

  /**
   * Takes the card of another node, already checked (`checkSignedCard`), seen at `at` (unix milliseconds): every field
   * and the revision stay, the origin becomes `remote`. An older revision, and one of an agent of this node, is
   * ignored; the same revision only counts as seen. Returns whether the card's content is new.
   */
  merge(card: CardBody, nodeId: NodeId, at: number): boolean {
    const known = this.#cards.get(addressText({ agentId: card.id, nodeId }))
    if (known?.origin === 'local') return false
    if (known !== undefined && known.revision >= card.revision) {
      if (known.revision === card.revision && at > known.lastSeenAt)
        this.#store({ ...agentCardOf(known), lastSeenAt: at }, nodeId)
      return false
    }
    this.#store({ ...cardBodyOf(card), origin: 'remote', lastSeenAt: at, ...providerOf(card) }, nodeId)
    return true
  }

  /**
   * Sets the provider of an agent of another node. Ignored, with false, unless its card is here with this revision, and
   * has no provider yet: another provider comes with another revision.
   */
  setProvider(nodeId: NodeId, { id, revision, provider }: ProviderNotice): boolean {
    const known = this.get({ agentId: id, nodeId })
    if (known?.origin !== 'remote' || known.revision !== revision || known.provider !== undefined) return false
    this.#store({ ...agentCardOf(known), provider }, nodeId)
    return true
  }

  /** Removes a card by its address; false when there is none. */
  unregister(address: string): boolean {
    const known = this.#cards.get(address)
    if (known === undefined) return false
    this.#cards.delete(address)
    this.#places.get(known.nodeId)?.delete(known.id)
    if (this.#places.get(known.nodeId)?.size === 0) this.#places.delete(known.nodeId)
    this.#count(known.nodeId, -this.#sizeOf(known))
    this.#unindex(known)
    return true
  }

  /** Removes every card of a node; how many there were. */
  removeNode(nodeId: NodeId): number {
    const cards = this.ofNode(nodeId)
    for (const card of cards) this.unregister(card.address)
    return cards.length
  }

  /** The card at `agentId@nodeId`. */
  getByAddress(address: string): RegisteredCard | undefined {
    return this.#cards.get(address)
  }

  /** The card of an agent on a node: the fastest way. */
  get({ agentId, nodeId }: AgentAddress): RegisteredCard | undefined {
    return this.#places.get(nodeId)?.get(agentId)
  }

  /** The cards of an agent id, one a node. */
  getById(agentId: string): readonly RegisteredCard[] {
    return this.#byId.get(agentId)
  }

  /** The cards that have a capability. */
  findByCapability(capabilityId: string): readonly RegisteredCard[] {
    return this.#byCapability.get(capabilityId)
  }

  /** The cards of a tier. */
  findByTier(tier: Tier): readonly RegisteredCard[] {
    return this.#byTier.get(tier)
  }

  /** The cards of a node. */
  ofNode(nodeId: NodeId): readonly RegisteredCard[] {
    return this.#byNode.get(nodeId)
  }

  /**
   * Bytes of the cards of a node together, without that of one agent. Each counts as the UTF-8 of its body's canonical
   * JSON.
   */
  bytesOf(nodeId: NodeId, except?: string): number {
    const left = except === undefined ? undefined : this.get({ agentId: except, nodeId })
    return (this.#bytes.get(nodeId) ?? 0) - this.#sizeOf(left)
  }

  /** Every card. */
  listAll(): readonly RegisteredCard[] {
    return [...this.#cards.values()]
  }

  /** The cards of this node's agents. */
  getLocalCards(): readonly RegisteredCard[] {
    return this.#byOrigin.get('local')
  }

  /** The cards of other nodes' agents. */
  getRemoteCards(): readonly RegisteredCard[] {
    return this.#byOrigin.get('remote')
  }

  /** The cards that an agent of a sandbox (null: none) may find; `allowList` adds agent ids or addresses. */
  visibleTo(sandboxId: string | null, allowList: readonly string[] = []): readonly RegisteredCard[] {
    return this.listAll().filter((card) => isVisibleTo(card, sandboxId, allowList))
  }

  /** All cards as JSON text: `{schema: 1, cards: [{nodeId, card}]}`. */
  serialize(): string {
    return JSON.stringify({
      schema: SCHEMA,
      cards: this.listAll().map((one) => ({ nodeId: one.nodeId, card: agentCardOf(one) }))
    })
  }

  /**
   * A registry with the cards of {@link serialize}'s text, revisions and origins as they were.
   * @throws NodeError SCHEMA_VERSION_MISMATCH for another version, INVALID_CARD for anything malformed.
   */
  static deserialize(json: string): AgentRegistry {
    const registry = new AgentRegistry()
    for (const { nodeId, card } of storedCards(json)) registry.#store(card, nodeId)
    return registry
  }

  #store(card: AgentCard, nodeId: NodeId): RegisteredCard {
    const address = flat(addressText({ agentId: card.id, nodeId }))
    const known = this.#cards.get(address)
    const stored = registered(card, { nodeId: this.#byNode.first(nodeId)?.nodeId ?? flat(nodeId), address })
    if (known !== undefined) this.#unindex(known, stored)
    this.#sizes.set(stored, cardBytes(cardBodyOf(card)) ?? 0)
    this.#count(nodeId, this.#sizeOf(stored) - this.#sizeOf(known))
    this.#cards.set(address, stored)
    const ofNode = this.#places.get(nodeId) ?? new Map<string, RegisteredCard>()
    this.#places.set(stored.nodeId, ofNode.set(card.id, stored))
    for (const [index, keys] of this.#placesOf(stored)) for (const key of keys) index.put(key, stored)
    return stored
  }

  #sizeOf(card: RegisteredCard | undefined): number {
    return card === undefined ? 0 : (this.#sizes.get(card) ?? 0)
  }

  #count(nodeId: NodeId, bytes: number): void {
    const sum = (this.#bytes.get(nodeId) ?? 0) + bytes
    if (sum === 0) this.#bytes.delete(nodeId)
    else this.#bytes.set(nodeId, sum)
  }

  /** Takes a card out of the indexes, save where `next` takes its place (which keeps the order). */
  #unindex(card: RegisteredCard, next?: RegisteredCard): void {
    const kept = next === undefined ? [] : this.#placesOf(next)
    for (const [place, [index, keys]] of this.#placesOf(card).entries()) {
      const staying = new Set<unknown>(kept[place]?.[1])
      for (const key of keys) if (!staying.has(key)) index.remove(key, card.address)
    }
  }

  #placesOf(card: RegisteredCard): readonly (readonly [CardIndex<unknown>, readonly unknown[]])[] {
    return [
      [this.#byId, [card.id]],
      [this.#byCapability, card.capabilities.map((one) => one.id)],
      [this.#byTier, [card.tier]],
      [this.#byNode, [card.nodeId]],
      [this.#byOrigin, [card.origin]]
    ]
  }
}

/** Cards by a key of theirs. A list is built once and kept until one of its cards changes. */
class CardIndex<K> {
  readonly #groups = new Map<
    K,
    { readonly cards: Map<string, RegisteredCard>; list: readonly RegisteredCard[] | null }
  >()

  get(key: K): readonly RegisteredCard[] {
    const group = this.#groups.get(key)
    if (group === undefined) return []
    group.list ??= Object.freeze([...group.cards.values()])
    return group.list
  }

  first(key: K): RegisteredCard | undefined {
    return this.#groups.get(key)?.cards.values().next().value
  }

  put(key: K, card: RegisteredCard): void {
    const group = this.#groups.get(key) ?? { cards: new Map<string, RegisteredCard>(), list: null }
    group.cards.set(card.address, card)
    group.list = null
    this.#groups.set(key, group)
  }

  remove(key: K, address: string): void {
    const group = this.#groups.get(key)
    if (group === undefined) return
    group.cards.delete(address)
    group.list = null
    if (group.cards.size === 0) this.#groups.delete(key)
  }
}

/**
 * Copies the members one by one, the most used ones first: they then lie in the object itself, however many cards there
 * are.
 */
function registered(card: AgentCard, { nodeId, address }: Pick<RegisteredCard, 'nodeId' | 'address'>): RegisteredCard {
  const { id, name, version, description, tier, protocols, endpoints, capabilities, revision, origin, lastSeenAt } =
    card
  const stored = {
    address,
    tier,
    capabilities,
    id,
    nodeId,
    revision,
    lastSeenAt,
    origin,
    name,
    version,
    description,
    protocols,
    endpoints
  }
  const placed = card.sandboxId === undefined ? stored : { ...stored, sandboxId: card.sandboxId }
  const labelled = card.labels === undefined ? placed : { ...placed, labels: card.labels }
  const marked = card.external === undefined ? labelled : { ...labelled, external: card.external }
  return card.provider === undefined ? marked : { ...marked, provider: card.provider }
}

/** A registered card as a plain AgentCard. */
export function agentCardOf(card: RegisteredCard): AgentCard {
  return { ...cardBodyOf(card), origin: card.origin, lastSeenAt: card.lastSeenAt, ...providerOf(card) }
}

function checked(card: unknown): CardBody {
  const result = validateCard(card)
  if (result.ok) return result.card
  throw new NodeError('INVALID_CARD', `the agent card is not valid: ${result.faults.join('; ')}`, {
    data: { faults: result.faults }
  })
}

function providerOf(card: CardBody | AgentCard): { readonly provider?: AgentProvider } {
  return 'provider' in card && card.provider !== undefined ? { provider: card.provider } : {}
}

function seenAt(card: CardBody | AgentCard): number {
  return 'lastSeenAt' in card && typeof card.lastSeenAt === 'number' ? card.lastSeenAt : 0
}

function storedCards(json: string): { readonly nodeId: NodeId; readonly card: AgentCard }[] {
  const stored = parsed(json)
  if (stored.schema !== SCHEMA) {
    const actual = typeof stored.schema === 'number' ? String(stored.schema) : 'none'
    throw new NodeError(
      'SCHEMA_VERSION_MISMATCH',
      `the stored cards have another schema: expected ${SCHEMA}, got ${actual}`
    )
  }
  if (!Array.isArray(stored.cards)) throw new NodeError('INVALID_CARD', 'the stored cards are not a list')
  return stored.cards.map((one: unknown) => {
    if (!isRecord(one) || !isKeyText(one.nodeId) || !isRecord(one.card))
      throw new NodeError('INVALID_CARD', 'a stored card has no node')
    const { origin, lastSeenAt } = one.card
    if ((origin !== 'local' && origin !== 'remote') || typeof lastSeenAt !== 'number')
      throw new NodeError('INVALID_CARD', 'a stored card has no origin or time')
    const card = {
      ...checked(one.card),
      origin,
      lastSeenAt,
      ...providerOf(one.card as unknown as AgentCard)
    } satisfies AgentCard
    return { nodeId: one.nodeId, card }
  })
}

function parsed(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json)
    if (isRecord(value)) return value
  } catch (error) {
    throw new NodeError('INVALID_CARD', `the stored cards are not JSON: ${jsonSyntaxReason(error)}`)
  }
  throw new NodeError('INVALID_CARD', 'the stored cards are not an object')
}
