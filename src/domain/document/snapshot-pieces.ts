import { Lane } from './lane.js'
import type { CheckedBlock, CheckedUpdate } from './block.js'

/**
 * Bytes of all the pieces that may wait in a replica. What members wrote waits as a whole, since each may stand on all others:
 * the largest document, cut into pieces as small as they get. What they deleted each of them says again; so much of that waits,
 * and more is taken once it waits for nothing.
 */
const PIECE_LIMITS = { maxBytes: 67_108_864, maxDeleteBytes: 16_777_216 } as const

/** Is there room for a block of a snapshot where so many bytes of pieces wait? */
export function hasRoomFor({ updates, size }: CheckedBlock, waitingBytes: number): boolean {
  const isDeletes = updates.every(({ contents }) => contents.writes === null)
  return waitingBytes + size <= (isDeletes ? PIECE_LIMITS.maxDeleteBytes : PIECE_LIMITS.maxBytes)
}

/**
 * The snapshot that a stream begins with, as far as it is not applied: its updates are pieces. Pieces of one clientID have the
 * order of its clocks, and no others do: in one order for all of them two snapshots that stand on each other would wait for ever.
 */
export class SnapshotPieces {
  readonly #expected: number
  readonly #ofClient = new Map<number, Lane>()
  readonly #lanes = new Set<Lane>()
  #blocks = 0
  #bytes = 0
  #isBegun = false

  /** `expected`: how many blocks the snapshot has. */
  constructor(expected: number) {
    this.#expected = expected
  }

  /** How many of its blocks are here. */
  get blocks(): number {
    return this.#blocks
  }

  /** Bytes of the pieces that wait. */
  get bytes(): number {
    return this.#bytes
  }

  /** Is any of it in the document? */
  get isBegun(): boolean {
    return this.#isBegun
  }

  /** Is all of it in the document? */
  get isWhole(): boolean {
    return this.#blocks === this.#expected && this.#lanes.size === 0
  }

  /** Pieces that wait, by what orders them. */
  get lanes(): Iterable<Lane> {
    return this.#lanes
  }

  /** Takes its next block. */
  push({ updates, sessions }: CheckedBlock): void {
    this.#blocks++
    for (const update of updates) {
      const size = update.bytes.byteLength
      this.#bytes += size
      this.#laneOf(update).push({ updates: [update], sessions, size })
    }
  }

  /** The next piece of a lane is applied. */
  shift(lane: Lane): void {
    const piece = lane.shift()
    this.#isBegun = true
    this.#bytes -= piece?.size ?? 0
    if (lane.length > 0) return
    this.#lanes.delete(lane)
    for (const { contents } of piece?.updates ?? []) if (contents.writes !== null) this.#ofClient.delete(contents.writes.client)
  }

  #laneOf({ contents: { writes } }: CheckedUpdate): Lane {
    const lane = (writes === null ? undefined : this.#ofClient.get(writes.client)) ?? new Lane()
    if (writes !== null) this.#ofClient.set(writes.client, lane)
    this.#lanes.add(lane)
    return lane
  }
}
