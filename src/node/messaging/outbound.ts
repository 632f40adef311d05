import type { Clock } from '../../kit/clock.js'
import { asNodeError, NodeError } from '../../kit/errors.js'
import type { IdSource, NodeId } from '../../kit/ids.js'
import { addressText, type AgentAddress } from '../../domain/card/card.js'
import { encodeEnvelope } from '../../domain/envelope/codec.js'
import { OPENING_TYPES, SCHEMA_VERSION } from '../../domain/envelope/envelope.js'
import type { A2AEnvelope, EnvelopeMetadata, MessageType } from '../../domain/envelope/envelope.js'
import { askedWork } from '../../domain/policy/requested-work.js'
import type { RoutingParty, RoutingQuestion, Verdict } from '../../domain/routing/decide.js'
import { type CallerAuthority, confinement } from '../../domain/routing/effective.js'
import type { LedgerChange } from '../../ports/ledger.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { AgentHost } from '../agents/agent-host.js'
import type { ExchangeTable, ReplyHandler } from './exchange-table.js'
import { ChannelRetry } from './channel-retry.js'
import type { Directory } from '../cards/directory.js'
import type { NodeEvents } from '../observe/events.js'
import type { ReceivedHere } from './inbound.js'
import type { Lanes } from '../reliable/lanes.js'
import type { PeerTable } from '../peers/peer-table.js'
import type { AccessControl } from '../policy/access-control.js'
import type { Traffic } from '../observe/traffic.js'
import type { NextHop } from '../relay/next-hop.js'

/** What the outbound pipeline needs. */
export interface OutboundDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly directory: Directory
  readonly accessControl: AccessControl
  readonly traffic: Traffic
  readonly telemetry: Telemetry
  readonly nextHop: NextHop
  readonly peers: Pick<PeerTable, 'budget'>
  readonly lanes: Pick<Lanes, 'record' | 'commit'>
  readonly exchanges: ExchangeTable
  readonly events: NodeEvents
  readonly agents: Pick<AgentHost, 'isReserved'>
  readonly self: NodeId
  /** Told of every message that has left for another node. */
  onSent?(envelope: A2AEnvelope): void
  /** The inbound pipeline, for agents of this node. */
  deliverHere(envelope: A2AEnvelope): ReceivedHere
}

/** A message to be sent. */
export interface OutboundDraft {
  readonly sender: AgentAddress
  readonly recipient: AgentAddress
  readonly type: MessageType
  readonly payload: unknown
  /** What it asks for; absent or null: the default capability of the recipient. */
  readonly capability?: string | null
  readonly correlationId?: string
  readonly justification?: string
  /** Is it one of those of a broadcast? */
  readonly isBroadcast?: boolean
  /** Id and time (unix milliseconds) of a message that was made before. Default: fresh ones. */
  readonly made?: Pick<A2AEnvelope, 'id' | 'timestamp'>
  /** A channel that fails under it is told at once: its sender does not wait for further tries. */
  readonly isKept?: boolean
  /** Who has it sent, when that may be weaker than the sender: the message is as weak as the weaker of the two. */
  readonly onBehalfOf?: CallerAuthority
  /** Set for what must not be lost. */
  readonly reliable?: Reliability
  /** For opening messages: who gets the replies, and for how long they may come. */
  readonly replies?: { readonly ttlMs: number; readonly handler: ReplyHandler }
}

/** How a message is kept until its node has acknowledged it. */
export interface Reliability {
  /** Of the request that it belongs to; null for none. */
  readonly requestId: string | null
  /** It is recorded also while its node is not reachable. Otherwise it is refused then. */
  readonly mayWait: boolean
  /** Milliseconds; not delivered by then, it is given up. */
  readonly ttlMs: number
  /** What else the ledger holds from then on, in the same commit. Asked for once, when the message was allowed. */
  changes(): readonly LedgerChange[]
}

/** Negotiations are recorded for as long as somebody may wait for them. */
const NEGOTIATING: Reliability = { requestId: null, mayWait: false, ttlMs: 60_000, changes: () => [] }
const NEGOTIATION: ReadonlySet<MessageType> = new Set(['task-proposal', 'task-accept', 'task-reject'])

/** What deciding on a message needs to know of it. */
export type DraftHead = Omit<OutboundDraft, 'payload' | 'replies' | 'made' | 'isKept' | 'reliable'>

/** The outbound pipeline: stamp, resolve, decide, record, channel. Each stage is one method; {@link Outbound.send} reads as the list. */
export class Outbound {
  readonly #deps: OutboundDeps
  readonly #delivery: ChannelRetry

  constructor(deps: OutboundDeps) {
    const { clock, nextHop, peers, directory, events, telemetry } = deps
    this.#deps = deps
    this.#delivery = new ChannelRetry({
      clock,
      budget: peers.budget,
      reach: (peer) => nextHop.reach(peer),
      onFailure: (peer, { code, message }) => {
        telemetry.count('errors', 'delivery')
        events.add('delivery-failed', message, { code, peer: directory.ref(peer).name })
      }
    })
  }

  /**
   * Sends a message; resolves when it is handed to the channel (or to the agent here).
   * @throws NodeError TIER_VIOLATION, SANDBOX_VIOLATION, ESCALATION_REQUIRED by the rules; AGENT_NOT_FOUND;
   * PEER_OFFLINE, OVERLOADED by the channel; DELIVERY_FAILED when it failed under the message again and again (a message
   * that its sender keeps gets CHANNEL_CLOSED at once); PAYLOAD_TOO_LARGE, INVALID_ENVELOPE by the envelope.
   */
  async send(draft: OutboundDraft): Promise<A2AEnvelope> {
    const { clock, traffic, self } = this.#deps
    const since = clock.monotonic()
    const sender = this.#sender(draft)
    const envelope = this.#stamp(draft, sender)
    const question = this.#question(draft, sender)
    const rule = passed(this.#decide(question, since, envelope))
    const to = draft.recipient.nodeId
    const path = draft.isBroadcast === true ? 'broadcast' : to === self ? 'local' : 'remote'
    let here: ReceivedHere
    try {
      here = await this.#away(draft, envelope)
    } catch (error) {
      traffic.refused(asNodeError(error).code, envelope, path)
      throw error
    }
    const { isReported, refusal } = here
    if (refusal !== null) throw new NodeError(refusal.code, refusal.reason, { data: { rule: refusal.rule } })
    const at = clock.monotonic()
    traffic.sent(
      { peer: to === self ? null : to, header: envelope, from: sender.tier, to: question.target.tier, rule, since, at },
      isReported ? null : path
    )
    if (to !== self) this.#deps.onSent?.(envelope)
    return envelope
  }

  /** Gives up what waits for another try. */
  close(): void {
    this.#delivery.close()
  }

  /** Refuses a message as {@link Outbound.send} would, also on record, without sending it. @throws NodeError by the rules; AGENT_NOT_FOUND. */
  check(draft: DraftHead): void {
    passed(this.judge(draft))
  }

  /** As {@link Outbound.verdict}, and a refusal goes on record. @throws NodeError AGENT_NOT_FOUND. */
  judge(draft: DraftHead): Verdict {
    return this.#decide(this.#question(draft, this.#sender(draft)), this.#deps.clock.monotonic())
  }

  /** What the rules of this node say of a message, without sending it and without a record. @throws NodeError AGENT_NOT_FOUND. */
  verdict(draft: DraftHead): Verdict {
    return asFarAsHere(this.#deps.accessControl.ask(this.#question(draft, this.#sender(draft))))
  }

  #sender({ sender, onBehalfOf }: DraftHead): RoutingParty {
    const party = this.#deps.directory.party(sender, onBehalfOf)
    if (party === null) throw new NodeError('AGENT_NOT_FOUND', `no agent ${sender.agentId} to send as`)
    return party
  }

  #stamp(draft: OutboundDraft, sender: RoutingParty): A2AEnvelope {
    const { clock, ids } = this.#deps
    const { made, recipient, type, payload, correlationId, justification } = draft
    // Member by member: every message is stamped, and spreading is slow.
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

  #question(draft: DraftHead, sender: RoutingParty): RoutingQuestion {
    const { directory, exchanges, accessControl, agents, self } = this.#deps
    const { recipient, type, capability, correlationId, justification } = draft
    const target = directory.party(recipient)
    const isReply =
      !OPENING_TYPES.has(type) && correlationId !== undefined && exchanges.maySend({ sender: draft.sender, recipient, correlationId })
    // A reply goes back to whoever asked, even when its card has not come yet, unless its node was put out.
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

  #decide(question: RoutingQuestion, since: number, envelope?: A2AEnvelope): Verdict {
    const { accessControl } = this.#deps
    const verdict = asFarAsHere(accessControl.decide(question, since).verdict)
    if (verdict.allowed) return verdict
    const { code, rule, reason } = verdict
    const header = envelope ?? { sender: question.sender.address, recipient: question.target.address, type: question.type }
    const tiers = { from: question.sender.tier, to: question.target.tier }
    accessControl.record('refusal', { code, rule, reason }, { peer: null, header, ...tiers })
    return verdict
  }

  /** Record, channel; the exchange of an opening message is open before any reply can come. */
  async #away(draft: OutboundDraft, envelope: A2AEnvelope): Promise<ReceivedHere> {
    const { nextHop, exchanges, self } = this.#deps
    const to = draft.recipient.nodeId
    const bytes = to === self ? null : encodeEnvelope(envelope)
    const thread = { sender: draft.sender, recipient: draft.recipient, correlationId: envelope.correlationId ?? envelope.id }
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

  /** Makes durable what must not be lost, and has it delivered by its lane; null for what goes by the channel. */
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
    // Only within this node: everything else that must not be lost goes over a lane.
    if (reliable !== undefined) await lanes.commit(reliable.changes())
    if (bytes === null) return this.#deps.deliverHere(envelope)
    if (draft.isKept === true) nextHop.send(to, envelope, bytes)
    else await this.#delivery.deliver(to, { bytes: bytes.byteLength, send: () => nextHop.send(to, envelope, bytes) })
    return ELSEWHERE
  }
}

/** Another node decides whether it takes a message; that it was let out is told here. */
const ELSEWHERE: ReceivedHere = { isReported: false, refusal: null }

/** What a program named itself may have the name of another message. */
function reliabilityOf({ reliable, type, made }: OutboundDraft): Reliability | undefined {
  return reliable ?? (NEGOTIATION.has(type) && made === undefined ? NEGOTIATING : undefined)
}

/** What a person of this node is asked about leaves for its agent here: the inbound pipeline holds it. */
function asFarAsHere(verdict: Verdict): Verdict {
  if (verdict.allowed || verdict.asks !== true) return verdict
  const { rule, line } = verdict
  return line === undefined ? { allowed: true, rule } : { allowed: true, rule, line }
}

/** The rule that lets a message pass. @throws NodeError what the rules refuse. */
function passed(verdict: Verdict): string {
  if (verdict.allowed) return verdict.rule
  throw new NodeError(verdict.code, verdict.reason, { data: { rule: verdict.rule } })
}

function claims({ tier, sandboxId }: RoutingParty, justification: string | undefined): EnvelopeMetadata {
  const metadata = sandboxId === null ? { tier } : { tier, sandboxId }
  return justification === undefined ? metadata : { ...metadata, justification }
}
