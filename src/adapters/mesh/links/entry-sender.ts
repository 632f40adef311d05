import type { Clock } from '../../../kit/clock.js'
import type { NodeId } from '../../../kit/ids.js'
import type { MembershipView } from '../../../domain/membership/types.js'
import { isWriter } from '../../../domain/membership/view.js'
import { type EntryRelay, type EntryRelayOptions, handToAny } from '../log/entry-relay.js'

/** Milliseconds that a dialled writer may take for its link, when no writer is linked. */
const WRITER_DIAL_MS = 2500

/** Dependencies of {@link EntrySender}. */
export interface EntrySenderDeps {
  readonly clock: Clock
  view(): MembershipView
  /** The open links. */
  relays(): readonly { readonly peer: NodeId; readonly relay: EntryRelay }[]
  /** Members without a link, because all slots are taken here or there. */
  beyond(): readonly NodeId[]
  dial(peer: NodeId, timeoutMs: number): Promise<unknown>
}

/** Hands log entries to linked writers, or to members that know one. */
export class EntrySender {
  readonly #deps: EntrySenderDeps
  /**
   * How many entries were missing in the log after a writer confirmed them: each time another writer is asked first.
   */
  #unconfirmed = 0
  /** How often a writer without a link was dialled: each time another one. */
  #dialled = 0

  constructor(deps: EntrySenderDeps) {
    this.#deps = deps
  }

  /**
   * True when a peer confirms that it appended the entry. Without a link to a writer an own entry goes to all linked
   * members, which hand it to writers. `from`: the member that handed the entry to this node; it does not get it back.
   * `isAgain`: a node confirmed the entry, and the log does not show it.
   */
  send(entry: Uint8Array, { isAgain = false, from = null, isForAll = false }: EntryRelayOptions): Promise<boolean> {
    if (isAgain) this.#unconfirmed++
    const view = this.#deps.view()
    const linked = this.#deps.relays().filter(({ peer }) => peer !== from)
    const writers = linked.filter(({ peer }) => isWriter(view, peer))
    // For entries of other nodes it dials nobody: else they could make it dial as often as they like.
    if (writers.length === 0 && from === null) this.#dialWriter(view)
    // One relay is enough, and an entry of another node that went to relays could go in circles.
    const takers = isForAll || (writers.length === 0 && from === null) ? linked : writers
    const first = takers.length === 0 ? 0 : this.#unconfirmed % takers.length
    const inTurn = [...takers.slice(first), ...takers.slice(0, first)].map(({ relay }) => relay)
    return handToAny(inTurn, entry, { clock: this.#deps.clock, atOnce: isAgain || isForAll })
  }

  #dialWriter(view: MembershipView): void {
    const away = this.#deps.beyond().filter((peer) => isWriter(view, peer))
    const writer = away[this.#dialled++ % Math.max(1, away.length)]
    if (writer !== undefined) this.#deps.dial(writer, WRITER_DIAL_MS).catch(() => {})
  }
}
