import type { NodeId } from '../kit/ids.js'
import type { RequestPayload } from '../domain/task/payloads.js'
import type { Abort } from './abort.js'
import type { Incoming, Thread } from './inbox.js'

/** Threads that get the answer of one run: a request may be sent again while it is worked on. */
const MAX_THREADS = 8

/** One request being worked on, or waiting for its agent. */
export interface Piece {
  /** Unique on this node. */
  readonly key: string
  readonly peer: NodeId
  readonly recipient: Incoming['recipient']
  /** Checked, its capability named. */
  readonly payload: RequestPayload
  readonly taskId: string
  readonly abort: Abort
  /** Where the answer goes; the newest gets the progress. */
  readonly threads: Thread[]
  /** A one-way message: there is no answer to remember. */
  readonly isNotification: boolean
  /** Has its agent begun? Before, it waits for a free place. */
  isRunning: boolean
  /** Does its caller wait for the answer? */
  isAwaited: boolean
  /** When its caller went away, on the monotonic clock. */
  lostAt: number | null
}

/** The pieces of work in flight, by the peer who asked. */
export class InFlight {
  readonly #byPeer = new Map<NodeId, Map<string, Piece>>()
  #size = 0

  /** All of them. */
  get size(): number {
    return this.#size
  }

  /** Those of one peer. */
  sizeOf(peer: NodeId): number {
    return this.#byPeer.get(peer)?.size ?? 0
  }

  /** Adds a piece whose key is new. */
  add(piece: Piece): void {
    const ofPeer = this.#byPeer.get(piece.peer) ?? new Map<string, Piece>()
    this.#byPeer.set(piece.peer, ofPeer.set(piece.key, piece))
    this.#size++
  }

  /** Takes a piece out. */
  remove({ peer, key }: Piece): void {
    const ofPeer = this.#byPeer.get(peer)
    if (ofPeer?.delete(key) !== true) return
    this.#size--
    if (ofPeer.size === 0) this.#byPeer.delete(peer)
  }

  /** The same request came again: its answer goes there as well. False when that work is not in flight. */
  join(peer: NodeId, key: string, thread: Thread): boolean {
    const piece = this.#byPeer.get(peer)?.get(key)
    if (piece === undefined) return false
    if (piece.threads.length < MAX_THREADS) piece.threads.push(thread)
    return true
  }

  /** The pieces of one peer. */
  ofPeer(peer: NodeId): Piece[] {
    return [...(this.#byPeer.get(peer)?.values() ?? [])]
  }

  /** Every piece, peer by peer. */
  byPeer(): readonly (readonly [NodeId, readonly Piece[]])[] {
    return [...this.#byPeer].map(([peer, pieces]) => [peer, [...pieces.values()]])
  }

  /** Every piece. */
  all(): Piece[] {
    return this.byPeer().flatMap(([, pieces]) => pieces)
  }
}
