import { BoundedMap } from '../../kit/bounded.js'
import type { Clock } from '../../kit/clock.js'
import { asNodeError, messageOf } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { isUndeliveredCode } from '../../domain/channel/control.js'
import type { ControlBody } from '../../domain/channel/control.js'
import { decodeWhole, envelopeOf } from '../../domain/channel/frames.js'
import type { RelayableMessage } from '../../domain/channel/frames.js'
import { passedOn, relayedId } from '../../domain/channel/relayed.js'
import type { RelayedFrame } from '../../domain/channel/relayed.js'
import { decodeEnvelope } from '../../domain/envelope/codec.js'
import { OPENING_TYPES } from '../../domain/envelope/envelope.js'
import type { EnvelopeHeader } from '../../domain/envelope/header.js'
import { ENVELOPE_LIMITS } from '../../domain/envelope/limits.js'
import { askedWork } from '../../domain/policy/requested-work.js'
import type { RoutingParty } from '../../domain/routing/decide.js'
import { weakened } from '../../domain/routing/hops.js'
import type { Links } from '../../ports/mesh.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { Directory } from '../cards/directory.js'
import type { OriginVerdict } from './origin-signature.js'
import type { PeerTable } from '../peers/peer-table.js'
import { refusedArrival, verifyParties, type Verified } from '../messaging/verify.js'
import type { Refusal, RefusedFrom, AccessControl } from '../policy/access-control.js'
import type { RouteDiscovery } from './route-discovery.js'
import type { Traffic } from '../observe/traffic.js'
import { RateTable, TokenBucket } from '../../kit/rate.js'

/** Relayed frames remembered, so that a refusal of the next node finds its way back. */
const MAX_PASSED = 8192

const REFUSALS = {
  off: { code: 'PEER_OFFLINE', rule: 'hops: network.forward', reason: 'this node relays nothing' },
  tooFar: {
    code: 'PEER_OFFLINE',
    rule: `hops: at most ${ENVELOPE_LIMITS.maxHops}`,
    reason: 'the frame has passed as many nodes as it may'
  },
  noWay: { code: 'PEER_OFFLINE', rule: 'hops: a way', reason: 'this node knows no way to the recipient' },
  noAgent: {
    code: 'AGENT_NOT_FOUND',
    rule: 'recipient: an agent with a card',
    reason: 'this node knows no such agent'
  },
  flood: { code: 'OVERLOADED', rule: 'hops: a rate for each node', reason: 'that node has more relayed than it may' },
  unreadable: { code: 'INVALID_ENVELOPE', rule: 'envelope', reason: 'a relayed frame cannot be read' }
} as const satisfies Record<string, Refusal>

/** Dependencies of the forwarder. */
export interface ForwarderDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly self: NodeId
  readonly peers: PeerTable
  readonly directory: Directory
  readonly accessControl: AccessControl
  readonly routes: RouteDiscovery
  readonly traffic: Traffic
  readonly links: Pick<Links, 'strike'>
  readonly settings: { readonly forward: boolean }
}

/** The verified message of a relayed frame, with the hops so far in its header. */
interface Passenger extends Verified {
  readonly header: EnvelopeHeader
}

/** A relayed frame: the neighbour it came from, the neighbour it went to, and its target. */
interface Passed {
  readonly from: NodeId
  readonly next: NodeId
  readonly to: NodeId
}

/**
 * Relays frames of other nodes, within limits, and reports frames that it does not relay. Opening messages must also
 * pass the rules of this node. The receiving node decides on replies.
 */
export class Forwarder {
  readonly #deps: ForwarderDeps
  readonly #rates: RelayLimits
  /** Relayed frames, by origin and id. */
  readonly #passed = new BoundedMap<string, Passed>(MAX_PASSED)

  constructor(deps: ForwarderDeps) {
    this.#deps = deps
    this.#rates = new RelayLimits(deps.clock)
  }

  /** Records why a frame is not accepted. A forged frame is the fault of the neighbour that sent it. */
  rejected(
    neighbour: NodeId,
    frame: RelayedFrame,
    { refusal, isForged, isReported }: Extract<OriginVerdict, { readonly ok: false }>
  ): void {
    const { accessControl, links } = this.#deps
    accessControl.record(isForged ? 'strike' : 'refusal', refusal, { peer: neighbour, header: null })
    if (isForged) links.strike(neighbour, 'forged', refusal.reason)
    if (isReported) this.refuse(frame, refusal)
  }

  /** Sends an accepted frame on, or records the refusal and tells its origin. */
  pass(frame: RelayedFrame): void {
    const message = decodeWhole(frame.content)
    if (typeof message === 'string') return void this.#forged(frame, { ...REFUSALS.unreadable, reason: message })
    const bytes = envelopeOf(message)
    const passenger = bytes === null ? null : this.#passenger(frame, bytes)
    if (passenger === 'refused') return
    const refusal = this.#take(frame, message, passenger)
    if (refusal === null) return
    const from: RefusedFrom =
      passenger === null
        ? { peer: frame.origin, header: null }
        : refusedArrival(this.#deps.directory, { peer: frame.origin, ...passenger })
    this.#deps.accessControl.record('refusal', refusal, from)
    this.refuse(frame, refusal)
  }

  /** Tells the origin of a frame, through the neighbour that sent it, that it is not relayed. */
  refuse(frame: RelayedFrame, { code, rule }: Refusal): void {
    const { origin, target: to, hops } = frame
    const reported = isUndeliveredCode(code) ? code : 'FORBIDDEN'
    const id = relayedId(frame)
    this.#tell(hops.at(-1) ?? origin, {
      origin,
      to,
      id,
      code: reported,
      rule: rule.slice(0, 256),
      left: ENVELOPE_LIMITS.maxHops
    })
  }

  /**
   * Passes such a report for another node back along the frame's path: once, and only from the neighbour that got the
   * frame.
   */
  relay(peer: NodeId, body: ControlBody<'undelivered'>): void {
    const { telemetry } = this.#deps
    const key = `${body.origin}/${body.id}`
    const passed = this.#passed.get(key)
    if (passed?.next !== peer || passed.to !== body.to) return telemetry.count('errors', 'undelivered')
    this.#passed.delete(key)
    if (body.code === 'PEER_OFFLINE') this.#deps.routes.drop(body.to, peer)
    this.#tell(passed.from, body)
  }

  #tell(next: NodeId, body: ControlBody<'undelivered'>): void {
    const { peers, telemetry } = this.#deps
    if (body.left === 0) return telemetry.count('errors', 'undelivered')
    try {
      peers.send(next, { kind: 'control', name: 'undelivered', body: { ...body, left: body.left - 1 } })
    } catch (error) {
      telemetry.count('errors', 'undelivered')
      telemetry.log('debug', 'a node could not be told that its frame is not relayed', { reason: messageOf(error) })
    }
  }

  /** The verified message of a frame. Its origin signed it, so the origin is at fault for any error in it. */
  #passenger(frame: RelayedFrame, bytes: Uint8Array): Passenger | 'refused' {
    const { directory, accessControl } = this.#deps
    const { origin, target, hops } = frame
    const read = decodeEnvelope(bytes)
    if (!read.ok) return this.#forged(frame, { code: read.code, rule: 'envelope', reason: read.reason })
    const header = { ...read.header, metadata: { ...(read.header.metadata ?? { tier: 3 as const }), hops } }
    const verified = verifyParties(directory, { origin, target, header })
    if (!('refusal' in verified)) return { header, ...verified }
    if (verified.strike === 'forged') return this.#forged(frame, verified.refusal)
    accessControl.record('refusal', verified.refusal, { peer: origin, header })
    this.refuse(frame, verified.refusal)
    return 'refused'
  }

  #forged({ origin }: RelayedFrame, refusal: Refusal): 'refused' {
    this.#deps.accessControl.record('strike', refusal, { peer: origin, header: null })
    this.#deps.links.strike(origin, 'forged', refusal.reason)
    return 'refused'
  }

  #take(frame: RelayedFrame, message: RelayableMessage, passenger: Passenger | null): Refusal | null {
    const { traffic, peers, self, clock } = this.#deps
    const since = clock.monotonic()
    const isOpening = passenger !== null && OPENING_TYPES.has(passenger.header.type)
    const next = this.#next(frame, isOpening)
    if (typeof next !== 'string') return next
    const asked = passenger === null ? null : this.#ask(passenger, since)
    if (asked !== null && 'code' in asked) return asked
    const { origin, target, content } = frame
    const isOfLane = message.kind !== 'envelope'
    if (!this.#rates.take({ origin, target, isOpening, isOfLane, bytes: content.byteLength })) return REFUSALS.flood
    try {
      peers.send(next, { kind: 'relayed', frame: passedOn(frame, self) })
    } catch (error) {
      return handedOver(error)
    }
    this.#notePassed(frame, next)
    if (passenger !== null && asked !== null)
      traffic.passed({ peer: origin, header: passenger.header, since, at: clock.monotonic(), ...asked })
    return null
  }

  /** The next neighbour: the target, or a neighbour with a route to it that did not have the frame yet. */
  #next({ origin, target, hops }: RelayedFrame, isOpening: boolean): NodeId | Refusal {
    const { peers, routes, settings } = this.#deps
    if (!settings.forward) return REFUSALS.off
    if (hops.length >= ENVELOPE_LIMITS.maxHops) return REFUSALS.tooFar
    if (peers.isOnline(target)) return target
    const next = isOpening ? routes.next(target) : routes.back(target)
    return next === null || next === origin || hops.includes(next) ? REFUSALS.noWay : next
  }

  /**
   * Applies this node's rules, which give the message at most this node's privileges. The body, with the requested
   * work, is not read.
   */
  #ask(
    { party, certified, recipient, header, target: { party: known } }: Passenger,
    since: number
  ): { rule: string; from: RoutingParty['tier']; to: RoutingParty['tier'] } | Refusal {
    const { directory, accessControl, self } = this.#deps
    const own = directory.certificate(self)
    const from = own === null ? party : weakened(party, [own])
    const isReply = !OPENING_TYPES.has(header.type)
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
    const { verdict } = accessControl.decide(question, since)
    if (!verdict.allowed) return { code: verdict.code, rule: verdict.rule, reason: verdict.reason }
    return { rule: verdict.rule, from: from.tier, to: target.tier }
  }

  #notePassed(frame: RelayedFrame, next: NodeId): void {
    const { origin, target: to, hops } = frame
    this.#passed.set(`${origin}/${relayedId(frame)}`, { from: hops.at(-1) ?? origin, next, to })
  }
}

function handedOver(error: unknown): Refusal {
  const { code, message } = asNodeError(error)
  const isOffline = code === 'CHANNEL_CLOSED' || code === 'PEER_OFFLINE'
  return { code: isOffline ? 'PEER_OFFLINE' : code, rule: 'hops: handed to the next node', reason: message }
}

/** Messages outside of lanes: fewer than the replay table remembers. */
const MESSAGES = { perSecond: 50, burst: 500 }
/** Frames of lanes, and control messages: a whole window may pass at once. */
const LANE_FRAMES = { perSecond: 500, burst: 1000 }
/** Bytes of either kind. */
const BYTES = { perSecond: 4 * 1024 * 1024, burst: 18 * 1024 * 1024 }
/** Relayed frames of all nodes: fewer than a neighbour accepts. */
const IN_ALL = { perSecond: 1000, burst: 2000 }
/** Their bytes: half of the traffic to a neighbour, so that this node's own messages get through. */
const BYTES_IN_ALL = { perSecond: 16 * 1024 * 1024, burst: 36 * 1024 * 1024 }
/**
 * Assured to a node with little relayed traffic, whatever others send: frames up to this size, at this rate, from a
 * shared reserve.
 */
const ASSURED_BYTES = 64 * 1024
const ASSURED = { perSecond: 0.2, burst: 5 }
const RESERVE = { perSecond: 80, burst: 400 }

/** A frame to be relayed. */
interface Load {
  readonly origin: NodeId
  readonly target: NodeId
  /** Is it an opening message? */
  readonly isOpening: boolean
  /** Is it a frame of a lane or a control message? The sender repeats it when it is lost. */
  readonly isOfLane: boolean
  readonly bytes: number
}

/**
 * Limits relayed traffic per node and in total, with a reserve so that no node is left out. Opening messages count for
 * their origin. Other frames count for origin and target together: many answers to one node do not use up the answers
 * to others.
 */
export class RelayLimits {
  readonly #messages: RateTable
  readonly #lanes: RateTable
  readonly #bytes: RateTable
  readonly #inAll: TokenBucket
  readonly #bytesInAll: TokenBucket
  readonly #assured: RateTable
  readonly #reserve: TokenBucket

  constructor(clock: Clock) {
    this.#messages = new RateTable(MESSAGES, clock)
    this.#lanes = new RateTable(LANE_FRAMES, clock)
    this.#bytes = new RateTable(BYTES, clock)
    this.#inAll = new TokenBucket(IN_ALL, clock)
    this.#bytesInAll = new TokenBucket(BYTES_IN_ALL, clock)
    this.#assured = new RateTable(ASSURED, clock)
    this.#reserve = new TokenBucket(RESERVE, clock)
  }

  /** May the frame be relayed now? If so, it is counted. */
  take({ origin, target, isOpening, isOfLane, bytes }: Load): boolean {
    const key = isOpening ? origin : `${origin} ${target}`
    const rate = isOfLane ? this.#lanes : this.#messages
    if (!rate.take(key) || !this.#bytes.take(key, bytes)) return false
    if (this.#inAll.take() && this.#bytesInAll.take(bytes)) return true
    return bytes <= ASSURED_BYTES && this.#assured.take(key) && this.#reserve.take()
  }
}
