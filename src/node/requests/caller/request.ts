import { asNodeError, NodeError, type ErrorBody } from '../../../kit/errors.js'
import { formatDuration } from '../../../kit/units.js'
import type { NodeId } from '../../../kit/ids.js'
import { mayRunAgain } from '../../../domain/reliable/repeat.js'
import { ENDINGS } from '../../../domain/task/outcome.js'
import { CallerTimers } from './approval-wait.js'
import { RequestOutcome } from './outcome.js'
import { type CallerRecord, storedForm } from './record.js'
import type { QueuedRequest } from './peer-queue.js'
import { ReplyReader } from './reply-reader.js'
import { ReportedRequest } from './reports.js'
import { hasNoRecord, lateMs, leftMs, retryAfter } from './request-codec.js'
import type { RequestDeps, RequestMaking, RequestNames } from './request-codec.js'
import { RequestSending } from './sending.js'

/** One request from its sending to its answer: watches its peer and its time, and sends it again when needed. */
export class OutgoingRequest implements QueuedRequest {
  readonly names: RequestNames
  readonly outcome: RequestOutcome
  readonly sending: RequestSending
  readonly replies: ReplyReader
  readonly reported: ReportedRequest
  readonly #deps: RequestDeps
  readonly #making: RequestMaking
  /** null for leases, which the swarm records, and for unrecorded requests. */
  readonly #record: CallerRecord | null
  readonly #timers: CallerTimers
  #isPeerOut = false

  /** `making.record`: the ledger record of the request, stored or not yet. */
  constructor(deps: RequestDeps, making: RequestMaking) {
    this.#deps = deps
    this.#making = making
    this.#record = making.record
    this.names = making.names
    this.outcome = new RequestOutcome(deps, making, {
      onGivenUp: () => this.#givenUp(),
      onEnd: () => this.#ended(),
      onUnwanted: () => {
        this.sending.giveUp()
        if (this.sending.isSent) this.sending.cancel()
      }
    })
    const { outcome } = this
    this.reported = new ReportedRequest(deps, making, { outcome, onApprovalOver: () => this.#timers.goesOn() })
    this.sending = new RequestSending(deps, making, {
      outcome,
      approvalWait: this.reported.approvalWait,
      onReply: (header, payload) => this.replies.receive(header, payload)
    })
    this.replies = new ReplyReader(deps, making, {
      outcome,
      sending: this.sending,
      onRefused: (error) => this.refuse(error),
      onNotRecorded: () => this.#notRecorded()
    })
    this.#timers = new CallerTimers(deps.clock, this.reported.approvalWait, {
      isExtended: making.asking.lease === undefined,
      onTimeout: () => this.#giveUp(),
      onGone: () => this.#peerIsGone(),
      onLate: () => outcome.close()
    })
    if (outcome.hasGivenUp) this.#timers.startLate(this.#lateMs)
    else this.#timers.start(this.#leftMs)
  }

  /**
   * Resumes a request from the ledger: replies may arrive. Without a message on a lane its peer has `leaseMs` to report
   * it.
   */
  resume(): void {
    if (!this.sending.isSent) return
    this.sending.resume()
    if (!this.sending.isQueued) this.reported.liveness.onHeartbeat()
  }

  /**
   * Is its outcome pursued: by a lane, by its peer that reported it, or by this node, which asks again or records its
   * end?
   */
  get isTended(): boolean {
    return !this.isAwaited || this.sending.isLeaving || this.reported.liveness.isExpected || this.sending.isQueued
  }

  /**
   * It was for an agent of this node, which ended meanwhile. A repeatable request begins again; else its outcome is
   * unknown.
   */
  interrupted(): void {
    const record = this.#record?.current
    if (this.outcome.isOver || record === undefined) return
    // Its agent ended before this node did, with an outcome that is unknown for good.
    if (record.status === 'unknown' && record.retryAt === null && !record.isRepeatable) return
    this.sending.lost()
    if (!mayRunAgain({ isRepeatable: record.isRepeatable, isUndone: record.tries === 0 }))
      return this.outcome.unknown(ENDINGS.interrupted.error, null)
    this.send().catch((error: unknown) => {
      if (record.tries === 0) this.outcome.fail(asNodeError(error).toBody())
      else this.outcome.unknown(asNodeError(error).toBody(), retryAfter(this.#deps, 0))
    })
  }

  /** The target node. */
  get peer(): NodeId {
    return this.#making.asking.target.nodeId
  }

  /** Does its caller wait for it? */
  get isAwaited(): boolean {
    return this.outcome.isAwaited
  }

  /** Monotonic milliseconds from which it may be sent again. */
  get dueAt(): number {
    return this.sending.dueAt
  }

  get #leftMs(): number {
    return leftMs(this.#making, this.#deps.clock.now())
  }

  /** Sends it; a lost one once more along the same thread. @throws NodeError as {@link Outbound.send}. */
  async send(isQuery = this.#making.asking.lease?.isQuery === true): Promise<void> {
    // Its peer may have refused it already.
    if (!(await this.sending.post(isQuery))) return
    // No lane delivers it again: it is lost unless its peer reports it.
    if (hasNoRecord(this.#making)) this.reported.liveness.onHeartbeat()
    // It may have been canceled during the send.
    if (this.outcome.isOver) this.sending.cancel()
    // A request within this node reaches its agent before this line runs.
    else if (!this.reported.approvalWait.isWaiting) this.outcome.note((tasks, id) => tasks.waitFor(id, null))
  }

  /**
   * Asks again for an unknown outcome when it is time to; an unrepeatable request only asks for its state.
   * @throws NodeError as {@link OutgoingRequest.send}.
   */
  async askOutcome(): Promise<void> {
    const now = this.#deps.clock.now()
    if (this.outcome.isOver || this.#record?.isDue(now) !== true) return
    const again = this.#record.askedAgain(now, this.#deps.chance())
    // A failed read of its input is no reason to stop asking.
    if (again !== null) await this.sending.post(again.kind === 'query', again.changes).catch(again.failed)
  }

  /**
   * Its peer is offline; it goes on when the peer is back. A waiting caller is soon told that there may be no answer.
   */
  waitForPeer(): void {
    const { asking } = this.#making
    this.outcome.note((tasks, id) => tasks.waitFor(id, 'peer'))
    // A swarm reassigns its leases by itself.
    if (!this.sending.isSent || asking.mayQueue || asking.lease !== undefined) return
    this.#timers.peerIsGone()
  }

  /** Its peer is back, and has a lease's time to report it. */
  peerIsBack(): void {
    this.#timers.peerIsBack()
    this.#record?.peerIsBack(this.#deps.clock.now())
    this.reported.liveness.isBack()
    this.outcome.note((tasks, id) => tasks.waitFor(id, null))
  }

  /**
   * Time passed: without heartbeats no agent counts as working on it. True: its peer has lost it, so it should be sent
   * again.
   */
  isLost(): boolean {
    if (!this.isAwaited || !this.sending.isSent || !this.reported.liveness.isLost) return false
    this.outcome.note((tasks, id) => tasks.lost(id))
    // A swarm records its leases and reassigns them.
    return this.#making.asking.lease === undefined
  }

  /**
   * Sends a lost request again: a peer that lost its disk must not begin an unrepeatable one again.
   * @throws as {@link OutgoingRequest.send}.
   */
  async sendAgain(): Promise<void> {
    this.reported.liveness.askedAgain()
    await this.send(this.#record?.current.isRepeatable === false)
  }

  /** Its peer was removed from the mesh and never answers: the outcome is unknown if it may have begun there. */
  peerIsOut(): void {
    this.#isPeerOut = true
    // An earlier answer is being recorded.
    if (this.outcome.isSettled) return
    const isKnown = this.isAwaited && !this.sending.hasLeft
    // A swarm records its leases.
    if (isKnown || this.#making.asking.lease !== undefined)
      return this.outcome.fail(new NodeError('PEER_OFFLINE', 'the peer was put out of the mesh').toBody())
    this.outcome.unknown(
      new NodeError('PEER_OFFLINE', 'the peer was put out of the mesh; the work may have been done').toBody(),
      null
    )
    this.outcome.close()
  }

  /** There is no room for it, here or at its peer, or the peer stops: it waits, longer each time. */
  refuse(error: ErrorBody): void {
    // Its end came in the same commit, and is about to be reported.
    if (this.outcome.isSettled) return
    const { clock, record, dispatcher } = this.#deps
    if (this.sending.isSent) this.outcome.note((tasks, id) => tasks.lost(id))
    this.sending.refused(error)
    this.reported.liveness.forget()
    void record(
      this.#record?.waiting(clock.now(), () => storedForm(this.#making.asking), error) ?? [],
      this.names.requestId
    )
    this.outcome.note((tasks, id) => tasks.waitFor(id, error.code === 'PEER_OFFLINE' ? 'peer' : 'slot'))
    dispatcher.wait(this)
  }

  /** A reply was not recorded: it comes again, unless the request was to end meanwhile. */
  #notRecorded(): void {
    this.#record?.notEnded()
    if (this.#isPeerOut) this.peerIsOut()
    else this.outcome.notRecorded()
  }

  #giveUp(): void {
    const { timeoutMs } = this.#making.asking
    // Nothing left this node, so the outcome is known.
    if (!this.sending.hasLeft) return this.outcome.fail(this.sending.refusal ?? notSentIn(timeoutMs))
    this.outcome.unknown(unansweredIn(timeoutMs, this.reported.approvalWait.isWaiting), retryAfter(this.#deps, 0))
  }

  #peerIsGone(): void {
    const why = 'the peer is gone while it had the work; the work may still go on'
    this.outcome.unknown(new NodeError('PEER_OFFLINE', why).toBody(), retryAfter(this.#deps, this.#leftMs))
  }

  get #lateMs(): number {
    return lateMs(this.#making, this.#deps.clock.now())
  }

  #givenUp(): void {
    this.#timers.startLate(this.#lateMs)
    // It must not be approved without a waiting caller. It may have been approved this moment, so the outcome is
    // unknown.
    if (this.reported.approvalWait.isWaiting) this.sending.cancel()
  }

  #ended(): void {
    this.#timers.stop()
    this.sending.end()
    this.#deps.dispatcher.ended(this)
  }
}

function notSentIn(timeoutMs: number): ErrorBody {
  const why = `the peer did not come back within ${formatDuration(timeoutMs)}; nothing was sent`
  return new NodeError('PEER_OFFLINE', why, { data: { timeoutMs } }).toBody()
}

function unansweredIn(timeoutMs: number, awaitsApproval: boolean): ErrorBody {
  const unanswered = `no answer within ${formatDuration(timeoutMs)}; the work may still run`
  const why = awaitsApproval ? 'nobody allowed it in time; it was taken back' : unanswered
  return new NodeError('TIMEOUT', why, { data: { timeoutMs } }).toBody()
}
