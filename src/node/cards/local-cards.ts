import type { Clock } from '../../kit/clock.js'
import { asNodeError, NodeError } from '../../kit/errors.js'
import { canonicalJson } from '../../kit/json.js'
import type { AgentProvider } from '../../kit/names/provider.js'
import type { Sign } from '../../kit/sign.js'
import { addressText, type CardBody, OPERATOR } from '../../domain/card/card.js'
import { type CardAddresses, endpointsOf } from '../../domain/card/endpoints.js'
import { largeJsonProtocols } from '../../domain/card/large-json.js'
import type { AgentRegistry } from '../../domain/card/registry.js'
import { sandboxFault } from '../../domain/card/sandbox.js'
import { cardBytes, validateCard } from '../../domain/card/schema.js'
import { MAX_CARDS, MAX_CARDS_BYTES } from '../../domain/membership/fold/card.js'
import { seal } from '../../domain/membership/signing.js'
import type { Certificate, EntryBody, SignedCard } from '../../domain/membership/types.js'
import { weakest } from '../../domain/routing/tier.js'
import type { AgentDefinition } from '../../ports/agent-runtime.js'
import type { MemberLog, Membership } from '../../ports/mesh.js'
import type { NodeStore } from '../../ports/storage.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { NodeSettings } from '../dependencies.js'

/** Name of the stored document of card revisions. */
const REVISIONS = 'cards'
/** Time limit of one attempt to bring a card into the log, in milliseconds. */
const LOG_TIMEOUT_MS = 30_000
/** Protocols of every agent of a node. */
const PROTOCOLS = ['a2a/1.0']
/** Runtime of agents outside of the mesh. */
const EXTERNAL_RUNTIME = 'a2a'

/** Dependencies of {@link LocalCards}. */
export interface LocalCardsDeps {
  readonly clock: Clock
  readonly sign: Sign
  readonly telemetry: Telemetry
  readonly store: NodeStore
  readonly log: MemberLog
  readonly membership: Membership
  readonly registry: AgentRegistry
  readonly settings: Pick<NodeSettings, 'labels' | 'maxPayloadBytes' | 'provider' | 'addresses'>
}

/** Changes of the cards: new ones to send, and ids of removed ones. */
export interface CardChanges {
  readonly changed: readonly SignedCard[]
  readonly removed: readonly { readonly id: string; readonly revision: number }[]
}

/** An agent that requests another sandbox than its node is certified for. */
export interface Misplaced {
  readonly id: string
  /** Its file, or the description of its program. */
  readonly source: string
  readonly reason: string
}

type Unrevised = Omit<CardBody, 'revision'>
/** The stored form: the last revision of each own card and its text. */
type Revisions = Readonly<Record<string, { readonly revision: number; readonly text: string; readonly gone?: boolean }>>

/** The cards of this node: made from its agents, signed, with permanent revision numbers, and submitted to the log. */
export class LocalCards {
  readonly #deps: LocalCardsDeps
  readonly #own = new Map<string, SignedCard>()
  /** By agent id; agents without a provider are absent. */
  #providers: ReadonlyMap<string, AgentProvider> = new Map()
  #revisions: Revisions = {}
  /** Changes run one at a time. */
  #turn: Promise<unknown> = Promise.resolve()
  /** Revisions that the log accepted, even if its view does not show them: they are not sent again. */
  readonly #taken = new Map<string, number>()
  #surplus: readonly string[] = []
  #misplaced: readonly Misplaced[] = []
  #serial = -1
  #isWanted = false
  #isPublishing = false
  #isClosed = false

  constructor(deps: LocalCardsDeps) {
    this.#deps = deps
  }

  /** Reads the stored revisions. */
  async start(): Promise<void> {
    this.#revisions = (await this.#deps.store.read<Revisions>(REVISIONS)) ?? {}
  }

  /** Stops submitting cards to the log. */
  close(): void {
    this.#isClosed = true
  }

  /** Signed cards of this node, the operator's included. */
  own(): SignedCard[] {
    return [...this.#own.values()]
  }

  /** The provider of an own agent; null: none. */
  providerOf({ id }: Pick<CardBody, 'id'>): AgentProvider | null {
    return this.#providers.get(id) ?? null
  }

  /** Agents without a card, since the mesh takes no more cards of one node; earlier announced ones come first. */
  surplus(): readonly string[] {
    return this.#surplus
  }

  /** Agents that are not offered, since they request another sandbox than this node's: no other node may reach them. */
  misplaced(): readonly Misplaced[] {
    return this.#misplaced
  }

  /** @throws NodeError INVALID_CARD naming every fault of the card that the agent would get. */
  check(definition: AgentDefinition): void {
    const certificate = this.#deps.membership.certificate().body
    const misplaced = misplacedIn(certificate)(definition)
    if (misplaced !== null) throw new NodeError('INVALID_CARD', `the agent is not offered: ${misplaced.reason}`)
    const card = this.#cardOf(definition, certificate)
    const checked = validateCard({ ...card, revision: 1 })
    if (!checked.ok) throw new NodeError('INVALID_CARD', `the agent's card is not valid: ${checked.faults.join('; ')}`)
  }

  /**
   * Makes the node's cards from its agents and its certificate. A revision is on disk before it is sent, so it never
   * has two contents.
   * @throws NodeError DISK_FULL, NO_PERMISSION; then the cards are as before.
   */
  refresh(definitions: readonly AgentDefinition[]): Promise<CardChanges> {
    const turn = this.#turn.then(() => this.#refresh(definitions))
    this.#turn = turn.catch(() => {})
    return turn
  }

  /** Submits cards missing in the log, in the background. Cards that no writer takes now wait for the next call. */
  publish(): void {
    this.#isWanted = true
    if (!this.#isPublishing) void this.#publishAll()
  }

  async #refresh(definitions: readonly AgentDefinition[]): Promise<CardChanges> {
    const certificate = this.#deps.membership.certificate().body
    const placed = this.#placed(definitions, certificate)
    const wanted = [
      this.#spoken(operatorCard(certificate, this.#deps.settings.addresses ?? { tcp: [], websocket: [] })),
      ...placed.map((one) => this.#cardOf(one, certificate))
    ].filter((one) => this.#isValid(one))
    const bodies = this.#fitting(this.#ordered(wanted))
    this.#providers = new Map(placed.flatMap((one) => this.#provided(one)))
    const next: Record<string, Revisions[string]> = { ...this.#revisions }
    const changed = bodies.filter((body) => this.#revise(next, body))
    const ids = new Set(bodies.map((body) => body.id))
    const removed = Object.entries(this.#revisions)
      .filter(([id, known]) => !ids.has(id) && known.gone !== true)
      .map(([id, known]) => ({ id, revision: known.revision + 1 }))
    for (const { id, revision } of removed) next[id] = { revision, text: '', gone: true }
    if (JSON.stringify(next) !== JSON.stringify(this.#revisions)) await this.#deps.store.write(REVISIONS, next)
    this.#revisions = next
    this.#noteSurplus(wanted.map(({ id }) => id).filter((id) => !ids.has(id)))
    for (const { id } of removed) this.#forget(id)
    const signed = changed.map((body) => this.#sign({ ...body, revision: next[body.id]?.revision ?? 1 }))
    // With a new certificate, the log may accept cards refused under the last one.
    if (certificate.serial !== this.#serial) this.#taken.clear()
    this.#serial = certificate.serial
    this.publish()
    return { changed: signed, removed }
  }

  #cardOf(definition: AgentDefinition, certificate: Certificate): Unrevised {
    const { labels } = this.#deps.settings
    return { ...this.#spoken(cardOf(definition, certificate)), ...(labels.length === 0 ? {} : { labels }) }
  }

  /** Names in a card the size of messages that its node takes. */
  #spoken(card: Unrevised): Unrevised {
    const further = largeJsonProtocols(this.#deps.settings.maxPayloadBytes)
    return further.length === 0 ? card : { ...card, protocols: [...card.protocols, ...further] }
  }

  /** An agent outside of the mesh is not the config's: its own card names its provider. */
  #provided({ id, provider, runtime }: AgentDefinition): readonly (readonly [string, AgentProvider])[] {
    const given = provider ?? (runtime === EXTERNAL_RUNTIME ? null : this.#deps.settings.provider)
    return given === null ? [] : [[id, given]]
  }

  #placed(definitions: readonly AgentDefinition[], certificate: Certificate): readonly AgentDefinition[] {
    const faultOf = misplacedIn(certificate)
    const known = new Set(this.#misplaced.map(({ id }) => id))
    this.#misplaced = definitions.flatMap((one) => faultOf(one) ?? [])
    for (const { id, source, reason } of this.#misplaced)
      if (!known.has(id)) this.#deps.telemetry.log('warn', 'an agent is not offered', { agent: id, source, reason })
    return definitions.filter((one) => faultOf(one) === null)
  }

  #noteSurplus(ids: readonly string[]): void {
    const isChange = ids.some((id) => !this.#surplus.includes(id))
    this.#surplus = ids
    if (isChange)
      this.#deps.telemetry.log('warn', 'the mesh takes no more agents of this node', { agents: ids.join(', ') })
  }

  /** The operator, then agents with a card already: a new agent never displaces an announced one. */
  #ordered(bodies: readonly Unrevised[]): readonly Unrevised[] {
    const isNew = ({ id }: Unrevised): boolean =>
      id !== OPERATOR && (this.#revisions[id] === undefined || this.#revisions[id].gone === true)
    return [...bodies.filter((one) => !isNew(one)), ...bodies.filter(isNew)]
  }

  /** The cards for which the mesh has room, in order: a card that is too large leaves its room to later ones. */
  #fitting(bodies: readonly Unrevised[]): readonly Unrevised[] {
    let bytes = 0
    const fit = bodies.filter((body) => {
      const known = this.#own.get(body.id)
      // Reserve the larger of old and new size: others may take the card before a shrunken one frees its room. No
      // revision is longer.
      const sizes = [{ ...body, revision: Number.MAX_SAFE_INTEGER }, ...(known === undefined ? [] : [known.body])].map(
        cardBytes
      )
      const size = Math.max(...sizes.map((one) => one ?? 0))
      if (bytes + size > MAX_CARDS_BYTES) return false
      bytes += size
      return true
    })
    return fit.slice(0, MAX_CARDS)
  }

  /** Agents are validated when they are read; a card that is still invalid must not keep the others from theirs. */
  #isValid(body: Unrevised): boolean {
    const checked = validateCard({ ...body, revision: 1 })
    if (!checked.ok)
      this.#deps.telemetry.log('error', 'an agent has no valid card', {
        agent: body.id,
        reason: checked.faults.join('; ')
      })
    return checked.ok
  }

  /** True for a changed or unsigned card; stores its next revision. */
  #revise(next: Record<string, Revisions[string]>, body: Unrevised): boolean {
    const { log, membership } = this.#deps
    const provider = this.providerOf(body)
    // A new provider is a new revision, so that readers take notice of it.
    const text = canonicalJson(provider === null ? body : { ...body, provider })
    const known = next[body.id]
    // The log may have a later revision than a restored home.
    const logged = log.view().cards.get(membership.nodeId)?.get(body.id)?.body.revision ?? 0
    const isSame = known !== undefined && known.text === text && known.gone !== true && known.revision >= logged
    if (isSame) return !this.#own.has(body.id)
    next[body.id] = { revision: Math.max(known?.revision ?? 0, logged) + 1, text }
    return true
  }

  #sign(body: CardBody): SignedCard {
    const { membership, sign, clock, registry } = this.#deps
    const signed = seal('card', body, { id: membership.nodeId, sign })
    this.#own.set(body.id, signed)
    const provider = this.providerOf(body)
    const card = { ...body, origin: 'local' as const, lastSeenAt: clock.now() }
    registry.put(provider === null ? card : { ...card, provider }, membership.nodeId)
    return signed
  }

  #forget(id: string): void {
    this.#own.delete(id)
    this.#deps.registry.unregister(addressText({ agentId: id, nodeId: this.#deps.membership.nodeId }))
  }

  async #publishAll(): Promise<void> {
    this.#isPublishing = true
    while (this.#isWanted && !this.#isClosed) {
      this.#isWanted = false
      const entries = this.#unlogged()
      // Submit removals first, which make room.
      for (const kind of ['card-removed', 'card'] as const) {
        await Promise.all(entries.filter(({ entry }) => entry.kind === kind).map((one) => this.#submit(one)))
      }
    }
    this.#isPublishing = false
  }

  /** Entries missing in the log's view. */
  #unlogged(): { id: string; revision: number; entry: EntryBody }[] {
    const { log, membership } = this.#deps
    const { mesh } = membership.certificate().body
    const logged = log.view().cards.get(membership.nodeId)
    const cards = [...this.#own].map(([id, card]) => ({
      id,
      revision: card.body.revision,
      entry: { kind: 'card' as const, mesh, card }
    }))
    const gone = Object.entries(this.#revisions)
      .filter(([id, known]) => known.gone === true && logged?.has(id) === true)
      .map(([id, { revision }]) => ({
        id,
        revision,
        entry: { kind: 'card-removed' as const, mesh, agentId: id, revision }
      }))
    const missing = cards.filter(({ id, revision }) => (logged?.get(id)?.body.revision ?? -1) < revision)
    return [...missing, ...gone].filter(({ id, revision }) => (this.#taken.get(id) ?? -1) < revision)
  }

  async #submit({ id, revision, entry }: { id: string; revision: number; entry: EntryBody }): Promise<void> {
    try {
      await this.#deps.log.submit(entry, LOG_TIMEOUT_MS)
      this.#taken.set(id, revision)
    } catch (error) {
      // Connected peers have the card already; the next link or view submits it again.
      this.#deps.telemetry.log('debug', 'a card is not in the log yet', { agent: id, code: asNodeError(error).code })
    }
  }
}

/** Its card alone has the addresses of the node: one that changes is one entry of the log. */
function operatorCard(certificate: Certificate, addresses: CardAddresses): Unrevised {
  return {
    id: OPERATOR,
    name: OPERATOR,
    version: '1.0.0',
    description: `The person at ${certificate.name}.`,
    tier: certificate.maxTier,
    protocols: PROTOCOLS,
    endpoints: [{ transport: 'hyperswarm', address: certificate.nodeKey }, ...endpointsOf(addresses)],
    capabilities: [],
    ...sandboxOf(null, certificate)
  }
}

function cardOf(definition: AgentDefinition, certificate: Certificate): Unrevised {
  return {
    id: definition.id,
    name: definition.name,
    version: definition.version,
    description: definition.description,
    tier: weakest(definition.tier ?? certificate.maxTier, certificate.maxTier),
    protocols: definition.protocols.length > 0 ? definition.protocols : PROTOCOLS,
    endpoints: [{ transport: 'hyperswarm', address: certificate.nodeKey }],
    capabilities: definition.capabilities,
    ...(definition.runtime === EXTERNAL_RUNTIME ? { external: true as const } : {}),
    ...sandboxOf(definition.sandboxId, certificate)
  }
}

function misplacedIn(certificate: Certificate): (definition: AgentDefinition) => Misplaced | null {
  return ({ id, source, sandboxId }) => {
    const reason = sandboxFault(sandboxId, certificate.sandboxId ?? null)
    return reason === null ? null : { id, source, reason }
  }
}

function sandboxOf(asked: string | null, certificate: Certificate): { sandboxId?: string } {
  const sandboxId = certificate.sandboxId ?? asked
  return sandboxId === null ? {} : { sandboxId }
}
