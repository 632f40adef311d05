import type { Clock } from '../../../kit/clock.js'
import type { ContextConnection } from './context-connection.js'

/** Resources of one server whose changes are followed at once. */
export const MAX_WATCHED = 512
/** Followed resources of one node. */
export const MAX_WATCHED_OF_NODE = 128
/** How long a resource is followed after the last question for it, in milliseconds. */
export const WATCH_LEASE_MS = 60_000

interface Watched {
  revision: number
  /** When the lease of each node ends, monotonic milliseconds. */
  readonly leases: Map<string, number>
}

/** A question for the revisions of resources. */
export interface WatchQuestion {
  readonly context: ContextConnection
  /** The node that asks. */
  readonly peer: string
  readonly uris: readonly string[]
}

/**
 * The resources of a server that nodes follow. The server is asked once for each, however many nodes follow it. Each
 * change raises a revision; nodes compare revisions, so changes between two questions are one.
 */
export class ContextWatches {
  readonly #clock: Clock
  readonly #watched = new Map<string, Watched>()
  /** Part of each revision: revisions of another connection are others, since changes may have been missed. */
  #epoch: number
  #context: ContextConnection | null = null
  /** Rises, so that a resource whose lease ended has another revision afterwards: changes may have been missed. */
  #lastRevision = 0
  /** Resources that the server reports. */
  #reported: ReadonlySet<string> = new Set()
  #last: Promise<unknown> = Promise.resolve()

  constructor(clock: Clock) {
    this.#clock = clock
    this.#epoch = clock.now()
  }

  /**
   * The revision of each resource, and a lease for it; null where the server reports no changes of it, or too many are
   * followed. One question at a time.
   * @throws ImportedFault
   */
  async watch(question: WatchQuestion): Promise<readonly (string | null)[]> {
    const answer = this.#last.then(() => this.#watch(question))
    this.#last = answer.catch(() => {})
    return await answer
  }

  /** Ends expired leases. */
  prune(): void {
    const context = this.#context
    if (context !== null && this.#watched.size > 0) this.watch({ context, peer: '', uris: [] }).catch(() => {})
  }

  async #watch({ context, peer, uris }: WatchQuestion): Promise<readonly (string | null)[]> {
    if (context !== this.#context) {
      this.#context = context
      this.#epoch++
    }
    this.#expire()
    let followed = [...this.#watched.values()].filter(({ leases }) => leases.has(peer)).length
    for (const uri of uris) {
      const known = this.#watched.get(uri)
      const isFull = known?.leases.has(peer) !== true && followed >= MAX_WATCHED_OF_NODE
      if (isFull || (known === undefined && this.#watched.size >= MAX_WATCHED)) continue
      const one = known ?? { revision: ++this.#lastRevision, leases: new Map<string, number>() }
      if (!one.leases.has(peer)) followed++
      one.leases.set(peer, this.#clock.monotonic() + WATCH_LEASE_MS)
      this.#watched.set(uri, one)
    }
    this.#reported = await context.watch(new Set(this.#watched.keys()), (uri) => this.#updated(uri))
    for (const uri of this.#watched.keys()) if (!this.#reported.has(uri)) this.#watched.delete(uri)
    return uris.map((uri) => {
      const one = this.#watched.get(uri)
      return one === undefined || !this.#reported.has(uri) ? null : `${this.#epoch}.${one.revision}`
    })
  }

  #expire(): void {
    const now = this.#clock.monotonic()
    for (const [uri, { leases }] of this.#watched) {
      for (const [peer, end] of leases) if (end <= now) leases.delete(peer)
      if (leases.size === 0) this.#watched.delete(uri)
    }
  }

  /** The server may name a part of a resource that is followed. */
  #updated(changed: string): void {
    for (const [uri, one] of this.#watched)
      if (changed === uri || changed.startsWith(`${uri}/`)) one.revision = ++this.#lastRevision
  }
}
