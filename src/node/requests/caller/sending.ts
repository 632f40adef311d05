import { backoffMs } from '../../../kit/backoff.js'
import { NodeError, type ErrorBody } from '../../../kit/errors.js'
import { addressText } from '../../../domain/card/card.js'
import { retryAfterMs } from '../../../domain/reliable/repeat.js'
import { workKey } from '../../../domain/task/payloads.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import type { ReplyHandler } from '../../messaging/exchange-table.js'
import type { Thread } from '../../messaging/inbound-message.js'
import { DeliveryAttempts } from './delivery.js'
import type { ApprovalWait } from './approval-wait.js'
import type { RequestOutcome } from './outcome.js'
import { changesOfSending, storedForm, storedInput } from './record.js'
import { headOf, hasNoRecord, lateMs, leftMs, PATIENCE, requestPayload, STORED } from './request-codec.js'
import type { Asking, RequestDeps, RequestMaking } from './request-codec.js'

/** The messages of one request: sends them, and tracks the copies at its peer and the peer's refusals. */
export class RequestSending {
  /** Name of the run in heartbeats and cancellations. */
  readonly key: string
  /** Address of the target agent. */
  readonly agent: string
  readonly copies: DeliveryAttempts
  readonly #deps: RequestDeps
  readonly #making: RequestMaking
  readonly #outcome: RequestOutcome
  readonly #onReply: ReplyHandler
  readonly #approvalWait: ApprovalWait
  readonly #thread: Thread
  #isSent: boolean
  /** It may be with its node before this one knows. */
  #isLeaving = false
  /** Count of its peer's refusals, and the last one. */
  #refusals = 0
  #refusal: ErrorBody | null
  #dueAt: number
  /** Queries without an answer: sent since its peer's last refusal, and before it. */
  #queries = 0
  #staleQueries = 0

  constructor(
    deps: RequestDeps,
    making: RequestMaking,
    parts: { readonly outcome: RequestOutcome; readonly onReply: ReplyHandler; readonly approvalWait: ApprovalWait }
  ) {
    const { asking, names, record } = making
    this.#thread = { sender: asking.sender, recipient: asking.target, correlationId: names.correlationId }
    this.key = workKey(names.requestId, names.attempt)
    this.agent = addressText(asking.target)
    this.copies = new DeliveryAttempts(record?.current.tries ?? 0)
    this.#deps = deps
    this.#making = making
    this.#outcome = parts.outcome
    this.#onReply = parts.onReply
    this.#approvalWait = parts.approvalWait
    this.#isSent = record !== null && record.current.tries > 0
    this.#refusal = record?.refusal ?? null
    this.#dueAt = deps.clock.monotonic() + (record?.restMs(deps.clock.now()) ?? 0)
  }

  /** Is it with its node? */
  get isSent(): boolean {
    return this.#isSent
  }

  /** Is a message of it being sent? */
  get isLeaving(): boolean {
    return this.#isLeaving
  }

  /** Does a lane still deliver a message of it? */
  get isQueued(): boolean {
    return this.#deps.lanes.holds(this.#thread.recipient.nodeId, this.#making.names.requestId)
  }

  /** Did any message of it leave this node? */
  get hasLeft(): boolean {
    return this.#isSent || this.#isLeaving || (this.#making.record?.current.tries ?? 0) > 0
  }

  /** The last refusal of its peer; null when there is none. */
  get refusal(): ErrorBody | null {
    return this.#refusal
  }

  /** Monotonic milliseconds from which it may be sent again. */
  get dueAt(): number {
    return this.#dueAt
  }

  /** Checks it against the rules. @throws NodeError their refusal. */
  check(): void {
    this.#deps.outbound.check(headOf(this.#making.asking, this.#making.names))
  }

  /** Makes it durable as a waiting request. @throws NodeError the ledger's error. */
  async keep(): Promise<void> {
    const { record, asking } = this.#making
    await this.#deps.lanes.commit(record?.waiting(this.#deps.clock.now(), () => storedForm(asking), null) ?? [])
  }

  /** Replies to messages from before this start may come. */
  resume(): void {
    this.#deps.exchanges.sentOut(this.#thread, this.#replies())
  }

  /**
   * Sends a message along its thread. False: its peer refused it meanwhile.
   * @throws NodeError as {@link Outbound.send}.
   */
  async post(isQuery: boolean, changes = (): readonly LedgerChange[] => this.#changes()): Promise<boolean> {
    const { asking, names, record } = this.#making
    const refusals = this.#refusals
    const asked = isQuery ? { input: null } : asking.input === STORED ? await storedInput(record) : asking
    const payload = this.#payload(isQuery, asked)
    const ttlMs = this.#outcome.hasGivenUp ? this.#deps.limits.leaseMs : Math.max(1, this.#leftMs)
    const kept = payload.isUnrecorded
      ? {}
      : { reliable: { requestId: names.requestId, mayWait: false, ttlMs, changes } }
    const replies = this.#isSent ? {} : { replies: this.#replies() }
    this.copies.sending()
    if (isQuery) this.#queries++
    try {
      await this.#deps.outbound.send({ payload, ...kept, ...headOf(asking, names), ...replies })
    } catch (error) {
      this.copies.notSent()
      if (isQuery) this.#queries--
      throw error
    } finally {
      this.#isLeaving = false
    }
    if (refusals !== this.#refusals) return false
    this.#isSent = true
    return true
  }

  /** Its peer refused it: it may be sent again after a delay, longer each time. */
  refused(error: ErrorBody): void {
    const waitMs = backoffMs(PATIENCE.refused, this.#refusals++)
    this.#dueAt = this.#deps.clock.monotonic() + Math.max(waitMs, retryAfterMs(error))
    this.#refusal = error
    this.#isSent = false
    this.#staleQueries += this.#queries
    this.#queries = 0
    this.end()
  }

  /** Its peer has lost it. */
  lost(): void {
    this.#isSent = false
  }

  /** Is an unknown outcome stale: the answer to a query from before the refusal of its peer, which kept no record? */
  get isStale(): boolean {
    return this.#staleQueries > 0
  }

  /** A stale answer came. */
  stale(): void {
    this.#staleQueries--
  }

  /** Ends its thread: further replies are ignored. */
  end(): void {
    this.#deps.exchanges.end(this.#thread)
  }

  /** Cancels it at its peer. */
  cancel(): void {
    this.#deps.cancellations.cancel(this.#thread.recipient.nodeId, this.key)
  }

  /** Takes back undelivered messages. */
  giveUp(): void {
    this.#deps.lanes.giveUp(this.#thread.recipient.nodeId, this.#making.names.requestId)
  }

  #changes(): readonly LedgerChange[] {
    // It may have ended during the search for a route.
    if (this.#outcome.failure !== null) throw NodeError.fromBody(this.#outcome.failure)
    this.#isLeaving = true
    const { asking, record } = this.#making
    return this.#outcome.hasGivenUp ? [] : changesOfSending(asking, record, this.#deps.clock.now())
  }

  #payload(
    isQuery: boolean,
    { input, conversation }: Pick<Asking, 'input' | 'conversation'>
  ): ReturnType<typeof requestPayload> {
    const { asking, names } = this.#making
    const timeoutMs = this.#outcome.hasGivenUp ? asking.timeoutMs : this.#leftMs
    return requestPayload(asking, names, {
      timeoutMs,
      // The deadline of a swarm passes while its items wait.
      approvalMs: asking.lease === undefined ? timeoutMs + this.#approvalWait.leftMs : undefined,
      ttlMs: this.#ttlMs,
      isQuery,
      isUnrecorded: hasNoRecord(this.#making),
      isAgain: this.copies.isOut || this.#refusal?.code === 'PEER_OFFLINE',
      input,
      conversation
    })
  }

  #replies(): { readonly ttlMs: number; readonly handler: ReplyHandler } {
    return { ttlMs: this.#ttlMs, handler: this.#onReply }
  }

  get #leftMs(): number {
    return leftMs(this.#making, this.#deps.clock.now() - this.#approvalWait.ms)
  }

  get #ttlMs(): number {
    return this.#leftMs + lateMs(this.#making, this.#deps.clock.now())
  }
}
