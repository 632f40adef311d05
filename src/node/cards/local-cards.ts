import type { Clock } from '../../kit/clock.js'
import { asNodeError, NodeError } from '../../kit/errors.js'
import { canonicalJson } from '../../kit/json.js'
import type { Sign } from '../../kit/sign.js'
import { addressText, type CardBody, OPERATOR } from '../../domain/card/card.js'
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
/** How long one try to bring a card into the log may take, in milliseconds. */
const LOG_TIMEOUT_MS = 30_000
/** Protocols every agent of a node speaks. */
const PROTOCOLS = ['a2a/1.0']
/** Runtime of agents that are reached outside of the mesh. */
const EXTERNAL_RUNTIME = 'a2a'

/** What making cards needs. */
export interface LocalCardsDeps {
  readonly clock: Clock
  readonly sign: Sign
  readonly telemetry: Telemetry
  readonly store: NodeStore
  readonly log: MemberLog
  readonly membership: Membership
  readonly registry: AgentRegistry
  readonly settings: Pick<NodeSettings, 'labels'>
}

/** What became of the cards: those to tell, ids that are gone. */
export interface CardChanges {
  readonly changed: readonly SignedCard[]
  readonly removed: readonly { readonly id: string; readonly revision: number }[]
}

/** An agent that asks for another sandbox than its node is certified for. */
export interface Misplaced {
  readonly id: string
  /** Where it comes from: a file, or what a program says. */
  readonly source: string
  readonly reason: string
}

type Unrevised = Omit<CardBody, 'revision'>
/** Stored: the last revision of each own card and what it said. */
type Revisions = Readonly<Record<string, { readonly revision: number; readonly text: string; readonly gone?: boolean }>>

/** The cards of this node: made of its agents, signed, numbered for good, brought into the log. */
export class LocalCards {
  readonly #deps: LocalCardsDeps
  readonly #own = new Map<string, SignedCard>()
  #revisions: Revisions = {}
  /** Changes are made one after the other. */
  #turn: Promise<unknown> = Promise.resolve()
  /** Revisions that the log has taken, whatever its view made of them: they are not sent again. */
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

  /** No further card goes into the log. */
  close(): void {
    this.#isClosed = true
  }

  /** Signed cards of this node, the operator's included. */
  own(): SignedCard[] {
    return [...this.#own.values()]
  }

  /** Agents that are not announced, since the mesh takes no more cards of one node; those announced already go before them. */
  surplus(): readonly string[] {
    return this.#surplus
  }

  /** Agents that are not offered, since they ask for another sandbox than the one of this node: nobody else is to reach them. */
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
   * Makes the node's cards anew from its agents and its certificate. A revision is on disk before anybody sees it, so it
   * never stands for two contents. @throws NodeError DISK_FULL, NO_PERMISSION; then the cards are as before.
   */
  refresh(definitions: readonly AgentDefinition[]): Promise<CardChanges> {
    const turn = this.#turn.then(() => this.#refresh(definitions))
    this.#turn = turn.catch(() => {})
    return turn
  }

  /** Brings what the log does not show yet into it, in the background. What no writer takes now waits for the next call. */
  publish(): void {
    this.#isWanted = true
    if (!this.#isPublishing) void this.#publishAll()
  }

  async #refresh(definitions: readonly AgentDefinition[]): Promise<CardChanges> {
    const certificate = this.#deps.membership.certificate().body
    const placed = this.#placed(definitions, certificate)
    const wanted = [operatorCard(certificate), ...placed.map((one) => this.#cardOf(one, certificate))].filter((one) => this.#isValid(one))
    const bodies = this.#fitting(this.#ordered(wanted))
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
    // Another certificate may let in what the log refused under the last one.
    if (certificate.serial !== this.#serial) this.#taken.clear()
    this.#serial = certificate.serial
    this.publish()
    return { changed: signed, removed }
  }

  #cardOf(definition: AgentDefinition, certificate: Certificate): Unrevised {
    const { labels } = this.#deps.settings
    return { ...cardOf(definition, certificate), ...(labels.length === 0 ? {} : { labels }) }
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
    if (isChange) this.#deps.telemetry.log('warn', 'the mesh takes no more agents of this node', { agents: ids.join(', ') })
  }

  /** The operator, then those that have a card already: a new agent never takes the place of one that is announced. */
  #ordered(bodies: readonly Unrevised[]): readonly Unrevised[] {
    const isNew = ({ id }: Unrevised): boolean =>
      id !== OPERATOR && (this.#revisions[id] === undefined || this.#revisions[id].gone === true)
    return [...bodies.filter((one) => !isNew(one)), ...bodies.filter(isNew)]
  }

  /** Those for which the mesh has room, in their order: what is too large leaves its room to those behind it. */
  #fitting(bodies: readonly Unrevised[]): readonly Unrevised[] {
    let bytes = 0
    const fit = bodies.filter((body) => {
      const known = this.#own.get(body.id)
      // Others may take this card before they let go of what one that shrinks has now. No revision is longer than this one.
      const sizes = [{ ...body, revision: Number.MAX_SAFE_INTEGER }, ...(known === undefined ? [] : [known.body])].map(cardBytes)
      const size = Math.max(...sizes.map((one) => one ?? 0))
      if (bytes + size > MAX_CARDS_BYTES) return false
      bytes += size
      return true
    })
    return fit.slice(0, MAX_CARDS)
  }

  /** Agents are checked where they are read; one that still does not fit must not keep the others from their cards. */
  #isValid(body: Unrevised): boolean {
    const checked = validateCard({ ...body, revision: 1 })
    if (!checked.ok) this.#deps.telemetry.log('error', 'an agent has no valid card', { agent: body.id, reason: checked.faults.join('; ') })
    return checked.ok
  }

  /** Does the card say something new, or is it not signed yet? Notes its revision. */
  #revise(next: Record<string, Revisions[string]>, body: Unrevised): boolean {
    const { log, membership } = this.#deps
    const text = canonicalJson(body)
    const known = next[body.id]
    // The log may know more than a home that was restored.
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
    registry.put({ ...body, origin: 'local', lastSeenAt: clock.now() }, membership.nodeId)
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
      // First what makes room for others.
      for (const kind of ['card-removed', 'card'] as const) {
        await Promise.all(entries.filter(({ entry }) => entry.kind === kind).map((one) => this.#submit(one)))
      }
    }
    this.#isPublishing = false
  }

  /** Entries that the log's view lacks. */
  #unlogged(): { id: string; revision: number; entry: EntryBody }[] {
    const { log, membership } = this.#deps
    const { mesh } = membership.certificate().body
    const logged = log.view().cards.get(membership.nodeId)
    const cards = [...this.#own].map(([id, card]) => ({ id, revision: card.body.revision, entry: { kind: 'card' as const, mesh, card } }))
    const gone = Object.entries(this.#revisions)
      .filter(([id, known]) => known.gone === true && logged?.has(id) === true)
      .map(([id, { revision }]) => ({ id, revision, entry: { kind: 'card-removed' as const, mesh, agentId: id, revision } }))
    const missing = cards.filter(({ id, revision }) => (logged?.get(id)?.body.revision ?? -1) < revision)
    return [...missing, ...gone].filter(({ id, revision }) => (this.#taken.get(id) ?? -1) < revision)
  }

  async #submit({ id, revision, entry }: { id: string; revision: number; entry: EntryBody }): Promise<void> {
    try {
      await this.#deps.log.submit(entry, LOG_TIMEOUT_MS)
      this.#taken.set(id, revision)
    } catch (error) {
      // Connected peers have the card already; the next link or view asks again.
      this.#deps.telemetry.log('debug', 'a card is not in the log yet', { agent: id, code: asNodeError(error).code })
    }
  }
}

function operatorCard(certificate: Certificate): Unrevised {
  return {
    id: OPERATOR,
    name: OPERATOR,
    version: '1.0.0',
    description: `The person at ${certificate.name}.`,
    tier: certificate.maxTier,
    protocols: PROTOCOLS,
    endpoints: [{ transport: 'hyperswarm', address: certificate.nodeKey }],
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
