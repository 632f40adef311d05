import type { Clock } from '../kit/clock.js'
import { messageOf, NodeError } from '../kit/errors.js'
import type { ErrorBody, ErrorCode } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import type { AgentAddress } from '../domain/card/card.js'
import { decodeEnvelope } from '../domain/envelope/codec.js'
import type { EnvelopeHeader } from '../domain/envelope/codec.js'
import { OPENING_TYPES } from '../domain/envelope/envelope.js'
import type { A2AEnvelope } from '../domain/envelope/envelope.js'
import { decide } from '../domain/routing/decide.js'
import type { RoutingParty, RoutingRules } from '../domain/routing/decide.js'
import type { Audit } from '../ports/audit.js'
import type { Telemetry } from '../ports/telemetry.js'
import type { Conversations } from './conversations.js'
import { parseAddress } from './directory.js'
import type { Directory } from './directory.js'

/** A message that was let in, with its payload read. */
export interface Incoming {
  readonly peer: NodeId
  readonly sender: AgentAddress
  readonly recipient: AgentAddress
  readonly header: EnvelopeHeader
  readonly payload: unknown
}

/** What the road in needs. */
export interface InboxParts {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly audit: Audit
  readonly directory: Directory
  readonly conversations: Conversations
  readonly rules: RoutingRules
  readonly self: NodeId
  /** How long replies to an opening message may go out, in milliseconds. */
  readonly ttlMs: number
  /** Opening messages that were let in, by type. */
  onRequest(incoming: Incoming): void
  onNotification(incoming: Incoming): void
  onProposal(incoming: Incoming): void
  /** Tells the sender of an opening message that it was refused. */
  refuse(to: { sender: AgentAddress; recipient: AgentAddress; correlationId: string }, error: ErrorBody): void
}

/** Why a message does not come in. */
interface Refusal {
  readonly code: ErrorCode
  readonly rule: string
  readonly reason: string
}

/** The road in: decode, verify, receive, decide, dispatch. Nothing that a peer sends can throw out of it. */
export class Inbox {
  readonly #parts: InboxParts

  constructor(parts: InboxParts) {
    this.#parts = parts
  }

  /** Takes an encoded envelope from a peer's channel. */
  receive(peer: NodeId, bytes: Uint8Array): void {
    try {
      this.#parts.telemetry.count('messages_received')
      const decoded = decodeEnvelope(bytes)
      if (!decoded.ok) return this.#note('strike', { peer, header: null }, { code: decoded.code, rule: 'envelope', reason: decoded.reason })
      const { header } = decoded
      const parties = this.#verify(peer, header)
      if ('code' in parties) return this.#note('strike', { peer, header }, parties)
      const payload = decoded.payload()
      if (!payload.ok) return this.#note('strike', { peer, header }, { code: 'INVALID_ENVELOPE', rule: 'payload', reason: payload.reason })
      this.#decideAndDispatch({ peer, ...parties, header, payload: payload.value })
    } catch (error) {
      this.#parts.telemetry.count('errors', 'inbox')
      this.#parts.telemetry.log('error', 'a message could not be handled', { peer, reason: messageOf(error) })
    }
  }

  /** Takes an envelope from an agent of this node; the same rules, nothing to decode. */
  receiveHere(envelope: A2AEnvelope): void {
    const { payload, ...header } = envelope
    const parties = this.#verify(this.#parts.self, header)
    if ('code' in parties) throw new NodeError(parties.code, parties.reason)
    this.#decideAndDispatch({ peer: this.#parts.self, ...parties, header, payload })
  }

  /** The sender is the stream's key, has a signed card, and claims no more than certificate and card give it. */
  #verify(peer: NodeId, header: EnvelopeHeader): { sender: AgentAddress; recipient: AgentAddress; party: RoutingParty } | Refusal {
    const { directory, self } = this.#parts
    const sender = parseAddress(header.sender)
    const recipient = parseAddress(header.recipient)
    if (sender === null || sender.nodeId !== peer)
      return { code: 'FORBIDDEN', rule: 'sender: the key of the stream', reason: 'the sender is not of the node that sent it' }
    if (recipient === null || recipient.nodeId !== self)
      return { code: 'AGENT_NOT_FOUND', rule: 'recipient: an agent of this node', reason: 'the recipient is not on this node' }
    if ((header.metadata?.hops?.length ?? 0) > 0)
      return { code: 'FORBIDDEN', rule: 'hops: none', reason: 'forwarded messages are not taken yet' }
    const party = directory.party(sender)
    if (party === null) return { code: 'FORBIDDEN', rule: 'sender: a signed card', reason: 'the sender has no card that this node knows' }
    const claimed = header.metadata
    if (claimed === undefined) return { sender, recipient, party }
    if (claimed.tier < party.tier || (claimed.sandboxId ?? null) !== party.sandboxId) {
      return { code: 'FORBIDDEN', rule: 'claims: as certified', reason: 'the message claims another tier or sandbox than its sender has' }
    }
    // A weaker claim is honoured: the sender may know of its new tier before this node does.
    return { sender, recipient, party: { ...party, tier: claimed.tier } }
  }

  #decideAndDispatch(incoming: Incoming & { readonly party: RoutingParty }): void {
    const refusal = this.#decide(incoming)
    if (refusal !== null) return this.#refuse(incoming, refusal)
    this.#parts.telemetry.count('messages_delivered', incoming.header.type)
    this.#dispatch(incoming)
  }

  #decide(incoming: Incoming & { readonly party: RoutingParty }): Refusal | null {
    const { directory, conversations, rules } = this.#parts
    const { header, recipient } = incoming
    const target = directory.party(recipient)
    if (target === null)
      return { code: 'AGENT_NOT_FOUND', rule: 'recipient: an agent of this node', reason: `no agent ${recipient.agentId} on this node` }
    const isReply = !OPENING_TYPES.has(header.type) && conversations.allows(incoming.peer, header.correlationId)
    const verdict = decide(rules, {
      sender: incoming.party,
      target,
      type: header.type,
      justification: header.metadata?.justification ?? null,
      isReply
    })
    return verdict.allowed ? null : verdict
  }

  #dispatch(incoming: Incoming): void {
    const { conversations, ttlMs } = this.#parts
    const { header, peer } = incoming
    if (OPENING_TYPES.has(header.type)) conversations.letIn(peer, header.correlationId ?? header.id, ttlMs)
    switch (header.type) {
      case 'request':
        return this.#parts.onRequest(incoming)
      case 'notification':
        return this.#parts.onNotification(incoming)
      case 'task-proposal':
        return this.#parts.onProposal(incoming)
      case 'stream-start':
        return this.#refuse(incoming, { code: 'CAPABILITY_NOT_FOUND', rule: 'streams: none', reason: 'this agent takes no streams' })
      default:
        conversations.deliver(peer, header, incoming.payload)
    }
  }

  #refuse(incoming: Incoming, refusal: Refusal): void {
    const { header, peer, sender, recipient } = incoming
    this.#note('refusal', incoming, refusal)
    if (!OPENING_TYPES.has(header.type)) return
    const correlationId = header.correlationId ?? header.id
    // The error goes back along the thread, so the thread must be open for it.
    this.#parts.conversations.letIn(peer, correlationId, this.#parts.ttlMs)
    const error = new NodeError(refusal.code, refusal.reason, { data: { rule: refusal.rule } }).toBody()
    this.#parts.refuse({ sender: recipient, recipient: sender, correlationId }, error)
  }

  /** `strike`: a message that an honest peer cannot have sent. */
  #note(kind: 'strike' | 'refusal', { peer, header }: { peer: NodeId; header: EnvelopeHeader | null }, refusal: Refusal): void {
    this.#parts.telemetry.count('messages_refused', refusal.code)
    this.#parts.audit.append({
      kind,
      code: refusal.code,
      rule: refusal.rule,
      reason: refusal.reason,
      peer,
      ...(header === null ? {} : { sender: header.sender, recipient: header.recipient, messageType: header.type })
    })
  }
}
