import { wait, type Clock } from '../../kit/clock.js'
import { NodeError, type ErrorBody } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { addressText, type AgentAddress } from '../../domain/card/card.js'
import { decodeEnvelope, isRelayed, type PayloadReading, withHops } from '../../domain/envelope/codec.js'
import type { EnvelopeHeader } from '../../domain/envelope/header.js'
import type { Lane } from '../../domain/reliable/keys.js'
import type { Links, Strike } from '../../ports/mesh.js'
import type { NodeSettings } from '../dependencies.js'
import type { Directory, NamedAgent } from '../cards/directory.js'
import type { ExchangeTable } from './exchange-table.js'
import { threadOf, type InboundMessage, type Thread } from './inbound-message.js'
import type { Refusal, AccessControl, RefusedFrom } from '../policy/access-control.js'
import type { Traffic } from '../observe/traffic.js'
import { OPENING_TYPES } from '../../domain/envelope/envelope.js'
import { claimedParty, rightsChangedAt } from '../../domain/routing/claims.js'
import type { RoutingParty } from '../../domain/routing/decide.js'
import { weakened } from '../../domain/routing/hops.js'

/** The refusals of this stage. */
const REFUSALS = {
  foreignLane: {
    code: 'FORBIDDEN',
    rule: 'lane: its two agents',
    reason: 'the message is not of the two agents of its delivery queue'
  },
  claimedHops: { code: 'FORBIDDEN', rule: 'hops: noted by the receiver', reason: 'the sender names relays by itself' },
  noRoomForHops: {
    code: 'PAYLOAD_TOO_LARGE',
    rule: 'hops: room in the header',
    reason: 'the header leaves no room for the relays'
  },
  putOut: { code: 'REVOKED', rule: 'sender: a member', reason: 'the sender was put out of the mesh' },
  foreignSender: {
    code: 'FORBIDDEN',
    rule: 'sender: the key of the stream',
    reason: 'the sender is not of the node that sent it'
  },
  foreignRecipient: {
    code: 'AGENT_NOT_FOUND',
    rule: 'recipient: an agent of this node',
    reason: 'the recipient is not on this node'
  },
  lostHop: { code: 'FORBIDDEN', rule: 'hops: members', reason: 'a node on the way was put out of the mesh' },
  noCard: { code: 'FORBIDDEN', rule: 'sender: a signed card', reason: 'the sender has no card that this node knows' },
  claims: {
    code: 'FORBIDDEN',
    rule: 'claims: as certified',
    reason: 'the message claims another tier or sandbox than its sender has'
  }
} as const satisfies Record<string, Refusal>

/** A received encoded envelope. */
export interface ArrivedEnvelope {
  readonly bytes: Uint8Array
  /** Its lane; null for none. */
  readonly lane: Lane | null
  /** The nodes that relayed it, in order. */
  readonly hops: readonly NodeId[]
}

/** Which reading of a message: the only one, the first, a further one, the last. The first two count it as received. */
export type ReadTurn = 'only' | 'first' | 'again' | 'last'

/** A verified message for this node, before the rules decide. */
export interface Arrival extends InboundMessage, Verified {
  /** Its arrival, in monotonic milliseconds. */
  readonly since: number
  /** The encoded envelope with the nodes that relayed it in its header, for the record. */
  readonly bytes: Uint8Array
}

/** Dependencies of {@link Verification}. */
interface VerificationDeps {
  readonly clock: Clock
  readonly traffic: Traffic
  readonly directory: Directory
  readonly accessControl: AccessControl
  readonly links: Pick<Links, 'strike'>
  readonly self: NodeId
  readonly refusals: Refusals
  readonly settings: Pick<NodeSettings, 'maxPayloadBytes'>
}

/** Time limit of the answer to a proposal and of the error for a refused message, in milliseconds. */
export const SHORT_TTL_MS = 60_000

/** Dependencies of {@link Refusals}. */
interface RefusalsDeps {
  readonly directory: Directory
  readonly accessControl: Pick<AccessControl, 'record'>
  readonly exchanges: Pick<ExchangeTable, 'letIn'>
  /** Reports a refusal to the sender of an opening message. */
  refuse(to: Thread, error: ErrorBody): void
}

/** Records refused messages, and answers their senders. */
export class Refusals {
  readonly #deps: RefusalsDeps

  constructor(deps: RefusalsDeps) {
    this.#deps = deps
  }

  /** Records the refusal of a verified message, and answers it. */
  refuse(arrival: Arrival, refusal: Refusal): void {
    const { accessControl, directory } = this.#deps
    accessControl.record('refusal', refusal, refusedArrival(directory, arrival))
    this.answer(arrival, refusal)
  }

  /** Answers a refused message if its sender awaits an answer. */
  answer(refused: Omit<InboundMessage, 'payload'>, refusal: Refusal): void {
    const { type } = refused.header
    if (type === 'notification' || !OPENING_TYPES.has(type)) return
    const thread = threadOf(refused)
    // The error goes back along the thread, so the thread must be open for it.
    if (this.#deps.exchanges.letIn(thread, SHORT_TTL_MS)) this.tell(thread, refusal)
  }

  /** Sends a refusal along an open thread. */
  tell(thread: Thread, { code, rule, reason }: Refusal): void {
    this.#deps.refuse(thread, new NodeError(code, reason, { data: { rule } }).toBody())
  }
}

/** The first stages of the inbound pipeline: decode, verify. */
export class Verification {
  readonly #deps: VerificationDeps

  constructor(deps: VerificationDeps) {
    this.#deps = deps
  }

  /**
   * Reads a message of a peer, from its own link or relayed. null: it was refused, with a record. `early`: it claims
   * more rights than this node knows, and may be read again.
   */
  read(peer: NodeId, { bytes, lane, hops }: ArrivedEnvelope, turn: ReadTurn = 'only'): Arrival | null | 'early' {
    const since = this.#deps.clock.monotonic()
    const decoded = decodeEnvelope(bytes)
    if (!decoded.ok) {
      this.#deps.traffic.unreadable()
      // A peer of another version is no forger.
      const strike = decoded.code === 'SCHEMA_VERSION_MISMATCH' ? 'doubtful' : 'forged'
      return this.#strike(
        { code: decoded.code, rule: 'envelope', reason: decoded.reason },
        { peer, header: null },
        strike
      )
    }
    if (turn === 'only' || turn === 'first') this.#deps.traffic.received(decoded.header, since)
    if (isRelayed(decoded.header)) return this.#strike(REFUSALS.claimedHops, { peer, header: decoded.header })
    if (lane !== null && !isOfLane(lane, decoded.header))
      return this.#strike(REFUSALS.foreignLane, { peer, header: decoded.header })
    const noted = hops.length === 0 ? { header: decoded.header, bytes } : withHops(decoded, bytes, hops)
    const header = noted?.header ?? decoded.header
    const isReliable = lane !== null
    const verified = this.verify(peer, header)
    if ('refusal' in verified) {
      if (verified.refusal === REFUSALS.claims && (turn === 'first' || turn === 'again')) return 'early'
      return this.#rejected(verified, { peer, header, isReliable })
    }
    if (noted === null)
      return this.#rejected(
        { refusal: REFUSALS.noRoomForHops, parties: verified, strike: null },
        { peer, header, isReliable }
      )
    const payload = decoded.payload(this.#deps.settings.maxPayloadBytes)
    if (!payload.ok) return this.#unreadable(payload, { peer, header, isReliable, parties: verified })
    return { peer, header, payload: payload.value, isReliable, since, bytes: noted.bytes, ...verified }
  }

  /** Verifies a message again that was admitted before this node stopped; or the refusal. */
  again(peer: NodeId, bytes: Uint8Array): Arrival | Refusal {
    if (this.#deps.directory.isPutOut(peer)) return REFUSALS.putOut
    const decoded = decodeEnvelope(bytes)
    if (!decoded.ok) return { code: decoded.code, rule: 'envelope', reason: decoded.reason }
    const { header } = decoded
    const payload = decoded.payload()
    if (!payload.ok) return { code: 'INVALID_ENVELOPE', rule: 'payload', reason: payload.reason }
    const verified = this.verify(peer, header)
    if ('refusal' in verified) return verified.refusal
    return {
      peer,
      header,
      payload: payload.value,
      isReliable: true,
      since: this.#deps.clock.monotonic(),
      bytes,
      ...verified
    }
  }

  /** Verifies sender and recipient of a message for this node, see {@link verifyParties}. */
  verify(peer: NodeId, header: EnvelopeHeader): Verified | Rejected {
    const { directory, self } = this.#deps
    return verifyParties(directory, { origin: peer, target: self, header })
  }

  /** A size that this node does not take is no fault of the form: its settings may have changed. */
  #unreadable(
    { reason, isTooLarge }: Extract<PayloadReading, { ok: false }>,
    { parties, ...from }: Pick<InboundMessage, 'peer' | 'header' | 'isReliable'> & { readonly parties: Verified }
  ): null {
    if (isTooLarge !== true) return this.#strike({ code: 'INVALID_ENVELOPE', rule: 'payload', reason }, from)
    const refusal = { code: 'PAYLOAD_TOO_LARGE', rule: 'payload: JSON that this node takes', reason } as const
    return this.#rejected({ refusal, parties, strike: null }, from)
  }

  #rejected(
    { refusal, parties, strike }: Rejected,
    from: Pick<InboundMessage, 'peer' | 'header' | 'isReliable'>
  ): null {
    if (strike === null) this.#deps.accessControl.record('refusal', refusal, from)
    else this.#strike(refusal, from, strike)
    if (parties !== null) this.#deps.refusals.answer({ ...from, ...parties }, refusal)
    return null
  }

  #strike(
    refusal: Refusal,
    from: { readonly peer: NodeId; readonly header: EnvelopeHeader | null },
    strike: Strike = 'forged'
  ): null {
    this.#deps.accessControl.record('strike', refusal, from)
    this.#deps.links.strike(from.peer, strike, refusal.reason)
    return null
  }
}

/**
 * The longest wait of a message that claims more rights than this node knows, in milliseconds: the log entry or card
 * that grants them may be on its way.
 */
export const CLAIM_WAIT_MS = 3000
/** Delay before such a message is verified again, in milliseconds; each further one is twice as long. */
const FIRST_DELAY_MS = 100
/** Such messages of one peer that wait at once; others are refused without a wait. */
export const MAX_EARLY_CLAIMS = 8
/** Bytes of all such messages that wait at once. */
export const MAX_EARLY_BYTES = 16 * 1024 * 1024

/** Dependencies of {@link EarlyClaims}. */
interface EarlyClaimsDeps {
  readonly clock: Clock
  readonly verification: Pick<Verification, 'read'>
}

/** Reads messages, and lets those wait a moment whose claims are ahead of the log or the cards of this node. */
export class EarlyClaims {
  readonly #deps: EarlyClaimsDeps
  readonly #waiting = new Map<NodeId, number>()
  #bytes = 0

  constructor(deps: EarlyClaimsDeps) {
    this.#deps = deps
  }

  /** The verified message, a promise of it if it has to wait, or null for a refused one, which is on record. */
  read(peer: NodeId, arrived: ArrivedEnvelope): Arrival | null | Promise<Arrival | null> {
    const { verification } = this.#deps
    const count = this.#waiting.get(peer) ?? 0
    const mayWait = count < MAX_EARLY_CLAIMS && this.#bytes + arrived.bytes.byteLength <= MAX_EARLY_BYTES
    const read = verification.read(peer, arrived, mayWait ? 'first' : 'only')
    return read === 'early' ? this.#later(peer, arrived) : read
  }

  async #later(peer: NodeId, arrived: ArrivedEnvelope): Promise<Arrival | null> {
    const { clock, verification } = this.#deps
    const bytes = arrived.bytes.byteLength
    this.#waiting.set(peer, (this.#waiting.get(peer) ?? 0) + 1)
    this.#bytes += bytes
    try {
      const end = clock.monotonic() + CLAIM_WAIT_MS
      for (let delayMs = FIRST_DELAY_MS; ; delayMs *= 2) {
        await wait(clock, Math.min(delayMs, end - clock.monotonic()))
        const isLast = clock.monotonic() >= end
        const read = verification.read(peer, arrived, isLast ? 'last' : 'again')
        if (read !== 'early') return read
        if (isLast) return null
      }
    } finally {
      this.#bytes -= bytes
      const left = (this.#waiting.get(peer) ?? 1) - 1
      if (left === 0) this.#waiting.delete(peer)
      else this.#waiting.set(peer, left)
    }
  }
}

function isOfLane({ source, target }: Lane, header: EnvelopeHeader): boolean {
  return header.sender === addressText(source) && header.recipient === addressText(target)
}

/** The true sender and recipient of a message. */
interface Parties {
  readonly sender: AgentAddress
  readonly recipient: AgentAddress
}

/** A refused message; with `parties` its sender gets the reason. */
interface Rejected {
  readonly refusal: Refusal
  readonly parties: Parties | null
  /** The strike against its peer; null: an honest peer may send it. */
  readonly strike: Strike | null
}

/** The verified sender and recipient. */
export interface Verified extends Parties {
  /** The sender as claimed by the message, and as certified. */
  readonly party: RoutingParty
  readonly certified: RoutingParty
  /** The recipient, with its card and party. */
  readonly target: NamedAgent
}

/** The node of the sender, the node of the recipient, and the header with its claims. */
interface Claims {
  readonly origin: NodeId
  readonly target: NodeId
  readonly header: EnvelopeHeader
}

/**
 * Verifies a sender: it belongs to the origin node, has a signed card, and claims at most the rights of certificate and
 * card.
 */
export function verifyParties(
  directory: Pick<Directory, 'named' | 'certificate'>,
  { origin, target: node, header }: Claims
): Verified | Rejected {
  const source = directory.named(header.sender)
  if (source === null || source.address.nodeId !== origin)
    return { refusal: REFUSALS.foreignSender, parties: null, strike: 'forged' }
  const target = directory.named(header.recipient)
  if (target === null || target.address.nodeId !== node)
    return { refusal: REFUSALS.foreignRecipient, parties: null, strike: 'forged' }
  const { address: sender, party: known } = source
  const recipient = target.address
  // An honest sender can cause the next two while cards and certificates are in transit, so it gets the reason. Cards
  // and messages travel apart, and not all cards are kept: a message before its card is no offence.
  if (known === null) return { refusal: REFUSALS.noCard, parties: { sender, recipient }, strike: null }
  const party = claimedParty(known, header.metadata, {
    madeAt: header.timestamp,
    changedAt: () => rightsChangedAt({ certificate: directory.certificate(origin), card: source.card })
  })
  if (party === null) return { refusal: REFUSALS.claims, parties: { sender, recipient }, strike: 'doubtful' }
  const hops = header.metadata?.hops
  if (hops === undefined) return { sender, recipient, party, certified: known, target }
  const powers = hops.flatMap((hop) => directory.certificate(hop) ?? [])
  // A hop may have been revoked since the message came.
  if (powers.length < hops.length) return { refusal: REFUSALS.lostHop, parties: { sender, recipient }, strike: null }
  // Relays lower the sender's rights, but rules for its certified identity still apply.
  return { sender, recipient, party: weakened(party, powers), certified: known, target }
}

/** The audit fields of a refused, verified message. */
export function refusedArrival(
  directory: Directory,
  {
    peer,
    header,
    party,
    recipient
  }: Pick<RefusedFrom, 'peer' | 'header'> & { readonly party: RoutingParty; readonly recipient: AgentAddress }
): RefusedFrom {
  const to = directory.party(recipient)?.tier
  return { peer, header, from: party.tier, ...(to === undefined ? {} : { to }) }
}
