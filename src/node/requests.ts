import { asNodeError, NodeError } from '../kit/errors.js'
import type { IdSource, NodeId } from '../kit/ids.js'
import { addressText } from '../domain/card/card.js'
import { Cancellations } from './cancellations.js'
import type { CancellationsParts } from './cancellations.js'
import { OneRequest } from './one-request.js'
import type { Answer, Asking, RequestNames, RequestParts } from './one-request.js'

/** What asking others needs. */
export interface RequestsParts extends Omit<RequestParts, 'onEnd' | 'cancellations'>, CancellationsParts {
  readonly ids: IdSource
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
  readonly #parts: RequestsParts
  readonly #ofRequest: RequestParts
  readonly #cancellations: Cancellations
  /** Requests that have not ended, by peer. */
  readonly #live = new Map<NodeId, Set<OneRequest>>()
  /** Those of them that wait for their peer. */
  readonly #queued = new Set<OneRequest>()

  constructor(parts: RequestsParts) {
    this.#parts = parts
    this.#cancellations = new Cancellations(parts)
    this.#ofRequest = { ...parts, cancellations: this.#cancellations, onEnd: (request) => this.#forget(request) }
  }

  /**
   * Sends a request. Resolves when it is on its way (or queued).
   * @throws NodeError what the road out refuses.
   */
  async ask(asking: Asking): Promise<Asked> {
    const request = new OneRequest(this.#ofRequest, asking, this.#name(asking))
    const ofPeer = this.#live.get(request.peer) ?? new Set()
    this.#live.set(request.peer, ofPeer.add(request))
    try {
      if (asking.mayQueue && this.#isAway(request.peer)) return this.#queuedAsked(request)
      await request.send()
    } catch (error) {
      const failure = asNodeError(error)
      const isAway = failure.code === 'PEER_OFFLINE' || failure.code === 'CHANNEL_CLOSED'
      if (!isAway || !asking.mayQueue) request.fail(failure.toBody())
      if (request.isOver) throw failure
      this.#queue(request)
    }
    return asked(request)
  }

  #isAway(peer: NodeId): boolean {
    return peer !== this.#parts.self && !this.#parts.peers.isOnline(peer)
  }

  /** Nobody waits for it: it is queued at once, and the peer is looked for meanwhile. @throws NodeError what the rules refuse. */
  #queuedAsked(request: OneRequest): Asked {
    request.check()
    this.#queue(request)
    this.#parts.peers.reach(request.peer).catch(() => {})
    return asked(request)
  }

  /** This node stops: whoever waits for an answer waits no longer. */
  stop(): void {
    for (const request of this.#all()) request.abandon()
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

  /** A peer says which requests it has, and which of them wait for a free place of their agent. */
  onHeartbeat(peer: NodeId, keys: readonly string[], waiting: readonly string[] = []): void {
    const named = new Set(keys)
    const idle = new Set(waiting)
    for (const request of this.#live.get(peer) ?? []) {
      if (!named.has(request.key)) continue
      if (idle.has(request.key)) request.waitForSlot()
      else request.working()
    }
  }

  /** Requests that wait for their peer to come back. */
  waitingCount(): number {
    return this.#queued.size
  }

  /** A peer is gone: what it was asked waits for it, until each request's own time is over. */
  onOffline(peer: NodeId): void {
    for (const request of this.#live.get(peer) ?? []) request.waitForPeer()
  }

  /** A peer was put out of the mesh: nothing is expected of it any more. */
  onRevoked(peer: NodeId): void {
    const error = new NodeError('PEER_OFFLINE', 'the peer was put out of the mesh').toBody()
    for (const request of [...(this.#live.get(peer) ?? [])]) request.fail(error)
    this.#cancellations.forget(peer)
  }

  /** A peer is back: send what waited for it. */
  onOnline(peer: NodeId): void {
    this.#cancellations.onOnline(peer)
    for (const request of this.#live.get(peer) ?? []) {
      if (this.#queued.delete(request)) request.send().catch((error: unknown) => this.#sendLater(request, asNodeError(error)))
    }
  }

  /** The peer may be gone again: then it waits on. What the rules or the agent refuse now has failed. */
  #sendLater(request: OneRequest, error: NodeError): void {
    if (error.code === 'PEER_OFFLINE' || error.code === 'CHANNEL_CLOSED') this.#queue(request)
    else request.fail(error.toBody())
  }

  #name({ lease, target, capability, description }: Asking): RequestNames {
    const { ids, tasks } = this.#parts
    const agent = addressText(target)
    return {
      requestId: lease?.requestId ?? ids.next('req'),
      attempt: lease?.attempt ?? 1,
      correlationId: ids.next('thr'),
      taskId: lease === undefined ? tasks.open({ kind: 'request', role: 'caller', agent, capability: capability ?? '', description }) : null
    }
  }

  #queue(request: OneRequest): void {
    if (request.isOver) return
    this.#queued.add(request)
    request.waitForPeer()
  }

  #forget(request: OneRequest): void {
    this.#queued.delete(request)
    const ofPeer = this.#live.get(request.peer)
    if (ofPeer?.delete(request) === true && ofPeer.size === 0) this.#live.delete(request.peer)
  }

  #all(): OneRequest[] {
    return [...this.#live.values()].flatMap((ofPeer) => [...ofPeer])
  }
}

function asked(request: OneRequest): Asked {
  const { requestId, correlationId, taskId } = request.names
  return { requestId, correlationId, taskId, answer: request.answer, cancel: () => request.cancel() }
}
