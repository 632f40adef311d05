import type { Clock, Timer } from '../kit/clock.js'
import type { NodeId } from '../kit/ids.js'
import type { EnvelopeHeader } from '../domain/envelope/codec.js'
import { Exchanges } from '../domain/routing/exchanges.js'

/** Called with each reply on a thread. */
export type ReplyHandler = (header: EnvelopeHeader, payload: unknown) => void

/** How often ended and expired exchanges are swept, in milliseconds. */
const SWEEP_MS = 30_000
/** Ended exchanges that are remembered, to tell a late reply from one that nobody asked for. */
const MAX_ENDED = 8192

/** The open exchanges of this node, both ways: what lets a reply back in or out, and who waits for it. */
export class Conversations {
  readonly #clock: Clock
  readonly #exchanges = new Exchanges()
  readonly #handlers = new Map<string, { handler: ReplyHandler; expiresAt: number }>()
  readonly #ended = new Set<string>()
  readonly #sweeper: Timer

  constructor(clock: Clock) {
    this.#clock = clock
    this.#sweeper = clock.every(SWEEP_MS, () => this.#sweep())
  }

  /** This node let an opening message of a peer in: its replies may go out. False: too many exchanges are open. */
  letIn(peer: NodeId, correlationId: string, ttlMs: number): boolean {
    const now = this.#clock.monotonic()
    this.#ended.delete(keyOf(peer, correlationId))
    return this.#exchanges.open({ peer, correlationId, expiresAt: now + ttlMs }, now)
  }

  /**
   * This node sends an opening message: the peer's replies may come in, and go to `handler`. False: too many exchanges
   * are open.
   */
  sentOut(peer: NodeId, correlationId: string, options: { readonly ttlMs: number; readonly handler: ReplyHandler }): boolean {
    if (!this.letIn(peer, correlationId, options.ttlMs)) return false
    this.#handlers.set(keyOf(peer, correlationId), { handler: options.handler, expiresAt: this.#clock.monotonic() + options.ttlMs })
    return true
  }

  /**
   * The peer goes on along a thread that it opened itself, since somebody here takes what follows: a stream, or what comes
   * after an accepted proposal. Nothing changes where somebody waits already.
   */
  follow(peer: NodeId, correlationId: string, { ttlMs, handler }: { readonly ttlMs: number; readonly handler: ReplyHandler }): void {
    if (this.isAwaited(peer, correlationId)) return
    this.#handlers.set(keyOf(peer, correlationId), { handler, expiresAt: this.#clock.monotonic() + ttlMs })
  }

  /** May a reply pass between this node and the peer on that thread? */
  allows(peer: NodeId, correlationId: string | undefined): boolean {
    return correlationId !== undefined && this.#exchanges.allows({ peer, correlationId }, this.#clock.monotonic())
  }

  /** Is any exchange with the peer open? */
  isOpenWith(peer: NodeId): boolean {
    return this.#exchanges.isOpenWith(peer, this.#clock.monotonic())
  }

  /** Did the exchange of that thread end lately? Then its reply is only late, not forged. */
  hasEnded(peer: NodeId, correlationId: string | undefined): boolean {
    return correlationId !== undefined && this.#ended.has(keyOf(peer, correlationId))
  }

  /** Does somebody here wait for the peer's replies on that thread? On an exchange that the peer itself opened only who follows it. */
  isAwaited(peer: NodeId, correlationId: string | undefined): boolean {
    return correlationId !== undefined && this.#handlers.has(keyOf(peer, correlationId))
  }

  /** Gives a reply to whoever waits for it. */
  deliver(peer: NodeId, header: EnvelopeHeader, payload: unknown): void {
    this.#handlers.get(keyOf(peer, header.correlationId ?? ''))?.handler(header, payload)
  }

  /** The exchange has ended: no further reply passes. */
  end(peer: NodeId, correlationId: string): void {
    const key = keyOf(peer, correlationId)
    this.#exchanges.close({ peer, correlationId })
    this.#handlers.delete(key)
    this.#ended.add(key)
    for (const oldest of this.#ended) {
      if (this.#ended.size <= MAX_ENDED) break
      this.#ended.delete(oldest)
    }
  }

  /** Stops the sweeper. */
  close(): void {
    this.#clock.clear(this.#sweeper)
  }

  #sweep(): void {
    const now = this.#clock.monotonic()
    this.#exchanges.sweep(now)
    for (const [key, one] of this.#handlers) if (one.expiresAt <= now) this.#handlers.delete(key)
  }
}

function keyOf(peer: NodeId, correlationId: string): string {
  return `${peer}/${correlationId}`
}
