import type { Clock } from '../../../kit/clock.js'
import { messageOf, NodeError, type ErrorBody } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import type { RequestRecord } from '../../../domain/reliable/records.js'
import { readRequest, workKey, type RequestPayload } from '../../../domain/task/payloads.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import type { CalleeRequests } from './record.js'
import { EarlyCancels, abandon, keyOf, nameOf, notificationRequest, notificationPayload } from './in-flight.js'
import type { Admissions, Claim, Heartbeats, HereRun, HereWork, InFlight } from './in-flight.js'
import type { ExchangeTable } from '../../messaging/exchange-table.js'
import { threadOf, type InboundMessage, type Thread } from '../../messaging/inbound-message.js'
import { ENDINGS, responseOf, type Ending } from '../../../domain/task/outcome.js'
import type { RecordedTask } from '../../tasks/from-record.js'
import type { TaskTable } from '../../tasks/task-table.js'
import type { ControlBody } from '../../../domain/channel/control.js'
import type { CalleeQuestions } from './questions.js'
import type { Replies } from './replies.js'
import type { Runner } from './runner.js'

/** Dependencies of the executor. */
interface ExecutorDeps {
  readonly self: NodeId
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly exchanges: Pick<ExchangeTable, 'end'>
  readonly tasks: Pick<TaskTable, 'restore'>
  readonly callee: CalleeRequests
  readonly inFlight: InFlight
  readonly admissions: Admissions
  readonly runner: Runner
  readonly questions: Pick<CalleeQuestions, 'onAnswer' | 'onOnline'>
  readonly replies: Replies
  readonly heartbeats: Heartbeats
}

/** The callee's side of requests: admits, refuses, repeats and cancels them, and sends heartbeats. */
export class Executor {
  readonly #deps: ExecutorDeps
  readonly #replies: Replies
  readonly #inFlight: InFlight
  readonly #runner: Runner
  readonly #ends: ClaimEnds
  /** Cancellations that arrived before their requests. */
  readonly #canceled = new EarlyCancels()
  #isStopping = false

  constructor(deps: ExecutorDeps) {
    this.#deps = deps
    this.#replies = deps.replies
    this.#inFlight = deps.inFlight
    this.#runner = deps.runner
    this.#ends = new ClaimEnds(deps)
  }

  /** Starts the heartbeats. */
  start(): void {
    this.#deps.heartbeats.start()
  }

  /**
   * Ends every run. Resolves when the ends are on record and waiting callers were told. A swarm reassigns its leases by
   * itself.
   * Other callers may ask again, unless the work had begun and may not be repeated.
   */
  async stop(): Promise<void> {
    this.#isStopping = true
    this.#deps.heartbeats.stop()
    const pieces = this.#inFlight.all()
    const awaited = pieces.filter((one) => one.isAwaited)
    this.#replies.stopping()
    for (const piece of pieces) {
      piece.isStopped = true
      abandon(piece)
    }
    await Promise.all(awaited.map((piece) => piece.ending ?? this.#runner.stopped(piece)))
    this.#replies.close()
  }

  /** The node that assigned this node's work for a swarm; null when there is none. */
  leaderOf = (swarm: string): NodeId | null => this.#inFlight.leaderOf(swarm)

  /** Runs under way, also of agents removed meanwhile, and tasks that wait for an agent. */
  counts(): { running: number; queued: number } {
    const pieces = this.#inFlight.all().filter((one) => !one.hasEnded)
    const running = pieces.filter((one) => one.isRunning).length
    return { running, queued: pieces.length - running }
  }

  /** True when a message starts no new run: it is a query, or the same request is under way or done. */
  knows(incoming: InboundMessage): boolean {
    const payload = incoming.header.type === 'request' ? readRequest(incoming.payload) : null
    if (payload === null) return false
    return (
      payload.isQuery ||
      incoming.recorded?.isDone === true ||
      this.#inFlight.has(incoming.peer, keyOf(incoming, payload))
    )
  }

  /** A request that passed the inbound pipeline. */
  onRequest(incoming: InboundMessage): void {
    const thread = threadOf(incoming)
    const payload = readRequest(incoming.payload)
    if (payload === null) return void this.#replies.refuse(thread, ENDINGS.malformed.error)
    const refusal = incoming.recorded?.refusal ?? null
    if (refusal !== null) return void this.#replies.refuse(thread, refusal)
    const asked = this.#deps.callee.prior(incoming, payload)
    const key = keyOf(asked, payload)
    const joined = asked.voters === undefined ? this.#inFlight.join(asked.peer, key, thread) : 'new'
    if (joined !== 'new') return this.#ends.repeated(thread, joined)
    // A query claims nothing: its request may begin at any moment.
    if (payload.isQuery) return void this.#tell(thread, asked, payload)
    const request = { incoming, payload, claim: this.#inFlight.claim(incoming.peer, key, thread) }
    if (incoming.recorded === undefined) this.#take(request, null)
    else void this.#look(request, incoming.recorded.name)
  }

  /** Decides on a request by its record in the ledger. */
  async #look(request: Claimed, name: string): Promise<void> {
    const { incoming, payload } = request
    try {
      const standing = await this.#deps.callee.standing(incoming, name, payload)
      if ('record' in standing) {
        // A copy arrived before the request's turn; the run in that turn answers it.
        if (standing.isEarly) this.#ends.leave(request, standing.record)
        else this.#take(request, standing.record)
      } else
        void this.#ends.conclude(request.claim, this.#ends.respond(standing.response, standing.changes), standing.task)
    } catch (error) {
      this.#notLookedUp(payload, error)
      void this.#ends.conclude(request.claim, this.#ends.respond(responseOf(payload, ENDINGS.unreadable)))
    }
  }

  /** Answers a query. A request without an end is answered when it ends; it runs only as first requested. */
  async #tell(thread: Thread, asked: InboundMessage, payload: RequestPayload): Promise<void> {
    const response = await this.#deps.callee
      .answerTo(asked.recorded?.name ?? null, payload, asked.voters)
      .catch((error: unknown) => this.#notLookedUp(payload, error))
    // It may have begun meanwhile. A query that must prove its voters joins only when there is no response.
    const isReported = asked.voters !== undefined && response !== null
    const joined = isReported ? 'new' : this.#inFlight.join(asked.peer, keyOf(asked, payload), thread)
    if (joined !== 'new') return this.#ends.repeated(thread, joined)
    if (response === null) this.#deps.exchanges.end(thread)
    else await this.#replies.respond(thread, response)
  }

  #notLookedUp({ requestId }: RequestPayload, error: unknown): null {
    this.#deps.telemetry.count('errors', 'ledger')
    this.#deps.telemetry.log('error', 'a request could not be looked up', { requestId, reason: messageOf(error) })
    return null
  }

  /** Admits and runs a request under its claim. */
  #take(request: Claimed, record: RequestRecord | null): void {
    const { incoming, payload: asked, claim } = request
    if (this.#isStopping) return this.#ends.leave(request, record)
    // Also a cancellation that arrived during the ledger read.
    const isCanceled = this.#canceled.take(incoming.peer, workKey(asked.requestId, asked.attempt))
    const payload = isCanceled ? null : this.#deps.admissions.check(incoming, asked)
    if (payload !== null && !(payload instanceof NodeError))
      return void this.#runner.run(
        this.#runner.open(justified(incoming), { payload, isNotification: false, record, ...claim })
      )
    const replies = this.#replies
    if (payload?.code === 'OVERLOADED' && incoming.recorded?.later !== undefined) {
      this.#ends.leave(request, record)
      return incoming.recorded.later()
    }
    void this.#ends.conclude(claim, (thread) =>
      payload === null ? replies.withdraw(thread) : replies.refuse(thread, payload.toBody())
    )
  }

  /**
   * A one-way message: the agent runs its default capability when the input fits; no caller waits. False: nothing runs.
   */
  onNotification(incoming: InboundMessage): boolean {
    if (this.#isStopping) return false
    const asked = notificationRequest(incoming)
    // The peer chooses the id: without a key of its own it could match a request, or another notification.
    const key = `notification ${keyOf(incoming, asked)}`
    if (this.#inFlight.has(incoming.peer, key)) return false
    const payload = this.#deps.admissions.check(incoming, asked)
    if (payload instanceof NodeError) return false
    void this.#runner.run(
      this.#runner.open(justified(incoming), {
        key,
        payload,
        isNotification: true,
        threads: [threadOf(incoming)],
        record: null
      })
    )
    return true
  }

  /**
   * Runs work for a caller in this process, which the rules allowed. It has no message; only the caller learns the
   * outcome.
   * Returns the refusal instead.
   */
  here({ recipient, capability, input, justification, conversation, names }: HereWork): HereRun | NodeError {
    const { self } = this.#deps
    if (this.#isStopping) return new NodeError('PEER_OFFLINE', 'this node stops')
    const payload = this.#deps.admissions.check(
      { peer: self, recipient },
      notificationPayload(names.requestId, input, { capability, conversation })
    )
    if (payload instanceof NodeError) return payload
    const key = `here ${names.requestId}`
    const piece = this.#runner.open(
      { peer: self, recipient, justification },
      { key, payload, isNotification: true, threads: [], record: null },
      names.taskId
    )
    return { outcome: this.#runner.run(piece), cancel: () => piece.abort.abort() }
  }

  /**
   * A peer cancels its request; the lookup is limited to its own. A request that is not in flight yet will not begin.
   */
  onCancel(peer: NodeId, key: string): void {
    const pieces = this.#inFlight.answeringTo(peer).filter((piece) => !piece.isNotification && nameOf(piece) === key)
    for (const piece of pieces) abandon(piece)
    if (pieces.length === 0) this.#canceled.add(peer, key)
  }

  /** A peer answers a question of its request. */
  onAnswer(peer: NodeId, body: ControlBody<'answer'>): void {
    this.#deps.questions.onAnswer(peer, body)
  }

  /** Cancels by the task of a request at this node; its caller is told. */
  cancelTask(taskId: string): boolean {
    const piece = this.#inFlight.all().find((one) => one.taskId === taskId)
    piece?.abort.abort()
    return piece !== undefined
  }

  /** A peer is gone: its leases end here when it stays away for longer than a lease. */
  onOffline(peer: NodeId): void {
    const now = this.#deps.clock.monotonic()
    for (const piece of this.#inFlight.ofPeer(peer)) piece.lostAt = now
    this.#canceled.forget(peer)
  }

  /** A peer is back. */
  onOnline(peer: NodeId): void {
    for (const piece of this.#inFlight.ofPeer(peer)) piece.lostAt = null
    this.#deps.questions.onOnline(peer)
  }

  /** A peer was removed from the mesh: its work here ends. */
  onRevoked(peer: NodeId): void {
    for (const piece of this.#inFlight.ofPeer(peer)) abandon(piece)
  }

  /** Answers with a failure, now or when the caller is back; the request ends with it. */
  fail(thread: Thread, payload: { readonly requestId: string; readonly attempt: number }, error: ErrorBody): void {
    void this.#ends.fail(thread, payload, error)
  }

  /** Ends a request from before this start that is not taken up again. Never rejects. */
  end(thread: Thread, record: RequestRecord, ending: Ending): Promise<void> {
    return this.#ends.endBefore(thread, record, ending)
  }

  /** No caller waits for the request any more. */
  withdraw(thread: Thread): void {
    void this.#replies.withdraw(thread)
  }

  /** Tells the sender of an opening message that it was refused. */
  refuse(thread: Thread, error: ErrorBody): void {
    void this.#replies.refuse(thread, error)
  }
}

/** A message with the reason in its header. The ledger has the whole message, so a restart keeps the reason. */
function justified({ peer, sender, recipient, header }: InboundMessage) {
  return { peer, sender, recipient, justification: header.metadata?.justification }
}

interface Claimed {
  readonly incoming: InboundMessage
  readonly payload: RequestPayload
  readonly claim: Claim
}

/** Ends the claims of requests that are not run here and now: answers each thread, and releases the claim. */
class ClaimEnds {
  readonly #deps: Pick<ExecutorDeps, 'callee' | 'exchanges' | 'inFlight' | 'replies' | 'tasks'>

  constructor(deps: Pick<ExecutorDeps, 'callee' | 'exchanges' | 'inFlight' | 'replies' | 'tasks'>) {
    this.#deps = deps
  }

  /**
   * Ends a claim. Copies join until the end is on record: otherwise they would find no end and run. `task` is listed
   * once the end is on record: before that, a crash may lead to another end.
   */
  async conclude(
    claim: Claim,
    end: (thread: Thread, at: number) => Promise<boolean>,
    task?: RecordedTask | null
  ): Promise<void> {
    let isKept = true
    for (const [at, thread] of claim.threads.entries()) isKept = (await end(thread, at)) && isKept
    this.#deps.inFlight.release(claim)
    if (isKept && task !== undefined && task !== null) this.#deps.tasks.restore(task.task, task.events, true)
  }

  /**
   * Does not begin a request. A recorded one is taken up later or by the next start; the caller of another one may ask
   * again.
   */
  leave({ payload, claim }: Claimed, record: RequestRecord | null): void {
    if (record === null) return void this.conclude(claim, this.respond(responseOf(payload, ENDINGS.stopped)))
    for (const thread of claim.threads) this.#deps.exchanges.end(thread)
    this.#deps.inFlight.release(claim)
  }

  /** Answers one of several threads: the first answer and the changes are one commit. */
  respond(response: unknown, changes: readonly LedgerChange[] = []): (thread: Thread, at: number) => Promise<boolean> {
    return (thread, at) => this.#deps.replies.respond(thread, response, at === 0 ? { changes } : {})
  }

  /** Answers with a failure; the refusal is recorded with it. Never rejects. */
  async fail(
    thread: Thread,
    payload: { readonly requestId: string; readonly attempt: number },
    error: ErrorBody
  ): Promise<void> {
    const response = responseOf(payload, { status: 'failed', error })
    await this.#deps.replies.respond(thread, response, { changes: await this.#deps.replies.refused(thread, error) })
  }

  /** A request in flight came again: its thread gets the same answer, or its exchange ends now. */
  repeated(thread: Thread, joined: 'joined' | 'known' | 'full'): void {
    if (joined === 'full')
      void this.#deps.replies.refuse(
        thread,
        new NodeError('OVERLOADED', 'this request was repeated too often').toBody()
      )
    // The one answer ends one opening of the thread.
    if (joined === 'known') this.#deps.exchanges.end(thread)
  }

  /** See {@link Executor.end}. */
  async endBefore(thread: Thread, record: RequestRecord, ending: Ending): Promise<void> {
    const { callee, inFlight } = this.#deps
    const [peer, key] = [thread.recipient.nodeId, keyOf({ sender: thread.recipient, recipient: thread.sender }, record)]
    if (inFlight.join(peer, key, thread) !== 'new') return
    const { changes, task } = callee.endBefore(record, ending)
    await this.conclude(inFlight.claim(peer, key, thread), this.respond(responseOf(record, ending), changes), task)
  }
}
