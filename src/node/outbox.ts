import type { Clock } from '../kit/clock.js'
import { NodeError } from '../kit/errors.js'
import type { IdSource } from '../kit/ids.js'
import { addressText } from '../domain/card/card.js'
import type { AgentAddress } from '../domain/card/card.js'
import { encodeEnvelope } from '../domain/envelope/codec.js'
import { OPENING_TYPES, SCHEMA_VERSION } from '../domain/envelope/envelope.js'
import type { A2AEnvelope, MessageType } from '../domain/envelope/envelope.js'
import { decide } from '../domain/routing/decide.js'
import type { RoutingRules, Verdict } from '../domain/routing/decide.js'
import type { Audit } from '../ports/audit.js'
import type { Telemetry } from '../ports/telemetry.js'
import type { Conversations, ReplyHandler } from './conversations.js'
import type { Directory } from './directory.js'
import type { Peers } from './peers.js'

/** What the road out needs. */
export interface OutboxParts {
  readonly clock: Clock
  readonly ids: IdSource
  readonly telemetry: Telemetry
  readonly audit: Audit
  readonly directory: Directory
  readonly peers: Peers
  readonly conversations: Conversations
  readonly rules: RoutingRules
  readonly self: string
  /** The road in, for agents of this node. */
  deliverHere(envelope: A2AEnvelope): void
}

/** A message to be sent. */
export interface Draft {
  readonly sender: AgentAddress
  readonly recipient: AgentAddress
  readonly type: MessageType
  readonly payload: unknown
  readonly correlationId?: string
  readonly justification?: string
  /** For opening messages: who gets the replies, and for how long they may come. */
  readonly replies?: { readonly ttlMs: number; readonly handler: ReplyHandler }
}

/** The road out: stamp, resolve, decide, record, channel. Each stage is one method; {@link Outbox.send} reads as the list. */
export class Outbox {
  readonly #parts: OutboxParts

  constructor(parts: OutboxParts) {
    this.#parts = parts
  }

  /**
   * Sends a message; resolves when it is handed to the channel (or to the agent here).
   * @throws NodeError TIER_VIOLATION, SANDBOX_VIOLATION, ESCALATION_REQUIRED by the rules; AGENT_NOT_FOUND;
   * PEER_OFFLINE, CHANNEL_CLOSED, OVERLOADED by the channel; PAYLOAD_TOO_LARGE, INVALID_ENVELOPE by the envelope.
   */
  async send(draft: Draft): Promise<A2AEnvelope> {
    const from = this.#parts.clock.monotonic()
    const envelope = this.#stamp(draft)
    this.#decide(draft)
    await this.#record(envelope)
    await this.#channel(draft, envelope)
    this.#parts.telemetry.count('messages_sent', draft.type)
    this.#parts.telemetry.time('routing_ms', this.#parts.clock.monotonic() - from)
    return envelope
  }

  /** What the rules of this node say of a message, without sending it. */
  verdict(draft: Pick<Draft, 'sender' | 'recipient' | 'type' | 'justification' | 'correlationId'>): Verdict {
    const { directory, conversations } = this.#parts
    const sender = directory.party(draft.sender)
    const target = directory.party(draft.recipient)
    if (sender === null) throw new NodeError('AGENT_NOT_FOUND', `no agent ${draft.sender.agentId} to send as`)
    const isReply = !OPENING_TYPES.has(draft.type) && conversations.allows(draft.recipient.nodeId, draft.correlationId)
    // A reply goes back to whoever asked, even when its card has not come yet.
    if (target === null && !isReply)
      throw new NodeError('AGENT_NOT_FOUND', `no agent ${directory.shownAddress(draft.recipient)} in the mesh`)
    return decide(this.#parts.rules, {
      sender,
      target: target ?? { ...sender, address: addressText(draft.recipient) },
      type: draft.type,
      justification: draft.justification ?? null,
      isReply
    })
  }

  #stamp(draft: Draft): A2AEnvelope {
    const { clock, ids, directory } = this.#parts
    const sender = directory.party(draft.sender)
    return {
      id: ids.next('msg'),
      schemaVersion: SCHEMA_VERSION,
      sender: addressText(draft.sender),
      recipient: addressText(draft.recipient),
      ...(draft.correlationId === undefined ? {} : { correlationId: draft.correlationId }),
      type: draft.type,
      timestamp: clock.now(),
      payload: draft.payload,
      ...(sender === null ? {} : { metadata: claims(sender, draft.justification) })
    }
  }

  #decide(draft: Draft): void {
    const verdict = this.verdict(draft)
    if (verdict.allowed) return
    this.#parts.telemetry.count('messages_refused', verdict.code)
    this.#parts.audit.append({
      kind: 'refusal',
      code: verdict.code,
      rule: verdict.rule,
      reason: verdict.reason,
      sender: addressText(draft.sender),
      recipient: addressText(draft.recipient),
      messageType: draft.type
    })
    throw new NodeError(verdict.code, verdict.reason, { data: { rule: verdict.rule } })
  }

  /** Where the ledger will keep what must not be lost. Today nothing is kept. */
  #record(_envelope: A2AEnvelope): Promise<void> {
    return Promise.resolve()
  }

  async #channel(draft: Draft, envelope: A2AEnvelope): Promise<void> {
    const { peers, conversations, self } = this.#parts
    const to = draft.recipient.nodeId
    const isHere = to === self
    const bytes = isHere ? null : encodeEnvelope(envelope)
    if (!isHere) await peers.reach(to)
    const thread = envelope.correlationId ?? envelope.id
    if (draft.replies !== undefined) conversations.sentOut(to, thread, draft.replies)
    try {
      if (bytes === null) this.#parts.deliverHere(envelope)
      else peers.send(to, { kind: 'envelope', bytes })
    } catch (error) {
      if (draft.replies !== undefined) conversations.end(to, thread)
      throw error
    }
  }
}

function claims(
  sender: { tier: 0 | 1 | 2 | 3; sandboxId: string | null },
  justification: string | undefined
): NonNullable<A2AEnvelope['metadata']> {
  return {
    tier: sender.tier,
    ...(sender.sandboxId === null ? {} : { sandboxId: sender.sandboxId }),
    ...(justification === undefined ? {} : { justification })
  }
}
