import type { Coordinator } from './coordinator.js'
import { ReplicatedSwarm } from './consensus/replicated-swarm.js'

/** Swarms kept in memory; the oldest ended ones are evicted first, and read from the ledger then. */
const KEPT = 100
/** Bytes of results kept in memory, likewise. When running swarms use all of it, further results are refused. */
const KEPT_BYTES = 128 * 1024 * 1024

/** A swarm in memory: of this node alone, or of several participants. */
export type SwarmHere = Coordinator | ReplicatedSwarm

/** The swarms in memory, in the order of their starts here. It evicts ended ones. */
export class SwarmMemory {
  readonly #swarms = new Map<string, SwarmHere>()

  /** Keeps a swarm. */
  add(swarm: SwarmHere): void {
    this.#swarms.set(swarm.head.id, swarm)
  }

  /** A swarm by its whole id. */
  get(id: string): SwarmHere | undefined {
    return this.#swarms.get(id)
  }

  /** The same with several participants. */
  replicated(id: string): ReplicatedSwarm | undefined {
    const swarm = this.#swarms.get(id)
    return swarm instanceof ReplicatedSwarm ? swarm : undefined
  }

  /** All swarms by id, oldest first. */
  get all(): ReadonlyMap<string, SwarmHere> {
    return this.#swarms
  }

  /** The swarms that have not ended, oldest first. */
  running(): SwarmHere[] {
    return [...this.#swarms.values()].filter((swarm) => swarm.isRunning)
  }

  /** The running swarms with several participants. */
  runningReplicated(): ReplicatedSwarm[] {
    return this.running().filter((swarm) => swarm instanceof ReplicatedSwarm)
  }

  /** Evicts swarms to make room. Returns whether it is enough. */
  hasCapacity(bytes: number): boolean {
    return this.evict(bytes) <= KEPT_BYTES
  }

  /** Evicts ended swarms, oldest first, until `more` bytes have room. Returns the bytes held together with them. */
  evict(more = 0): number {
    let bytes = [...this.#swarms.values()].reduce((sum, swarm) => sum + swarm.bytes, more)
    for (const [id, swarm] of this.#swarms) {
      if (this.#swarms.size <= KEPT && bytes <= KEPT_BYTES) break
      if (swarm.isRunning) continue
      this.#swarms.delete(id)
      bytes -= swarm.bytes
    }
    return bytes
  }
}

/** The coordinator of a swarm; null when that is another node. */
export function coordinatorOf(swarm: SwarmHere): Coordinator | null {
  return swarm instanceof ReplicatedSwarm ? swarm.coordinator : swarm
}
