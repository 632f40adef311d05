import type Hypercore from 'hypercore'
import type { HypercorePeer } from 'hypercore'
import type { Clock, Timer } from '../../../kit/clock.js'

/** Milliseconds between two questions to peers that have not advanced. */
const ASK_MS = 3000

/** Dependencies of {@link WriterCores}. */
export interface WriterCoresDeps {
  readonly clock: Clock
  /** Opens a session of a core by its key (z32). */
  open(core: string): Hypercore
  /** A core holds two different blocks at one place, both signed by its owner. */
  onForked(core: string): void
}

/**
 * Keeps cores of other writers open, of the log and of documents, to find two branches of one. The engine compares two
 * nodes' blocks when one asks the other for more. So peers with as many blocks or fewer are asked here, once for each
 * length. A peer with as many asks for nothing, and one with fewer stops asking once it knows of two branches.
 */
export class WriterCores {
  readonly #deps: WriterCoresDeps
  readonly #open = new Map<string, Hypercore>()
  readonly #forked = new Set<string>()
  /** Length at which a peer was asked. */
  readonly #asked = new WeakMap<HypercorePeer, number>()
  readonly #timer: Timer

  constructor(deps: WriterCoresDeps) {
    this.#deps = deps
    this.#timer = deps.clock.every(ASK_MS, () => this.#ask())
  }

  /** The writers now, as keys (z32) of their cores. */
  follow(cores: readonly string[]): void {
    for (const [key, core] of this.#open) {
      if (cores.includes(key)) continue
      this.#open.delete(key)
      core.close().catch(() => {})
    }
    for (const key of cores) if (!this.#open.has(key) && !this.#forked.has(key)) this.#follow(key)
  }

  /** Stops asking, and closes its cores. */
  async close(): Promise<void> {
    this.#deps.clock.clear(this.#timer)
    await Promise.all([...this.#open.values()].map((core) => core.close()))
    this.#open.clear()
  }

  #follow(key: string): void {
    const core = this.#deps.open(key)
    this.#open.set(key, core)
    core.on('conflict', () => this.#onForked(key))
    core.ready().then(
      () => (core.core.header.frozen ? this.#onForked(key) : undefined),
      () => {}
    )
  }

  #onForked(key: string): void {
    this.#forked.add(key)
    this.#open.delete(key)
    this.#deps.onForked(key)
  }

  #ask(): void {
    for (const core of this.#open.values()) {
      if (!core.opened || core.closed || core.length === 0) continue
      for (const peer of core.peers)
        if (peer.remoteLength > 0 && peer.remoteLength <= core.length) this.#askPeer(peer, core)
    }
  }

  /** The engine's own question after a forged block; the engine takes the answer without having asked. */
  #askPeer(peer: HypercorePeer, { fork }: Hypercore): void {
    const length = peer.remoteLength
    if (this.#asked.get(peer) === length) return
    this.#asked.set(peer, length)
    peer.wireRequest.send({ id: 0, fork, block: null, hash: null, seek: null, upgrade: { start: 0, length } })
  }
}
