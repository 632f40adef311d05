import { BoundedSet } from '../../../kit/bounded.js'
import type { NodeId } from '../../../kit/ids.js'

/** Runs of one peer that are remembered; the oldest go first. */
const MAX_OF_PEER = 256

/** Runs that peers canceled before they were here: a cancellation is faster than a message that has to be recorded. */
export class EarlyCancels {
  readonly #byPeer = new Map<NodeId, BoundedSet<string>>()

  /** A peer canceled a run, named as heartbeats name it. */
  add(peer: NodeId, key: string): void {
    const keys = this.#byPeer.get(peer) ?? new BoundedSet(MAX_OF_PEER)
    this.#byPeer.set(peer, keys.add(key))
  }

  /** Was it canceled? Says so once. */
  take(peer: NodeId, key: string): boolean {
    return this.#byPeer.get(peer)?.delete(key) ?? false
  }

  /** A peer is gone: what it sends later is not what it canceled. */
  forget(peer: NodeId): void {
    this.#byPeer.delete(peer)
  }
}
