import type { MessageType } from '../envelope/envelope.js'

/** How much {@link Exchanges} holds. */
export interface ExchangeLimits {
  /** In all. Default 65,536. */
  readonly maxOpen?: number
  /** With one peer. Default 8,192. */
  readonly maxPerPeer?: number
  /** Of all, those that only this node opens: what peers open leaves room for its own. Default 0. */
  readonly kept?: number
  /**
   * Milliseconds without use after which an exchange makes room for a new one of its peer; and in a full table the peer with
   * more than another loses the one that it used longest ago. Absent: none makes room.
   */
  readonly idleMs?: number
}

/** Names an exchange: the node that its room is charged to, the thread and the two agents that speak. */
export interface ExchangeKey {
  /** Node id of the peer, from its stream; at a hop of the node that opened it. */
  readonly peer: string
  /** The opening message's correlation id, or its id. */
  readonly correlationId: string
  /** Address of the agent that opens; of either agent for what comes after. */
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
  /** Accepted proposals whose work has not been asked for yet. */
  accepted: number
  expiresAt: number
  usedAt: number
  /** By node: the neighbour by which what is for it goes. */
  ways: Map<string, string> | null
}

/** Replies after which an opening is answered for good. */
const FINAL_REPLIES: ReadonlySet<MessageType> = new Set(['response', 'error', 'stream-end', 'task-reject'])

/**
 * The exchanges that this node let in or sent out: what lets replies pass, between the two agents of each and no others. Both
 * ends keep their own table. Bounded; a full table refuses new ones and drops no live one, unless it is told when they are idle.
 * Several openings of the same two may share a thread: it stays open until each has its final reply. No clock inside: every
 * call is told the time (milliseconds of one clock).
 */
export class Exchanges {
  readonly #open = new Map<string, Exchange>()
  /** By peer, those that were used longest ago first. */
  readonly #ofPeer = new Map<string, Set<Exchange>>()
  /** By thread and the agent that opened, oldest first: whom it may have asked. */
  readonly #byOpener = new Map<string, Exchange[]>()
  readonly #maxOpen: number
  readonly #maxPerPeer: number
  readonly #kept: number
  readonly #idleMs: number
  /** No exchange expires before this, so a full table is not searched in vain again and again. */
  #nextExpiry = Number.POSITIVE_INFINITY

  constructor(limits: ExchangeLimits = {}) {
    this.#maxOpen = limits.maxOpen ?? 65_536
    this.#maxPerPeer = limits.maxPerPeer ?? 8192
    this.#kept = limits.kept ?? 0
    this.#idleMs = limits.idleMs ?? Number.POSITIVE_INFINITY
  }

  /**
   * Notes an opening message that passed; `isOwn`: of this node. A request on the thread of an accepted proposal goes on with
   * its exchange. False: there is no room (answer OVERLOADED).
   */
  open(opening: ExchangeKey & { readonly expiresAt: number; readonly isOwn?: boolean }, now: number): boolean {
    const { peer, correlationId, from, to, expiresAt, isOwn = false } = opening
    const key = { peer, correlationId, from, to }
    const text = exchangeText(key)
    const known = this.#live(text, now)
    this.#nextExpiry = Math.min(this.#nextExpiry, expiresAt)
    if (known !== null) {
      if (known.accepted > 0) known.accepted--
      else known.openings++
      known.expiresAt = Math.max(known.expiresAt, expiresAt)
      this.#used(known, now)
      return true
    }
    if (!this.#hasRoom(key.peer, isOwn, now) && !this.#makeRoom(key.peer, now)) return false
    this.#add({ key, text, opener: openerText(key), openings: 1, accepted: 0, expiresAt, usedAt: now, ways: null })
    return true
  }

  /** The exchange that a reply of `from` to `to` goes along; null: there is none. */
  find(key: ExchangeKey, now: number): ExchangeKey | null {
    return this.#live(exchangeText(key), now)?.key ?? null
  }

  /** What follows on the exchange, and is for that node, goes by this neighbour, who has it open too. */
  setWay(key: ExchangeKey, node: string, neighbour: string): void {
    const exchange = this.#open.get(exchangeText(key))
    if (exchange !== undefined) exchange.ways = (exchange.ways ?? new Map<string, string>()).set(node, neighbour)
  }

  /** The neighbour by which what is for the node came, or went, last; null: by none. */
  way(key: ExchangeKey, node: string): string | null {
    return this.#open.get(exchangeText(key))?.ways?.get(node) ?? null
  }

  /** The oldest exchange that `to` opened on the thread with any agent of the node of `from`, which may answer for one that is gone. */
  findOpened({ peer, correlationId, from, to }: ExchangeKey, now: number): ExchangeKey | null {
    const opened = this.#byOpener.get(openerText({ peer, correlationId, from: to })) ?? []
    return opened.find(({ key, expiresAt }) => expiresAt > now && nodeOf(key.to) === nodeOf(from))?.key ?? null
  }

  /** Is any exchange open that fits, and not idle? */
  isAnyOpen(fits: (key: ExchangeKey) => boolean, now: number): boolean {
    for (const one of this.#open.values()) if (one.expiresAt > now && !this.#isIdle(one, now) && fits(one.key)) return true
    return false
  }

  /** Is any exchange with the peer open? */
  isOpenWith(peer: string, now: number): boolean {
    for (const { expiresAt } of this.#ofPeer.get(peer) ?? []) if (expiresAt > now) return true
    return false
  }

  /** Notes a reply that passed: response, error, stream-end and task-reject end an opening (true), a task-accept keeps it open. */
  replied(key: ExchangeKey, type: MessageType, now: number): boolean {
    const exchange = this.#open.get(exchangeText(key))
    if (exchange === undefined) return false
    this.#used(exchange, now)
    if (FINAL_REPLIES.has(type)) this.close(key)
    else if (type === 'task-accept') exchange.accepted = Math.min(exchange.openings, exchange.accepted + 1)
    return FINAL_REPLIES.has(type)
  }

  /** A final reply that passed has not arrived: its opening is open again. False: there is no room. */
  reopen({ expiresAt, ...key }: ExchangeKey & { readonly expiresAt: number }, now: number): boolean {
    const known = this.#live(exchangeText(key), now)
    if (known === null) return this.open({ ...key, expiresAt }, now)
    known.openings++
    return true
  }

  /** Ends one opening of the exchange; with the last one it is over. Unknown ones are ignored. */
  close(key: ExchangeKey): void {
    const exchange = this.#open.get(exchangeText(key))
    if (exchange === undefined) return
    exchange.openings--
    exchange.accepted = Math.min(exchange.openings, exchange.accepted)
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

  #hasRoom(peer: string, isOwn: boolean, now: number): boolean {
    if (this.#isFull(peer, isOwn) && this.#nextExpiry <= now) this.sweep(now)
    return !this.#isFull(peer, isOwn)
  }

  #isFull(peer: string, isOwn: boolean): boolean {
    return this.#open.size >= this.#maxOpen - (isOwn ? 0 : this.#kept) || this.#countOf(peer) >= this.#maxPerPeer
  }

  #countOf(peer: string): number {
    return this.#ofPeer.get(peer)?.size ?? 0
  }

  #isIdle({ usedAt }: Exchange, now: number): boolean {
    return now - usedAt >= this.#idleMs
  }

  /** Drops an idle exchange of the peer that has too many; in a full table any of a peer that has more than who wants room. */
  #makeRoom(peer: string, now: number): boolean {
    if (this.#idleMs === Number.POSITIVE_INFINITY) return false
    const giver = this.#countOf(peer) >= this.#maxPerPeer ? peer : this.#greediest(peer)
    const [oldest] = this.#ofPeer.get(giver) ?? []
    const hasMore = this.#countOf(giver) > this.#countOf(peer) + 1
    if (oldest === undefined || !(hasMore || this.#isIdle(oldest, now))) return false
    this.#remove(oldest)
    return true
  }

  #greediest(than: string): string {
    let greedy = than
    for (const one of this.#ofPeer.keys()) if (this.#countOf(one) > this.#countOf(greedy)) greedy = one
    return greedy
  }

  #used(exchange: Exchange, now: number): void {
    const ofPeer = this.#ofPeer.get(exchange.key.peer)
    ofPeer?.delete(exchange)
    ofPeer?.add(exchange)
    exchange.usedAt = now
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

function nodeOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1)
}

function openerText({ peer, correlationId, from }: Omit<ExchangeKey, 'to'>): string {
  return `${peer}\n${from}\n${correlationId}`
}
