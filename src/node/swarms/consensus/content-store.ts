import type { NodeId } from '../../../kit/ids.js'
import { PIECE_BYTES, type ParticipantMessageOf } from '../../../domain/swarm/participant-message.js'
import { ContentTransfer, pieceOf, piecesMessages, type ContentName, type Piece } from './content-transfer.js'
import type { SwarmHead } from '../store.js'
import type { ParticipantDeps } from './participant.js'

/** The contents of one swarm's records: local ones, durable or not, and transfers from other nodes. */
export class ContentStore {
  readonly #deps: ParticipantDeps
  readonly #head: SwarmHead
  /** Local contents that are not durable yet. */
  readonly contents: ContentTransfer
  /** The content being sent in pieces: its receiver asks for one after the other. */
  #given: (ContentName & { readonly content: Uint8Array }) | null = null
  #pieces = 0

  constructor(deps: ParticipantDeps, head: SwarmHead) {
    this.#deps = deps
    this.#head = head
    this.contents = new ContentTransfer(deps, head.id)
  }

  /** Increases with every piece received or sent. */
  get moved(): number {
    return this.contents.moved + this.#pieces
  }

  /** A content, durable or not; null when it is not here. @throws NodeError STORE_DAMAGED */
  async content(name: ContentName): Promise<Uint8Array | null> {
    const here = this.contents.get(name)
    if (here !== undefined) return here
    const { swarmVotes } = this.#deps
    const kept = await swarmVotes.content(this.#head.id, name.index, this.#head.itemCount)
    return kept !== null && swarmVotes.digest(kept) === name.digest ? kept : null
  }

  /** Fetches contents: first from the node `from`, unless it is this one. */
  obtain(names: readonly ContentName[], from: NodeId): void {
    const { self } = this.#deps
    const others = (this.#head.voters ?? []).filter((node) => node !== self && node !== from)
    this.contents.want(names, from === self ? others : [from, ...others])
  }

  /** Sends the requested pieces, and `more` with them. @throws NodeError STORE_DAMAGED */
  async give(to: NodeId, wants: ParticipantMessageOf<'want'>['wants'], more: readonly Piece[]): Promise<void> {
    const pieces = [...more]
    for (const one of wants) {
      const content = one.index < 0 ? null : await this.#piecemeal(one)
      if (content !== null && one.at < Math.max(1, content.byteLength)) pieces.push(pieceOf(one, content, one.at))
    }
    this.#pieces += pieces.length
    for (const body of piecesMessages(this.#head.id, pieces)) this.#deps.tell(to, { name: 'swarm', body })
  }

  /** A content requested in pieces: it is read once for all of them, and dropped with the last. */
  async #piecemeal(one: ContentName & { readonly at: number }): Promise<Uint8Array | null> {
    const isGiven = this.#given?.index === one.index && this.#given.digest === one.digest
    const content = isGiven ? (this.#given?.content ?? null) : await this.content(one)
    if (content === null) return null
    if (one.at + PIECE_BYTES < content.byteLength) this.#given = { index: one.index, digest: one.digest, content }
    else if (isGiven) this.#given = null
    return content
  }
}
