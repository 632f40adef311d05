import type { Clock } from '../kit/clock.js'
import type { NodeId } from '../kit/ids.js'
import { addressText } from '../domain/card/card.js'
import type { AgentAddress } from '../domain/card/card.js'
import { decodeEnvelope } from '../domain/envelope/codec.js'
import type { EnvelopeMetadata } from '../domain/envelope/envelope.js'
import type { EnvelopeHeader } from '../domain/envelope/header.js'
import { isCarried } from '../domain/envelope/origin.js'
import type { ReadEnvelope } from '../domain/envelope/origin.js'
import type { Lane } from '../domain/reliable/keys.js'
import type { RoutingParty } from '../domain/routing/decide.js'
import { weakened } from '../domain/routing/hops.js'
import type { Links, Strike } from '../ports/mesh.js'
import type { Directory, NamedAgent } from './directory.js'
import type { Forwarded } from './forwarded.js'
import type { Incoming } from './incoming.js'
import type { Passing } from './passing.js'
import type { Refusal, Router } from './router.js'
import type { Traffic } from './traffic.js'

/** What this room refuses by itself. */
const REFUSALS = {
  foreignSender: { code: 'FORBIDDEN', rule: 'sender: the key of the stream', reason: 'the sender is not of the node that sent it' },
  foreignRecipient: {
    code: 'AGENT_NOT_FOUND',
    rule: 'recipient: an agent of this node',
    reason: 'the recipient is not on this node'
  },
  foreignLane: { code: 'FORBIDDEN', rule: 'lane: its two agents', reason: 'the message is not of the agents of its lane' },
  lostHop: { code: 'FORBIDDEN', rule: 'hops: members', reason: 'a node on the way was put out of the mesh' },
  putOut: { code: 'REVOKED', rule: 'sender: a member', reason: 'the sender was put out of the mesh' },
  noCard: { code: 'FORBIDDEN', rule: 'sender: a signed card', reason: 'the sender has no card that this node knows' },
  claims: {
    code: 'FORBIDDEN',
    rule: 'claims: as certified',
    reason: 'the message claims another tier or sandbox than its sender has'
  }
} as const satisfies Record<string, Refusal>

/** Who speaks to whom, as far as the message says so truly. */
interface Parties {
  readonly sender: AgentAddress
  readonly recipient: AgentAddress
}

/** A message that is not let in; with `parties` its sender is told why. */
export interface Struck {
  readonly refusal: Refusal
  readonly parties: Parties | null
  /** What it counts against its peer; null: an honest peer may send it. */
  readonly strike: Strike | null
}

/** Who speaks to whom, verified. */
export interface Verified extends Parties {
  /** The sender as the message says it is, and as it is. */
  readonly party: RoutingParty
  readonly certified: RoutingParty
  /** The recipient, looked up. */
  readonly target: NamedAgent
}

/** A message that was verified and is for this node; the rules have not been asked yet. */
export interface Arrival extends Incoming, Verified {
  /** When it came, monotonic milliseconds. */
  readonly since: number
}

/** What reading and verifying needs. */
export interface ArrivalsParts {
  readonly clock: Clock
  readonly traffic: Traffic
  readonly directory: Directory
  readonly router: Router
  readonly forwarded: Forwarded
  readonly passing: Passing
  readonly links: Pick<Links, 'strike'>
  readonly self: NodeId
}

/** Tells the sender of a message that it was refused. */
export type Answer = (refused: Omit<Incoming, 'payload'>, refusal: Refusal) => void

/** The first stages of the road in: decode, whose it is, verify, pass on what is for another node. */
export class Arrivals {
  readonly #parts: ArrivalsParts
  readonly #answer: Answer

  constructor(parts: ArrivalsParts, answer: Answer) {
    this.#parts = parts
    this.#answer = answer
  }

  /** A message that a neighbour sent, over a lane or not (null). null: it was refused, which is on record, or is for another node. */
  read(neighbour: NodeId, bytes: Uint8Array, lane: Lane | null): Arrival | null {
    const since = this.#parts.clock.monotonic()
    const decoded = decodeEnvelope(bytes)
    if (!decoded.ok) {
      this.#parts.traffic.unreadable()
      // Whoever speaks another version is no forger.
      const strike = decoded.code === 'SCHEMA_VERSION_MISMATCH' ? 'doubtful' : 'forged'
      return this.#strike({ code: decoded.code, rule: 'envelope', reason: decoded.reason }, { peer: neighbour, header: null }, strike)
    }
    const { header } = decoded
    this.#parts.traffic.received(header, since)
    if (lane !== null && !isOfLane(lane, header)) return this.#strike(REFUSALS.foreignLane, { peer: neighbour, header })
    const peer = this.#origin(neighbour, decoded, bytes)
    if (peer === null) return null
    const isReliable = lane !== null
    const verified = this.verify(peer, header)
    if ('refusal' in verified) return this.#struck(verified, { peer, header, isReliable })
    if (verified.recipient.nodeId !== this.#parts.self) {
      this.#parts.passing.pass({ peer, header, since, ...verified }, { read: decoded, bytes })
      return null
    }
    const payload = decoded.payload()
    if (!payload.ok) return this.#strike({ code: 'INVALID_ENVELOPE', rule: 'payload', reason: payload.reason }, { peer, header })
    return { peer, header, payload: payload.value, isReliable, since, ...verified }
  }

  /** A message that was let in before this node stopped, verified as things are now; why it is not let in again. */
  again(peer: NodeId, bytes: Uint8Array): Arrival | Refusal {
    if (this.#parts.directory.isPutOut(peer)) return REFUSALS.putOut
    const decoded = decodeEnvelope(bytes)
    if (!decoded.ok) return { code: decoded.code, rule: 'envelope', reason: decoded.reason }
    const { header } = decoded
    const payload = decoded.payload()
    if (!payload.ok) return { code: 'INVALID_ENVELOPE', rule: 'payload', reason: payload.reason }
    const verified = this.verify(peer, header)
    if ('refusal' in verified) return verified.refusal
    return { peer, header, payload: payload.value, isReliable: true, since: this.#parts.clock.monotonic(), ...verified }
  }

  /** The sender is of the node it is from, has a signed card, and claims no more than certificate and card give it. */
  verify(peer: NodeId, header: EnvelopeHeader): Verified | Struck {
    const { directory } = this.#parts
    const source = directory.named(header.sender)
    if (source === null || source.address.nodeId !== peer) return { refusal: REFUSALS.foreignSender, parties: null, strike: 'forged' }
    const target = directory.named(header.recipient)
    if (target === null || !this.#mayBeFor(target.address.nodeId, header))
      return { refusal: REFUSALS.foreignRecipient, parties: null, strike: 'forged' }
    const { address: sender, party: known } = source
    const recipient = target.address
    // These two an honest sender can meet as well, while cards and certificates are on their way: it is told. Cards come by
    // other ways than messages, and not all are kept: to be ahead of one's card is no offence.
    if (known === null) return { refusal: REFUSALS.noCard, parties: { sender, recipient }, strike: null }
    const party = claimed(known, header.metadata)
    if (party === null) return { refusal: REFUSALS.claims, parties: { sender, recipient }, strike: 'doubtful' }
    const hops = header.metadata?.hops
    if (hops === undefined) return { sender, recipient, party, certified: known, target }
    const powers = hops.flatMap((hop) => directory.certificate(hop) ?? [])
    // A hop may have been put out since the message came.
    if (powers.length < hops.length) return { refusal: REFUSALS.lostHop, parties: { sender, recipient }, strike: null }
    // What it passed makes the sender weaker, but does not take it out of the reach of rules for what it is.
    return { sender, recipient, party: weakened(party, powers), certified: known, target }
  }

  /** Whose message it is: of the stream's key, or of the node that signed it for others to carry. null: it is refused. */
  #origin(neighbour: NodeId, read: ReadEnvelope, bytes: Uint8Array): NodeId | null {
    if (!isCarried(read.header)) return neighbour
    const accepted = this.#parts.forwarded.accept(neighbour, read, bytes)
    if (accepted.ok) return accepted.origin
    const { refusal, isForged, isTold } = accepted
    if (isForged) return this.#strike(refusal, { peer: neighbour, header: read.header })
    this.#parts.router.record('refusal', refusal, { peer: neighbour, header: read.header })
    if (isTold) this.#parts.passing.refuse(read.header, refusal)
    return null
  }

  /** Only what its node signed may be for another one. */
  #mayBeFor(nodeId: NodeId, header: EnvelopeHeader): boolean {
    return nodeId === this.#parts.self || isCarried(header)
  }

  #struck({ refusal, parties, strike }: Struck, from: Pick<Incoming, 'peer' | 'header' | 'isReliable'>): null {
    if (strike === null) this.#parts.router.record('refusal', refusal, from)
    else this.#strike(refusal, from, strike)
    if (parties !== null) this.#answer({ ...from, ...parties }, refusal)
    return null
  }

  #strike(refusal: Refusal, from: { readonly peer: NodeId; readonly header: EnvelopeHeader | null }, strike: Strike = 'forged'): null {
    this.#parts.router.record('strike', refusal, from)
    this.#parts.links.strike(from.peer, strike, refusal.reason)
    return null
  }
}

function isOfLane({ source, target }: Lane, header: EnvelopeHeader): boolean {
  return !isCarried(header) && header.sender === addressText(source) && header.recipient === addressText(target)
}

/** The sender as weak as the message says it is; null when it claims to be more, or elsewhere, than it is. */
function claimed(party: RoutingParty, metadata: EnvelopeMetadata | undefined): RoutingParty | null {
  if (metadata === undefined) return party
  const sandboxId = metadata.sandboxId ?? null
  if (metadata.tier < party.tier || (party.sandboxId !== null && sandboxId !== party.sandboxId)) return null
  if (metadata.tier === party.tier && sandboxId === party.sandboxId) return party
  // A weaker claim is honoured: who sends on behalf of somebody weaker says so, and may know of a change before this node.
  return { ...party, tier: metadata.tier, sandboxId: party.sandboxId ?? sandboxId }
}
