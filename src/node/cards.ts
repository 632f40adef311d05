import type { Clock } from '../kit/clock.js'
import { asNodeError } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import { canonicalJson } from '../kit/json.js'
import type { Sign, Verify } from '../kit/sign.js'
import { addressText } from '../domain/card/card.js'
import type { CardBody } from '../domain/card/card.js'
import { AgentRegistry } from '../domain/card/registry.js'
import { checkSignedCard } from '../domain/card/schema.js'
import { seal } from '../domain/membership/signing.js'
import type { Certificate, MembershipView, SignedCard } from '../domain/membership/types.js'
import { weakest } from '../domain/routing/tier.js'
import type { AgentDefinition } from '../ports/agent-runtime.js'
import type { MemberLog, Membership } from '../ports/mesh.js'
import type { NodeStore } from '../ports/storage.js'
import type { Telemetry } from '../ports/telemetry.js'
import { OPERATOR } from './agents.js'

/** Name of the stored document of card revisions. */
const REVISIONS = 'cards'
/** How long one try to bring a card into the log may take, in milliseconds. */
const LOG_TIMEOUT_MS = 30_000
/** Protocols every agent of a node speaks. */
const PROTOCOLS = ['a2a/1.0']

/** What keeping cards needs. */
export interface CardsParts {
  readonly clock: Clock
  readonly sign: Sign
  readonly verify: Verify
  readonly telemetry: Telemetry
  readonly store: NodeStore
  readonly log: MemberLog
  readonly membership: Membership
  /** The certificate in force of any connected or known node. */
  certificateOf(node: NodeId): Certificate | null
}

/** Stored: the last revision of each own card and what it said. */
type Revisions = Record<string, { readonly revision: number; readonly text: string; readonly gone?: boolean }>

/** The cards of this node (signed, in the log, told to peers) and of all others (from the log and from live peers). */
export class Cards {
  readonly registry = new AgentRegistry()
  readonly #parts: CardsParts
  readonly #own = new Map<string, SignedCard>()
  #revisions: Revisions = {}
  #publishing: Promise<void> = Promise.resolve()
  #wanted = 0
  #closed = false

  constructor(parts: CardsParts) {
    this.#parts = parts
  }

  /** Reads the stored revisions and the log's cards. */
  async start(): Promise<void> {
    this.#revisions = (await this.#parts.store.read<Revisions>(REVISIONS)) ?? {}
    this.fromView(this.#parts.log.view())
  }

  /** No further card goes into the log. */
  close(): void {
    this.#closed = true
  }

  /** Signed cards of this node, the operator's included. */
  own(): SignedCard[] {
    return [...this.#own.values()]
  }

  /**
   * Makes the node's cards anew from its agents and its certificate.
   * Returns what changed: cards to tell, ids that are gone.
   */
  async refresh(definitions: readonly AgentDefinition[]): Promise<{ changed: SignedCard[]; removed: { id: string; revision: number }[] }> {
    const certificate = this.#parts.membership.certificate().body
    const bodies = [operatorCard(certificate), ...definitions.map((one) => cardOf(one, certificate))]
    const changed = bodies.flatMap((body) => this.#update(body))
    const ids = new Set(bodies.map((body) => body.id))
    const removed: { id: string; revision: number }[] = []
    for (const id of Object.keys(this.#revisions)) {
      const known = this.#revisions[id]
      if (ids.has(id) || known === undefined || known.gone === true) continue
      this.#revisions[id] = { ...known, revision: known.revision + 1, gone: true }
      this.#own.delete(id)
      this.registry.unregister(addressText({ agentId: id, nodeId: this.#parts.membership.nodeId }))
      removed.push({ id, revision: known.revision + 1 })
    }
    if (changed.length > 0 || removed.length > 0) await this.#parts.store.write(REVISIONS, this.#revisions)
    this.publish()
    return { changed, removed }
  }

  /** Brings what the log does not show yet into it, in the background, until it does. */
  publish(): void {
    this.#wanted++
    const turn = this.#wanted
    this.#publishing = this.#publishing.then(() => (turn === this.#wanted ? this.#publishAll() : undefined))
  }

  /** Takes the log's cards: new ones in, those of revoked or removed nodes out. */
  fromView(view: MembershipView): void {
    const self = this.#parts.membership.nodeId
    for (const [nodeId, member] of view.members) {
      if (nodeId === self) continue
      if (member.revoked !== null) this.registry.removeNode(nodeId)
      else for (const signed of view.cards.get(nodeId)?.values() ?? []) this.#merge(nodeId, signed, member.certificate.body)
    }
  }

  /** Takes cards that a peer tells of itself. `full`: what it does not name, it does not have. */
  fromPeer(peer: NodeId, cards: readonly SignedCard[], full: boolean): void {
    const certificate = this.#parts.certificateOf(peer)
    if (certificate === null) return
    for (const signed of cards) this.#merge(peer, signed, certificate)
    if (!full) return
    const named = new Set(cards.map((one) => one.body.id))
    for (const card of this.registry.ofNode(peer)) {
      if (!named.has(card.id)) this.registry.unregister(addressText({ agentId: card.id, nodeId: peer }))
    }
  }

  /** A peer says that agents of it are gone. */
  removedByPeer(peer: NodeId, agents: readonly { readonly id: string }[]): void {
    for (const { id } of agents) this.registry.unregister(addressText({ agentId: id, nodeId: peer }))
  }

  #merge(nodeId: NodeId, signed: SignedCard, certificate: Certificate): void {
    const known = this.registry.getByAddress(addressText({ agentId: signed.body.id, nodeId }))
    if (known !== undefined && known.revision >= signed.body.revision) return
    const checked = checkSignedCard(signed, { certificate, verify: this.#parts.verify })
    if (checked.ok) this.registry.merge(checked.card, nodeId, this.#parts.clock.now())
    else this.#parts.telemetry.log('warn', 'a card was refused', { peer: nodeId, reason: checked.reason })
  }

  /** Signs the card when it says something new. */
  #update(body: Omit<CardBody, 'revision'>): SignedCard[] {
    const { membership, sign, clock } = this.#parts
    const text = canonicalJson(body)
    const known = this.#revisions[body.id]
    const isSame = known !== undefined && known.text === text && known.gone !== true
    if (isSame && this.#own.has(body.id)) return []
    const revision = isSame ? known.revision : (known?.revision ?? 0) + 1
    this.#revisions[body.id] = { revision, text }
    const signed = seal('card', { ...body, revision }, { id: membership.nodeId, sign })
    this.#own.set(body.id, signed)
    this.registry.put({ ...signed.body, origin: 'local', lastSeenAt: clock.now() }, membership.nodeId)
    return [signed]
  }

  async #publishAll(): Promise<void> {
    const { log, membership, telemetry } = this.#parts
    const self = membership.nodeId
    const mesh = membership.certificate().body.mesh
    for (const signed of this.#own.values()) {
      if (this.#closed) return
      const inLog = log.view().cards.get(self)?.get(signed.body.id)
      if (inLog !== undefined && inLog.body.revision >= signed.body.revision) continue
      await this.#submit({ kind: 'card', mesh, card: signed })
    }
    for (const [id, { revision, gone }] of Object.entries(this.#revisions)) {
      if (this.#closed) return
      if (gone !== true || log.view().cards.get(self)?.get(id) === undefined) continue
      await this.#submit({ kind: 'card-removed', mesh, agentId: id, revision })
    }
    telemetry.log('debug', 'own cards stand in the log')
  }

  async #submit(entry: Parameters<MemberLog['submit']>[0]): Promise<void> {
    try {
      await this.#parts.log.submit(entry, LOG_TIMEOUT_MS)
    } catch (error) {
      // Connected peers have the card already; the log follows when a writer is back (the next view or link asks again).
      this.#parts.telemetry.log('debug', 'a card is not in the log yet', { code: asNodeError(error).code })
    }
  }
}

function operatorCard(certificate: Certificate): Omit<CardBody, 'revision'> {
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

function cardOf(definition: AgentDefinition, certificate: Certificate): Omit<CardBody, 'revision'> {
  return {
    id: definition.id,
    name: definition.name,
    version: definition.version,
    description: definition.description,
    tier: weakest(definition.tier ?? certificate.maxTier, certificate.maxTier),
    protocols: definition.protocols.length > 0 ? definition.protocols : PROTOCOLS,
    endpoints: [{ transport: 'hyperswarm', address: certificate.nodeKey }],
    capabilities: definition.capabilities,
    ...sandboxOf(definition.sandboxId, certificate)
  }
}

function sandboxOf(asked: string | null, certificate: Certificate): { sandboxId?: string } {
  const sandboxId = certificate.sandboxId ?? asked
  return sandboxId === null ? {} : { sandboxId }
}
