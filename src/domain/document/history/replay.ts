import * as Y from 'yjs'
import { decodeBlock } from '../block.js'
import type { StreamKey } from '../client-ids.js'
import { blocker, type Missing } from '../needs.js'
import type { Replica, StreamBlock } from '../replica.js'
import type { CheckedUpdate } from '../stream.js'
import { readUpdate } from '../update/update.js'
import { type ChangedPart, ChangedParts } from './changed-parts.js'

/** A block of a stream, and the time of its author's clock in Unix milliseconds. */
export interface TimedBlock extends StreamBlock {
  readonly at: number
}

/** One change of a document: a block of a stream that changed something. */
export interface HistoryChange {
  readonly stream: StreamKey
  /** Place of the block in its stream, from 0 on. */
  readonly index: number
  /** Time of the author's clock, in Unix milliseconds. */
  readonly at: number
  /** The latest time of this change and all before it. */
  readonly latest: number
  /** Units written: characters, list values, keys and formatting marks. */
  readonly added: number
  readonly removed: number
  /** Size of the block. */
  readonly bytes: number
  readonly parts: readonly ChangedPart[]
}

/** The next block of a stream, with its decoded effect. */
interface NextBlock {
  readonly block: TimedBlock
  readonly updates: readonly CheckedUpdate[]
  /** A dependency that was missing at the last look. */
  missing: Missing | null
}

/**
 * Builds a document again, one change after the other. A change comes after all changes that it depends on; of several
 * possible ones the earliest by its author's clock comes first. The order depends on the blocks alone, so it is the
 * same on every node with these blocks.
 */
export class HistoryReplay {
  readonly #replica: Replica
  readonly #parts: ChangedParts
  readonly #heads = new Map<StreamKey, NextBlock>()
  /** Streams whose next block was refused since the last change. */
  readonly #refused = new Set<StreamKey>()
  #latest = 0
  #isVoid = false

  /** `replica`: holds the content before the first block, and knows the ends of streams. */
  constructor(replica: Replica) {
    this.#replica = replica
    this.#parts = new ChangedParts(replica.doc)
  }

  /** The document after the changes so far. */
  get doc(): Y.Doc {
    return this.#replica.doc
  }

  /** True when a block ended a stream whose blocks were applied before: the replay is wrong. */
  get isVoid(): boolean {
    return this.#isVoid
  }

  /** Does it lack the next block of this stream? */
  lacks(stream: StreamKey): boolean {
    return !this.#heads.has(stream)
  }

  /** Gives the next block of a stream that {@link lacks} one. */
  give(block: TimedBlock): void {
    const read = (decodeBlock(block.bytes)?.updates ?? []).map((bytes) => ({ bytes, reading: readUpdate(bytes) }))
    const updates = read.flatMap(({ bytes, reading }) => (reading.ok ? [{ bytes, contents: reading.update }] : []))
    this.#heads.set(block.stream, { block, updates, missing: null })
  }

  /**
   * Takes the next block. Every stream that goes on must have its block. Returns the change, `nothing` for a block
   * without one, and null when no block is left.
   */
  step(): HistoryChange | 'nothing' | null {
    const head = this.#next()
    if (head === null) return null
    const { block, updates } = head
    const { outcome, stops } = this.#replica.receive(block)
    this.#isVoid ||= stops.some(({ needsRebuild }) => needsRebuild)
    if (outcome === 'later') {
      this.#refused.add(block.stream)
      return 'nothing'
    }
    this.#heads.delete(block.stream)
    this.#refused.clear()
    const parts = this.#parts.take()
    if (parts.length === 0) return 'nothing'
    this.#latest = Math.max(this.#latest, block.at)
    const { stream, index, at, bytes } = block
    return { stream, index, at, latest: this.#latest, ...counted(updates), bytes: bytes.byteLength, parts }
  }

  /** The earliest block that can be applied; else the earliest one, which waits or fills a gap. */
  #next(): NextBlock | null {
    let [ready, first]: [NextBlock | null, NextBlock | null] = [null, null]
    for (const head of this.#heads.values()) {
      if (this.#refused.has(head.block.stream)) continue
      if (first === null || isEarlier(head, first)) first = head
      if ((ready === null || isEarlier(head, ready)) && this.#isReady(head)) ready = head
    }
    return ready ?? first
  }

  #isReady(head: NextBlock): boolean {
    const clockOf = (client: number): number => Y.getState(this.#replica.doc.store, client)
    if (head.missing !== null && clockOf(head.missing.client) < head.missing.end) return false
    head.missing = blocker(head, clockOf)
    return head.missing === null
  }
}

function isEarlier({ block: one }: NextBlock, { block: other }: NextBlock): boolean {
  return one.at === other.at ? one.stream < other.stream : one.at < other.at
}

function counted(updates: readonly CheckedUpdate[]): Pick<HistoryChange, 'added' | 'removed'> {
  const written = updates.map(({ contents }) => contents.writes?.length ?? 0)
  const deleted = updates.flatMap(({ contents }) => contents.deletes.map(({ length }) => length))
  return { added: sum(written), removed: sum(deleted) }
}

function sum(lengths: readonly number[]): number {
  return lengths.reduce((total, one) => total + one, 0)
}
