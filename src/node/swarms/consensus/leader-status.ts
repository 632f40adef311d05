import type { Clock } from '../../../kit/clock.js'
import type { NodeId } from '../../../kit/ids.js'
import type { SwarmInfo } from '../../../ports/swarm-api.js'
import type { Directory } from '../../cards/directory.js'
import type { SwarmEventLog } from '../event-log.js'

/** A swarm that nobody has coordinated for so many milliseconds says that it is stalled. */
const STALLED_AFTER_MS = 3000

/** Why a swarm with several participants stands still. */
export const NO_MAJORITY = 'nobody coordinates it: it goes on when a majority of its participants can reach each other'

/** The same at a node that a majority let coordinate, and that could not get what was accepted before. */
export const NO_CONTENTS = `${NO_MAJORITY}, and give each other all that they accepted before`

/** What telling who coordinates needs. */
export interface LeaderStatusDeps {
  readonly clock: Clock
  readonly directory: Pick<Directory, 'ref'>
}

/** Who is told. */
export interface LeaderStatusSwarm {
  readonly eventLog: SwarmEventLog
  /** It stands still, or goes on. */
  onStatus(status: 'running' | 'stalled'): void
}

/** Who coordinates one swarm, as far as this node can tell: says so when it changes, and when nobody does. */
export class LeaderStatus {
  readonly #deps: LeaderStatusDeps
  readonly #of: LeaderStatusSwarm
  #coordinatedAt: number
  #coordinator: string | null = null
  #isHere = false
  #epoch = 0
  #status: 'running' | 'stalled' = 'running'
  /** As it was told last. */
  #lack = ''

  constructor(deps: LeaderStatusDeps, of: LeaderStatusSwarm) {
    this.#deps = deps
    this.#of = of
    this.#coordinatedAt = deps.clock.monotonic()
  }

  /** `stalled`: nobody has coordinated it for a while. */
  get status(): 'running' | 'stalled' {
    return this.#status
  }

  /** Name of who coordinates, null for nobody, and the highest epoch. */
  get coordinator(): Pick<NonNullable<SwarmInfo['coordination']>, 'coordinator' | 'epoch'> {
    return { coordinator: this.#coordinator, epoch: this.#epoch }
  }

  /** Looks again. `lack`: why it stands still when nobody coordinates. `isHere`: this node has begun to, and tells by itself how the work stands. */
  look({ node, epoch, lack }: { readonly node: NodeId | null; readonly epoch: number; readonly lack: string }, isHere: boolean): void {
    const { clock, directory } = this.#deps
    const { eventLog, onStatus } = this.#of
    const coordinator = node === null ? null : directory.ref(node).name
    if (node !== null) this.#coordinatedAt = clock.monotonic()
    const isOther = epoch !== this.#epoch || (isHere && !this.#isHere)
    if (coordinator !== this.#coordinator || (coordinator !== null && isOther))
      eventLog.tell({ type: 'coordinator', coordinator, epoch, ...(isHere && coordinator !== null ? { isHere } : {}) })
    this.#coordinator = coordinator
    this.#isHere = isHere
    this.#epoch = epoch
    const status = !isHere && clock.monotonic() - this.#coordinatedAt >= STALLED_AFTER_MS ? 'stalled' : 'running'
    if (status === this.#status && (status === 'running' || lack === this.#lack)) return
    const isChange = status !== this.#status
    this.#status = status
    this.#lack = lack
    eventLog.tell({ type: 'status', status, ...(status === 'stalled' ? { reason: lack } : {}) })
    if (isChange) onStatus(status)
  }
}
