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

/** How often ended and expired exchanges are swept, in milliseconds. */
const SWEEP_MS = 30_000
/** Exchanges of those that may be open that peers leave to this node. */
const KEPT_FOR_OWN = 8192
/** Ended exchanges that are remembered, to tell a late reply from one that nobody asked for. */
const MAX_ENDED = 8192

/**
 * The open exchanges of this node, both ways: what lets a reply back in or out, and who waits for it. Each is of two agents:
 * of this node the `sender` of the thread, of the peer its `recipient`.
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

  /** This node let an opening message of a peer in: its replies may go out. False: too many exchanges are open. */
  letIn(thread: Thread, ttlMs: number): boolean {
    return this.#open(thread, { isOwn: false, ...inward(thread) }, ttlMs)
  }

  /**
   * This node sends an opening message: the peer's replies may come in, and go to `handler`. False: too many exchanges
   * are open.
   */
  sentOut(thread: Thread, options: { readonly ttlMs: number; readonly handler: ReplyHandler }): boolean {
    const key = outward(thread)
    if (!this.#open(thread, { isOwn: true, ...key }, options.ttlMs)) return false
    this.#handlers.set(exchangeText(key), { handler: options.handler, expiresAt: this.#clock.monotonic() + options.ttlMs })
    return true
  }

  /**
   * The peer's agent goes on along a thread that it opened itself, since somebody here takes what follows: a stream, or what
   * comes after an accepted proposal. Nothing changes where somebody waits already.
   */
  follow(thread: Thread, { ttlMs, handler }: { readonly ttlMs: number; readonly handler: ReplyHandler }): void {
    const key = exchangeText(inward(thread))
    if (!this.#handlers.has(key)) this.#handlers.set(key, { handler, expiresAt: this.#clock.monotonic() + ttlMs })
  }

  /** May a reply go out along that thread? */
  maySend(thread: Thread): boolean {
    return this.#find(outward(thread), thread.sender.agentId) !== null
  }

  /** May a reply come in along that thread? */
  mayReceive(thread: Thread): boolean {
    return this.#find(inward(thread), thread.recipient.agentId) !== null
  }

  /** Is any exchange with the peer open? */
  isOpenWith(peer: NodeId): boolean {
    return this.#exchanges.isOpenWith(peer, this.#clock.monotonic())
  }

  /** Did an exchange of that agent of this node end on the thread lately? Then a reply to it is only late, not forged. */
  hasEnded(thread: Thread): boolean {
    return this.#ended.has(endText(thread))
  }

  /** Does somebody here wait for replies along that thread? On an exchange that the peer itself opened only who follows it. */
  isAwaited(thread: Thread): boolean {
    return this.#handlers.has(this.#handlerKey(thread))
  }

  /** Gives a reply to whoever waits for it. */
  deliver(thread: Thread, header: EnvelopeHeader, payload: unknown): void {
    this.#handlers.get(this.#handlerKey(thread))?.handler(header, payload)
  }

  /** The exchange has ended: no further reply passes. */
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

  /** An agent that is not there has no voice: the operator of its node answers for it, on the exchange of whoever asked. */
  #find(key: ExchangeKey, speaker: string): ExchangeKey | null {
    const now = this.#clock.monotonic()
    return this.#exchanges.find(key, now) ?? (speaker === OPERATOR ? this.#exchanges.findOpened(key, now) : null)
  }

  #handlerKey(thread: Thread): string {
    const key = inward(thread)
    const { agentId } = thread.recipient
    // Nobody else speaks on the exchange of another.
    return exchangeText(agentId === OPERATOR ? (this.#find(key, agentId) ?? key) : key)
  }

  #sweep(): void {
    const now = this.#clock.monotonic()
    this.#exchanges.sweep(now)
    for (const [key, one] of this.#handlers) if (one.expiresAt <= now) this.#handlers.delete(key)
  }
}

/** What this node's agent says to the peer's. */
function outward({ sender, recipient, correlationId }: Thread): ExchangeKey {
  return { peer: recipient.nodeId, correlationId, from: addressText(sender), to: addressText(recipient) }
}

/** What the peer's agent says to this node's. */
function inward({ sender, recipient, correlationId }: Thread): ExchangeKey {
  return { peer: recipient.nodeId, correlationId, from: addressText(recipient), to: addressText(sender) }
}

function endText({ sender, recipient, correlationId }: Thread): string {
  return `${recipient.nodeId}\n${sender.agentId}\n${correlationId}`
}
