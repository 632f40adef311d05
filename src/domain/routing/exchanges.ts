import type { MessageType } from '../envelope/envelope.js'

/** How much {@link Exchanges} holds. */
export interface ExchangeLimits {
  /** In all. Default 65,536. */
  readonly maxOpen?: number
  /** With one peer. Default 8,192. */
  readonly maxPerPeer?: number
}

/** Names an exchange: the node at the other end and the thread. */
export interface ExchangeKey {
  /** Node id of the peer, from its stream. */
  readonly peer: string
  /** The opening message's correlation id, or its id. */
  readonly correlationId: string
}

interface Exchange {
  /** Opening messages that no final reply has answered yet. */
  openings: number
  /** Accepted proposals whose work has not been asked for yet. */
  accepted: number
  expiresAt: number
}

/** Replies after which an opening is answered for good. */
const FINAL_REPLIES: ReadonlySet<MessageType> = new Set(['response', 'error', 'stream-end', 'task-reject'])

/**
 * The exchanges that this node let in or sent out: what lets replies pass. Both ends keep their own table. Bounded; a full
 * table refuses new ones and never drops a live one. Several openings may share a thread: it stays open until each has
 * its final reply. No clock inside: every call is told the time (unix milliseconds).
 */
export class Exchanges {
  readonly #byPeer = new Map<string, Map<string, Exchange>>()
  readonly #maxOpen: number
  readonly #maxPerPeer: number
  #size = 0
  /** No exchange expires before this, so a full table is not searched in vain again and again. */
  #nextExpiry = Number.POSITIVE_INFINITY

  constructor(limits: ExchangeLimits = {}) {
    this.#maxOpen = limits.maxOpen ?? 65_536
    this.#maxPerPeer = limits.maxPerPeer ?? 8192
  }

  /**
   * Notes an opening message that passed. A request on the thread of an accepted proposal goes on with its exchange.
   * False: there is no room (answer OVERLOADED).
   */
  open(opening: ExchangeKey & { readonly expiresAt: number }, now: number): boolean {
    const known = this.#live(opening, now)
    this.#nextExpiry = Math.min(this.#nextExpiry, opening.expiresAt)
    if (known !== null) {
      if (known.accepted > 0) known.accepted--
      else known.openings++
      known.expiresAt = Math.max(known.expiresAt, opening.expiresAt)
      return true
    }
    if (!this.#hasRoom(opening.peer, now)) return false
    const threads = this.#byPeer.get(opening.peer) ?? new Map<string, Exchange>()
    this.#byPeer.set(opening.peer, threads)
    threads.set(opening.correlationId, { openings: 1, accepted: 0, expiresAt: opening.expiresAt })
    this.#size++
    return true
  }

  /** May a reply pass between this node and the peer on this thread? */
  allows(key: ExchangeKey, now: number): boolean {
    return this.#live(key, now) !== null
  }

  /** Is any exchange open that fits? */
  isAnyOpen(fits: (key: ExchangeKey) => boolean, now: number): boolean {
    for (const [peer, threads] of this.#byPeer)
      for (const [correlationId, { expiresAt }] of threads) if (expiresAt > now && fits({ peer, correlationId })) return true
    return false
  }

  /** Is any exchange with the peer open? */
  isOpenWith(peer: string, now: number): boolean {
    for (const { expiresAt } of this.#byPeer.get(peer)?.values() ?? []) if (expiresAt > now) return true
    return false
  }

  /** Notes a reply that passed: response, error, stream-end and task-reject end an opening, a task-accept keeps it open. */
  replied(key: ExchangeKey, type: MessageType): void {
    if (FINAL_REPLIES.has(type)) return this.close(key)
    if (type !== 'task-accept') return
    const exchange = this.#byPeer.get(key.peer)?.get(key.correlationId)
    if (exchange !== undefined) exchange.accepted = Math.min(exchange.openings, exchange.accepted + 1)
  }

  /** Ends one opening of the thread; with the last one the exchange is over. Unknown ones are ignored. */
  close(key: ExchangeKey): void {
    const exchange = this.#byPeer.get(key.peer)?.get(key.correlationId)
    if (exchange === undefined) return
    exchange.openings--
    exchange.accepted = Math.min(exchange.openings, exchange.accepted)
    if (exchange.openings === 0) this.#remove(key)
  }

  /** Drops what has expired; call it now and then. */
  sweep(now: number): void {
    this.#nextExpiry = Number.POSITIVE_INFINITY
    for (const [peer, threads] of this.#byPeer) {
      for (const [correlationId, exchange] of threads) {
        if (exchange.expiresAt <= now) this.#remove({ peer, correlationId })
        else this.#nextExpiry = Math.min(this.#nextExpiry, exchange.expiresAt)
      }
    }
  }

  /** How many are open (expired ones count until they are swept). */
  get size(): number {
    return this.#size
  }

  #live(key: ExchangeKey, now: number): Exchange | null {
    const exchange = this.#byPeer.get(key.peer)?.get(key.correlationId)
    if (exchange === undefined) return null
    if (exchange.expiresAt > now) return exchange
    this.#remove(key)
    return null
  }

  #hasRoom(peer: string, now: number): boolean {
    if (this.#isFull(peer) && this.#nextExpiry <= now) this.sweep(now)
    return !this.#isFull(peer)
  }

  #isFull(peer: string): boolean {
    return this.#size >= this.#maxOpen || (this.#byPeer.get(peer)?.size ?? 0) >= this.#maxPerPeer
  }

  #remove({ peer, correlationId }: ExchangeKey): void {
    const threads = this.#byPeer.get(peer)
    if (threads?.delete(correlationId) !== true) return
    this.#size--
    if (threads.size === 0) this.#byPeer.delete(peer)
  }
}
