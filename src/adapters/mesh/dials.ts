import type { Clock } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import type { Link } from '../../ports/mesh.js'

/** Those who wait for a link to a peer that was dialled. */
export class Dials {
  readonly #clock: Clock
  readonly #waiting = new Map<NodeId, Set<(link: Link) => void>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves with the next link to the peer. @throws NodeError PEER_OFFLINE after `timeoutMs`. */
  wait(peer: NodeId, timeoutMs: number): Promise<Link> {
    return new Promise((resolve, reject) => {
      const done = (link: Link): void => {
        this.#clock.clear(timer)
        this.#remove(peer, done)
        resolve(link)
      }
      const timer = this.#clock.after(timeoutMs, () => {
        this.#remove(peer, done)
        reject(new NodeError('PEER_OFFLINE', 'the peer does not answer', { data: { peer } }))
      })
      this.#waiting.set(peer, (this.#waiting.get(peer) ?? new Set()).add(done))
    })
  }

  /** A link opened. */
  opened(link: Link): void {
    for (const done of [...(this.#waiting.get(link.peer) ?? [])]) done(link)
  }

  #remove(peer: NodeId, done: (link: Link) => void): void {
    const waiting = this.#waiting.get(peer)
    waiting?.delete(done)
    if (waiting?.size === 0) this.#waiting.delete(peer)
  }
}
