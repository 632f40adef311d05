import { nodeOfAddress } from '../card/card.js'
/** Limits of {@link Exchanges}. */
export interface ExchangeLimits {
  /** In all. Default 65,536. */
  readonly maxOpen?: number
  /** With one peer. Default 8,192. */
  readonly maxPerPeer?: number
  /** Part of all that only this node may open, so that peers cannot use up its own. Default 0. */
  readonly kept?: number
}

/** Names an exchange: the node that its room is charged to, the thread and the two agents that speak. */
export interface ExchangeKey {
  /** Node id of the peer. */
  readonly peer: string
  /** The opening message's correlation id, or its id. */
  readonly correlationId: string
  /** Address of the opening agent; of either agent for later messages. */
  readonly from: string
  /** Address of the other. */
  readonly to: string
}

interface Exchange {
  readonly key: ExchangeKey
  /** See {@link exchangeText} and {@link openerText}: long enough to be made once. */
  readonly text: string
  readonly opener: string
  /** Opening messages that no final reply has answered yet. */
  openings: number
  expiresAt: number
}

/**
 * The open exchanges of this node, which let replies pass between their two agents alone. Both ends have their own
 * table. Bounded; a full table refuses new ones and drops no live one. Several openings of the same two agents may
 * share a thread: it stays open until each has its final reply. No clock inside: every call gets the time (milliseconds
 * of one clock).
 */
export class Exchanges {
  readonly #open = new Map<string, Exchange>()
  readonly #ofPeer = new Map<string, Set<Exchange>>()
  /** By thread and the agent that opened, oldest first: whom it may have asked. */
  readonly #byOpener = new Map<string, Exchange[]>()
  readonly #maxOpen: number
  readonly #maxPerPeer: number
  readonly #kept: number
  /** No exchange expires before this, so a full table is not searched in vain again and again. */
  #nextExpiry = Number.POSITIVE_INFINITY

  constructor(limits: ExchangeLimits = {}) {
    this.#maxOpen = limits.maxOpen ?? 65_536
    this.#maxPerPeer = limits.maxPerPeer ?? 8192
    this.#kept = limits.kept ?? 0
  }

  /** Records an opening message that passed; `isOwn`: of this node. False: the limit is reached (answer OVERLOADED). */
  open(opening: ExchangeKey & { readonly expiresAt: number; readonly isOwn?: boolean }, now: number): boolean {
    const { peer, correlationId, from, to, expiresAt, isOwn = false } = opening
    const key = { peer, correlationId, from, to }
    const text = exchangeText(key)
    const known = this.#live(text, now)
    this.#nextExpiry = Math.min(this.#nextExpiry, expiresAt)
    if (known !== null) {
      known.openings++
      known.expiresAt = Math.max(known.expiresAt, expiresAt)
      return true
    }
    if (!this.#hasCapacity(key.peer, isOwn, now)) return false
    this.#add({ key, text, opener: openerText(key), openings: 1, expiresAt })
    return true
  }

  /** The exchange that a reply of `from` to `to` goes along; null: there is none. */
  find(key: ExchangeKey, now: number): ExchangeKey | null {
    return this.#live(exchangeText(key), now)?.key ?? null
  }

  /**
   * The oldest exchange that `to` opened on the thread with any agent of the node of `from`, which may answer for one
   * that is gone.
   */
  findOpened({ peer, correlationId, from, to }: ExchangeKey, now: number): ExchangeKey | null {
    const opened = this.#byOpener.get(openerText({ peer, correlationId, from: to })) ?? []
    return (
      opened.find(({ key, expiresAt }) => expiresAt > now && nodeOfAddress(key.to) === nodeOfAddress(from))?.key ?? null
    )
  }

  /** Is any exchange with the peer open? */
  isOpenWith(peer: string, now: number): boolean {
    for (const { expiresAt } of this.#ofPeer.get(peer) ?? []) if (expiresAt > now) return true
    return false
  }

  /** Ends one opening of the exchange; with the last one it is over. Unknown ones are ignored. */
  close(key: ExchangeKey): void {
    const exchange = this.#open.get(exchangeText(key))
    if (exchange === undefined) return
    exchange.openings--
    if (exchange.openings === 0) this.#remove(exchange)
  }

  /** Drops what has expired; call it now and then. */
  sweep(now: number): void {
    this.#nextExpiry = Number.POSITIVE_INFINITY
    for (const exchange of this.#open.values()) {
      if (exchange.expiresAt <= now) this.#remove(exchange)
      else this.#nextExpiry = Math.min(this.#nextExpiry, exchange.expiresAt)
    }
  }

  /** How many are open (expired ones count until they are swept). */
  get size(): number {
    return this.#open.size
  }

  #live(text: string, now: number): Exchange | null {
    const exchange = this.#open.get(text)
    if (exchange === undefined) return null
    if (exchange.expiresAt > now) return exchange
    this.#remove(exchange)
    return null
  }

  #hasCapacity(peer: string, isOwn: boolean, now: number): boolean {
    if (this.#isFull(peer, isOwn) && this.#nextExpiry <= now) this.sweep(now)
    return !this.#isFull(peer, isOwn)
  }

  #isFull(peer: string, isOwn: boolean): boolean {
    return this.#open.size >= this.#maxOpen - (isOwn ? 0 : this.#kept) || this.#countOf(peer) >= this.#maxPerPeer
  }

  #countOf(peer: string): number {
    return this.#ofPeer.get(peer)?.size ?? 0
  }

  #add(exchange: Exchange): void {
    const { key, text, opener } = exchange
    this.#open.set(text, exchange)
    this.#ofPeer.set(key.peer, (this.#ofPeer.get(key.peer) ?? new Set()).add(exchange))
    const others = this.#byOpener.get(opener)
    if (others === undefined) this.#byOpener.set(opener, [exchange])
    else others.push(exchange)
  }

  #remove(exchange: Exchange): void {
    const { key, text, opener } = exchange
    if (!this.#open.delete(text)) return
    const ofPeer = this.#ofPeer.get(key.peer)
    ofPeer?.delete(exchange)
    if (ofPeer?.size === 0) this.#ofPeer.delete(key.peer)
    const others = this.#byOpener.get(opener)
    if (others !== undefined && others.length > 1)
      this.#byOpener.set(
        opener,
        others.filter((one) => one !== exchange)
      )
    else this.#byOpener.delete(opener)
  }
}

/** The same text for both directions of an exchange, and for no other. */
export function exchangeText({ peer, correlationId, from, to }: ExchangeKey): string {
  return from < to ? `${peer}\n${from}\n${to}\n${correlationId}` : `${peer}\n${to}\n${from}\n${correlationId}`
}

function openerText({ peer, correlationId, from }: Omit<ExchangeKey, 'to'>): string {
  return `${peer}\n${from}\n${correlationId}`
}
