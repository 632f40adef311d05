import type { CheckedBlock, CheckedUpdate } from './block.js'
import { type Lane, Line } from './lane.js'
import { readUpdate } from './update.js'

/**
 * What may wait of one stream's snapshot, by what it takes in memory. What its member wrote waits as a whole, since each piece may
 * stand on what all others wrote: the largest document, twice, for it is cut. What is deleted waits for all that, and nothing
 * waits for it: more of it is taken once some is applied. Of each stream, so that none keeps out another.
 */
export const PIECE_LIMITS = { maxBytes: 33_554_432, maxDeleteBytes: 4_194_304 } as const

/** What one takes beside its bytes: a piece its place, and each clientID that it stands on once it is the next; a lane. */
const COSTS = { piece: 32, need: 16, lane: 512 } as const
/** More than a piece has bytes. */
const PLACE_UNIT = 524_288

/** A block of a snapshot of which a piece waits: all its bytes are kept. */
interface PieceBlock {
  readonly buffer: ArrayBufferLike
  readonly sessions: number
  readonly isDeletes: boolean
  readonly cost: number
  /** Pieces that wait. */
  left: number
}

/** Pieces that have one order. Of each only its place is kept, and read anew when it is the next: what it does takes a multiple of its bytes. */
class PieceLane implements Lane {
  readonly key: number | null
  readonly #blocks = new Line<PieceBlock>()
  /** Where each begins in its block, and how long it is, as one number. */
  readonly #places = new Line<number>()

  constructor(key: number | null) {
    this.key = key
  }

  get length(): number {
    return this.#blocks.length
  }

  get head(): CheckedBlock | undefined {
    const [block, place] = [this.#blocks.head, this.#places.head]
    if (block === undefined || place === undefined) return undefined
    const bytes = new Uint8Array(block.buffer, Math.floor(place / PLACE_UNIT), place % PLACE_UNIT)
    const reading = readUpdate(bytes)
    if (!reading.ok) throw new Error('a piece that was checked has changed')
    return { updates: [{ bytes, contents: reading.update }], sessions: block.sessions, size: bytes.byteLength }
  }

  push(block: PieceBlock, { byteOffset, byteLength }: Uint8Array): void {
    this.#blocks.push(block)
    this.#places.push(byteOffset * PLACE_UNIT + byteLength)
  }

  shift(): PieceBlock | undefined {
    this.#places.shift()
    return this.#blocks.shift()
  }
}

/**
 * The snapshot that a stream begins with, as far as it is not applied: its updates are pieces. Pieces of one clientID have the
 * order of its clocks, and no others do: in one order for all of them two snapshots that stand on each other would wait for ever.
 * What only deletes has one order too: it stands on clocks, and no clock stands on it.
 */
export class SnapshotPieces {
  readonly #expected: number
  /** By clientID; null: what only deletes. */
  readonly #lanes = new Map<number | null, PieceLane>()
  #blocks = 0
  #bytes = 0
  #deleteBytes = 0
  #isBegun = false

  /** `expected`: how many blocks the snapshot has. */
  constructor(expected: number) {
    this.#expected = expected
  }

  /** How many of its blocks are here. */
  get blocks(): number {
    return this.#blocks
  }

  /** What the blocks take of which a piece waits, in bytes. */
  get bytes(): number {
    return this.#bytes + this.#deleteBytes
  }

  /** Is any of it in the document? */
  get isBegun(): boolean {
    return this.#isBegun
  }

  /** Is all of it in the document? */
  get isWhole(): boolean {
    return this.#blocks === this.#expected && this.#lanes.size === 0
  }

  /** Is there room for another block beside what waits? */
  hasRoomFor(block: CheckedBlock): boolean {
    const cost = this.#costOf(block)
    return isDeletes(block) ? this.#deleteBytes + cost <= PIECE_LIMITS.maxDeleteBytes : this.#bytes + cost <= PIECE_LIMITS.maxBytes
  }

  /** Does nothing wait that the pieces of a block would have to wait for? */
  isFree({ updates }: CheckedBlock): boolean {
    return !updates.some((update) => this.#lanes.has(keyOf(update)))
  }

  /** Takes its next block. Returns the lanes that begin with it. */
  push(block: CheckedBlock): Lane[] {
    const { updates, sessions } = block
    this.#blocks++
    const [first] = updates
    if (first === undefined) return []
    const kept = { buffer: first.bytes.buffer, sessions, isDeletes: isDeletes(block), cost: this.#costOf(block), left: updates.length }
    this.#charge(kept, 1)
    const begun: Lane[] = []
    for (const update of updates) {
      const key = keyOf(update)
      const lane = this.#lanes.get(key) ?? new PieceLane(key)
      if (lane.length === 0) begun.push(lane)
      this.#lanes.set(key, lane)
      lane.push(kept, update.bytes)
    }
    return begun
  }

  /** The next piece of a lane is applied. */
  shift(lane: Lane): void {
    if (!(lane instanceof PieceLane)) return
    const block = lane.shift()
    this.#isBegun = true
    if (block !== undefined && --block.left === 0) this.#charge(block, -1)
    if (lane.length === 0) this.#lanes.delete(lane.key)
  }

  #charge({ isDeletes: isOfDeletes, cost }: PieceBlock, sign: number): void {
    if (isOfDeletes) this.#deleteBytes += sign * cost
    else this.#bytes += sign * cost
  }

  #costOf({ updates, size }: CheckedBlock): number {
    const begun = new Set(updates.map(keyOf).filter((key) => !this.#lanes.has(key)))
    const needs = updates.reduce((sum, { contents }) => sum + contents.needs.size, 0)
    return size + COSTS.piece * updates.length + COSTS.need * needs + COSTS.lane * begun.size
  }
}

function isDeletes({ updates }: CheckedBlock): boolean {
  return updates.every(({ contents }) => contents.writes === null)
}

function keyOf({ contents: { writes } }: CheckedUpdate): number | null {
  return writes === null ? null : writes.client
}
