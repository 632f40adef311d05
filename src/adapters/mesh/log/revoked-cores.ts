import type Hypercore from 'hypercore'
import type { Clock, Timer } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import type { MembershipView } from '../../../domain/membership/types.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import { giveBack } from '../cores/given-back.js'

/** Milliseconds before the next look while the owner has not signed a revocation, or blocks of it may still arrive. */
const AGAIN_MS = 3000

/** Dependencies of {@link RevokedCores}. */
export interface RevokedCoresDeps {
  /** Key (z32) of the own core: it is left as it is. */
  readonly self: string
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Opens a session of a core by its key (z32). */
  open(core: string): Hypercore
  /**
   * Blocks of a core that are in the order of the log; null: its owner has not signed yet that the member is revoked.
   */
  needed(member: string, core: string): Promise<number | null>
}

/**
 * Removes unneeded blocks of revoked members: blocks that are not in the order of the log. Blocks in the order stay,
 * since newcomers and members that were away order the log by them.
 */
export class RevokedCores {
  readonly #deps: RevokedCoresDeps
  /** Cores that need no further look. */
  readonly #done = new Set<string>()
  #view: Pick<MembershipView, 'members'> = { members: new Map() }
  #timer: Timer | null = null
  #working: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(deps: RevokedCoresDeps) {
    this.#deps = deps
  }

  /** The view changed. */
  review(view: Pick<MembershipView, 'members'>): void {
    this.#view = view
    this.#working = this.#working.then(() => this.#look()).catch((error: unknown) => this.#failed(error))
  }

  /** Resolves when nothing is under way any more. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#deps.clock.clear(this.#timer)
    await this.#working
  }

  async #look(): Promise<void> {
    for (const [member, { coreKey, formerCores = [], revoked }] of this.#view.members) {
      if (revoked === null) continue
      for (const core of [...formerCores, coreKey]) {
        if (this.#isClosed) return
        if (!this.#done.has(core) && core !== this.#deps.self) await this.#giveBack(member, core)
      }
    }
  }

  async #giveBack(member: string, key: string): Promise<void> {
    const needed = await this.#deps.needed(member, key)
    if (needed === null) return this.#lookAgain()
    const core = this.#deps.open(key)
    try {
      await core.ready()
      if (core.core.bitfield.firstSet(needed) === -1) return void this.#done.add(key)
      await giveBack(core, needed)
    } finally {
      await core.close()
    }
    this.#lookAgain()
  }

  #lookAgain(): void {
    if (this.#isClosed) return
    this.#timer ??= this.#deps.clock.after(AGAIN_MS, () => {
      this.#timer = null
      this.review(this.#view)
    })
  }

  #failed(error: unknown): void {
    if (!this.#isClosed)
      this.#deps.telemetry.log('warn', 'blocks of a revoked member could not be removed', { reason: messageOf(error) })
  }
}
