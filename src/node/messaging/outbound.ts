import type { Clock } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { IdSource, NodeId } from '../../kit/ids.js'
import { addressText, type AgentAddress } from '../../domain/card/card.js'
import { encodeEnvelope } from '../../domain/envelope/codec.js'
import { OPENING_TYPES, SCHEMA_VERSION } from '../../domain/envelope/envelope.js'
import type { A2AEnvelope, EnvelopeMetadata, MessageType } from '../../domain/envelope/envelope.js'
import { askedWork } from '../../domain/policy/requested-work.js'
import type { RoutingParty, RoutingQuestion, Verdict } from '../../domain/routing/decide.js'
import { type CallerAuthority, confinement } from '../../domain/routing/effective.js'
import type { LedgerChange } from '../../ports/ledger.js'
import type { AgentHost } from '../agents/agent-host.js'
import type { ExchangeTable, ReplyHandler } from './exchange-table.js'
import type { ChannelRetry } from './channel-retry.js'
import { jsonBytesTaken } from '../../domain/card/large-json.js'
import type { Directory } from '../cards/directory.js'
import type { ReceivedHere } from './inbound.js'
import type { Lanes } from '../reliable/lanes.js'
import type { AccessControl } from '../policy/access-control.js'
import type { RoutingPath } from '../observe/observability.js'
import type { Traffic, TrafficHeader } from '../observe/traffic.js'
import type { NextHop } from '../relay/next-hop.js'

/** Dependencies of {@link Outbound}. */
export interface OutboundDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly self: NodeId
  readonly resolver: DraftResolver
  readonly accessControl: AccessControl
  readonly traffic: Traffic
  readonly exchanges: ExchangeTable
  readonly lanes: Pick<Lanes, 'record' | 'commit'>
  readonly nextHop: NextHop
  readonly delivery: ChannelRetry
  /** Called with every message sent to another node. */
  onSent?(envelope: A2AEnvelope): void
  /** The inbound pipeline, for agents of this node. */
  deliverHere(envelope: A2AEnvelope): ReceivedHere
}

/** A message to send. */
export interface OutboundDraft {
  readonly sender: AgentAddress
  readonly recipient: AgentAddress
  readonly type: MessageType
  readonly payload: unknown
  /** The requested capability; absent or null: the default one of the recipient. */
  readonly capability?: string | null
  readonly correlationId?: string
  readonly justification?: string
  /** True for a message of a broadcast. */
  readonly isBroadcast?: boolean
  /** Id and time (unix milliseconds) of an existing message. Default: new ones. */
  readonly made?: Pick<A2AEnvelope, 'id' | 'timestamp'>
  /** The sender keeps the message: report a failed channel at once, without retries. */
  readonly isKept?: boolean
  /** The caller behind the message, if it may be weaker than the sender: the weaker rights of both apply. */
  readonly onBehalfOf?: CallerAuthority
  /** Set for a message that must not be lost. */
  readonly reliable?: Reliability
  /** For opening messages: the handler of replies, and the time limit of these. */
  readonly replies?: { readonly ttlMs: number; readonly handler: ReplyHandler }
}

/** How a message is kept until its node acknowledges it. */
export interface Reliability {
  /** Of the request that it belongs to; null for none. */
  readonly requestId: string | null
  /** True: recorded even while its node is unreachable. False: refused then. */
  readonly mayWait: boolean
  /** Milliseconds until an undelivered message is given up. */
  readonly ttlMs: number
  /** Further ledger changes of the same commit. Called once, after the message was allowed. */
  changes(): readonly LedgerChange[]
}

/** Negotiations are recorded for as long as their sender may wait. */
const NEGOTIATING: Reliability = { requestId: null, mayWait: false, ttlMs: 60_000, changes: () => [] }
const NEGOTIATION: ReadonlySet<MessageType> = new Set(['task-proposal', 'task-accept', 'task-reject'])

/** The fields of a message that the rules need. */
export type DraftHead = Omit<OutboundDraft, 'payload' | 'replies' | 'made' | 'isKept' | 'reliable'>

/** Dependencies of {@link DraftResolver}. */
interface DraftResolverDeps {
  readonly directory: Directory
  readonly exchanges: Pick<ExchangeTable, 'maySend'>
  readonly accessControl: Pick<AccessControl, 'isStrict'>
  readonly agents: Pick<AgentHost, 'isReserved'>
  readonly self: NodeId
}

/** Resolves the two agents of a message, and makes the question to the rules. */
export class DraftResolver {
  readonly #deps: DraftResolverDeps

  constructor(deps: DraftResolverDeps) {
    this.#deps = deps
  }

  /** The sender as the rules see it. @throws NodeError AGENT_NOT_FOUND. */
  sender({ sender, onBehalfOf }: DraftHead): RoutingParty {
    const party = this.#deps.directory.party(sender, onBehalfOf)
    if (party === null) throw new NodeError('AGENT_NOT_FOUND', `no agent ${sender.agentId} to send as`)
    return party
  }

  /** Bytes of JSON in a message that the node of an agent takes. */
  jsonBytesTakenBy(recipient: AgentAddress): number {
    return jsonBytesTaken(this.#deps.directory.card(recipient)?.protocols)
  }

  /** The question to the rules. @throws NodeError AGENT_NOT_FOUND. */
  question(draft: DraftHead, sender = this.sender(draft)): RoutingQuestion {
    const { directory, exchanges, accessControl, agents, self } = this.#deps
    const { recipient, type, capability, correlationId, justification } = draft
    const target = directory.party(recipient)
    const isReply =
      !OPENING_TYPES.has(type) &&
      correlationId !== undefined &&
      exchanges.maySend({ sender: draft.sender, recipient, correlationId })
    // A reply may go to a sender whose card is still unknown, unless its node was revoked.
    if (target === null && (!isReply || accessControl.isStrict || directory.isPutOut(recipient.nodeId)))
      throw new NodeError('AGENT_NOT_FOUND', `no agent ${directory.shownAddress(recipient)} in the mesh`)
    const work = askedWork(directory.card(recipient), capability ?? null)
    const isHere = recipient.nodeId === self
    const isReserved = isHere && draft.onBehalfOf?.isOperator !== true && agents.isReserved(recipient.agentId)
    return {
      sender,
      target: target ?? { ...sender, address: addressText(recipient) },
      type,
      capability: work.capability,
      sideEffect: work.sideEffect,
      justification: justification ?? null,
      isReply,
      isArriving: isHere,
      ...(isReserved ? { isReserved } : {}),
      ...confinement(draft.onBehalfOf)
    }
  }
}

/**
 * The outbound pipeline: stamp, resolve, decide, record, channel. Each stage is one method; {@link Outbound.send} reads
 * as the list.
 */
export class Outbound {
  readonly #deps: OutboundDeps

  constructor(deps: OutboundDeps) {
    this.#deps = deps
  }

  /**
   * Sends a message; resolves when the channel (or the local agent) has it.
   * @throws NodeError TIER_VIOLATION, SANDBOX_VIOLATION, ESCALATION_REQUIRED by the rules; AGENT_NOT_FOUND;
   * PEER_OFFLINE, OVERLOADED by the channel; DELIVERY_FAILED after repeated channel failures (CHANNEL_CLOSED at once
   * with `isKept`); PAYLOAD_TOO_LARGE, INVALID_ENVELOPE by the envelope.
   */
  async send(draft: OutboundDraft): Promise<A2AEnvelope> {
    const { clock, traffic, self } = this.#deps
    const since = clock.monotonic()
    const to = draft.recipient.nodeId
    const path = this.#path(draft)
    let envelope: A2AEnvelope | null = null
    try {
      const sender = this.#deps.resolver.sender(draft)
      envelope = this.#stamp(draft, sender)
      const question = this.#deps.resolver.question(draft, sender)
      const rule = this.#passed(this.#decide(question, since, envelope))
      const { isReported, refusal } = await this.#away(draft, envelope)
      if (refusal !== null)
        throw traffic.reported(new NodeError(refusal.code, refusal.reason, { data: { rule: refusal.rule } }))
      const tiers = { from: sender.tier, to: question.target.tier }
      const passage = { peer: to === self ? null : to, header: envelope, ...tiers, rule, since, at: clock.monotonic() }
      traffic.sent(passage, isReported ? null : path)
      if (to !== self) this.#deps.onSent?.(envelope)
      return envelope
    } catch (error) {
      traffic.notSent(error, envelope ?? headerOfDraft(draft), path)
      throw error
    }
  }

  #path({ isBroadcast, recipient }: OutboundDraft): RoutingPath {
    return isBroadcast === true ? 'broadcast' : recipient.nodeId === this.#deps.self ? 'local' : 'remote'
  }

  /** Rejects the messages that wait for a retry. */
  close(): void {
    this.#deps.delivery.close()
  }

  /**
   * Checks a message as {@link Outbound.send} would, also on record, without sending it.
   * @throws NodeError by the rules; AGENT_NOT_FOUND.
   */
  check(draft: DraftHead): void {
    try {
      this.#passed(this.judge(draft))
    } catch (error) {
      this.#deps.traffic.notSent(error, headerOfDraft(draft))
      throw error
    }
  }

  /** As {@link Outbound.verdict}, with a record of a refusal. @throws NodeError AGENT_NOT_FOUND. */
  judge(draft: DraftHead): Verdict {
    return this.#decide(this.#deps.resolver.question(draft), this.#deps.clock.monotonic())
  }

  /** The verdict of this node's rules on a message, without sending or recording. @throws NodeError AGENT_NOT_FOUND. */
  verdict(draft: DraftHead): Verdict {
    return asFarAsHere(this.#deps.accessControl.ask(this.#deps.resolver.question(draft)))
  }

  #stamp(draft: OutboundDraft, sender: RoutingParty): A2AEnvelope {
    const { clock, ids } = this.#deps
    const { made, recipient, type, payload, correlationId, justification } = draft
    // Name each member: every message is stamped, and spreading is slow.
    const envelope: A2AEnvelope = {
      id: made?.id ?? ids.next('msg'),
      schemaVersion: SCHEMA_VERSION,
      sender: sender.address,
      recipient: addressText(recipient),
      type,
      timestamp: made?.timestamp ?? clock.now(),
      payload,
      metadata: claims(sender, justification)
    }
    return correlationId === undefined ? envelope : { correlationId, ...envelope }
  }

  #decide(question: RoutingQuestion, since: number, envelope?: A2AEnvelope): Verdict {
    const { accessControl } = this.#deps
    const verdict = asFarAsHere(accessControl.decide(question, since).verdict)
    if (verdict.allowed) return verdict
    const { code, rule, reason } = verdict
    const header = envelope ?? {
      sender: question.sender.address,
      recipient: question.target.address,
      type: question.type
    }
    const tiers = { from: question.sender.tier, to: question.target.tier }
    accessControl.record('refusal', { code, rule, reason }, { peer: null, header, ...tiers })
    return verdict
  }

  /** The rule that lets a message pass. @throws NodeError of a refusal, which is recorded. */
  #passed(verdict: Verdict): string {
    if (verdict.allowed) return verdict.rule
    throw this.#deps.traffic.reported(new NodeError(verdict.code, verdict.reason, { data: { rule: verdict.rule } }))
  }

  /**
   * Records the message or passes it to the channel. The exchange of an opening message is open before any reply can
   * arrive.
   */
  async #away(draft: OutboundDraft, envelope: A2AEnvelope): Promise<ReceivedHere> {
    const { nextHop, exchanges, resolver, self } = this.#deps
    const to = draft.recipient.nodeId
    const bytes = to === self ? null : encodeEnvelope(envelope, () => resolver.jsonBytesTakenBy(draft.recipient))
    const thread = {
      sender: draft.sender,
      recipient: draft.recipient,
      correlationId: envelope.correlationId ?? envelope.id
    }
    if (bytes !== null && draft.reliable?.mayWait !== true) {
      const isOpening = OPENING_TYPES.has(draft.type)
      if (!nextHop.isReachable(to, isOpening)) await nextHop.reach(to, isOpening)
    }
    if (draft.replies !== undefined && !exchanges.sentOut(thread, draft.replies))
      throw new NodeError('OVERLOADED', 'too many exchanges with this node are open')
    let here = ELSEWHERE
    try {
      const recorded = this.#record(draft, envelope, bytes)
      if (recorded !== null) await recorded
      else here = await this.#channel(draft, envelope, bytes)
    } catch (error) {
      if (draft.replies !== undefined) exchanges.end(thread)
      throw error
    }
    if (here.refusal !== null && draft.replies !== undefined) exchanges.end(thread)
    return here
  }

  /**
   * Records a message that must not be lost, to be delivered by its lane; null for a message that goes by the channel.
   */
  #record(draft: OutboundDraft, { id }: A2AEnvelope, bytes: Uint8Array | null): Promise<void> | null {
    const { clock, lanes } = this.#deps
    const { sender, recipient } = draft
    const reliable = reliabilityOf(draft)
    if (reliable === undefined || bytes === null) return null
    const expiresAt = clock.now() + reliable.ttlMs
    const message = { messageId: id, requestId: reliable.requestId, envelope: bytes, expiresAt }
    return lanes.record({ source: sender, target: recipient }, message, () => reliable.changes())
  }

  async #channel(draft: OutboundDraft, envelope: A2AEnvelope, bytes: Uint8Array | null): Promise<ReceivedHere> {
    const { nextHop, lanes } = this.#deps
    const to = draft.recipient.nodeId
    const reliable = reliabilityOf(draft)
    // Only within this node: any other message that must not be lost goes over a lane.
    if (reliable !== undefined) await lanes.commit(reliable.changes())
    if (bytes === null) return this.#deps.deliverHere(envelope)
    if (draft.isKept === true) nextHop.send(to, envelope, bytes)
    else
      await this.#deps.delivery.deliver(to, { bytes: bytes.byteLength, send: () => nextHop.send(to, envelope, bytes) })
    return ELSEWHERE
  }
}

/** Another node decides for itself whether it takes a message; this node reports that it was sent. */
const ELSEWHERE: ReceivedHere = { isReported: false, refusal: null }

/** A negotiation with an id chosen by a program is not recorded: another message may have that id. */
function reliabilityOf({ reliable, type, made }: OutboundDraft): Reliability | undefined {
  return reliable ?? (NEGOTIATION.has(type) && made === undefined ? NEGOTIATING : undefined)
}

/** A message that needs approval here passes on its way to a local agent: the inbound pipeline holds it. */
function asFarAsHere(verdict: Verdict): Verdict {
  if (verdict.allowed || verdict.asks !== true) return verdict
  const { rule, line } = verdict
  return line === undefined ? { allowed: true, rule } : { allowed: true, rule, line }
}

/** The header of a message without an envelope yet, for its record. */
function headerOfDraft({ sender, recipient, type }: DraftHead): TrafficHeader {
  return { sender: addressText(sender), recipient: addressText(recipient), type }
}

function claims({ tier, sandboxId }: RoutingParty, justification: string | undefined): EnvelopeMetadata {
  const metadata = sandboxId === null ? { tier } : { tier, sandboxId }
  return justification === undefined ? metadata : { ...metadata, justification }
}
