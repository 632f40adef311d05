import type { Clock, Timer } from '../../kit/clock.js'
import { messageOf, NodeError } from '../../kit/errors.js'
import { Emitter, type Unsubscribe } from '../../kit/events.js'
import type { IdSource, NodeId } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import { addressText, type AgentAddress, OPERATOR } from '../../domain/card/card.js'
import type { EnvelopeHeader } from '../../domain/envelope/codec.js'
import { SCHEMA_VERSION } from '../../domain/envelope/envelope.js'
import {
  acceptPayload,
  createProposal,
  proposalPayload,
  rejectPayload,
  stepProposal,
  TaskProposalPayloadSchema,
  type ProposalInput,
  type ProposalParts,
  type TaskProposal,
  type TaskProposalPayload,
  type TaskRejectPayload
} from '../../domain/task/negotiation.js'
import type { offerAcceptSchema } from '../../domain/task/payloads.js'
import { checkedParts, readAnswer } from '../../domain/task/proposal-messages.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { ExchangeTable } from '../messaging/exchange-table.js'
import { threadOf, type InboundMessage, type Thread } from '../messaging/inbound-message.js'
import type { Subscriptions } from '../messaging/subscriptions.js'
import type { OutboundDraft, Outbound } from '../messaging/outbound.js'
import { findAgent, type AgentSelector, type NameDeps } from '../cards/select-target.js'
import type { AgentHost } from '../agents/agent-host.js'
import type { LedgerQuota } from '../ledger/quota.js'

/** Proposals kept per direction; settled ones are evicted first. */
const KEPT = 1000
/** Proposals of one other node that may be pending here. */
const MAX_PENDING_PER_PEER = 64
/** How long the thread of an accepted proposal stays open, in milliseconds. */
const THREAD_TTL_MS = 3_600_000

/** A proposal as a program makes it. */
export interface ProposalDraft {
  /** The agent of this node that proposes: its id or address. */
  readonly proposerAgentId: string
  /** The recipient: an address, or a name as people type it. Default: the best agent that has all the capabilities. */
  readonly to?: string
  readonly taskDescription: string
  readonly requiredCapabilities: readonly string[]
  readonly estimatedComplexity: TaskProposal['estimatedComplexity']
  /** Milliseconds within which an answer counts. */
  readonly deadlineMs: number
  readonly justification?: string
}

/** Dependencies of negotiations. */
export interface NegotiationsDeps extends NameDeps {
  readonly self: NodeId
  readonly clock: Clock
  readonly ids: IdSource
  readonly telemetry: Telemetry
  readonly agents: Pick<AgentHost, 'definition'>
  readonly selector: AgentSelector
  readonly outbound: Outbound
  readonly exchanges: ExchangeTable
  readonly subscriptions: Subscriptions
}

interface Negotiation {
  proposal: TaskProposal
  /** From this node to the other side of the proposal. */
  readonly thread: Thread
  readonly timer: Timer
  /** Its answer is being sent. */
  isAnswering: boolean
}

type ProposalHandler = (proposal: TaskProposal) => void

/** Callbacks of a proposal table. */
interface ProposalListener {
  /** It was accepted, rejected or timed out. */
  onSettled(entry: Negotiation, isTimedOut: boolean): void
  /** The deadline passed without an answer. */
  onDeadline(entry: Negotiation): void
}

/** The proposals of one direction, each with its deadline; the oldest settled ones are evicted first. */
class ProposalTable {
  readonly #clock: Clock
  readonly #listener: ProposalListener
  readonly #entries = new Map<string, Negotiation>()

  constructor(clock: Clock, listener: ProposalListener) {
    this.#clock = clock
    this.#listener = listener
  }

  get(id: string): Negotiation | undefined {
    return this.#entries.get(id)
  }

  /** Pending proposals, oldest first. */
  pending(): Negotiation[] {
    return [...this.#entries.values()].filter(({ proposal }) => proposal.status === 'pending')
  }

  /** Evicts the oldest settled proposal from a full table. False: all of them are pending. */
  evictOldest(): boolean {
    if (this.#entries.size < KEPT) return true
    for (const [id, { proposal }] of this.#entries) if (proposal.status !== 'pending') return this.#entries.delete(id)
    return false
  }

  /** Makes room for a proposal of a peer; null: of this node. False: too many are pending, of the peer or of all. */
  admits(peer: NodeId | null): boolean {
    const ofPeer = peer === null ? [] : this.pending().filter(({ thread }) => thread.recipient.nodeId === peer)
    return ofPeer.length < MAX_PENDING_PER_PEER && this.evictOldest()
  }

  add(fields: ProposalParts, thread: Thread): Negotiation {
    const timer = this.#clock.after(fields.deadlineMs, () => this.timeOut(fields.proposalId))
    const entry = { proposal: createProposal(fields, this.#clock.now()), thread, timer, isAnswering: false }
    this.#entries.set(fields.proposalId, entry)
    return entry
  }

  remove({ timer, proposal }: Negotiation): void {
    this.#clock.clear(timer)
    this.#entries.delete(proposal.proposalId)
  }

  /** The deadline passed; an answer that is being sent was given in time. */
  timeOut(id: string): void {
    const entry = this.#entries.get(id)
    if (entry === undefined || entry.isAnswering) return
    const { createdAt, deadlineMs } = entry.proposal
    // The wall clock may have been set back meanwhile; the timer was not.
    this.step(entry, { type: 'tick' }, createdAt + deadlineMs)
    this.#listener.onDeadline(entry)
  }

  step(entry: Negotiation, input: ProposalInput, now: number): void {
    const step = stepProposal(entry.proposal, input, now)
    if (!step.ok) return
    entry.proposal = step.proposal
    for (const effect of step.effects) {
      this.#clock.clear(entry.timer)
      this.#listener.onSettled(entry, effect.type === 'timed-out')
    }
  }

  stop(): void {
    for (const { timer } of this.#entries.values()) this.#clock.clear(timer)
  }
}

/**
 * Proposals of this node's agents, and proposals that programs here decide on (spec a2a-mcp-mesh, TaskNegotiator). For
 * agents without a handler the node answers.
 */
export class Negotiations {
  readonly #deps: NegotiationsDeps
  readonly #made: ProposalTable
  readonly #received: ProposalTable
  readonly #handlers = new Map<string, ProposalHandler>()
  readonly #settled: Emitter<TaskProposal>

  constructor(deps: NegotiationsDeps) {
    this.#deps = deps
    this.#settled = new Emitter((error) => this.#note('a listener of proposals failed', error))
    const onDeadline = (entry: Negotiation): void => this.#end(entry)
    this.#made = new ProposalTable(deps.clock, {
      onDeadline,
      onSettled: (entry, isTimedOut) => {
        if (isTimedOut) this.#tellProposer(entry)
        this.#settled.emit(entry.proposal)
      }
    })
    this.#received = new ProposalTable(deps.clock, {
      onDeadline,
      onSettled: ({ proposal }) => this.#settled.emit(proposal)
    })
  }

  /**
   * Proposes a task; resolves with the pending proposal when it is on its way. {@link onSettled} reports its outcome.
   * @throws NodeError INVALID_ENVELOPE for a malformed proposal, CAPABILITY_NOT_FOUND, OVERLOADED, errors of sending
   * it.
   */
  async propose(draft: ProposalDraft): Promise<TaskProposal> {
    const { self, ids, outbound, exchanges } = this.#deps
    const [agentId = ''] = draft.proposerAgentId.split('@')
    const sender = { agentId, nodeId: self }
    const proposerAgentId = addressText(sender)
    const correlationId = ids.next('thr')
    const fields = checkedParts({ ...draft, proposalId: correlationId, correlationId, proposerAgentId })
    const recipient = await this.#target(draft, sender)
    if (!this.#made.evictOldest()) throw new NodeError('OVERLOADED', 'too many proposals wait for their answer')
    const entry = this.#made.add(fields, { sender, recipient, correlationId })
    try {
      await outbound.send({
        ...entry.thread,
        type: 'task-proposal',
        payload: proposalPayload(entry.proposal),
        ...(draft.justification === undefined ? {} : { justification: draft.justification }),
        replies: {
          ttlMs: draft.deadlineMs + THREAD_TTL_MS,
          handler: (header, payload) => this.#onReply(entry, header, payload)
        }
      })
    } catch (error) {
      this.#made.remove(entry)
      exchanges.end(entry.thread)
      throw error
    }
    return entry.proposal
  }

  /**
   * Accepts a proposal that a handler here received. Later messages use its thread.
   * @throws NodeError TASK_NOT_FOUND; PROPOSAL_TIMEOUT after its deadline; USAGE when it is answered already.
   */
  async accept(proposalId: string, estimatedCompletionMs: number): Promise<void> {
    if (!(estimatedCompletionMs > 0))
      throw new NodeError('USAGE', 'the estimated completion is a positive number of milliseconds')
    const entry = this.#get(proposalId)
    const agentId = addressText(entry.thread.sender)
    const input: ProposalInput = { type: 'accept', agentId, estimatedCompletionMs }
    let isOpen = false
    try {
      await this.#answer(entry, input, (accepted) => {
        // The other side may use the thread at once.
        this.#deps.exchanges.letIn(entry.thread, THREAD_TTL_MS)
        this.#follow(entry)
        isOpen = true
        return { ...entry.thread, type: 'task-accept', payload: acceptPayload(accepted) }
      })
    } catch (error) {
      if (isOpen) this.#end(entry)
      throw error
    }
  }

  /**
   * Rejects a proposal that a handler here received. `reason`: a code or a short text; `alternative`: another
   * suggestion.
   * @throws NodeError TASK_NOT_FOUND; PROPOSAL_TIMEOUT after its deadline; USAGE when it is answered already.
   */
  async reject(proposalId: string, reason: string, alternative?: string): Promise<void> {
    if (reason.trim() === '') throw new NodeError('USAGE', 'a rejection has a reason: a code or a short text')
    const entry = this.#get(proposalId)
    const input: ProposalInput = { type: 'reject', reason, ...(alternative === undefined ? {} : { alternative }) }
    await this.#answer(entry, input, (rejected) => ({
      ...entry.thread,
      type: 'task-reject',
      payload: rejectPayload(rejected)
    }))
    this.#end(entry)
  }

  /** A proposal of either direction; undefined when it is not kept. */
  getProposal(proposalId: string): TaskProposal | undefined {
    return (this.#made.get(proposalId) ?? this.#received.get(proposalId))?.proposal
  }

  /** Messages of the thread reach the listeners of both agents. */
  #follow({ thread }: Negotiation): void {
    this.#deps.exchanges.follow(thread, { ttlMs: THREAD_TTL_MS, handler: () => {} })
  }

  /** Pending proposals of both directions, oldest first. */
  listPending(): TaskProposal[] {
    return [...this.#made.pending(), ...this.#received.pending()].map(({ proposal }) => proposal)
  }

  /** Sets the handler of proposals to this agent of this node; the handler answers them. Returns the stop. */
  onProposalReceived(agentId: string, handler: ProposalHandler): Unsubscribe {
    this.#handlers.set(agentId, handler)
    return () => {
      if (this.#handlers.get(agentId) === handler) this.#handlers.delete(agentId)
    }
  }

  /** Calls back when a proposal of either direction is accepted, rejected or timed out. Returns the stop. */
  onSettled(handler: ProposalHandler): Unsubscribe {
    return this.#settled.on(handler)
  }

  /**
   * Takes a proposal for an agent with a handler. `nobody`: its node answers, also malformed proposals. `full`: too
   * many are pending, or its thread names the proposal of another proposer; the proposer must be told.
   */
  onProposal(incoming: InboundMessage): 'taken' | 'nobody' | 'full' {
    const { agentId } = incoming.recipient
    const handler = this.#handlers.get(agentId)
    const payload = TaskProposalPayloadSchema.safeParse(incoming.payload)
    if (handler === undefined || !payload.success) return 'nobody'
    const thread = threadOf(incoming)
    const known = this.#received.get(thread.correlationId)
    if (known !== undefined) return this.#again(known, thread)
    const capabilities = this.#deps.agents.definition(agentId)?.capabilities ?? []
    if (payload.data.requiredCapabilities.some((id) => capabilities.every((one) => one.id !== id))) return 'nobody'
    if (!this.#received.admits(incoming.peer === this.#deps.self ? null : incoming.peer)) return 'full'
    const proposal = this.#receive(thread, payload.data)
    try {
      handler(proposal)
    } catch (error) {
      this.#note('a program did not take its proposal', error)
    }
    return 'taken'
  }

  /**
   * A repeated proposal shares the decision on the first one. One answer ends one opening of the thread, so the other
   * ends here.
   */
  #again(known: Negotiation, thread: Thread): 'taken' | 'full' {
    if (!isSame(known.thread, thread)) return 'full'
    this.#end(known)
    if (known.proposal.status === 'accepted') this.#follow(known)
    return 'taken'
  }

  #receive(thread: Thread, offered: TaskProposalPayload): TaskProposal {
    const { correlationId } = thread
    const { taskDescription, requiredCapabilities, estimatedComplexity } = offered
    const deadlineMs = Math.min(offered.deadlineMs, THREAD_TTL_MS)
    const fields = { taskDescription, requiredCapabilities, estimatedComplexity, deadlineMs }
    const proposerAgentId = addressText(thread.recipient)
    return this.#received.add({ ...fields, proposalId: correlationId, correlationId, proposerAgentId }, thread).proposal
  }

  /** Stops every deadline. */
  stop(): void {
    for (const table of [this.#made, this.#received]) table.stop()
  }

  async #target(draft: ProposalDraft, sender: AgentAddress): Promise<AgentAddress> {
    const { to, justification, requiredCapabilities } = draft
    if (to !== undefined) return await findAgent(this.#deps, to)
    const [first, ...rest] = requiredCapabilities
    if (first === undefined) throw new NodeError('USAGE', 'a proposal names an agent or the capabilities that it needs')
    const why = justification === undefined ? {} : { justification }
    return this.#deps.selector.pick({ sender, type: 'task-proposal', capabilities: [first, ...rest], ...why })
  }

  #onReply(entry: Negotiation, header: EnvelopeHeader, payload: unknown): void {
    const { proposal } = entry
    const input = readAnswer(proposal, header, payload)
    if (input === null || proposal.status !== 'pending') return
    this.#made.step(entry, input, this.#deps.clock.now())
    if (entry.proposal.status !== 'accepted') this.#end(entry)
  }

  /**
   * Sends an answer, then applies it: a failed answer may be given again before the deadline.
   * @throws NodeError PROPOSAL_TIMEOUT, USAGE, or an error of the outbound pipeline.
   */
  async #answer(
    entry: Negotiation,
    input: ProposalInput,
    draft: (answered: TaskProposal) => OutboundDraft
  ): Promise<void> {
    const { clock, outbound } = this.#deps
    const now = clock.now()
    const step = stepProposal(entry.proposal, input, now)
    const status = step.ok ? step.proposal.status : entry.proposal.status
    if (status === 'timed-out') {
      this.#received.step(entry, input, now)
      throw new NodeError('PROPOSAL_TIMEOUT', 'the deadline of the proposal has passed')
    }
    if (!step.ok || entry.isAnswering)
      throw new NodeError('USAGE', `the proposal is ${entry.isAnswering ? 'answered' : status} already`)
    entry.isAnswering = true
    try {
      await outbound.send(draft(step.proposal))
      // As of when it was given: the deadline may have passed while it was sent.
      this.#received.step(entry, input, now)
    } catch (error) {
      entry.isAnswering = false
      if (entry.proposal.createdAt + entry.proposal.deadlineMs <= clock.now())
        this.#received.timeOut(entry.proposal.proposalId)
      throw error
    }
    entry.isAnswering = false
  }

  /** Tells the proposer of the timeout as of any other answer: by a message on the thread. */
  #tellProposer(entry: Negotiation): void {
    const { header, payload } = timeoutMessage(entry, this.#deps)
    this.#deps.subscriptions.received(entry.thread.sender.agentId, header, payload)
  }

  #end({ thread }: Negotiation): void {
    this.#deps.exchanges.end(thread)
  }

  #get(proposalId: string): Negotiation {
    const entry = this.#received.get(proposalId)
    if (entry === undefined)
      throw new NodeError('TASK_NOT_FOUND', `no proposal "${shown(proposalId)}" was received here`)
    return entry
  }

  #note(message: string, error: unknown): void {
    this.#deps.telemetry.log('error', message, { reason: messageOf(error) })
  }
}

/** The error that a proposer gets when nobody answered in time. */
function timeoutMessage(
  { proposal, thread: { sender, recipient } }: Negotiation,
  { ids, clock, self, directory }: Pick<NegotiationsDeps, 'ids' | 'clock' | 'self' | 'directory'>
): { readonly header: EnvelopeHeader; readonly payload: unknown } {
  const message = `${directory.shownAddress(recipient)} did not answer the proposal within ${proposal.deadlineMs} ms`
  const header = {
    id: ids.next('msg'),
    schemaVersion: SCHEMA_VERSION,
    sender: addressText({ agentId: OPERATOR, nodeId: self }),
    recipient: addressText(sender),
    correlationId: proposal.correlationId,
    type: 'error' as const,
    timestamp: clock.now()
  }
  return { header, payload: new NodeError('PROPOSAL_TIMEOUT', message).toBody() }
}

function isSame(one: Thread, other: Thread): boolean {
  return (
    addressText(one.sender) === addressText(other.sender) && addressText(one.recipient) === addressText(other.recipient)
  )
}

type Accept = ReturnType<(typeof offerAcceptSchema)['parse']>

/** Dependencies of answers to offers. */
export interface ProposalAnswerDeps {
  readonly agents: AgentHost
  readonly outbound: Outbound
  readonly exchanges: ExchangeTable
  readonly telemetry: Telemetry
  readonly ledgerQuota: Pick<LedgerQuota, 'refusal'>
}

/**
 * Answers a task-proposal for an agent of this node: accepts when the agent has the capabilities, with its slots and an
 * estimate.
 */
export function answerProposal(deps: ProposalAnswerDeps, incoming: InboundMessage): void {
  const { agents, outbound, exchanges, telemetry, ledgerQuota } = deps
  const { recipient } = incoming
  const thread = threadOf(incoming)
  const { correlationId } = thread
  const proposal = TaskProposalPayloadSchema.safeParse(incoming.payload)
  const definition = agents.definition(recipient.agentId)
  const lacking = proposal.success
    ? proposal.data.requiredCapabilities.filter((id) => definition?.capabilities.every((one) => one.id !== id) ?? true)
    : []
  const unfit = !proposal.success ? 'INVALID_ENVELOPE' : lacking.length > 0 ? 'CAPABILITY_NOT_FOUND' : null
  // Work that could not be recorded is not accepted.
  const reason = unfit ?? ledgerQuota.refusal?.message ?? null
  const accept: Accept = {
    proposalId: correlationId,
    acceptedBy: addressText(recipient),
    estimatedCompletionMs: agents.estimateMs(recipient.agentId),
    slots: Math.max(1, agents.load(recipient.agentId).slots)
  }
  const reject: TaskRejectPayload = { proposalId: correlationId, rejectionReason: reason ?? '' }
  outbound
    .send({
      ...thread,
      ...(reason === null ? { type: 'task-accept', payload: accept } : { type: 'task-reject', payload: reject })
    })
    .catch((error: unknown) =>
      telemetry.log('warn', 'an offer could not be answered', { correlationId, reason: messageOf(error) })
    )
    // After an accepted offer come requests, each on a thread of its own.
    .finally(() => exchanges.end(thread))
}
