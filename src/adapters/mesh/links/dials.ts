import type { Clock } from '../../../kit/clock.js'
import { NodeError } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Link } from '../../../ports/mesh.js'

/** The callers that wait for a link to a dialled peer. */
export class Dials {
  readonly #clock: Clock
  readonly #waiting = new Map<NodeId, Set<(outcome: Link | NodeError) => void>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Resolves with the next link to the peer.
   * @throws NodeError PEER_OFFLINE after `timeoutMs`, or when the peer has no place.
   */
  wait(peer: NodeId, timeoutMs: number): Promise<Link> {
    return new Promise((resolve, reject) => {
      const done = (outcome: Link | NodeError): void => {
        this.#clock.clear(timer)
        this.#remove(peer, done)
        if (outcome instanceof NodeError) reject(outcome)
        else resolve(outcome)
      }
      const late = (): void => done(new NodeError('PEER_OFFLINE', 'the peer does not answer', { data: { peer } }))
      const timer = this.#clock.after(timeoutMs, late)
      this.#waiting.set(peer, (this.#waiting.get(peer) ?? new Set()).add(done))
    })
  }

  /** Does a caller wait for a link to the peer? */
  awaits(peer: NodeId): boolean {
    return this.#waiting.has(peer)
  }

  /** A link opened. */
  opened(link: Link): void {
    this.#settle(link.peer, link)
  }

  /** The peer says that it takes no link, and why. */
  refused(peer: NodeId, reason: string): void {
    this.#settle(peer, new NodeError('PEER_OFFLINE', `the peer takes no link: ${reason}`, { data: { peer } }))
  }

  #settle(peer: NodeId, outcome: Link | NodeError): void {
    for (const done of [...(this.#waiting.get(peer) ?? [])]) done(outcome)
  }

  #remove(peer: NodeId, done: (outcome: Link | NodeError) => void): void {
    const waiting = this.#waiting.get(peer)
    waiting?.delete(done)
    if (waiting?.size === 0) this.#waiting.delete(peer)
  }
}
