import type { ReplicaFeed } from './replica-feed.js'

/** What those who hold a document are told. */
export type DocumentChange =
  /** `by`: the session that wrote it; null for this node and for others. */
  | { readonly type: 'update'; readonly update: Uint8Array; readonly by: string | null }
  /** Something was taken back: begin anew. `isMoved`: with another own stream, so sessions need other clientIDs. */
  | { readonly type: 'reset'; readonly isMoved: boolean }

/**
 * Why a replica is made anew, the weakest reason first: an edit of this node was refused, streams begin behind what it took of them,
 * part of it counts no longer, this node has another own stream.
 */
const REASONS = ['refused', 'begun', 'void', 'moved'] as const
type Reason = (typeof REASONS)[number]

/** That a replica is to be made anew, and what those who hold it are told when it was. */
export class ReplicaRebuild {
  /** Is the replica of now worth nothing? */
  isDue = false
  /** Why it is, or is being, made anew, and the one that those who hold it know; null once they were told. */
  #untold: { readonly why: Reason; readonly known: ReplicaFeed } | null = null

  /** Is there something that nobody was told yet? */
  get isUntold(): boolean {
    return this.#untold !== null
  }

  /** The replica is to be made anew. */
  need(why: Reason, now: ReplicaFeed): void {
    this.isDue = true
    const before = this.#untold
    if (before === null) this.#untold = { why, known: now }
    else if (REASONS.indexOf(before.why) < REASONS.indexOf(why)) this.#untold = { ...before, why }
  }

  /** What those who hold it are told of the new one, once; null: nothing. Of an edit that was refused they have not heard. */
  change(now: ReplicaFeed): DocumentChange | null {
    if (this.#untold === null) return null
    const { why, known } = this.#untold
    this.#untold = null
    const isMore = why === 'refused' || (why === 'begun' && now.isAtLeastAsFarAs(known))
    if (!isMore) return { type: 'reset', isMoved: why === 'moved' }
    return now.isAsFarAs(known) ? null : { type: 'update', update: now.replica.state(), by: null }
  }
}
