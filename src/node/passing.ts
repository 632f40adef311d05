import type { Clock } from '../kit/clock.js'
import { asNodeError, messageOf } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import type { AgentAddress } from '../domain/card/card.js'
import { isUndeliveredCode } from '../domain/channel/control.js'
import type { ControlBody } from '../domain/channel/control.js'
import type { EnvelopeHeader } from '../domain/envelope/codec.js'
import { OPENING_TYPES } from '../domain/envelope/envelope.js'
import { threadOf } from '../domain/envelope/factory.js'
import { ENVELOPE_LIMITS } from '../domain/envelope/limits.js'
import { passedOn } from '../domain/envelope/origin.js'
import type { ReadEnvelope } from '../domain/envelope/origin.js'
import { askedWork } from '../domain/policy/asked.js'
import type { RoutingParty } from '../domain/routing/decide.js'
import { Exchanges } from '../domain/routing/exchanges.js'
import type { ExchangeKey } from '../domain/routing/exchanges.js'
import { weakened } from '../domain/routing/hops.js'
import type { Telemetry } from '../ports/telemetry.js'
import { OPERATOR } from './agents.js'
import { CarryRates } from './carry-rates.js'
import { parseAddress } from './directory.js'
import type { Directory } from './directory.js'
import type { Peers } from './peers.js'
import { refusedArrival } from './router.js'
import type { Refusal, Router } from './router.js'
import type { Routes } from './routes.js'
import type { Traffic } from './traffic.js'

/** Messages passed on of which the next node may still say that it does not carry them further. */
const MAX_PASSED = 8192
/**
 * Exchanges of one node along which replies are carried back, and of all. An answer may take as long as its work, and nothing
 * passes meanwhile: so an idle one stays until its room is needed. In milliseconds.
 */
const EXCHANGES = { maxPerPeer: 1024, maxOpen: 65_536, idleMs: 600_000 }

const REFUSALS = {
  off: { code: 'PEER_OFFLINE', rule: 'hops: network.forward', reason: 'this node carries no messages of others' },
  tooFar: {
    code: 'PEER_OFFLINE',
    rule: `hops: at most ${ENVELOPE_LIMITS.maxHops}`,
    reason: 'the message has passed as many nodes as it may'
  },
  noWay: { code: 'PEER_OFFLINE', rule: 'hops: a way', reason: 'this node knows no way to the recipient' },
  noAgent: { code: 'AGENT_NOT_FOUND', rule: 'recipient: an agent with a card', reason: 'this node knows no such agent' },
  flood: { code: 'OVERLOADED', rule: 'hops: a rate for each node', reason: 'that node has more messages carried than it may' },
  tooManyOpen: { code: 'OVERLOADED', rule: 'exchanges: bounded', reason: 'too many exchanges of that node go by this one' }
} as const satisfies Record<string, Refusal>

/** What carrying needs. */
export interface PassingParts {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly self: NodeId
  readonly peers: Peers
  readonly directory: Directory
  readonly router: Router
  readonly routes: Routes
  readonly traffic: Traffic
  readonly settings: { readonly forward: boolean; readonly defaultTtlMs: number }
}

/** A message for another node, verified like any other. */
export interface Passenger {
  /** The node that signed it. */
  readonly peer: NodeId
  readonly sender: AgentAddress
  readonly recipient: AgentAddress
  readonly header: EnvelopeHeader
  readonly party: RoutingParty
  readonly certified: RoutingParty
  readonly since: number
}

/** What of its bytes is needed to carry it. */
export interface Luggage {
  readonly read: ReadEnvelope
  readonly bytes: Uint8Array
}

/** A message that was passed on: from whom it came, to whom it went, for whom it is, and what it did to which exchange. */
interface Passed {
  readonly from: NodeId
  readonly next: NodeId
  readonly to: NodeId
  readonly did: { readonly what: 'opened' | 'ended'; readonly exchange: ExchangeKey } | null
}

/** Carries messages of others a node further: by the rules of this node too, bounded, and with a word back where it does not. */
export class Passing {
  readonly #parts: PassingParts
  readonly #exchanges = new Exchanges(EXCHANGES)
  readonly #rates: CarryRates
  /** Messages that were passed on, by their node and id. */
  readonly #passed = new Map<string, Passed>()

  constructor(parts: PassingParts) {
    this.#parts = parts
    this.#rates = new CarryRates(parts.clock)
  }

  /** Sends a message on, or puts on record why not and tells its node. */
  pass(passenger: Passenger, luggage: Luggage): void {
    const refusal = this.#take(passenger, luggage)
    if (refusal === null) return
    const { router, directory } = this.#parts
    router.record('refusal', refusal, refusedArrival(directory, passenger))
    this.refuse(passenger.header, refusal)
  }

  /** Is an exchange in use that is carried from or to the node? */
  isOpenWith(node: NodeId): boolean {
    const now = this.#parts.clock.monotonic()
    return this.#exchanges.isAnyOpen(({ from, to }) => from.endsWith(`@${node}`) || to.endsWith(`@${node}`), now)
  }

  /** Tells a node that its message is not carried on, by the neighbour that brought it. */
  refuse({ sender, recipient, id, metadata }: EnvelopeHeader, { code, rule }: Refusal): void {
    const [origin, to] = [parseAddress(sender)?.nodeId, parseAddress(recipient)?.nodeId]
    if (origin === undefined || to === undefined) return
    const told = isUndeliveredCode(code) ? code : 'FORBIDDEN'
    this.#tell(metadata?.hops?.at(-1) ?? origin, { origin, to, id, code: told, rule: rule.slice(0, 256), left: ENVELOPE_LIMITS.maxHops })
  }

  /**
   * Such a word for another node goes back the way of the message: once, and only from whom the message was passed
   * to. The exchange that the message opened is over; the one that it ended is not, so that its answer may come again.
   */
  relay(peer: NodeId, body: ControlBody<'undelivered'>): void {
    const { telemetry } = this.#parts
    const key = `${body.origin}/${body.id}`
    const passed = this.#passed.get(key)
    if (passed?.next !== peer || passed.to !== body.to) return telemetry.count('errors', 'undelivered')
    this.#passed.delete(key)
    this.#undo(passed, body.origin)
    this.#tell(passed.from, body)
  }

  #undo({ did, from, next, to }: Passed, origin: NodeId): void {
    if (did?.what === 'opened') this.#exchanges.close(did.exchange)
    if (did?.what !== 'ended') return
    this.#exchanges.reopen({ ...did.exchange, expiresAt: this.#expiresAt() }, this.#parts.clock.monotonic())
    this.#setWays(did.exchange, { [origin]: from, [to]: next })
  }

  #setWays(exchange: ExchangeKey, ways: Readonly<Record<NodeId, NodeId>>): void {
    for (const [node, neighbour] of Object.entries(ways)) this.#exchanges.setWay(exchange, node, neighbour)
  }

  #expiresAt(): number {
    return this.#parts.clock.monotonic() + this.#parts.settings.defaultTtlMs
  }

  #tell(next: NodeId, body: ControlBody<'undelivered'>): void {
    const { peers, telemetry } = this.#parts
    if (body.left === 0) return telemetry.count('errors', 'undelivered')
    try {
      peers.send(next, { kind: 'control', name: 'undelivered', body: { ...body, left: body.left - 1 } })
    } catch (error) {
      telemetry.count('errors', 'undelivered')
      telemetry.log('debug', 'a node could not be told that its message is not carried on', { reason: messageOf(error) })
    }
  }

  #take(passenger: Passenger, { read, bytes }: Luggage): Refusal | null {
    const { traffic, peers } = this.#parts
    const next = this.#next(passenger)
    if (typeof next !== 'string') return next
    const asked = this.#ask(passenger)
    if ('code' in asked) return asked
    const refusal = this.#bounded(passenger, bytes.byteLength)
    if (refusal !== null) return refusal
    try {
      peers.send(next, { kind: 'envelope', bytes: passedOn(read, bytes, this.#parts.self) })
    } catch (error) {
      return this.#failed(passenger, error)
    }
    const { peer, header, since } = passenger
    this.#notePassed(passenger, next)
    traffic.passed({ peer, header, since, at: this.#parts.clock.monotonic(), ...asked })
    return null
  }

  /** The neighbour that gets it: whom it is for, or who has a way, unless it was there already. A reply goes the way of its exchange. */
  #next(passenger: Passenger): NodeId | Refusal {
    const { peers, routes, settings } = this.#parts
    const { header, peer } = passenger
    const { nodeId } = passenger.recipient
    const hops = header.metadata?.hops ?? []
    if (!settings.forward) return REFUSALS.off
    if (hops.length >= ENVELOPE_LIMITS.maxHops) return REFUSALS.tooFar
    if (peers.isOnline(nodeId)) return nodeId
    const exchange = OPENING_TYPES.has(header.type) ? null : this.#exchange(passenger)
    const way = exchange === null ? null : this.#exchanges.way(exchange, nodeId)
    const next = way !== null && peers.isOnline(way) ? way : routes.next(nodeId)
    return next === null || next === peer || hops.includes(next) ? REFUSALS.noWay : next
  }

  /** The rules of this node, by which the message is no more powerful than this node. What it asks for is in its body, which is not read. */
  #ask({
    party,
    certified,
    recipient,
    header,
    sender,
    since
  }: Passenger): { rule: string; from: RoutingParty['tier']; to: RoutingParty['tier'] } | Refusal {
    const { directory, router, self } = this.#parts
    const own = directory.certificate(self)
    const from = own === null ? party : weakened(party, [own])
    const isReply = !OPENING_TYPES.has(header.type) && this.#exchange({ sender, recipient, header }) !== null
    const known = directory.party(recipient)
    if (known === null && !isReply) return REFUSALS.noAgent
    const target = known ?? { ...from, address: header.recipient }
    const question = {
      sender: from,
      certified,
      target,
      type: header.type,
      justification: header.metadata?.justification ?? null,
      isReply,
      isArriving: false,
      ...askedWork(directory.card(recipient), null)
    }
    const { verdict } = router.decide(question, since)
    if (!verdict.allowed) return { code: verdict.code, rule: verdict.rule, reason: verdict.reason }
    return { rule: verdict.rule, from: from.tier, to: target.tier }
  }

  #bounded(passenger: Passenger, bytes: number): Refusal | null {
    const { peer, header } = passenger
    if (!this.#mayCarry(passenger, bytes)) return REFUSALS.flood
    if (!isAsking(header)) return null
    const isOpen = this.#exchanges.open({ ...exchangeOf(header, peer), expiresAt: this.#expiresAt() }, this.#parts.clock.monotonic())
    return isOpen ? null : REFUSALS.tooManyOpen
  }

  /** What answers somebody counts for who asked: else those who ask a node much would use up what is carried for it. */
  #mayCarry(passenger: Passenger, bytes: number): boolean {
    const { peer, header } = passenger
    const opener = OPENING_TYPES.has(header.type) ? peer : (this.#exchange(passenger)?.peer ?? peer)
    return this.#rates.take({ node: opener, isReply: opener !== peer, bytes })
  }

  /** The exchange that a message goes along: one that its recipient opened, or its sender. */
  #exchange({ sender, recipient, header }: Pick<Passenger, 'sender' | 'recipient' | 'header'>): ExchangeKey | null {
    const now = this.#parts.clock.monotonic()
    const back = exchangeOf(header, recipient.nodeId)
    const found = this.#exchanges.find(back, now) ?? this.#exchanges.find(exchangeOf(header, sender.nodeId), now)
    if (found !== null || sender.agentId !== OPERATOR) return found
    // The operator answers for an agent of its node that is not there.
    return this.#exchanges.findOpened(back, now)
  }

  #notePassed(passenger: Passenger, next: NodeId): void {
    const { peer, header, recipient } = passenger
    const from = header.metadata?.hops?.at(-1) ?? peer
    const did = this.#done(passenger)
    if (did?.what === 'opened') this.#setWays(did.exchange, { [peer]: from, [recipient.nodeId]: next })
    this.#passed.set(`${peer}/${header.id}`, { from, next, to: recipient.nodeId, did })
    for (const oldest of this.#passed.keys()) {
      if (this.#passed.size <= MAX_PASSED) break
      this.#passed.delete(oldest)
    }
  }

  /** What a message that was passed on has done to its exchange. */
  #done(passenger: Passenger): Passed['did'] {
    const { peer, header } = passenger
    if (isAsking(header)) return { what: 'opened', exchange: exchangeOf(header, peer) }
    const exchange = OPENING_TYPES.has(header.type) ? null : this.#exchange(passenger)
    return exchange !== null && this.#exchanges.replied(exchange, header.type, this.#parts.clock.monotonic())
      ? { what: 'ended', exchange }
      : null
  }

  #failed({ peer, header }: Passenger, error: unknown): Refusal {
    const { code, message } = asNodeError(error)
    if (isAsking(header)) this.#exchanges.close(exchangeOf(header, peer))
    const isOffline = code === 'CHANNEL_CLOSED' || code === 'PEER_OFFLINE'
    return { code: isOffline ? 'PEER_OFFLINE' : code, rule: 'hops: handed to the next node', reason: message }
  }
}

/** Does it open an exchange? */
function isAsking({ type }: EnvelopeHeader): boolean {
  return OPENING_TYPES.has(type) && type !== 'notification'
}

/** The exchange of a message, were it opened by an agent of `peer`. */
function exchangeOf(header: EnvelopeHeader, peer: NodeId): ExchangeKey {
  return { peer, correlationId: threadOf(header), from: header.sender, to: header.recipient }
}
