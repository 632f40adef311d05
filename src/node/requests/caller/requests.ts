import type { Timer } from '../../../kit/clock.js'
import { asNodeError, messageOf, NodeError } from '../../../kit/errors.js'
import type { ErrorCode } from '../../../kit/errors.js'
import type { IdSource, NodeId } from '../../../kit/ids.js'
import { addressText, parseAddress } from '../../../domain/card/card.js'
import type { RequestRecord } from '../../../domain/reliable/records.js'
import { workKey } from '../../../domain/task/payloads.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import { isIdempotent, onlyReads } from '../callee/record.js'
import { CallerRecord, freshRecord } from './record.js'
import { CancelQueue, type CancelQueueDeps, StrayRuns } from './cancel-queue.js'
import type { Directory } from '../../cards/directory.js'
import { CommitQueue } from '../../ledger/commit-queue.js'
import type { Admission } from '../../reliable/lane-receiver.js'
import type { InboundMessage } from '../../messaging/inbound-message.js'
import type { Lanes } from '../../reliable/lanes.js'
import type { LedgerQuota } from '../../ledger/quota.js'
import { STORED } from './request-codec.js'
import type { Answer, Asking, RequestMaking, RequestNames, RequestDeps } from './request-codec.js'
import { ENDINGS } from '../../../domain/task/outcome.js'
import type { AskedElsewhere } from '../../agents/load-estimate.js'
import { OutgoingRequest } from './request.js'
import type { RequestStore } from '../store.js'
import { PeerQueue } from './delivery.js'
import type { NextHop } from '../../relay/next-hop.js'

/** Requests under way to a peer beyond which those that waited for it wait on: it takes only so many at once. */
const WINDOW = 128

/** The peer cannot take it now, but may later. */
const LATER: ReadonlySet<ErrorCode> = new Set(['PEER_OFFLINE', 'CHANNEL_CLOSED', 'DELIVERY_FAILED', 'OVERLOADED'])

/** What asking others needs. */
export interface RequestsDeps extends Omit<RequestDeps, 'onEnd' | 'onFull' | 'cancellations' | 'ends' | 'record'>, CancelQueueDeps {
  readonly ids: IdSource
  readonly nextHop: NextHop
  readonly directory: Directory
  readonly requestStore: RequestStore
  readonly ledgerQuota: Pick<LedgerQuota, 'isFull'>
  readonly lanes: Pick<Lanes, 'commit' | 'giveUp' | 'forget' | 'holds'>
  readonly asked: Pick<AskedElsewhere, 'begun' | 'ended'>
}

/** A request under way. */
export interface Asked extends Omit<RequestNames, 'attempt'> {
  /** Never rejects. */
  readonly answer: Promise<Answer>
  /** Asks the other side to stop; the answer is then a failure with CANCELED. */
  cancel(): void
}

/** The caller's side of requests. */
export class Requests {
  readonly #deps: RequestsDeps
  readonly #ofRequest: RequestDeps
  readonly #cancellations: CancelQueue
  readonly #ends: CommitQueue
  /** Requests that have not ended, by peer. */
  readonly #lanes = new Map<NodeId, PeerQueue<OutgoingRequest>>()
  /** Those that are recorded, by their id: leases are the business of their swarms. */
  readonly #byId = new Map<string, OutgoingRequest>()
  readonly #byTask = new Map<string, OutgoingRequest>()
  readonly #strays: StrayRuns
  /** The same by their threads, which this node names: no two share one. */
  readonly #byThread = new Map<string, { readonly request: OutgoingRequest; readonly agent: string }>()
  #timer: Timer | null = null

  constructor(deps: RequestsDeps) {
    this.#deps = deps
    this.#cancellations = new CancelQueue(deps)
    this.#strays = new StrayRuns({ ...deps, cancel: (peer, key) => this.#cancellations.cancel(peer, key) })
    this.#ends = new CommitQueue({ ...deps, commit: (changes) => deps.lanes.commit(changes) })
    this.#ofRequest = {
      ...deps,
      cancellations: this.#cancellations,
      ends: this.#ends,
      record: (changes, requestId) => this.#record(changes, requestId),
      onFull: (request) => this.#wait(request),
      onEnd: (request) => this.#forget(request)
    }
  }

  /** Begins to look after what is under way. */
  start(): void {
    const { clock, limits } = this.#deps
    this.#timer = clock.every(limits.heartbeatMs, () => this.#tick())
  }

  /**
   * Sends a request. Resolves when it is on its way (or queued), and durable.
   * @throws NodeError what the outbound pipeline or the ledger refuses.
   */
  async ask(asking: Asking): Promise<Asked> {
    const making = this.#make(asking)
    if (making.record !== null && this.#deps.ledgerQuota.isFull) throw NodeError.fromBody(ENDINGS.full.error)
    const request = this.#add(making)
    try {
      if (asking.mayQueue && this.#isAway(request.peer)) await this.#queueAtOnce(request)
      else await request.send()
    } catch (error) {
      const end = request.isOver ? await request.answer : null
      // It was canceled before it left: its answer says so. Whatever else ended it is refused, since nothing is on record.
      if (end?.outcome === 'FAILED' && end.error.code === 'CANCELED') return asked(request)
      const failure = asNodeError(error)
      this.#notSent(request, failure)
      if (request.isOver) throw failure
      await this.#keepWaiting(request)
    }
    return asked(request)
  }

  /** A request that had no end when this node stopped goes on. */
  resume(record: RequestRecord): void {
    const [sender, target] = [parseAddress(record.source), parseAddress(record.target)]
    if (sender === null || target === null) return
    const { requestId, attempt, correlationId, taskId, capability, description, deadline, createdAt } = record
    const { requestStore, self } = this.#deps
    const asking: Asking = {
      sender,
      target,
      capability,
      input: STORED,
      description,
      timeoutMs: deadline - createdAt,
      mayQueue: false,
      ...record.asking
    }
    const names = { requestId, attempt, correlationId, taskId }
    const request = this.#add({ asking, names, record: new CallerRecord(requestStore, record, true) })
    // What its own agents did ended with this node. Who waited for it is gone as well.
    if (target.nodeId === self) return request.interrupted()
    request.resume()
    if (request.isAwaited && !request.isSent) this.#wait(request)
    if (request.isAwaited && this.#isAway(target.nodeId)) request.waitForPeer()
  }

  #make(asking: Asking): RequestMaking {
    const { requestStore, clock, directory, limits } = this.#deps
    const names = this.#name(asking)
    const { target, capability, allowRepeat = false, mayGoUnrecorded = false, mayQueue } = asking
    if (asking.lease !== undefined || (mayGoUnrecorded && !mayQueue && onlyReads(directory, target, capability)))
      return { asking, names, record: null }
    const isRepeatable = allowRepeat || isIdempotent(directory, target, capability)
    const record = freshRecord(asking, names, { now: clock.now(), ttlMs: limits.defaultTtlMs, isRepeatable })
    return { asking, names, record: new CallerRecord(requestStore, record, false) }
  }

  #add(making: RequestMaking): OutgoingRequest {
    const request = new OutgoingRequest(this.#ofRequest, making)
    const lane = this.#lanes.get(request.peer) ?? new PeerQueue()
    this.#lanes.set(request.peer, lane)
    const agent = addressText(making.asking.target)
    this.#byThread.set(request.names.correlationId, { request, agent })
    const { requestId, taskId } = request.names
    if (taskId !== null) {
      this.#byId.set(requestId, request)
      this.#byTask.set(taskId, request)
    }
    this.#deps.asked.begun(agent)
    lane.send(request)
    return request
  }

  /** What a reply that came over a lane changes in the ledger. */
  recordReply({ peer, header, payload }: Pick<InboundMessage, 'peer' | 'header' | 'payload'>): Pick<Admission, 'changes' | 'failed'> {
    const request = this.#byThread.get(header.correlationId ?? '')?.request
    const changes = request?.peer === peer ? request.recordReply(header, payload) : []
    return { changes, failed: () => void (changes.length > 0 && request?.replyNotRecorded()) }
  }

  #isAway(peer: NodeId): boolean {
    return peer !== this.#deps.self && !this.#deps.nextHop.isReachable(peer, true)
  }

  /** Nobody waits for it: it is queued at once, and the peer is looked for meanwhile. @throws NodeError what the rules or the ledger refuse. */
  async #queueAtOnce(request: OutgoingRequest): Promise<void> {
    request.check()
    await request.keep()
    this.#queue(request)
    this.#deps.nextHop.seek(request.peer)
  }

  /** It waits although it could not be sent, which nobody may rely on before it is durable. @throws NodeError what the ledger refuses. */
  async #keepWaiting(request: OutgoingRequest): Promise<void> {
    try {
      await request.keep()
    } catch (error) {
      request.fail(asNodeError(error).toBody())
      throw error
    }
  }

  /** This node stops: whoever waits for an answer waits no longer. Ends that are not durable are decided anew at its next start. */
  async stop(): Promise<void> {
    this.#deps.clock.clear(this.#timer)
    const requests = this.#all()
    this.#lanes.clear()
    for (const request of requests) request.abandon()
    await this.#ends.stop()
  }

  /** Is a request to the peer under way, or waiting for it? */
  has(peer: NodeId): boolean {
    return this.#lanes.has(peer)
  }

  /** Cancels the request of a caller's task; false when it is not under way. */
  cancelTask(taskId: string): boolean {
    for (const request of this.#all()) {
      if (request.names.taskId !== taskId) continue
      request.cancel()
      return true
    }
    return false
  }

  /** Takes back a lease that was asked for before this node started: what was not delivered never is, what runs is stopped. */
  withdraw(peer: NodeId, requestId: string, attempt: number): void {
    this.#deps.lanes.giveUp(peer, requestId)
    this.endRun(peer, workKey(requestId, attempt))
  }

  /** Tells a peer to end a run, named as heartbeats name it, unless somebody here waits for it. */
  endRun(peer: NodeId, key: string): void {
    if (!this.#of(peer).some((request) => request.key === key)) this.#cancellations.cancel(peer, key)
  }

  /** A peer says which requests it has, and which of them wait for a free place of their agent. */
  onHeartbeat(peer: NodeId, keys: readonly string[], waiting: readonly string[] = []): void {
    const named = new Set(keys)
    const idle = new Set(waiting)
    for (const request of this.#of(peer)) {
      if (!named.delete(request.key)) continue
      request.named(idle.has(request.key) ? 'slot' : null)
    }
    if (named.size > 0) void this.#strays.look(peer, named)
  }

  /** A peer says which requests wait for a person of it. */
  onApproval(peer: NodeId, keys: readonly string[]): void {
    const named = new Set(keys)
    for (const request of this.#of(peer)) if (named.delete(request.key)) request.named('approval')
    if (named.size > 0) void this.#strays.look(peer, named)
  }

  /** A message of a request is durable at its peer. */
  onAcknowledged(requestId: string): void {
    this.#byId.get(requestId)?.acknowledged()
  }

  /** Is a request under way here, or may its end be on its way to the ledger? */
  knows(requestId: string): boolean {
    return this.#byId.has(requestId) || this.#ends.pending > 0
  }

  /** What the request of a task waits for, while nothing said so: for its node to acknowledge it, then for a place of its agent. null: it is not under way. */
  holdup(taskId: string): 'ack' | 'slot' | null {
    const request = this.#byTask.get(taskId)
    if (request === undefined || !request.isAwaited) return null
    return request.isSent && !request.isQueued ? 'slot' : 'ack'
  }

  /** Sent requests that no lane, queue or peer holds. There are none, unless a part of this node is at fault. */
  orphans(): OutgoingRequest[] {
    const { self } = this.#deps
    const isOrphan = (request: OutgoingRequest): boolean =>
      request.peer !== self &&
      request.isSent &&
      !request.isTended &&
      this.#lanes.get(request.peer)?.isWaiting(request) !== true &&
      !request.isQueued
    return this.#all().filter(isOrphan)
  }

  /** Requests that wait for their peer to come back, or to have room. */
  waitingCount(): number {
    let count = 0
    for (const lane of this.#lanes.values()) count += lane.waiting
    return count
  }

  /** The last link to a peer is gone. Without a way over relays requests wait for it, until each one's own time is over. */
  onOffline(peer: NodeId): void {
    if (this.#isAway(peer)) this.#waitForPeer(peer)
  }

  #waitForPeer(peer: NodeId): void {
    for (const request of this.#of(peer)) request.waitForPeer()
  }

  /** Copies of requests certainly never got to a peer, and were given up. Leases are the business of their swarms. */
  onUndelivered(peer: NodeId, requestIds: readonly string[]): void {
    for (const id of requestIds)
      for (const request of this.#of(peer)) if (request.names.requestId === id && request.names.taskId !== null) request.undelivered()
  }

  /** A peer was put out of the mesh: nothing is expected of it any more. */
  onRevoked(peer: NodeId): void {
    const requests = this.#of(peer)
    this.#lanes.delete(peer)
    for (const request of requests) request.peerIsOut()
    this.#cancellations.forget(peer)
    void this.#deps.lanes.forget(peer)
  }

  /** There is a new path to a peer: what waited for it is sent. */
  onReachable(peer: NodeId): void {
    this.#cancellations.onReachable(peer)
    for (const request of this.#of(peer)) if (this.#lanes.get(peer)?.isWaiting(request) !== true) request.peerIsBack()
    this.#sendQueued(peer)
  }

  /** Asks again what peers have lost, and sends what waited for room. */
  #tick(): void {
    for (const [peer, lane] of this.#lanes) {
      if (this.#isAway(peer)) {
        this.#waitForPeer(peer)
        this.#deps.nextHop.seek(peer)
      }
      this.#askAgainOf(peer, lane)
      this.#sendQueued(peer)
    }
  }

  /** A peer that still has it, or did it, runs nothing twice. */
  #askAgainOf(peer: NodeId, lane: PeerQueue<OutgoingRequest>): void {
    const now = this.#deps.clock.now()
    const isAway = this.#isAway(peer)
    for (const request of lane.all()) {
      const note = (error: unknown): void =>
        this.#deps.telemetry.log('debug', 'a request could not be asked again', {
          correlationId: request.names.correlationId,
          reason: messageOf(error)
        })
      const isLost = request.isLost()
      if (isAway) continue
      // Its own agents answer late by themselves, once they have it.
      if ((peer !== this.#deps.self || !request.isSent) && request.isDue(now)) request.askOutcome().catch(note)
      // A message that its peer does not have yet is delivered by its lane: another copy of it proves nothing.
      if (!isLost || request.isQueued) continue
      request.sendAgain().catch(note)
    }
  }

  #sendQueued(peer: NodeId): void {
    if (this.#isAway(peer)) return
    for (const request of this.#lanes.get(peer)?.next(this.#deps.clock.monotonic(), WINDOW) ?? [])
      request.send().catch((error: unknown) => this.#notSent(request, asNodeError(error)))
  }

  /** What may wait does so; what the rules or the agent refuse has failed. */
  #notSent(request: OutgoingRequest, error: NodeError): void {
    if (!request.mayWait || !LATER.has(error.code)) request.fail(error.toBody())
    else if (error.code === 'OVERLOADED') request.refuse(error.toBody())
    else this.#queue(request)
  }

  async #record(changes: readonly LedgerChange[], requestId: string): Promise<boolean> {
    const { lanes, telemetry } = this.#deps
    try {
      await lanes.commit(changes)
      return true
    } catch (error) {
      telemetry.count('errors', 'ledger')
      telemetry.log('warn', 'how a request stands could not be recorded', { requestId, reason: messageOf(error) })
      return false
    }
  }

  #name({ lease, names, target, capability, description }: Asking): RequestNames {
    const { ids, tasks } = this.#deps
    const agent = addressText(target)
    return {
      requestId: lease?.requestId ?? names?.requestId ?? ids.next('req'),
      attempt: lease?.attempt ?? 1,
      correlationId: ids.next('thr'),
      taskId:
        lease === undefined
          ? tasks.open({ kind: 'request', role: 'caller', agent, capability: capability ?? '', description }, names?.taskId)
          : null
    }
  }

  #queue(request: OutgoingRequest): void {
    if (request.isOver) return
    this.#wait(request)
    request.waitForPeer()
  }

  #wait(request: OutgoingRequest): void {
    this.#lanes.get(request.peer)?.wait(request, this.#deps.clock.monotonic())
  }

  #forget(request: OutgoingRequest): void {
    const known = this.#byThread.get(request.names.correlationId)
    if (known !== undefined) this.#deps.asked.ended(known.agent)
    const { requestId, taskId, correlationId } = request.names
    this.#byThread.delete(correlationId)
    if (taskId !== null) {
      this.#byId.delete(requestId)
      this.#byTask.delete(taskId)
    }
    if (this.#lanes.get(request.peer)?.remove(request) === true) this.#lanes.delete(request.peer)
    // It leaves its room to the next.
    this.#sendQueued(request.peer)
  }

  #of(peer: NodeId): readonly OutgoingRequest[] {
    return this.#lanes.get(peer)?.all() ?? []
  }

  #all(): OutgoingRequest[] {
    return [...this.#lanes.values()].flatMap((lane) => lane.all())
  }
}

function asked(request: OutgoingRequest): Asked {
  const { requestId, correlationId, taskId } = request.names
  return { requestId, correlationId, taskId, answer: request.answer, cancel: () => request.cancel() }
}
