import type { Clock, Timer } from '../../../kit/clock.js'
import { asNodeError, messageOf } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import type { RequestRecord } from '../../../domain/reliable/records.js'
import { workKey } from '../../../domain/task/payloads.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import { storedRequest } from './record.js'
import type { CancelQueue, StrayRuns } from './cancel-queue.js'
import type { CommitQueue } from '../../ledger/commit-queue.js'
import type { Admission } from '../../reliable/lane-receiver.js'
import type { InboundMessage } from '../../messaging/inbound-message.js'
import type { Lanes } from '../../reliable/lanes.js'
import type { Answer, Asking, RequestMaking, RequestNames, RequestDeps } from './request-codec.js'
import { PeerReports } from './reports.js'
import { OutgoingRequest } from './request.js'
import type { Dispatcher } from './peer-queue.js'
import type { RequestStore } from '../store.js'
import type { NextHop } from '../../relay/next-hop.js'

/** Dependencies of the caller's requests. */
interface RequestsDeps {
  readonly clock: Clock
  readonly self: NodeId
  readonly limits: { readonly heartbeatMs: number }
  readonly requestStore: RequestStore
  readonly nextHop: Pick<NextHop, 'seek'>
  readonly lanes: Pick<Lanes, 'giveUp' | 'forget'>
  readonly dispatcher: Dispatcher
  readonly cancellations: CancelQueue
  readonly strays: StrayRuns
  readonly ends: CommitQueue
  /** Names a new request, and opens its task and its record. @throws NodeError when the ledger is full. */
  make(asking: Asking): RequestMaking
  /** Makes the object of a request. */
  open(making: RequestMaking): OutgoingRequest
}

/** A request under way. */
export interface Asked extends Omit<RequestNames, 'attempt'> {
  /** Never rejects. */
  readonly answer: Promise<Answer>
  /** Cancels it at the peer; the answer is then a failure with CANCELED. */
  cancel(): void
}

/** The caller's side of requests. */
export class Requests {
  readonly reports: PeerReports
  readonly #deps: RequestsDeps
  readonly #dispatcher: Dispatcher
  readonly #index: Dispatcher['index']
  #timer: Timer | null = null

  constructor(deps: RequestsDeps) {
    this.#deps = deps
    this.#dispatcher = deps.dispatcher
    this.#index = deps.dispatcher.index
    this.reports = new PeerReports(this.#index, deps.strays)
  }

  /** Starts the checks of open requests. */
  start(): void {
    const { clock, limits } = this.#deps
    this.#timer = clock.every(limits.heartbeatMs, () => this.#dispatcher.tick())
  }

  /**
   * Sends a request. Resolves when it is on its way (or queued), and durable.
   * @throws NodeError an error of the outbound pipeline or the ledger.
   */
  async ask(asking: Asking): Promise<Asked> {
    const request = this.#add(this.#deps.make(asking))
    try {
      if (asking.mayQueue && this.#dispatcher.isAway(request.peer)) await this.#queueAtOnce(request)
      else await request.send()
    } catch (error) {
      const { outcome } = request
      const end = outcome.isOver ? await outcome.answer : null
      // Canceled before it left: its answer says so. Any other end is thrown, since nothing is on record.
      if (end?.outcome === 'FAILED' && end.error.code === 'CANCELED') return asked(request)
      const failure = asNodeError(error)
      this.#dispatcher.notSent(request, failure)
      if (outcome.isOver) throw failure
      await this.#keepWaiting(request)
    }
    return asked(request)
  }

  /** Resumes a request that had no end when this node stopped. */
  resume(record: RequestRecord): void {
    const making = storedRequest(this.#deps.requestStore, record)
    if (making === null) return
    const request = this.#add(making)
    // Work of this node's agents ended with it, and its callers are gone as well.
    if (request.peer === this.#deps.self) return request.interrupted()
    request.resume()
    if (request.isAwaited && !request.sending.isSent) this.#dispatcher.wait(request)
    if (request.isAwaited && this.#dispatcher.isAway(request.peer)) request.waitForPeer()
  }

  #add(making: RequestMaking): OutgoingRequest {
    const request = this.#deps.open(making)
    this.#dispatcher.begun(request)
    return request
  }

  /** The ledger changes of a reply over a lane. */
  recordReply({
    peer,
    header,
    payload
  }: Pick<InboundMessage, 'peer' | 'header' | 'payload'>): Pick<Admission, 'changes' | 'failed'> {
    const request = this.#index.find('thread', header.correlationId ?? '')
    return request?.peer === peer ? request.replies.admit(header, payload) : { changes: [], failed: () => {} }
  }

  /**
   * No caller waits: it is queued at once, and a route to the peer is sought.
   * @throws NodeError an error of the rules or the ledger.
   */
  async #queueAtOnce(request: OutgoingRequest): Promise<void> {
    request.sending.check()
    await request.sending.keep()
    this.#dispatcher.queue(request)
    this.#deps.nextHop.seek(request.peer)
  }

  /** It could not be sent and waits, which must be durable first. @throws NodeError the ledger's error. */
  async #keepWaiting(request: OutgoingRequest): Promise<void> {
    try {
      await request.sending.keep()
    } catch (error) {
      request.outcome.fail(asNodeError(error).toBody())
      throw error
    }
  }

  /** This node stops: callers wait no longer. Ends that are not durable are decided again at its next start. */
  async stop(): Promise<void> {
    this.#deps.clock.clear(this.#timer)
    for (const request of this.#index.dropQueues()) request.outcome.abandon()
    await this.#deps.ends.stop()
  }

  /** Is a request to the peer under way or queued? */
  has(peer: NodeId): boolean {
    return this.#index.queues.has(peer)
  }

  /** Cancels the request of a caller's task; false when it is not under way. */
  cancelTask(taskId: string): boolean {
    const request = this.#index.find('task', taskId)
    request?.outcome.cancel()
    return request !== undefined
  }

  /** Takes back a lease from before this start: it is not delivered any more, and its run is stopped. */
  withdraw(peer: NodeId, requestId: string, attempt: number): void {
    this.#deps.lanes.giveUp(peer, requestId)
    this.endRun(peer, workKey(requestId, attempt))
  }

  /** Tells a peer to end a run, given by its name in heartbeats, unless a caller here waits for it. */
  endRun(peer: NodeId, key: string): void {
    if (!this.#index.of(peer).some(({ sending }) => sending.key === key)) this.#deps.cancellations.cancel(peer, key)
  }

  /** A message of a request is durable at its peer. */
  onAcknowledged(requestId: string): void {
    this.#index.find('id', requestId)?.reported.tend()
  }

  /** Is a request under way here, or may its end be about to be recorded? */
  knows(requestId: string): boolean {
    return this.#index.find('id', requestId) !== undefined || this.#deps.ends.pending > 0
  }

  /**
   * The unreported wait of a task's request: for its node's acknowledgement, then for a slot of its agent. null: it is
   * not under way.
   */
  holdup(taskId: string): 'ack' | 'slot' | null {
    const request = this.#index.find('task', taskId)
    if (request === undefined || !request.isAwaited) return null
    return request.sending.isSent && !request.sending.isQueued ? 'slot' : 'ack'
  }

  /** Sent requests that no lane, queue or peer holds. There are none, unless a part of this node has a defect. */
  orphans(): OutgoingRequest[] {
    const { self } = this.#deps
    return this.#index
      .all()
      .filter((one) => one.peer !== self && one.sending.isSent && !one.isTended && !this.#index.isWaiting(one))
  }

  /** Requests that wait for their peer to come back, or to have room. */
  waitingCount(): number {
    return [...this.#index.queues.values()].reduce((count, { waiting }) => count + waiting, 0)
  }

  /** The last link to a peer is gone. Without a route over relays its requests wait, each until its own deadline. */
  onOffline(peer: NodeId): void {
    this.#dispatcher.onOffline(peer)
  }

  /** Copies of requests never reached a peer and were given up. Swarms handle their own leases. */
  onUndelivered(peer: NodeId, requestIds: readonly string[]): void {
    for (const id of requestIds) {
      const request = this.#index.find('id', id)
      if (request?.peer === peer) request.replies.undelivered()
    }
  }

  /** A peer was removed from the mesh: nothing is expected of it any more. */
  onRevoked(peer: NodeId): void {
    for (const request of this.#index.dropQueues(peer)) request.peerIsOut()
    this.#deps.cancellations.forget(peer)
    void this.#deps.lanes.forget(peer)
  }

  /** There is a new path to a peer: waiting requests are sent. */
  onReachable(peer: NodeId): void {
    this.#deps.cancellations.onReachable(peer)
    this.#dispatcher.onReachable(peer)
  }
}

/** Dependencies of {@link requestFactory}. */
interface RequestFactoryDeps extends Omit<RequestDeps, 'record'> {
  readonly telemetry: Telemetry
}

/** A function that makes the objects of requests. */
export function requestFactory(deps: RequestFactoryDeps): (making: RequestMaking) => OutgoingRequest {
  const ofRequest: RequestDeps = { ...deps, record: (changes, requestId) => isRecorded(deps, changes, requestId) }
  return (making) => new OutgoingRequest(ofRequest, making)
}

/** Commits the state of a request. False: the ledger refused it. Never rejects. */
async function isRecorded(
  { lanes, telemetry }: Pick<RequestFactoryDeps, 'lanes' | 'telemetry'>,
  changes: readonly LedgerChange[],
  requestId: string
): Promise<boolean> {
  try {
    await lanes.commit(changes)
    return true
  } catch (error) {
    telemetry.count('errors', 'ledger')
    telemetry.log('warn', 'how a request stands could not be recorded', { requestId, reason: messageOf(error) })
    return false
  }
}

function asked(request: OutgoingRequest): Asked {
  const { requestId, correlationId, taskId } = request.names
  return { requestId, correlationId, taskId, answer: request.outcome.answer, cancel: () => request.outcome.cancel() }
}
