import { MAX_RECORDS } from '../../../domain/swarm/coordination-message.js'
import { isMark } from '../../../domain/swarm/record-index.js'
import type { ParticipantMessageOf } from '../../../domain/swarm/participant-message.js'
import type { ContentName } from './content-transfer.js'

/**
 * What this node knows to be accepted in one swarm: final, whoever coordinates. That items were leased is left out: it concerns
 * coordinators alone, who read it from the others' votes, and it goes with the end.
 */
export class CommittedRecords {
  readonly #items: number
  readonly #digests = new Map<number, string>()
  /** How many there are, by the highest word of it. */
  #total = 0
  #epoch = 0

  /** `items`: of the swarm. */
  constructor(items: number) {
    this.#items = items
  }

  /** How many are known. */
  get size(): number {
    return this.#digests.size
  }

  /** The highest epoch in which something was said to be accepted. */
  get epoch(): number {
    return this.#epoch
  }

  /** Is all known that anybody spoke of? */
  get isWhole(): boolean {
    return this.#digests.size >= this.#total
  }

  /** What an index is accepted with; undefined while it is not. */
  get(index: number): string | undefined {
    return this.#digests.get(index)
  }

  /** Is something else accepted under its index? Then it never is. */
  isVoid({ index, digest }: ContentName): boolean {
    return (this.#digests.get(index) ?? digest) !== digest
  }

  /** All that are known. */
  get names(): ContentName[] {
    return [...this.#digests].map(([index, digest]) => ({ index, digest }))
  }

  /** Notes what is accepted, and gives what was not known. */
  add(names: readonly ContentName[], { total, epoch }: { readonly total: number; readonly epoch: number }): ContentName[] {
    const fresh = names.filter(({ index }) => !isMark(this.#items, index) && !this.#digests.has(index))
    for (const { index, digest } of fresh) this.#digests.set(index, digest)
    this.#total = Math.max(this.#total, total, this.#digests.size)
    this.#epoch = Math.max(this.#epoch, epoch)
    return fresh
  }

  /** A page of them for another, in rising order from an index on. */
  page(swarm: string, from: number): ParticipantMessageOf<'accepted'> {
    const indexes = [...this.#digests.keys()].filter((index) => index >= from).sort((a, b) => a - b)
    const items = indexes.slice(0, MAX_RECORDS).map((index) => ({ index, digest: this.#digests.get(index) ?? '' }))
    return { kind: 'accepted', swarm, epoch: this.#epoch, total: this.size, items, next: indexes[MAX_RECORDS] ?? null }
  }
}
