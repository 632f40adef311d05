import type { Clock } from '../../kit/clock.js'
import { asNodeError, NodeError } from '../../kit/errors.js'
import type { ErrorCode } from '../../kit/errors.js'
import type { Unsubscribe } from '../../kit/events.js'
import { isKeyText } from '../../kit/ids.js'
import { isRecord } from '../../kit/json.js'
import { shown } from '../../kit/text.js'
import { addressText, type AgentAddress, parseAddress, type SideEffect } from '../../domain/card/card.js'
import type { RegisteredCard } from '../../domain/card/registry.js'
import { OPENING_TYPES } from '../../domain/envelope/envelope.js'
import type { A2AEnvelope, MessageType } from '../../domain/envelope/envelope.js'
import { assertHeader, type EnvelopeHeader, headerOf } from '../../domain/envelope/header.js'
import { meshSettingsSchema } from '../../domain/membership/schema.js'
import type { MeshSettings } from '../../domain/membership/types.js'
import { barText, broadcastBar } from '../../domain/policy/requested-work.js'
import type { SandboxRules } from '../../domain/routing/decide.js'
import type { TierRule } from '../../domain/routing/tier-rules.js'
import type { ExchangeTable } from '../messaging/exchange-table.js'
import { STREAM_TTL_MS } from '../messaging/inbound.js'
import { threadOf } from '../messaging/inbound-message.js'
import type { InboundMessage } from '../messaging/inbound-message.js'
import type { EnvelopeHandler, Subscriptions } from '../messaging/subscriptions.js'
import type { OutboundDraft } from '../messaging/outbound.js'
import type { RoutingPath } from '../observe/observability.js'
import type { Traffic, TrafficHeader } from '../observe/traffic.js'
import type { AccessControl } from '../policy/access-control.js'
import { findAgent } from '../cards/select-target.js'
import type { NameDeps } from '../cards/select-target.js'
import type { Pipelines } from '../pipelines.js'
import type { Services } from '../services.js'

/** How long replies to a sent message are accepted, in milliseconds. */
const REPLY_TTL_MS = 600_000
/** Replies that end an exchange. */
const FINAL_REPLIES: ReadonlySet<MessageType> = new Set(['response', 'error', 'task-reject', 'stream-end'])

/** The outcome of one envelope (spec a2a-mcp-mesh, RoutingResult). */
export interface RoutingResult {
  /** True when the channel of its target or the local agent has it; of a broadcast: at least one. */
  readonly delivered: boolean
  readonly path: RoutingPath
  /** `agentId@nodeId` of the target; `*` for a broadcast; the recipient as given when it could not be resolved. */
  readonly targetAgentId: string
  readonly latencyMs: number
  /** Code of the failure. */
  readonly code?: ErrorCode
  /** The failure in words. */
  readonly error?: string
  /** Of a broadcast: the outcome for each agent. */
  readonly targets?: readonly RoutingResult[]
}

/** How an envelope is sent. */
export interface SendOptions {
  /** A broadcast also runs capabilities with side effects (`write`, `exec`). Default false. */
  readonly all?: boolean
}

/** The tiers that each tier may send to (spec a2a-mcp-mesh, TierRoutingConfig). */
export interface TierRoutingConfig {
  readonly rules: readonly TierRule[]
}

/** Dependencies of {@link SdkRouter}. */
export interface SdkRouterDeps
  extends NameDeps,
    Pick<Services, 'presence' | 'registry' | 'self'>,
    Pick<Pipelines, 'outbound' | 'selector'> {
  readonly clock: Clock
  readonly exchanges: ExchangeTable
  readonly accessControl: AccessControl
  readonly subscriptions: Subscriptions
  readonly traffic: Traffic
}

/**
 * Sends envelopes of this node's agents to any agent of the mesh, by the node's own pipelines and rules (spec
 * a2a-mcp-mesh, A2ARouter).
 */
export class SdkRouter {
  readonly #deps: SdkRouterDeps

  constructor(deps: SdkRouterDeps) {
    this.#deps = deps
  }

  /**
   * Sends an envelope of an agent of this node: to `agentId@nodeId` (or a name that people may type), to `*`, or with
   * `metadata.routingHint` to any agent with the capability. Id, time and thread stay. Tier and sandbox come from
   * certificate and card, or are weaker where the envelope claims less. A broadcast leaves out work with side effects
   * unless it is for all. Never rejects: refusals are results.
   */
  async send(given: A2AEnvelope, { all = false }: SendOptions = {}): Promise<RoutingResult> {
    const since = this.#deps.clock.monotonic()
    if (!isRecord(given) || typeof given.recipient !== 'string') {
      const error = new NodeError('INVALID_ENVELOPE', 'an envelope is an object with a recipient')
      return this.#failed(error, { path: 'local', targetAgentId: '', since, header: null })
    }
    let header: EnvelopeHeader | null = null
    try {
      // Later changes by the caller must not differ from the checked header.
      const envelope: A2AEnvelope = { ...given }
      const read = headerOf(envelope)
      assertHeader(read)
      header = read
      const sender = this.#sender(envelope)
      if (envelope.recipient === '*') return await this.#broadcast(envelope, sender, { since, isForAll: all })
      const target = await this.#target(envelope, sender)
      return await this.#toOne(checkedDraft(envelope, sender, target), since)
    } catch (error) {
      return this.#failed(error, { path: 'local', targetAgentId: given.recipient, since, header })
    }
  }

  /** Calls back for each admitted message for an agent of this node, of any type. Returns the stop. */
  onReceive(agentId: string, handler: EnvelopeHandler): Unsubscribe {
    return this.#deps.subscriptions.onReceive(agentId, handler)
  }

  /**
   * Replaces the tier rules of this node until it stops or the mesh settings change. Other nodes keep theirs. At most
   * one rule per tier; a tier without one may send to no agent. @throws NodeError USAGE naming the invalid rule; then
   * nothing has changed.
   */
  setTierConfig(config: TierRoutingConfig): void {
    const { tierRules } = this.#checked({ tierRules: isRecord(config) ? config.rules : config })
    this.#deps.accessControl.setRules({ tierRules })
  }

  /** Replaces the sandbox rules of this node, in the same way. @throws NodeError USAGE */
  setSandboxConfig(config: SandboxRules): void {
    const { sandbox } = this.#checked({ sandbox: config })
    this.#deps.accessControl.setRules({ sandbox })
  }

  /** Checks the rules in force with a program's replacement, by the schema for the owner's mesh settings. */
  #checked(change: { readonly tierRules?: unknown; readonly sandbox?: unknown }): MeshSettings {
    const { tierRules, sandbox } = this.#deps.accessControl.rules()
    const read = meshSettingsSchema.safeParse({ tierRules, sandbox, ...change })
    if (read.success) return read.data
    const [issue] = read.error.issues
    throw new NodeError('USAGE', `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'no such rules'}`)
  }

  #sender(envelope: A2AEnvelope): AgentAddress {
    const { self } = this.#deps
    const sender = parseAddress(envelope.sender) ?? { agentId: envelope.sender, nodeId: self }
    if (sender.nodeId === self) return sender
    throw new NodeError('FORBIDDEN', `${shown(envelope.sender)} is not an agent of this node`)
  }

  async #target({ recipient, type, metadata }: A2AEnvelope, sender: AgentAddress): Promise<AgentAddress> {
    if (metadata?.routingHint === 'capability') {
      const { justification } = metadata
      return this.#deps.selector.pick({
        sender,
        type,
        capabilities: [recipient],
        ...(justification === undefined ? {} : { justification })
      })
    }
    const address = parseAddress(recipient)
    if (address !== null && isKeyText(address.nodeId) && this.#deps.directory.card(address) !== undefined)
      return address
    return await findAgent(this.#deps, recipient)
  }

  async #toOne(draft: OutboundDraft, since: number): Promise<RoutingResult> {
    const { outbound, self, clock, exchanges } = this.#deps
    const { recipient } = draft
    const path = draft.isBroadcast === true ? 'broadcast' : recipient.nodeId === self ? 'local' : 'remote'
    const targetAgentId = addressText(recipient)
    try {
      await outbound.send(withReplies(draft, exchanges))
      return { delivered: true, path, targetAgentId, latencyMs: clock.monotonic() - since }
    } catch (error) {
      return this.#failed(error, { path, targetAgentId, since, header: headerOfDraft(draft) })
    }
  }

  async #broadcast(
    envelope: A2AEnvelope,
    sender: AgentAddress,
    { since, isForAll }: { readonly since: number; readonly isForAll: boolean }
  ): Promise<RoutingResult> {
    const { registry, clock } = this.#deps
    const from = addressText(sender)
    const cards = registry.listAll().filter((card) => card.address !== from)
    const outcomes: Promise<RoutingResult>[] = []
    for (const card of cards) {
      const bar = isForAll ? null : broadcastBar(card, envelope.type, envelope.payload)
      const copy = checkedDraft(envelope, sender, addressOf(card))
      const outcome = bar === null ? this.#oneOfAll(copy, since) : Promise.resolve(this.#leftOut(copy, { since, bar }))
      outcomes.push(outcome)
      // Local delivery is quick, and a thousand half-sent messages would take much memory.
      if (card.origin === 'local') await outcome
    }
    const targets = await Promise.all(outcomes)
    const delivered = targets.some((one) => one.delivered)
    if (delivered)
      return { delivered, path: 'broadcast', targetAgentId: '*', latencyMs: clock.monotonic() - since, targets }
    const error = new NodeError('DELIVERY_FAILED', 'no agent took the message')
    // Each refused copy is counted by itself.
    if (targets.length > 0) this.#deps.traffic.reported(error)
    return {
      ...this.#failed(error, { path: 'broadcast', targetAgentId: '*', since, header: headerOf(envelope) }),
      targets
    }
  }

  #leftOut(copy: OutboundDraft, { since, bar }: { readonly since: number; readonly bar: SideEffect }): RoutingResult {
    const about = {
      path: 'broadcast',
      targetAgentId: addressText(copy.recipient),
      since,
      header: headerOfDraft(copy)
    } as const
    return this.#failed(new NodeError('POLICY_DENIED', barText(bar)), about)
  }

  /** Sends one copy of a broadcast, with an id of its own and the common thread. */
  async #oneOfAll(copy: OutboundDraft, since: number): Promise<RoutingResult> {
    const { presence, self } = this.#deps
    const { made, ...draft } = copy
    const { recipient } = draft
    const correlationId = draft.correlationId ?? made?.id
    const isAway = recipient.nodeId !== self && !presence.isOnline(recipient.nodeId)
    if (!isAway)
      return this.#toOne(
        { ...draft, isBroadcast: true, ...(correlationId === undefined ? {} : { correlationId }) },
        since
      )
    const error = new NodeError('PEER_OFFLINE', 'the peer is not connected')
    return this.#failed(error, {
      path: 'broadcast',
      targetAgentId: addressText(recipient),
      since,
      header: headerOfDraft(draft)
    })
  }

  /** `header`: null for an envelope without a sound one. */
  #failed(
    error: unknown,
    {
      path,
      targetAgentId,
      since,
      header
    }: Pick<RoutingResult, 'path' | 'targetAgentId'> & { readonly since: number; readonly header: TrafficHeader | null }
  ): RoutingResult {
    this.#deps.traffic.notSent(error, header, path)
    const { code, message } = asNodeError(error)
    return {
      delivered: false,
      path,
      targetAgentId,
      latencyMs: this.#deps.clock.monotonic() - since,
      code,
      error: `${code}: ${message}`
    }
  }
}

function addressOf({ id, nodeId }: RegisteredCard): AgentAddress {
  return { agentId: id, nodeId }
}

/** The header of a draft, for the record of its refusal. */
function headerOfDraft({ sender, recipient, type, made }: OutboundDraft): TrafficHeader {
  return {
    sender: addressText(sender),
    recipient: addressText(recipient),
    type,
    ...(made === undefined ? {} : { id: made.id })
  }
}

/**
 * The outbound draft of an existing envelope.
 * @throws NodeError INVALID_ENVELOPE, SCHEMA_VERSION_MISMATCH by its header
 */
export function draftOf(envelope: A2AEnvelope, sender: AgentAddress, recipient: AgentAddress): OutboundDraft {
  assertHeader(headerOf(envelope))
  return checkedDraft(envelope, sender, recipient)
}

/** The same for an envelope whose header was checked. */
function checkedDraft(envelope: A2AEnvelope, sender: AgentAddress, recipient: AgentAddress): OutboundDraft {
  const { id, timestamp, type, payload, correlationId, metadata } = envelope
  return {
    sender,
    recipient,
    type,
    payload,
    made: { id, timestamp },
    ...(correlationId === undefined ? {} : { correlationId }),
    ...(metadata?.justification === undefined ? {} : { justification: metadata.justification }),
    // A claim of less than certificate and card allow applies; a claim of more has no effect.
    ...(metadata === undefined ? {} : { onBehalfOf: { maxTier: metadata.tier, sandboxId: metadata.sandboxId ?? null } })
  }
}

/**
 * Accepts replies to an opening message: they reach the subscribers as all messages do, and the last one ends the
 * exchange.
 */
export function withReplies(draft: OutboundDraft, exchanges: ExchangeTable): OutboundDraft {
  const { sender, recipient } = draft
  if (!OPENING_TYPES.has(draft.type) || draft.type === 'notification') return draft
  const handler: NonNullable<OutboundDraft['replies']>['handler'] = (header) => {
    if (FINAL_REPLIES.has(header.type)) exchanges.end({ sender, recipient, correlationId: header.correlationId ?? '' })
  }
  return { ...draft, replies: { ttlMs: REPLY_TTL_MS, handler } }
}

/** Accepts a stream for an agent with a subscriber, until its sender ends it; false without one. */
export function takeStream(
  { subscriptions, exchanges }: Pick<SdkRouterDeps, 'subscriptions' | 'exchanges'>,
  incoming: InboundMessage
): boolean {
  if (!subscriptions.has(incoming.recipient.agentId)) return false
  const thread = threadOf(incoming)
  exchanges.follow(thread, {
    ttlMs: STREAM_TTL_MS,
    handler: ({ type }) => {
      if (FINAL_REPLIES.has(type)) exchanges.end(thread)
    }
  })
  return true
}
