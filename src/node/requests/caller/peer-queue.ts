import type { Clock } from '../../../kit/clock.js'
import { asNodeError, messageOf, type ErrorCode, type NodeError } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import type { AskedElsewhere } from '../../agents/load-estimate.js'
import type { NextHop } from '../../relay/next-hop.js'
import type { OutgoingRequest } from './request.js'

/** Requests under way to a peer above which others keep waiting: the peer takes a limited number at once. */
const WINDOW = 128

/** Errors of a peer that may take the request later. */
const LATER: ReadonlySet<ErrorCode> = new Set(['PEER_OFFLINE', 'CHANNEL_CLOSED', 'DELIVERY_FAILED', 'OVERLOADED'])

/** The fields of a request that a queue reads. */
export interface QueuedRequest {
  /** Does its caller wait for it? */
  readonly isAwaited: boolean
  /** Monotonic milliseconds from which it may be sent again. */
  readonly dueAt: number
}

/**
 * The open requests to one peer: sent ones, and ones that wait for it to come back or to have room. The cost of the
 * next ones depends on the sent ones, not on the waiting ones.
 */
export class PeerQueue<T extends QueuedRequest> {
  readonly #sent = new Set<T>()
  /** Waiting, and may be sent when there is room. */
  readonly #ready = new Set<T>()
  /** Waiting for their time as well. */
  readonly #later = new Set<T>()
  #nextDueAt = Number.POSITIVE_INFINITY

  /** All requests. */
  all(): T[] {
    return [...this.#sent, ...this.#ready, ...this.#later]
  }

  /** Count of waiting requests. */
  get waiting(): number {
    return this.#ready.size + this.#later.size
  }

  /** Does a request wait? */
  isWaiting(request: T): boolean {
    return this.#ready.has(request) || this.#later.has(request)
  }

  /** Marks a request as sent: it is with the peer, or on its way there. */
  send(request: T): void {
    this.remove(request)
    this.#sent.add(request)
  }

  /** Queues a request behind the waiting ones. */
  wait(request: T, now: number): void {
    if (this.isWaiting(request)) return
    this.#sent.delete(request)
    if (request.dueAt <= now) this.#ready.add(request)
    else this.#hold(request)
  }

  /** Removes a request. Returns whether none is left. */
  remove(request: T): boolean {
    for (const part of [this.#sent, this.#ready, this.#later]) part.delete(request)
    return this.#sent.size === 0 && this.waiting === 0
  }

  /** The requests to send now, so that at most `window` are with the peer; they count as sent. */
  next(now: number, window: number): T[] {
    if (this.waiting === 0) return []
    if (now >= this.#nextDueAt) this.#wake(now)
    let budget = window
    for (const request of this.#sent) if (request.isAwaited) budget--
    const taken: T[] = []
    for (const request of this.#ready) {
      if (taken.length >= budget) break
      taken.push(request)
    }
    for (const request of taken) this.send(request)
    return taken
  }

  #wake(now: number): void {
    const waiting = [...this.#later]
    this.#later.clear()
    this.#nextDueAt = Number.POSITIVE_INFINITY
    for (const request of waiting) {
      if (request.dueAt <= now) this.#ready.add(request)
      else this.#hold(request)
    }
  }

  #hold(request: T): void {
    this.#later.add(request)
    this.#nextDueAt = Math.min(this.#nextDueAt, request.dueAt)
  }
}

/**
 * The open requests of this node: by peer, task, id and thread. Leases have neither task nor id: their swarms keep
 * them.
 */
export class RequestIndex {
  readonly #byPeer = new Map<NodeId, PeerQueue<OutgoingRequest>>()
  readonly #byId = new Map<string, OutgoingRequest>()
  readonly #byTask = new Map<string, OutgoingRequest>()
  /** This node names threads: no two requests share one. */
  readonly #byThread = new Map<string, OutgoingRequest>()

  /** Adds a request that is about to be sent. */
  add(request: OutgoingRequest): void {
    const { requestId, taskId, correlationId } = request.names
    const queue = this.#byPeer.get(request.peer) ?? new PeerQueue()
    this.#byPeer.set(request.peer, queue)
    this.#byThread.set(correlationId, request)
    if (taskId !== null) {
      this.#byId.set(requestId, request)
      this.#byTask.set(taskId, request)
    }
    queue.send(request)
  }

  /** Removes a request that has ended. False: it was removed before. */
  remove(request: OutgoingRequest): boolean {
    const { requestId, taskId, correlationId } = request.names
    const isKnown = this.#byThread.delete(correlationId)
    if (taskId !== null) {
      this.#byId.delete(requestId)
      this.#byTask.delete(taskId)
    }
    if (this.#byPeer.get(request.peer)?.remove(request) === true) this.#byPeer.delete(request.peer)
    return isKnown
  }

  /** The queue of each peer. */
  get queues(): ReadonlyMap<NodeId, PeerQueue<OutgoingRequest>> {
    return this.#byPeer
  }

  /** The requests to a peer. */
  of(peer: NodeId): readonly OutgoingRequest[] {
    return this.#byPeer.get(peer)?.all() ?? []
  }

  /** All requests. */
  all(): OutgoingRequest[] {
    return [...this.#byPeer.values()].flatMap((queue) => queue.all())
  }

  /** Finds a request by its id, its task or its thread. */
  find(kind: 'id' | 'task' | 'thread', name: string): OutgoingRequest | undefined {
    return { id: this.#byId, task: this.#byTask, thread: this.#byThread }[kind].get(name)
  }

  /** Does a request wait for its peer to come back or to have room? */
  isWaiting(request: OutgoingRequest): boolean {
    return this.#byPeer.get(request.peer)?.isWaiting(request) === true
  }

  /** Drops the queue of a peer, or all queues. Returns their requests. */
  dropQueues(peer?: NodeId): readonly OutgoingRequest[] {
    const dropped = peer === undefined ? this.all() : this.of(peer)
    if (peer === undefined) this.#byPeer.clear()
    else this.#byPeer.delete(peer)
    return dropped
  }
}

/** Dependencies of the dispatcher. */
interface DispatcherDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly self: NodeId
  readonly nextHop: Pick<NextHop, 'isReachable' | 'seek'>
  /** Counts the requests of each agent. */
  readonly asked: Pick<AskedElsewhere, 'begun' | 'ended'>
}

/** Decides when requests are sent or sent again: when their peer is reachable and has room, or has lost them. */
export class Dispatcher {
  readonly index = new RequestIndex()
  readonly #deps: DispatcherDeps

  constructor(deps: DispatcherDeps) {
    this.#deps = deps
  }

  /** Adds a request that is about to be sent. */
  begun(request: OutgoingRequest): void {
    this.#deps.asked.begun(request.sending.agent)
    this.index.add(request)
  }

  /** Removes a request that has ended. Its place in the window goes to the next one. */
  ended(request: OutgoingRequest): void {
    if (this.index.remove(request)) this.#deps.asked.ended(request.sending.agent)
    this.sendQueued(request.peer)
  }

  /** Is there no route to a peer? */
  isAway(peer: NodeId): boolean {
    return peer !== this.#deps.self && !this.#deps.nextHop.isReachable(peer, true)
  }

  /** Queues a request until its peer is back. */
  queue(request: OutgoingRequest): void {
    if (request.outcome.isOver) return
    this.wait(request)
    request.waitForPeer()
  }

  /** Queues a request until it may be sent and its peer has room. */
  wait(request: OutgoingRequest): void {
    this.index.queues.get(request.peer)?.wait(request, this.#deps.clock.monotonic())
  }

  /** It could not be sent. It waits if it may; a refusal by rules or by the agent is a failure. */
  notSent(request: OutgoingRequest, error: NodeError): void {
    if (!request.outcome.mayWait || !LATER.has(error.code)) request.outcome.fail(error.toBody())
    else if (error.code === 'OVERLOADED') request.refuse(error.toBody())
    else this.queue(request)
  }

  /** Sends waiting requests to a peer, as far as it has room. */
  sendQueued(peer: NodeId): void {
    if (this.isAway(peer)) return
    for (const request of this.index.queues.get(peer)?.next(this.#deps.clock.monotonic(), WINDOW) ?? [])
      request.send().catch((error: unknown) => this.notSent(request, asNodeError(error)))
  }

  /** The last link to a peer is gone. Without a route over relays its requests wait, each until its own deadline. */
  onOffline(peer: NodeId): void {
    if (this.isAway(peer)) for (const request of this.index.of(peer)) request.waitForPeer()
  }

  /** There is a new path to a peer: waiting requests are sent. */
  onReachable(peer: NodeId): void {
    for (const request of this.index.of(peer)) if (!this.index.isWaiting(request)) request.peerIsBack()
    this.sendQueued(peer)
  }

  /** Time passed: repeats requests that peers have lost, and sends waiting ones. */
  tick(): void {
    for (const peer of this.index.queues.keys()) {
      this.onOffline(peer)
      if (this.isAway(peer)) this.#deps.nextHop.seek(peer)
      this.#askAgain(peer)
      this.sendQueued(peer)
    }
  }

  /** A peer that still has a request, or did it, runs nothing twice. */
  #askAgain(peer: NodeId): void {
    const { self, telemetry } = this.#deps
    const isAway = this.isAway(peer)
    for (const request of this.index.of(peer)) {
      const { correlationId } = request.names
      const note = (error: unknown): void =>
        telemetry.log('debug', 'a request could not be asked again', { correlationId, reason: messageOf(error) })
      const isLost = request.isLost()
      if (isAway) continue
      // Agents of this node answer late by themselves, once they have the request.
      if (peer !== self || !request.sending.isSent) request.askOutcome().catch(note)
      // The lane delivers a message that its peer does not have yet: another copy of it proves nothing.
      if (!isLost || request.sending.isQueued) continue
      request.sendAgain().catch(note)
    }
  }
}
