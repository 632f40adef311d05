import { BoundedSet } from '../../kit/bounded.js'
import type { Clock, Timer } from '../../kit/clock.js'
import type { NodeId } from '../../kit/ids.js'
import { addressText, OPERATOR } from '../../domain/card/card.js'
import type { EnvelopeHeader } from '../../domain/envelope/codec.js'
import { Exchanges, exchangeText } from '../../domain/routing/exchanges.js'
import type { ExchangeKey } from '../../domain/routing/exchanges.js'
import type { Thread } from './inbound-message.js'

/** Called with each reply on a thread. */
export type ReplyHandler = (header: EnvelopeHeader, payload: unknown) => void

/** Interval between sweeps of ended and expired exchanges, in milliseconds. */
const SWEEP_MS = 30_000
/** The open exchanges reserved for this node, out of reach of peers. */
const KEPT_FOR_OWN = 8192
/** The most remembered ended exchanges, to tell late replies from unrequested ones. */
const MAX_ENDED = 8192

/**
 * The open exchanges of this node in both directions: they let replies pass, and hold the handlers of replies. Each is
 * between two agents: the thread's `sender` of this node, and its `recipient` of the peer.
 */
export class ExchangeTable {
  readonly #clock: Clock
  readonly #exchanges = new Exchanges({ kept: KEPT_FOR_OWN })
  readonly #handlers = new Map<string, { handler: ReplyHandler; expiresAt: number }>()
  readonly #ended = new BoundedSet<string>(MAX_ENDED)
  readonly #sweeper: Timer

  constructor(clock: Clock) {
    this.#clock = clock
    this.#sweeper = clock.every(SWEEP_MS, () => this.#sweep())
  }

  /** Opens an exchange for a peer's opening message: replies to it may go out. False: too many exchanges are open. */
  letIn(thread: Thread, ttlMs: number): boolean {
    return this.#open(thread, { isOwn: false, ...inward(thread) }, ttlMs)
  }

  /**
   * Opens an exchange for an own opening message: the peer's replies may come in, and go to `handler`. False: too many
   * exchanges are open.
   */
  sentOut(thread: Thread, options: { readonly ttlMs: number; readonly handler: ReplyHandler }): boolean {
    const key = outward(thread)
    if (!this.#open(thread, { isOwn: true, ...key }, options.ttlMs)) return false
    this.#handlers.set(exchangeText(key), {
      handler: options.handler,
      expiresAt: this.#clock.monotonic() + options.ttlMs
    })
    return true
  }

  /**
   * Registers a handler for later messages of the peer on a thread that the peer opened: a stream, or the messages
   * after an accepted proposal. Does nothing if the thread has a handler.
   */
  follow(thread: Thread, { ttlMs, handler }: { readonly ttlMs: number; readonly handler: ReplyHandler }): void {
    const key = exchangeText(inward(thread))
    if (!this.#handlers.has(key)) this.#handlers.set(key, { handler, expiresAt: this.#clock.monotonic() + ttlMs })
  }

  /** True when a reply may go out on that thread. */
  maySend(thread: Thread): boolean {
    return this.#find(outward(thread), thread.sender.agentId) !== null
  }

  /** True when a reply may come in on that thread. */
  mayReceive(thread: Thread): boolean {
    return this.#find(inward(thread), thread.recipient.agentId) !== null
  }

  /** True when any exchange with the peer is open. */
  isOpenWith(peer: NodeId): boolean {
    return this.#exchanges.isOpenWith(peer, this.#clock.monotonic())
  }

  /** True when an exchange of that agent ended on the thread lately: a reply to it is late, not forged. */
  hasEnded(thread: Thread): boolean {
    return this.#ended.has(endText(thread))
  }

  /** True when a handler awaits replies on that thread. On an exchange opened by the peer, only a follower does. */
  isAwaited(thread: Thread): boolean {
    return this.#handlers.has(this.#handlerKey(thread))
  }

  /** Passes a reply to its handler. */
  deliver(thread: Thread, header: EnvelopeHeader, payload: unknown): void {
    this.#handlers.get(this.#handlerKey(thread))?.handler(header, payload)
  }

  /** Ends the exchange: no further reply passes. */
  end(thread: Thread): void {
    const key = inward(thread)
    this.#exchanges.close(key)
    this.#handlers.delete(exchangeText(key))
    this.#ended.add(endText(thread))
  }

  /** Stops the sweeper. */
  close(): void {
    this.#clock.clear(this.#sweeper)
  }

  #open(thread: Thread, key: ExchangeKey & { readonly isOwn: boolean }, ttlMs: number): boolean {
    const now = this.#clock.monotonic()
    this.#ended.delete(endText(thread))
    return this.#exchanges.open({ expiresAt: now + ttlMs, ...key }, now)
  }

  /**
   * The exchange of a key. The operator of a node also answers for a missing agent, on the exchange opened with that
   * agent.
   */
  #find(key: ExchangeKey, speaker: string): ExchangeKey | null {
    const now = this.#clock.monotonic()
    return this.#exchanges.find(key, now) ?? (speaker === OPERATOR ? this.#exchanges.findOpened(key, now) : null)
  }

  #handlerKey(thread: Thread): string {
    const key = inward(thread)
    const { agentId } = thread.recipient
    // Only the operator speaks on the exchange of another agent.
    return exchangeText(agentId === OPERATOR ? (this.#find(key, agentId) ?? key) : key)
  }

  #sweep(): void {
    const now = this.#clock.monotonic()
    this.#exchanges.sweep(now)
    for (const [key, one] of this.#handlers) if (one.expiresAt <= now) this.#handlers.delete(key)
  }
}

/** Key of messages from this node's agent to the peer's. */
function outward({ sender, recipient, correlationId }: Thread): ExchangeKey {
  return { peer: recipient.nodeId, correlationId, from: addressText(sender), to: addressText(recipient) }
}

/** Key of messages from the peer's agent to this node's. */
function inward({ sender, recipient, correlationId }: Thread): ExchangeKey {
  return { peer: recipient.nodeId, correlationId, from: addressText(recipient), to: addressText(sender) }
}

function endText({ sender, recipient, correlationId }: Thread): string {
  return `${recipient.nodeId}\n${sender.agentId}\n${correlationId}`
}
