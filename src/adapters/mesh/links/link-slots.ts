import type { NodeId } from '../../../kit/ids.js'
import type { Link } from '../../../ports/mesh.js'
import type { GateRefusal } from './hello.js'
import type { PeerStream } from './peer-stream.js'

/** The refusal of a peer whose idle link made room for another. */
export const IDLE: GateRefusal = { code: 'OVERLOADED', reason: 'nobody used this link, and another needs its place' }

/** Dependencies of {@link LinkSlots}. */
export interface LinkSlotsDeps {
  /** All streams; those that passed the gate have a session. */
  streams(): readonly PeerStream[]
  /** A link that is not in use; null for none. */
  spare(): Link | null
  /** Ends an idle link; neither end dials the other at once. */
  rest(stream: PeerStream): void
}

/**
 * The slots of this node for linked members. An idle link gives up its slot for a new one; a further link to a linked
 * member, over a better path, needs none.
 */
export class LinkSlots {
  /** The number of slots. */
  readonly count: number
  readonly #deps: LinkSlotsDeps

  constructor(count: number, deps: LinkSlotsDeps) {
    this.count = count
    this.#deps = deps
  }

  /** Is a slot free for a link to the peer, or can one be freed? */
  isFree(peer: NodeId): boolean {
    return !this.#isFull(peer) || this.#spare() !== undefined
  }

  /** Frees a slot, now. False: every link is in use. */
  free(peer: NodeId): boolean {
    if (!this.#isFull(peer)) return true
    const spare = this.#spare()
    if (spare === undefined) return false
    spare.gate?.dismiss(IDLE)
    this.#deps.rest(spare)
    return true
  }

  #isFull(peer: NodeId): boolean {
    const open = this.#deps.streams().filter(({ session }) => session !== null && !session.link.closed)
    const linked = new Set(open.map((one) => one.peer))
    return linked.size >= this.count && !linked.has(peer)
  }

  #spare(): PeerStream | undefined {
    const link = this.#deps.spare()
    return link === null ? undefined : this.#deps.streams().find(({ session }) => session?.link === link)
  }
}
