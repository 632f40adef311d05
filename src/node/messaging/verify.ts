import type { Clock } from '../../kit/clock.js'
import type { NodeId } from '../../kit/ids.js'
import { addressText } from '../../domain/card/card.js'
import { decodeEnvelope, isRelayed, withHops } from '../../domain/envelope/codec.js'
import type { EnvelopeHeader } from '../../domain/envelope/header.js'
import type { Lane } from '../../domain/reliable/keys.js'
import type { Links, Strike } from '../../ports/mesh.js'
import type { Directory } from '../cards/directory.js'
import type { InboundMessage } from './inbound-message.js'
import type { Refusal, AccessControl } from '../policy/access-control.js'
import type { Traffic } from '../observe/traffic.js'
import { verifyParties } from './verify-parties.js'
import type { Rejected, Verified } from './verify-parties.js'

/** What this room refuses by itself. */
const REFUSALS = {
  foreignLane: { code: 'FORBIDDEN', rule: 'lane: its two agents', reason: 'the message is not of the agents of its lane' },
  claimedHops: { code: 'FORBIDDEN', rule: 'hops: noted by the receiver', reason: 'the sender names relays by itself' },
  noRoomForHops: { code: 'PAYLOAD_TOO_LARGE', rule: 'hops: room in the header', reason: 'the header leaves no room for the relays' },
  putOut: { code: 'REVOKED', rule: 'sender: a member', reason: 'the sender was put out of the mesh' }
} as const satisfies Record<string, Refusal>

/** An encoded envelope as it came. */
export interface ArrivedEnvelope {
  readonly bytes: Uint8Array
  /** The lane that it came over; null for none. */
  readonly lane: Lane | null
  /** The nodes that relayed it, in order. */
  readonly hops: readonly NodeId[]
}

/** A message that was verified and is for this node; the rules have not been asked yet. */
export interface Arrival extends InboundMessage, Verified {
  /** When it came, monotonic milliseconds. */
  readonly since: number
  /** The encoded envelope with the nodes that relayed it in its header: what is recorded. */
  readonly bytes: Uint8Array
}

/** What reading and verifying needs. */
export interface VerificationDeps {
  readonly clock: Clock
  readonly traffic: Traffic
  readonly directory: Directory
  readonly accessControl: AccessControl
  readonly links: Pick<Links, 'strike'>
  readonly self: NodeId
}

/** Tells the sender of a message that it was refused. */
export type Answer = (refused: Omit<InboundMessage, 'payload'>, refusal: Refusal) => void

/** The first stages of the road in: decode, verify. */
export class Verification {
  readonly #deps: VerificationDeps
  readonly #answer: Answer

  constructor(deps: VerificationDeps, answer: Answer) {
    this.#deps = deps
    this.#answer = answer
  }

  /** A message of a peer, over its own link or relayed. null: it was refused, which is on record. */
  read(peer: NodeId, { bytes, lane, hops }: ArrivedEnvelope): Arrival | null {
    const since = this.#deps.clock.monotonic()
    const decoded = decodeEnvelope(bytes)
    if (!decoded.ok) {
      this.#deps.traffic.unreadable()
      // A peer of another version is no forger.
      const strike = decoded.code === 'SCHEMA_VERSION_MISMATCH' ? 'doubtful' : 'forged'
      return this.#strike({ code: decoded.code, rule: 'envelope', reason: decoded.reason }, { peer, header: null }, strike)
    }
    this.#deps.traffic.received(decoded.header, since)
    if (isRelayed(decoded.header)) return this.#strike(REFUSALS.claimedHops, { peer, header: decoded.header })
    if (lane !== null && !isOfLane(lane, decoded.header)) return this.#strike(REFUSALS.foreignLane, { peer, header: decoded.header })
    const noted = hops.length === 0 ? { header: decoded.header, bytes } : withHops(decoded, bytes, hops)
    const header = noted?.header ?? decoded.header
    const isReliable = lane !== null
    const verified = this.verify(peer, header)
    if ('refusal' in verified) return this.#rejected(verified, { peer, header, isReliable })
    if (noted === null)
      return this.#rejected({ refusal: REFUSALS.noRoomForHops, parties: verified, strike: null }, { peer, header, isReliable })
    const payload = decoded.payload()
    if (!payload.ok) return this.#strike({ code: 'INVALID_ENVELOPE', rule: 'payload', reason: payload.reason }, { peer, header })
    return { peer, header, payload: payload.value, isReliable, since, bytes: noted.bytes, ...verified }
  }

  /** A message that was let in before this node stopped, verified as things are now; why it is not let in again. */
  again(peer: NodeId, bytes: Uint8Array): Arrival | Refusal {
    if (this.#deps.directory.isPutOut(peer)) return REFUSALS.putOut
    const decoded = decodeEnvelope(bytes)
    if (!decoded.ok) return { code: decoded.code, rule: 'envelope', reason: decoded.reason }
    const { header } = decoded
    const payload = decoded.payload()
    if (!payload.ok) return { code: 'INVALID_ENVELOPE', rule: 'payload', reason: payload.reason }
    const verified = this.verify(peer, header)
    if ('refusal' in verified) return verified.refusal
    return { peer, header, payload: payload.value, isReliable: true, since: this.#deps.clock.monotonic(), bytes, ...verified }
  }

  /** Sender and recipient of a message for this node, see {@link verifyParties}. */
  verify(peer: NodeId, header: EnvelopeHeader): Verified | Rejected {
    const { directory, self } = this.#deps
    return verifyParties(directory, { origin: peer, target: self, header })
  }

  #rejected({ refusal, parties, strike }: Rejected, from: Pick<InboundMessage, 'peer' | 'header' | 'isReliable'>): null {
    if (strike === null) this.#deps.accessControl.record('refusal', refusal, from)
    else this.#strike(refusal, from, strike)
    if (parties !== null) this.#answer({ ...from, ...parties }, refusal)
    return null
  }

  #strike(refusal: Refusal, from: { readonly peer: NodeId; readonly header: EnvelopeHeader | null }, strike: Strike = 'forged'): null {
    this.#deps.accessControl.record('strike', refusal, from)
    this.#deps.links.strike(from.peer, strike, refusal.reason)
    return null
  }
}

function isOfLane({ source, target }: Lane, header: EnvelopeHeader): boolean {
  return header.sender === addressText(source) && header.recipient === addressText(target)
}
