import type { Clock, Timer } from '../kit/clock.js'
import { NodeError } from '../kit/errors.js'
import type { ErrorBody, ErrorCode } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import type { AgentAddress } from '../domain/card/card.js'
import type { EnvelopeHeader } from '../domain/envelope/codec.js'
import type { CertifiedPower } from '../domain/routing/effective.js'
import { errorBodySchema, progressPayloadSchema, responsePayloadSchema, workKey } from '../domain/task/payloads.js'
import type { RequestPayload } from '../domain/task/payloads.js'
import type { Cancellations } from './cancellations.js'
import type { Conversations } from './conversations.js'
import type { Thread } from './inbox.js'
import { refusedThere } from './next-steps.js'
import type { DraftHead, Outbox } from './outbox.js'
import type { Tasks } from './tasks.js'

/** How long a late answer is still taken, beyond the caller's patience, in milliseconds. */
const LATE_MS = 3_600_000

/** How long a caller waits for a peer that is gone while it works, in milliseconds: a link that was only cut has healed by then. */
const GONE_MS = 10_000

/** Longest time between two times that a request is asked again, in milliseconds. */
const MAX_PATIENCE_MS = 300_000
/** First wait after a refusal for lack of room, in milliseconds; doubled with each. */
const RETRY_MS = 1000
/** Longest such wait, in milliseconds. */
const MAX_RETRY_MS = 60_000

/** The peer answers that it does not do the work: no room, or it stops. */
const NOT_DONE: ReadonlySet<ErrorCode> = new Set(['OVERLOADED', 'PEER_OFFLINE'])

/** A request to one agent. */
export interface Asking {
  readonly sender: AgentAddress
  readonly target: AgentAddress
  /** null: the agent's default capability. */
  readonly capability: string | null
  readonly input: unknown
  readonly description: string
  readonly justification?: string
  /** Who asks, when that may be weaker than the sender. */
  readonly onBehalfOf?: CertifiedPower
  /** Is it one of those of a broadcast? */
  readonly isBroadcast?: boolean
  /** How long the answer may take; past it the outcome is unknown, and a late answer still counts. */
  readonly timeoutMs: number
  /** Waits for an agent that is offline or has no room now, as long as `timeoutMs` lasts. */
  readonly mayQueue: boolean
  /** Set for the lease of a swarm's item. */
  readonly lease?: { readonly swarm: string; readonly requestId: string; readonly attempt: number }
}

/** How a request ended for its caller. */
export type Answer =
  | { readonly outcome: 'COMPLETED'; readonly result: unknown }
  | { readonly outcome: 'FAILED'; readonly error: ErrorBody }
  | { readonly outcome: 'UNKNOWN'; readonly error: ErrorBody }

/** What following a request needs. */
export interface RequestParts {
  readonly clock: Clock
  readonly outbox: Outbox
  readonly conversations: Conversations
  readonly cancellations: Cancellations
  readonly tasks: Tasks
  /** A peer that says nothing of a request for longer than `leaseMs` has lost it. */
  readonly limits: { readonly leaseMs: number; readonly heartbeatMs: number }
  /** Its peer had no room for it; it may wait until {@link OneRequest.dueAt}. */
  onNoRoom(request: OneRequest): void
  /** It has ended, for good. */
  onEnd(request: OneRequest): void
}

/** What a request is called. */
export interface RequestNames {
  readonly requestId: string
  readonly attempt: number
  readonly correlationId: string
  /** null for leases: the swarm keeps their books. */
  readonly taskId: string | null
}

/** One request from its sending to its answer: its timer, its task and what its replies mean. */
export class OneRequest {
  readonly names: RequestNames
  /** Never rejects. */
  readonly answer: Promise<Answer>
  readonly #parts: RequestParts
  readonly #asking: Asking
  /** When its caller waits no longer, unix milliseconds: the same in every copy, so that they are told to be copies. */
  readonly #until: number
  #timer: Timer
  /** Runs while its peer is gone. */
  #goneTimer: Timer | null = null
  #isSent = false
  #hasGivenUp = false
  /** When its peer last said that it has it, or was asked again; null: its peer never said so. */
  #namedAt: number | null = null
  #patienceMs: number
  /** How often its peer had no room, and what it said last. */
  #refusals = 0
  #refusal: ErrorBody | null = null
  #dueAt = 0
  /** A person at the other side has to allow it, so nothing has begun. */
  #awaitsApproval = false
  #settle: (answer: Answer) => void = () => {}
  #isOver = false

  constructor(parts: RequestParts, asking: Asking, names: RequestNames) {
    this.#parts = parts
    this.#asking = asking
    this.names = names
    this.#patienceMs = parts.limits.leaseMs
    this.#until = Math.round(parts.clock.now() + asking.timeoutMs)
    this.answer = new Promise((resolve) => {
      this.#settle = resolve
    })
    this.#timer = parts.clock.after(asking.timeoutMs, () => this.#giveUp())
  }

  /** The node that is asked. */
  get peer(): NodeId {
    return this.#asking.target.nodeId
  }

  get #thread(): Thread {
    const { sender, target: recipient } = this.#asking
    return { sender, recipient, correlationId: this.names.correlationId }
  }

  /** The run as heartbeats and cancellations name it. */
  get key(): string {
    return workKey(this.names.requestId, this.names.attempt)
  }

  /** Has it ended? After a timeout it has not: a late answer still counts. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Does its caller wait for it? */
  get isAwaited(): boolean {
    return !this.#isOver && !this.#hasGivenUp
  }

  /** When it may be sent again, on the monotonic clock. */
  get dueAt(): number {
    return this.#dueAt
  }

  /** Would it be refused? @throws NodeError what the rules refuse. */
  check(): void {
    this.#parts.outbox.check(this.#head())
  }

  #head(): DraftHead {
    const { sender, target: recipient, capability, justification, onBehalfOf, isBroadcast = false } = this.#asking
    return {
      sender,
      recipient,
      type: 'request',
      capability,
      correlationId: this.names.correlationId,
      ...(justification === undefined ? {} : { justification }),
      isBroadcast,
      ...(onBehalfOf === undefined ? {} : { onBehalfOf })
    }
  }

  /** Sends it; what its peer has lost, once more along the same thread. @throws NodeError what {@link Outbox.send} refuses. */
  async send(): Promise<void> {
    const ttlMs = this.#asking.timeoutMs + LATE_MS
    const refusals = this.#refusals
    await this.#parts.outbox.send({
      payload: this.#payload(),
      ...this.#head(),
      ...(this.#isSent ? {} : { replies: { ttlMs, handler: (header, payload) => this.#onReply(header, payload) } })
    })
    // Its peer may have refused it already.
    if (refusals !== this.#refusals) return
    this.#isSent = true
    // It may have been canceled on its way out.
    if (this.#isOver) this.#parts.cancellations.cancel(this.peer, this.key)
    // An agent of this node is reached before this line is.
    else if (!this.#awaitsApproval) this.#note((tasks, id) => tasks.waitFor(id, null))
  }

  /** Its peer is away; it goes on when the peer is back. A caller who waits for the answer is told soon that there may be none. */
  waitForPeer(): void {
    this.#note((tasks, id) => tasks.waitFor(id, 'peer'))
    // A swarm gives its leases to another by itself.
    if (!this.#isSent || this.#asking.mayQueue || this.#asking.lease !== undefined) return
    const gone = new NodeError('PEER_OFFLINE', 'the peer is gone while it had the work; the work may still go on').toBody()
    this.#goneTimer ??= this.#parts.clock.after(GONE_MS, () => this.#waitNoLonger(gone))
  }

  /** Its peer is back, and has a lease's time to say whether it still has it. */
  peerIsBack(): void {
    this.#stopGoneTimer()
    if (this.#namedAt !== null) this.#namedAt = this.#parts.clock.monotonic()
    this.#note((tasks, id) => tasks.waitFor(id, null))
  }

  /** Time passed: nobody works on what nobody heartbeats. True: its peer had it, but has lost it, and should be asked again. */
  isLost(): boolean {
    if (!this.isAwaited || !this.#isSent || this.#namedAt === null) return false
    if (this.#parts.clock.monotonic() - this.#namedAt <= this.#patienceMs) return false
    this.#note((tasks, id) => tasks.lost(id))
    // A swarm keeps the books of its leases, and gives them to another.
    return this.#asking.lease === undefined
  }

  /** It is asked again: the peer gets more time with each. */
  askedAgain(): void {
    this.#namedAt = this.#parts.clock.monotonic()
    this.#patienceMs = Math.min(MAX_PATIENCE_MS, this.#patienceMs * 2)
  }

  /** The peer has it, but its agent has no free place yet. */
  waitForSlot(): void {
    this.#named()
    this.#awaitsApproval = false
    this.#note((tasks, id) => tasks.waitFor(id, 'slot'))
  }

  /** The peer has it, but a person there has to allow it first. */
  waitForApproval(): void {
    this.#named()
    this.#awaitsApproval = true
    this.#note((tasks, id) => tasks.waitFor(id, 'approval'))
  }

  /** The peer works on it. */
  working(): void {
    this.#named()
    this.#awaitsApproval = false
    this.#note((tasks, id) => {
      tasks.waitFor(id, null)
      tasks.working(id)
    })
  }

  /** It could not be sent, or can never be answered. */
  fail(error: ErrorBody): void {
    this.#finish({ outcome: 'FAILED', error })
  }

  /** Asks the other side to stop; the answer is then a failure with CANCELED. */
  cancel(): void {
    if (this.#isOver) return
    if (this.#isSent) this.#parts.cancellations.cancel(this.peer, this.key)
    this.fail(new NodeError('CANCELED', 'canceled by its caller').toBody())
  }

  /** Nobody will be there to take the answer. */
  abandon(): void {
    if (this.#isOver) return
    this.#end()
    this.#settle({ outcome: 'UNKNOWN', error: new NodeError('CANCELED', 'this node stopped; the work may still go on').toBody() })
  }

  #named(): void {
    this.#namedAt = this.#parts.clock.monotonic()
    this.#patienceMs = this.#parts.limits.leaseMs
  }

  #payload(): RequestPayload {
    const { capability, input, description, lease } = this.#asking
    const { requestId, attempt } = this.names
    return { requestId, attempt, capability, input, description, swarm: lease?.swarm ?? null, until: this.#until }
  }

  #giveUp(): void {
    if (!this.#isSent) {
      // Nothing left this node, so nothing is unknown.
      return this.fail(this.#refusal ?? new NodeError('PEER_OFFLINE', 'the peer did not come back in time; nothing was sent').toBody())
    }
    const why = this.#awaitsApproval ? 'nobody allowed it in time; it was taken back' : 'no answer in time; the work may still go on'
    this.#waitNoLonger(new NodeError('TIMEOUT', why).toBody())
  }

  /** The outcome is unknown; a late answer still counts. */
  #waitNoLonger(error: ErrorBody): void {
    if (!this.isAwaited) return
    const { clock } = this.#parts
    this.#hasGivenUp = true
    this.#stopGoneTimer()
    clock.clear(this.#timer)
    this.#timer = clock.after(LATE_MS, () => this.#end())
    this.#note((tasks, id) => tasks.unknown(id, error))
    // Nobody shall allow it when nobody waits for it. It may have been allowed this moment, so the outcome is not known.
    if (this.#awaitsApproval) this.#parts.cancellations.cancel(this.peer, this.key)
    this.#settle({ outcome: 'UNKNOWN', error })
  }

  #stopGoneTimer(): void {
    this.#parts.clock.clear(this.#goneTimer)
    this.#goneTimer = null
  }

  #onReply(header: EnvelopeHeader, payload: unknown): void {
    const answer = readReply(header, payload, this.names)
    if (answer === null) return
    if ('progress' in answer) this.#note((tasks, id) => tasks.progress(id, answer.progress))
    else if (answer.outcome === 'COMPLETED') this.#finish(answer)
    else if (NOT_DONE.has(answer.error.code) && this.mayWait) this.noRoom(answer.error)
    else this.#finish({ outcome: 'FAILED', error: refusedThere(answer.error, this.peer) })
  }

  /** May it wait for its peer to come back, or to have room? */
  get mayWait(): boolean {
    return this.#asking.mayQueue && this.isAwaited
  }

  /** There is no room for it, here or there, or its peer stops: it waits, longer each time. */
  noRoom(error: ErrorBody): void {
    const { clock, conversations, onNoRoom } = this.#parts
    this.#dueAt = clock.monotonic() + Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** this.#refusals++)
    this.#refusal = error
    if (this.#isSent) this.#note((tasks, id) => tasks.lost(id))
    this.#isSent = false
    this.#namedAt = null
    conversations.end(this.#thread)
    this.#note((tasks, id) => tasks.waitFor(id, error.code === 'PEER_OFFLINE' ? 'peer' : 'slot'))
    onNoRoom(this)
  }

  #finish(answer: Exclude<Answer, { outcome: 'UNKNOWN' }>): void {
    if (this.#isOver) return
    this.#end()
    this.#note((tasks, id) => (answer.outcome === 'COMPLETED' ? tasks.complete(id, answer.result) : tasks.fail(id, answer.error)))
    this.#settle(answer)
  }

  #end(): void {
    const { clock, conversations, onEnd } = this.#parts
    this.#isOver = true
    clock.clear(this.#timer)
    this.#stopGoneTimer()
    conversations.end(this.#thread)
    onEnd(this)
  }

  /** Leases have no task of their own. */
  #note(tell: (tasks: Tasks, taskId: string) => void): void {
    if (this.names.taskId !== null) tell(this.#parts.tasks, this.names.taskId)
  }
}

/** What a reply says: an outcome, progress, or nothing that counts (null). */
function readReply(
  header: EnvelopeHeader,
  payload: unknown,
  expected: RequestNames
): Exclude<Answer, { outcome: 'UNKNOWN' }> | { readonly progress: unknown } | null {
  if (header.type === 'error') {
    const error = errorBodySchema.safeParse(payload)
    return error.success ? { outcome: 'FAILED', error: error.data } : null
  }
  if (header.type === 'stream-data') {
    const data = progressPayloadSchema.safeParse(payload)
    return data.success ? { progress: data.data.progress } : null
  }
  if (header.type !== 'response') return null
  const response = responsePayloadSchema.safeParse(payload)
  if (!response.success || response.data.requestId !== expected.requestId || response.data.attempt !== expected.attempt) return null
  if (response.data.outcome === 'COMPLETED') return { outcome: 'COMPLETED', result: response.data.result ?? null }
  return { outcome: 'FAILED', error: response.data.error ?? new NodeError('TASK_FAILED', 'the agent failed').toBody() }
}
