import { backoffMs } from '../../../kit/backoff.js'
import type { Timer } from '../../../kit/clock.js'
import { asNodeError, NodeError } from '../../../kit/errors.js'
import type { ErrorBody } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import type { EnvelopeHeader } from '../../../domain/envelope/codec.js'
import { decideRepeat, errorForCaller, mayRunAgain, retryAfterMs } from '../../../domain/reliable/repeat.js'
import { workKey } from '../../../domain/task/payloads.js'
import type { RequestPayload } from '../../../domain/task/payloads.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import {
  headOf,
  isByNeighbour,
  isNotDone,
  isOfOneCopy,
  outcomeOf,
  PATIENCE,
  readReply,
  requestPayload,
  retryAfter,
  STORED
} from './request-codec.js'
import type { Answer, Asking, Ended, RequestMaking, RequestNames, RequestDeps } from './request-codec.js'
import { changesOfSending, inDoubt, storedInput } from './record.js'
import type { CallerRecord } from './record.js'
import { DeliveryAttempts, LivenessTimer } from './delivery.js'
import type { ReplyHandler } from '../../messaging/exchange-table.js'
import { ENDINGS } from '../../../domain/task/outcome.js'
import type { Thread } from '../../messaging/inbound-message.js'
import type { TaskTable } from '../../tasks/task-table.js'

/** One request from its sending to its answer: its timer, its task and what its replies mean. */
export class OutgoingRequest {
  readonly names: RequestNames
  /** Never rejects. */
  readonly answer: Promise<Answer>
  readonly #deps: RequestDeps
  readonly #asking: Asking
  #timer: Timer
  /** Runs while its peer is gone. */
  #goneTimer: Timer | null = null
  #isSent = false
  /** It may be with its node before this one knows. */
  #isLeaving = false
  #hasGivenUp = false
  readonly #liveness: LivenessTimer
  readonly #copies: DeliveryAttempts
  /** How often its peer had no room, and what it said last. */
  #refusals = 0
  #refusal: ErrorBody | null = null
  /** What its peer said last of a copy of it that it has no more. */
  #ofOneCopy: ErrorBody | null = null
  #isPeerOut = false
  /** Queries without an answer: those sent since its peer last refused it, and those before. */
  #queries = 0
  #staleQueries = 0
  #dueAt = 0
  /** A person at the other side has to allow it, so nothing has begun. */
  #awaitsApproval = false
  #settle: (answer: Answer) => void = () => {}
  #isOver = false
  /** The end that whoever waits is told, unless a reply is recorded first. */
  #fallbackEnd: Ended | null = null
  /** null for leases, of which the swarm keeps the books, and for what is not recorded. */
  readonly #record: CallerRecord | null

  /** `record`: what the ledger holds of it, or is to hold. */
  constructor(deps: RequestDeps, { asking, names, record }: RequestMaking) {
    this.#deps = deps
    this.#asking = asking
    this.names = names
    this.#record = record
    this.#liveness = new LivenessTimer(deps.clock, deps.limits.leaseMs)
    this.#copies = new DeliveryAttempts(record?.current.tries ?? 0)
    this.#refusal = record?.refusal ?? null
    this.#dueAt = deps.clock.monotonic() + (record?.restMs(deps.clock.now()) ?? 0)
    this.answer = new Promise((resolve) => {
      this.#settle = resolve
    })
    this.#hasGivenUp = record?.current.status === 'unknown'
    this.#isSent = record !== null && record.current.tries > 0
    this.#timer = deps.clock.after(this.#hasGivenUp ? this.#lateMs : this.#leftMs, () => (this.#hasGivenUp ? this.#end() : this.#giveUp()))
  }

  /** A request that was read from the ledger goes on: replies to it may come. Without a message on a lane its peer has a lease's time to name it. */
  resume(): void {
    if (!this.#isSent) return
    this.#deps.exchanges.sentOut(this.#thread, this.#replies())
    if (!this.isQueued) this.#liveness.onHeartbeat()
  }

  /** Does a lane still deliver a message of it? */
  get isQueued(): boolean {
    return this.#deps.lanes.holds(this.peer, this.names.requestId)
  }

  /** Its message is durable at its peer, which names it from now on. */
  acknowledged(): void {
    this.#liveness.onHeartbeat()
  }

  /** Is its outcome pursued: by its peer, which named it, or by this node, which asks again or records its end? */
  get isTended(): boolean {
    return this.#isOver || this.#hasGivenUp || this.#isLeaving || this.#liveness.isExpected
  }

  /** Its peer is expected to name it from now on, and is asked again when it does not. */
  tend(): void {
    this.#liveness.onHeartbeat()
  }

  /** It was for an agent of this node, which ended meanwhile: what may be repeated begins anew, of the rest it is unknown whether it was done. */
  interrupted(): void {
    const record = this.#record?.current
    if (this.#isOver || record === undefined) return
    // Its agent ended before this node did, and said that nobody can know.
    if (record.status === 'unknown' && record.retryAt === null && !record.isRepeatable) return
    this.#isSent = false
    if (!mayRunAgain({ isRepeatable: record.isRepeatable, isUndone: record.tries === 0 }))
      return this.#waitNoLonger(ENDINGS.interrupted.error, null)
    this.send().catch((error: unknown) => {
      if (record.tries === 0) this.fail(asNodeError(error).toBody())
      else this.#waitNoLonger(asNodeError(error).toBody(), retryAfter(this.#deps, 0))
    })
  }

  /** Is it with its node? */
  get isSent(): boolean {
    return this.#isSent
  }

  /** May it be asked for once more now, since its outcome is not known? */
  isDue(now: number): boolean {
    return this.#record !== null && !this.#isOver && this.#record.isDue(now)
  }

  /** How long a late answer still counts. */
  get #lateMs(): number {
    return this.#record === null ? PATIENCE.lateMs : Math.max(0, this.#record.current.expiresAt - this.#deps.clock.now())
  }

  /** The node that is asked. */
  get peer(): NodeId {
    return this.#asking.target.nodeId
  }

  get #isUnrecorded(): boolean {
    return this.#record === null && this.#asking.lease === undefined
  }

  get #thread(): Thread {
    return { sender: this.#asking.sender, recipient: this.#asking.target, correlationId: this.names.correlationId }
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
    this.#deps.outbound.check(headOf(this.#asking, this.names))
  }

  /** Makes it durable as one that waits. @throws NodeError what the ledger refuses. */
  async keep(): Promise<void> {
    const changes = this.#record?.waiting(this.#deps.clock.now(), () => this.#asking.input, null) ?? []
    await this.#deps.lanes.commit(changes)
  }

  /** Sends it; what its peer has lost, once more along the same thread. @throws NodeError what {@link Outbound.send} refuses. */
  async send(isQuery = this.#asking.lease?.isQuery === true): Promise<void> {
    const refusals = this.#refusals
    await this.#post(isQuery)
    // Its peer may have refused it already.
    if (refusals !== this.#refusals) return
    this.#isSent = true
    // No lane delivers it again: it is lost unless its peer says that it has it.
    if (this.#isUnrecorded) this.#liveness.onHeartbeat()
    // It may have been canceled on its way out.
    if (this.#isOver) this.#deps.cancellations.cancel(this.peer, this.key)
    // An agent of this node is reached before this line is.
    else if (!this.#awaitsApproval) this.#note((tasks, id) => tasks.waitFor(id, null))
  }

  /** Asks once more for an outcome that is not known: what may not be repeated only asks how it stands. @throws NodeError as {@link OutgoingRequest.send}. */
  async askOutcome(): Promise<void> {
    const again = this.#record?.askedAgain(this.#deps.clock.now(), this.#deps.chance()) ?? null
    if (again === null) return
    // Its input may not be there to read now: that is no reason never to ask again.
    await this.#post(again.kind === 'query', again.changes).catch(again.failed)
    this.#isSent = true
  }

  async #post(isQuery: boolean, changes = (): readonly LedgerChange[] => this.#changesOfSending()): Promise<void> {
    const input = isQuery ? null : this.#asking.input
    const payload = this.#payload(isQuery, input === STORED ? await storedInput(this.#record) : input)
    const ttlMs = this.#hasGivenUp ? this.#deps.limits.leaseMs : Math.max(1, this.#leftMs)
    const kept = payload.isUnrecorded ? {} : { reliable: { requestId: this.names.requestId, mayWait: false, ttlMs, changes } }
    const replies = this.#isSent ? {} : { replies: this.#replies() }
    this.#copies.sending()
    if (isQuery) this.#queries++
    try {
      await this.#deps.outbound.send({ payload, ...kept, ...headOf(this.#asking, this.names), ...replies })
    } catch (error) {
      this.#copies.notSent()
      if (isQuery) this.#queries--
      throw error
    } finally {
      this.#isLeaving = false
    }
  }

  #changesOfSending(): readonly LedgerChange[] {
    // It may have ended while a way to its node was looked for.
    if (this.#fallbackEnd?.outcome === 'FAILED') throw NodeError.fromBody(this.#fallbackEnd.error)
    this.#isLeaving = true
    return this.#hasGivenUp ? [] : changesOfSending(this.#asking, this.#record, this.#deps.clock.now())
  }

  #replies(): { readonly ttlMs: number; readonly handler: ReplyHandler } {
    return { ttlMs: this.#leftMs + this.#lateMs, handler: (header, payload) => this.#onReply(header, payload) }
  }

  /** Until nobody waits for it any more: never longer than it was given, also when the clock was put back. */
  get #leftMs(): number {
    const { deadline } = this.#record?.current ?? { deadline: Number.POSITIVE_INFINITY }
    return Math.min(this.#asking.timeoutMs, Math.max(0, deadline - this.#deps.clock.now()))
  }

  /** Its peer is away; it goes on when the peer is back. A caller who waits for the answer is told soon that there may be none. */
  waitForPeer(): void {
    this.#note((tasks, id) => tasks.waitFor(id, 'peer'))
    // A swarm gives its leases to another by itself.
    if (!this.#isSent || this.#asking.mayQueue || this.#asking.lease !== undefined) return
    const gone = new NodeError('PEER_OFFLINE', 'the peer is gone while it had the work; the work may still go on').toBody()
    this.#goneTimer ??= this.#deps.clock.after(PATIENCE.goneMs, () => this.#waitNoLonger(gone, retryAfter(this.#deps, this.#leftMs)))
  }

  /** Its peer is back, and has a lease's time to say whether it still has it. */
  peerIsBack(): void {
    this.#stopGoneTimer()
    this.#record?.peerIsBack(this.#deps.clock.now())
    this.#liveness.isBack()
    this.#note((tasks, id) => tasks.waitFor(id, null))
  }

  /** Time passed: nobody works on what nobody heartbeats. True: its peer had it, but has lost it, and should be asked again. */
  isLost(): boolean {
    if (!this.isAwaited || !this.#isSent || !this.#liveness.isLost) return false
    this.#note((tasks, id) => tasks.lost(id))
    // A swarm keeps the books of its leases, and gives them to another.
    return this.#asking.lease === undefined
  }

  /** Sends again what its peer had: one that lost its disk does not begin again what may not be repeated. @throws as {@link OutgoingRequest.send}. */
  async sendAgain(): Promise<void> {
    this.#liveness.askedAgain()
    await this.send(this.#record?.current.isRepeatable === false)
  }

  /** The peer says that it has it: it works on it (null), or that waits for a free place of its agent, or for a person there. */
  named(waitingFor: 'slot' | 'approval' | null): void {
    this.#liveness.onHeartbeat()
    this.#waitFor(waitingFor)
    if (waitingFor === null) this.#note((tasks, id) => tasks.working(id))
  }

  #waitFor(waitingFor: 'slot' | 'approval' | null): void {
    this.#awaitsApproval = waitingFor === 'approval'
    this.#note((tasks, id) => tasks.waitFor(id, waitingFor))
  }

  /** It could not be sent, or can never be answered. */
  fail(error: ErrorBody): void {
    this.#conclude({ outcome: 'FAILED', error })
  }

  /** Asks the other side to stop; the answer is then a failure with CANCELED, unless another is being recorded. */
  cancel(): void {
    this.#conclude({ outcome: 'FAILED', error: new NodeError('CANCELED', 'canceled by its caller').toBody() }, true)
  }

  /** What a reply says counts once it is recorded: this ends it if that is not. */
  #conclude(answer: Ended, isUnwanted?: boolean): void {
    if (this.#record?.isSettled === true) this.#fallbackEnd ??= answer
    else void this.#finish(answer, isUnwanted)
  }

  /** Nobody will be there to take the answer. */
  abandon(): void {
    if (this.#isOver) return
    this.#end()
    this.#settle({ outcome: 'UNKNOWN', error: new NodeError('CANCELED', 'this node stopped; the work may still go on').toBody() })
  }

  #payload(isQuery: boolean, input: unknown): RequestPayload {
    return requestPayload(this.#asking, this.names, {
      timeoutMs: this.#hasGivenUp ? this.#asking.timeoutMs : this.#leftMs,
      ttlMs: this.#leftMs + this.#lateMs,
      isQuery,
      isUnrecorded: this.#isUnrecorded,
      isAgain: this.#copies.isOut || this.#refusal?.code === 'PEER_OFFLINE',
      input
    })
  }

  /** Did anything of it leave this node? */
  get #hasLeft(): boolean {
    return this.#isSent || this.#isLeaving || (this.#record?.current.tries ?? 0) > 0
  }

  /** Its peer was put out of the mesh and never answers: of what may have begun there it is unknown whether it was done. */
  peerIsOut(): void {
    this.#isPeerOut = true
    // What it said before is being recorded.
    if (this.#record?.isSettled === true) return
    const isKnown = this.isAwaited && !this.#hasLeft
    // A swarm keeps the books of its leases.
    if (isKnown || this.#asking.lease !== undefined)
      return this.fail(new NodeError('PEER_OFFLINE', 'the peer was put out of the mesh').toBody())
    this.#waitNoLonger(new NodeError('PEER_OFFLINE', 'the peer was put out of the mesh; the work may have been done').toBody(), null)
    this.#end()
  }

  #giveUp(): void {
    if (!this.#hasLeft) {
      // Nothing left this node, so nothing is unknown.
      return this.fail(this.#refusal ?? new NodeError('PEER_OFFLINE', 'the peer did not come back in time; nothing was sent').toBody())
    }
    const why = this.#awaitsApproval ? 'nobody allowed it in time; it was taken back' : 'no answer in time; the work may still go on'
    this.#waitNoLonger(new NodeError('TIMEOUT', why).toBody(), retryAfter(this.#deps, 0))
  }

  /** The outcome is unknown; a late answer still counts. `retryAt` null: its peer never will know, so it is not asked again. */
  #waitNoLonger(stated: ErrorBody, retryAt: number | null): void {
    const doubt = inDoubt(stated, this.#asking, this.#record)
    const error = retryAt === null ? { ...doubt, isFinal: true as const } : doubt
    this.#note((tasks, id) => tasks.unknown(id, error))
    void this.#commit(this.#record?.ended({ status: 'unknown', error, retryAt }, this.#deps.clock.now()) ?? [])
    if (!this.isAwaited) return
    this.#hasGivenUp = true
    this.#stopGoneTimer()
    this.#deps.clock.clear(this.#timer)
    this.#timer = this.#deps.clock.after(this.#lateMs, () => this.#end())
    // Nobody shall allow it when nobody waits for it. It may have been allowed this moment, so the outcome is not known.
    if (this.#awaitsApproval) this.#deps.cancellations.cancel(this.peer, this.key)
    this.#settle({ outcome: 'UNKNOWN', error })
  }

  /** What a reply says; null for nothing that counts. Leases are judged by their swarm. */
  #read(header: EnvelopeHeader, payload: unknown): ReturnType<typeof readReply> {
    const answer = readReply(header, payload, this)
    if (answer === null || !('outcome' in answer) || answer.outcome !== 'FAILED' || this.#record === null) return answer
    const { isRepeatable } = this.#record.current
    return { ...answer, error: errorForCaller({ error: answer.error, isUnknown: false, isRepeatable }) }
  }

  /** What a reply that came over a lane changes in the ledger, in the commit that acknowledges it. */
  recordReply(header: EnvelopeHeader, payload: unknown): readonly LedgerChange[] {
    const answer = this.#isOver ? null : this.#read(header, payload)
    if (answer === null || !('outcome' in answer) || this.#record === null || this.#isStale(answer)) return []
    const now = this.#deps.clock.now()
    if (this.#isOneOfCopies(answer) && !this.#copies.isLast) return []
    // Its peer has forgotten it: whoever takes it up after a crash has to send it again.
    if (this.#repeats(answer)) return this.#record.waiting(now, () => this.#asking.input, answer.error)
    return this.#record.ended(outcomeOf(answer), now)
  }

  /** What a reply says was not recorded: it comes again, unless the request was to end meanwhile. */
  replyNotRecorded(): void {
    this.#record?.notEnded()
    if (this.#isPeerOut) return this.peerIsOut()
    if (this.#fallbackEnd !== null) void this.#finish(this.#fallbackEnd, true)
  }

  #stopGoneTimer(): void {
    this.#deps.clock.clear(this.#goneTimer)
    this.#goneTimer = null
  }

  #onReply(header: EnvelopeHeader, payload: unknown): void {
    const answer = this.#read(header, payload)
    if (answer === null) return
    if (this.#isStale(answer)) return void this.#staleQueries--
    if ('run' in answer) this.#note((tasks, id) => tasks.attempt(id, answer.run ?? 1))
    if ('progress' in answer) this.#note((tasks, id) => tasks.progress(id, answer.progress))
    else if (answer.outcome === 'UNKNOWN') this.#waitNoLonger(answer.error, null)
    // Another copy may be under way all the same, and has an answer of its own.
    else if (isOfOneCopy(answer) && !this.#copies.denied() && this.#isOneOfCopies(answer)) this.#ofOneCopy = answer.error
    else if (this.#repeats(answer)) this.refuse(answer.error)
    else void this.#finish(answer)
  }

  /**
   * Was only one of several messages not taken? Of what may not be repeated its peer says so of the one copy: no second one is sent
   * before the first was refused, and all others are queries. A neighbour on the way says it of any.
   */
  #isOneOfCopies(answer: Answer): boolean {
    return isOfOneCopy(answer) && (this.#record?.current.isRepeatable !== false || isByNeighbour(answer.error))
  }

  /** Does it answer a query from before its peer refused it? That peer kept nothing of what it refused, so it could only say that it has no trace. */
  #isStale(answer: NonNullable<ReturnType<typeof readReply>>): boolean {
    return 'outcome' in answer && answer.outcome === 'UNKNOWN' && this.#staleQueries > 0
  }

  /** A copy of it certainly never got there, nor will. What is past its time is not begun by a later one either. */
  undelivered(): void {
    if (!this.#isOver && this.#copies.denied()) this.fail(this.#ofOneCopy ?? this.#refusal ?? ENDINGS.undelivered.error)
    else if (this.#hasGivenUp) this.#deps.lanes.giveUp(this.peer, this.names.requestId)
  }

  /** Is it sent again after this answer? Only where its caller lets it wait, and what its agent made of it is its end. */
  #repeats(answer: Answer): answer is Extract<Ended, { outcome: 'FAILED' }> {
    if (answer.outcome !== 'FAILED' || !this.mayWait) return false
    const isRepeatable = this.#record?.current.isRepeatable ?? true
    const tried = { error: answer.error, isUnknown: false, isRepeatable, failures: 0, retries: 0, leftMs: this.#leftMs }
    return decideRepeat(tried).type === 'repeat'
  }

  /** May it wait for its peer to come back, or to have room? */
  get mayWait(): boolean {
    return this.#asking.mayQueue && this.isAwaited
  }

  /** There is no room for it, here or there, or its peer stops: it waits, longer each time. */
  refuse(error: ErrorBody): void {
    // Its end came in the same commit, and is about to be told.
    if (this.#record?.isSettled === true) return
    const { clock, exchanges, onFull } = this.#deps
    const waitMs = backoffMs(PATIENCE.refused, this.#refusals++)
    this.#dueAt = clock.monotonic() + Math.max(waitMs, retryAfterMs(error))
    this.#refusal = error
    if (this.#isSent) this.#note((tasks, id) => tasks.lost(id))
    this.#isSent = false
    this.#staleQueries += this.#queries
    this.#queries = 0
    this.#liveness.forget()
    exchanges.end(this.#thread)
    void this.#commit(this.#record?.waiting(clock.now(), () => this.#asking.input, error) ?? [])
    this.#note((tasks, id) => tasks.waitFor(id, error.code === 'PEER_OFFLINE' ? 'peer' : 'slot'))
    onFull(this)
  }

  /** How it ended is shown when that is durable. Whoever waits is told once the ledger took it, or does not take it now. */
  async #finish(answer: Ended, isUnwanted = isNotDone(answer)): Promise<void> {
    if (this.#isOver) return
    this.#end()
    this.#fallbackEnd = answer
    // Its peer forgets what it did not do: a copy that comes later would begin it.
    if (isUnwanted) this.#deps.lanes.giveUp(this.peer, this.names.requestId)
    if (isUnwanted && this.#isSent) this.#deps.cancellations.cancel(this.peer, this.key)
    const tell = (): void =>
      this.#note((tasks, id) => (answer.outcome === 'COMPLETED' ? tasks.complete(id, answer.result) : tasks.fail(id, answer.error)))
    const changes = this.#record?.ended(outcomeOf(answer), this.#deps.clock.now()) ?? []
    const isNow = changes.length === 0 || (answer.outcome === 'FAILED' && answer.error.code === 'CANCELED' && !this.#hasGivenUp)
    if (isNow) tell()
    const isKept = await this.#commit(changes)
    if (isKept && !isNow) tell()
    this.#settle(answer)
    if (!isKept) this.#deps.ends.add({ changes, notify: isNow ? () => {} : tell })
  }

  #commit(changes: readonly LedgerChange[]): Promise<boolean> {
    return this.#deps.record(changes, this.names.requestId)
  }

  #end(): void {
    const { clock, exchanges, onEnd } = this.#deps
    this.#isOver = true
    clock.clear(this.#timer)
    this.#stopGoneTimer()
    exchanges.end(this.#thread)
    onEnd(this)
  }

  /** Leases have no task of their own. */
  #note(tell: (tasks: TaskTable, taskId: string) => void): void {
    if (this.names.taskId !== null) tell(this.#deps.tasks, this.names.taskId)
  }
}
