import { type Clock, wait } from '../../../kit/clock.js'
import type { NodeId } from '../../../kit/ids.js'
import { mayHaveCore } from '../../../domain/membership/log-share.js'
import type { MembershipView } from '../../../domain/membership/types.js'

/** A claim that led to nothing is made again after this time, in milliseconds. */
const AGAIN_MS = 1000

/** Dependencies of {@link OwnCore}. */
export interface OwnCoreDeps {
  readonly nodeId: NodeId
  /** Key (z32) of the writer core of this home. */
  readonly coreKey: string
  /** This home was restored or repaired: its core takes the place of the one that the log knows. */
  readonly takesOver: boolean
  readonly clock: Clock
  /** Brings the entry by which the core takes its place into the log. Rejects when no node took it. */
  claim(serial: number): Promise<void>
  /** The log shows the core of this home: this home is in force. */
  onAdmitted(): void
  /** Another home of the same node took the place. */
  onReplaced(): void
}

/**
 * Decides which home of a node counts when there may be two: the home whose core the log names. A restored home claims
 * the place until it has had it once; a home that loses it stops. So of two that run, one remains.
 */
export class OwnCore {
  readonly #deps: OwnCoreDeps
  #takesOver: boolean
  #isClaiming = false
  #isClosed = false
  #isRefused = false

  constructor(deps: OwnCoreDeps) {
    this.#deps = deps
    this.#takesOver = deps.takesOver
  }

  /** Can its core not take the place, since the node has had the most cores that a member may have? */
  get isRefused(): boolean {
    return this.#isRefused
  }

  /** Claims nothing more. */
  close(): void {
    this.#isClosed = true
  }

  /** Looks at a new view. `view` gives the newest one. */
  review(view: () => MembershipView): void {
    const { members, mesh } = view()
    const member = members.get(this.#deps.nodeId)
    if (this.#isClosed || member === undefined || member.revoked !== null) return
    if (member.coreKey === this.#deps.coreKey) return this.#onAdmitted()
    this.#isRefused = this.#takesOver && mesh?.owner !== this.#deps.nodeId && !mayHaveCore(member, this.#deps.coreKey)
    if (this.#isRefused) return
    if (this.#takesOver) void this.#claim(view, (member.coreSerial ?? 0) + 1)
    // Without a serial it is the core of an earlier try to join, which does no harm.
    else if (member.coreSerial !== undefined) this.#deps.onReplaced()
  }

  #onAdmitted(): void {
    if (!this.#takesOver) return
    this.#takesOver = false
    this.#deps.onAdmitted()
  }

  async #claim(view: () => MembershipView, serial: number): Promise<void> {
    if (this.#isClaiming) return
    this.#isClaiming = true
    await this.#deps.claim(serial).catch(() => {})
    if (!this.#isClosed) await wait(this.#deps.clock, AGAIN_MS)
    this.#isClaiming = false
    this.review(view)
  }
}
