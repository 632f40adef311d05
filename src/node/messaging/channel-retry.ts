import type { Clock, Timer } from '../../kit/clock.js'
import { asNodeError, NodeError } from '../../kit/errors.js'
import type { ErrorCode } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { MAX_RETRIES, retryDelayMs } from '../../domain/channel/retry.js'
import type { PeerBudget, SendBudget } from '../peers/send-budget.js'

/** The most messages to one peer that wait for a retry. */
const MAX_WAITING = 1000
/** Codes of a failed channel. Backpressure (OVERLOADED) is reported to the sender at once. */
const FAILURES: ReadonlySet<ErrorCode> = new Set(['CHANNEL_CLOSED', 'PEER_OFFLINE'])

/** Dependencies of {@link ChannelRetry}. */
export interface ChannelRetryDeps {
  readonly clock: Clock
  /** Counts the bytes of waiting messages. */
  readonly budget: SendBudget
  /** Opens a link if needed. @throws NodeError PEER_OFFLINE. */
  reach(peer: NodeId): Promise<void>
  /** Called when a message is given up. */
  onFailure(peer: NodeId, cause: NodeError): void
}

/** A message to deliver. */
interface Shipment {
  /** The bytes that it takes while it waits. */
  readonly bytes: number
  /** Passes it to the channel. Throws when that fails. */
  send(): void
}

/** A message that waits for a retry. */
interface Retry extends Shipment {
  readonly resolve: () => void
  readonly reject: (error: NodeError) => void
  failed: number
  timer: Timer | null
}

/** The waiting messages to one peer, in the order they were sent. */
interface PeerBacklog {
  readonly budget: PeerBudget
  readonly waiting: Retry[]
}

/**
 * Passes messages to channels. A failed one is retried up to three times, each delay at least double the last. Later
 * messages to the same peer do not overtake it.
 */
export class ChannelRetry {
  readonly #deps: ChannelRetryDeps
  /** Messages that wait for a retry, by peer. */
  readonly #lanes = new Map<NodeId, PeerBacklog>()
  #isClosed = false

  constructor(deps: ChannelRetryDeps) {
    this.#deps = deps
  }

  /**
   * Runs `send`, again after a channel failure. Resolves once it succeeds.
   * @throws NodeError DELIVERY_FAILED after the last try; OVERLOADED when too many wait; any other error of `send`, at
   * once.
   */
  async deliver(peer: NodeId, { bytes, send }: Shipment): Promise<void> {
    const lane = this.#lanes.get(peer) ?? { budget: this.#deps.budget.peer(), waiting: [] }
    if (lane.waiting.length === 0) {
      const failure = tried(send)
      if (failure === null) return
      if (!FAILURES.has(failure.code) || this.#isClosed) throw failure
    }
    if (lane.waiting.length >= MAX_WAITING || !lane.budget.take(bytes))
      throw new NodeError('OVERLOADED', 'too many messages wait for another try to reach this peer')
    this.#lanes.set(peer, lane)
    await new Promise<void>((resolve, reject) => {
      const retry: Retry = { bytes, send, resolve, reject, failed: 1, timer: null }
      lane.waiting.push(retry)
      this.#later(peer, retry, null)
    })
  }

  /** Rejects the waiting messages. */
  close(): void {
    this.#isClosed = true
    for (const { budget, waiting } of this.#lanes.values()) {
      for (const { bytes, timer, reject } of waiting) {
        budget.leave(bytes)
        this.#deps.clock.clear(timer)
        reject(new NodeError('CHANNEL_CLOSED', 'this node stopped before the message could be delivered'))
      }
    }
    this.#lanes.clear()
  }

  #later(peer: NodeId, retry: Retry, cause: NodeError | null): void {
    const delay = retryDelayMs(retry.failed)
    if (delay !== null) {
      retry.timer = this.#deps.clock.after(delay, () => void this.#again(peer, retry))
      return
    }
    this.#leave(peer, retry)
    const error = new NodeError(
      'DELIVERY_FAILED',
      `the message could not be delivered; it was tried ${MAX_RETRIES} times more`,
      {
        ...(cause === null ? {} : { cause })
      }
    )
    this.#deps.onFailure(peer, error)
    retry.reject(error)
  }

  /** A message behind another one counts as failed, too: it must not overtake. */
  async #again(peer: NodeId, retry: Retry): Promise<void> {
    const isFirst = this.#first(peer) === retry
    const failure = isFirst ? await this.#tryAgain(peer, retry) : null
    if (this.#isClosed || (isFirst && failure === null)) return
    retry.failed++
    this.#later(peer, retry, failure)
  }

  /** null: the message was delivered or failed for good. */
  async #tryAgain(peer: NodeId, retry: Retry): Promise<NodeError | null> {
    try {
      await this.#deps.reach(peer)
    } catch (error) {
      return asNodeError(error)
    }
    if (this.#isClosed) return null
    const failure = tried(retry.send)
    if (failure !== null && FAILURES.has(failure.code)) return failure
    this.#leave(peer, retry)
    if (failure === null) retry.resolve()
    else retry.reject(failure)
    this.#followUp(peer)
    return null
  }

  /** The channel works again: sends the messages behind. */
  #followUp(peer: NodeId): void {
    for (let next = this.#first(peer); next !== undefined; next = this.#first(peer)) {
      const failure = tried(next.send)
      if (failure !== null && FAILURES.has(failure.code)) return
      this.#deps.clock.clear(next.timer)
      this.#leave(peer, next)
      if (failure === null) next.resolve()
      else next.reject(failure)
    }
  }

  #leave(peer: NodeId, retry: Retry): void {
    const lane = this.#lanes.get(peer)
    if (lane === undefined) return
    lane.waiting.splice(lane.waiting.indexOf(retry), 1)
    lane.budget.leave(retry.bytes)
    if (lane.waiting.length === 0) this.#lanes.delete(peer)
  }

  #first(peer: NodeId): Retry | undefined {
    return this.#lanes.get(peer)?.waiting[0]
  }
}

function tried(send: () => void): NodeError | null {
  try {
    send()
    return null
  } catch (error) {
    return asNodeError(error)
  }
}
