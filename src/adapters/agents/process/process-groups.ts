import { setTimeout as pause } from 'node:timers/promises'
import { backoffMs } from '../../../kit/backoff.js'
import { Guard } from './guard.js'
import { isGroupAlive, signalGroup } from './process-table.js'
import { removeRunRecord, writeRunRecord } from './run-records.js'

/** Milliseconds between SIGTERM and SIGKILL. */
export const KILL_AFTER_MS = 2000
/** Time between two looks at a group that was signalled to end: short at first. */
const LOOKS = { baseMs: 2, maxMs: 50 }

/** The process groups of this node's agents: recorded, guarded, and ended as a whole. */
export class ProcessGroups {
  readonly #runDir: string
  readonly #guard = new Guard()
  readonly #live = new Map<number, Promise<void> | null>()

  /** `runDir`: where the run records stand, `<home>/run`. */
  constructor(runDir: string) {
    this.#runDir = runDir
  }

  /**
   * Takes over a group whose first process was just spawned (detached) and waits at its gate. After the return the
   * group cannot outlive the node: its record is written and the guard knows it. When it throws, the group is killed.
   * @throws Error when the record cannot be written or no guard can be started.
   */
  adopt(processGroup: number, requestId: string | null): void {
    this.#live.set(processGroup, null)
    try {
      writeRunRecord(this.#runDir, processGroup, requestId)
      this.#guard.watch(processGroup)
    } catch (error) {
      signalGroup(processGroup, 'SIGKILL')
      this.#forget(processGroup)
      throw error
    }
  }

  /** Kills the group at once (SIGKILL) and resolves when no process of it runs. Idempotent. */
  kill(processGroup: number): Promise<void> {
    if (this.#live.has(processGroup)) signalGroup(processGroup, 'SIGKILL')
    return this.end(processGroup)
  }

  /** Ends the group (SIGTERM, after two seconds SIGKILL) and resolves when no process of it runs. Idempotent. */
  end(processGroup: number): Promise<void> {
    const ending = this.#live.get(processGroup)
    if (ending === undefined) return Promise.resolve()
    if (ending !== null) return ending
    const started = this.#end(processGroup)
    if (this.#live.has(processGroup)) this.#live.set(processGroup, started)
    return started
  }

  /** Ends every group, then the guard. Idempotent. */
  async close(): Promise<void> {
    await Promise.all([...this.#live.keys()].map((group) => this.end(group)))
    await this.#guard.close()
  }

  /** pid of the guard process; null while there is none. */
  get guardPid(): number | null {
    return this.#guard.pid
  }

  async #end(processGroup: number): Promise<void> {
    if (isGroupAlive(processGroup)) {
      signalGroup(processGroup, 'SIGTERM')
      if (!(await isGoneWithin(processGroup, KILL_AFTER_MS))) {
        signalGroup(processGroup, 'SIGKILL')
        await isGoneWithin(processGroup, Number.POSITIVE_INFINITY)
      }
    }
    this.#forget(processGroup)
  }

  #forget(processGroup: number): void {
    this.#live.delete(processGroup)
    this.#guard.release(processGroup)
    try {
      removeRunRecord(this.#runDir, processGroup)
    } catch {
      // A record of a group that is gone is harmless; the next start removes it.
    }
  }
}

async function isGoneWithin(processGroup: number, ms: number): Promise<boolean> {
  const end = performance.now() + ms
  for (let looks = 0; performance.now() < end; looks++) {
    await pause(backoffMs(LOOKS, looks))
    if (!isGroupAlive(processGroup)) return true
  }
  return false
}
