import { BLOCK_LIMITS, type CheckedBlock, type CheckedUpdate, decodeBlock } from './block.js'
import { type ClientIds, type FormerStream, MAX_SESSIONS, type StreamKey } from './client-ids.js'
import { type Lane, Line } from './lane.js'
import { SnapshotPieces } from './snapshot-pieces.js'
import { countUpTo } from './sorted.js'
import { type Crossing, readUpdate } from './update.js'

/** Bounds of what waits in one stream for what it stands on. */
export const WAITING_LIMITS = { maxBlocks: 256, maxBytes: 1_048_576 } as const

/** A checked block, or why it ends its stream. */
export type BlockReading = { readonly ok: true; readonly block: CheckedBlock } | { readonly ok: false; readonly reason: string }

/** A stream that goes on where others of the same member ended: it begins with what they left. */
export interface StreamBeginning {
  /**
   * Streams whose clientIDs its snapshot writes with, and nothing behind that; the oldest first. They are given to no replica any
   * more: what others need of these clientIDs beyond the snapshot is empty.
   */
  readonly former: readonly FormerStream[]
  /** How many of its first blocks are its snapshot: at least 1. */
  readonly blocks: number
}

/** Do both say the same of a stream? */
export function isSameBeginning(one: StreamBeginning, other: StreamBeginning | undefined): boolean {
  return one.blocks === other?.blocks && textOf(one) === textOf(other)
}

function textOf({ former }: StreamBeginning): string {
  return former.map(({ stream, sessions }) => `${stream}/${sessions}`).join()
}

/** How a stream that ended did. */
export interface StreamEnd {
  /** Blocks that count. */
  readonly at: number
  readonly reason: string
}

/** What the blocks of a stream have left of it in a replica. */
export interface StreamPast {
  /** How many blocks that were. */
  readonly length: number
  /** The block that opened each of its sessions. */
  readonly opened: readonly number[]
  /** How far each of its clientIDs got, and where its runs begin, rising. */
  readonly clients: readonly { readonly client: number; readonly clock: number; readonly runs: readonly number[] }[]
}

const FOREIGN = 'an update with the clientID of another'
const NO_PAST: StreamPast = { length: 0, opened: [], clients: [] }

/**
 * One member's stream as a replica follows it. Whether a block counts depends on the stream alone (never on what other
 * streams hold or when they came), so that every replica ends it at the same block.
 */
export class DocumentStream {
  readonly key: StreamKey
  /** Blocks that are applied. */
  applied: number
  /** Why it ended; null while it goes on. */
  end: StreamEnd | null = null
  /** Blocks that wait, behind what the stream begins with. */
  readonly waiting = new Line<CheckedBlock>()
  /** How many of its first blocks are a snapshot. */
  #snapshotBlocks = 0
  /** That snapshot, until all of it is applied. */
  #pieces: SnapshotPieces | null = null
  #waitingBytes = 0
  readonly #ids: ClientIds
  /** Sessions that blocks have announced, and the block that announced each. */
  #announced = 0
  readonly #openedAt = new Map<number, number>()
  /** The next clock of each of its clientIDs. */
  readonly #next = new Map<number, number>()

  /** For each of its clientIDs the clocks at which a run begins: text that was written on and on, each piece behind the one before. */
  readonly #runs = new Map<number, number[]>()

  constructor(key: StreamKey, ids: ClientIds, past: StreamPast = NO_PAST) {
    this.key = key
    this.#ids = ids
    this.applied = past.length
    this.#announced = past.opened.length
    for (const [session, block] of past.opened.entries()) this.#openedAt.set(session, block)
    for (const { client, clock, runs } of past.clients) {
      this.#next.set(client, clock)
      this.#runs.set(client, [...runs])
    }
  }

  /** What its applied blocks have left of it, to begin another one with. `clockOf`: how far a clientID of its is in the document. */
  past(clockOf: (client: number) => number): StreamPast {
    const opened = [...this.#openedAt.values()].filter((block) => block < this.applied)
    const clients = [...this.#next].map(([client, next]) => {
      // The document may have more, filled with nothing.
      const clock = Math.min(clockOf(client), next)
      return { client, clock, runs: (this.#runs.get(client) ?? []).filter((begin) => begin < clock) }
    })
    return { length: this.applied, opened, clients: clients.filter(({ clock }) => clock > 0).sort((a, b) => a.client - b.client) }
  }

  /** Sessions that its blocks have announced. */
  get announced(): number {
    return this.#announced
  }

  /** Its first blocks are a snapshot: to be said before it has any block, or once it has all of these. */
  beginsWith(snapshotBlocks: number): void {
    this.#snapshotBlocks = snapshotBlocks
    this.#pieces = this.applied < snapshotBlocks ? new SnapshotPieces(snapshotBlocks) : null
    if (this.end !== null) this.end = { ...this.end, at: this.countingOf(this.end.at) }
  }

  /** How many of so many blocks can count: a snapshot does as a whole, or not at all. */
  countingOf(blocks: number): number {
    return blocks < this.#snapshotBlocks ? 0 : blocks
  }

  /** Are blocks missing of the snapshot that it begins with? */
  get isBeginning(): boolean {
    return this.length < this.#snapshotBlocks
  }

  /** Is all of that snapshot in the document? */
  get isSettled(): boolean {
    return this.#pieces === null
  }

  /** Is a part of that snapshot in the document, and a part not? */
  get isPartial(): boolean {
    return this.#pieces?.isBegun === true
  }

  /** Does nothing of it wait? */
  get isIdle(): boolean {
    return this.#pieces === null && this.waiting.length === 0
  }

  /** Blocks that were checked: those that are applied and those that wait. */
  get length(): number {
    return this.applied + this.waitingBlocks
  }

  /** Blocks that wait, or of whose snapshot a part does. */
  get waitingBlocks(): number {
    return (this.#pieces?.blocks ?? 0) + this.waiting.length
  }

  /** Bytes of what waits; of pieces of a snapshot all that they take. */
  get waitingBytes(): number {
    return (this.#pieces?.bytes ?? 0) + this.#waitingBytes
  }

  /** Is there room for a block of the snapshot that it begins with, or is it applied at once (`isWhole`: it stands on nothing that is missing)? */
  hasRoomFor(block: CheckedBlock, isWhole: () => boolean): boolean {
    const pieces = this.isBeginning ? this.#pieces : null
    return pieces === null || pieces.hasRoomFor(block) || (pieces.isFree(block) && isWhole())
  }

  /** Is there no room for another block? */
  get isFull(): boolean {
    return this.waiting.length >= WAITING_LIMITS.maxBlocks || this.#waitingBytes >= WAITING_LIMITS.maxBytes
  }

  /** How far a clientID of its got in blocks that were checked. */
  clockOf(client: number): number {
    return this.#next.get(client) ?? 0
  }

  /**
   * Is the right one of a crossing in the run of the left one, so before it? Yjs puts such an item wherever it happens to have
   * cut the run, so replicas would differ; nobody who writes with Yjs makes one. `breaks`: those of the update itself,
   * if it writes with that clientID: it may be in no block yet. Else null: where its blocks end there is only what was filled,
   * and beside that Yjs puts nothing.
   */
  isReversed({ client, left, right }: Crossing, breaks: readonly number[] | null): boolean {
    if (breaks === null && left >= this.clockOf(client)) return false
    const begin = lastUpTo(breaks ?? [], left) ?? lastUpTo(this.runsOf(client), left)
    return begin !== undefined && begin <= right
  }

  /** Where the runs of one of its clientIDs begin, rising. */
  runsOf(client: number): readonly number[] {
    return this.#runs.get(client) ?? []
  }

  /** The block that opened a session. */
  openedAt(session: number): number {
    return this.#openedAt.get(session) ?? 0
  }

  /** Checks the next block, but for the clocks that it writes and whether the sessions that it opens clash with those of others. */
  check(bytes: Uint8Array): BlockReading {
    const block = decodeBlock(bytes)
    if (block === null) return { ok: false, reason: 'a block is malformed' }
    const known = this.#announced
    const { sessions } = block
    if (sessions < known || sessions > Math.min(known + BLOCK_LIMITS.maxNewSessions, MAX_SESSIONS)) {
      return { ok: false, reason: 'a block with a wrong number of sessions' }
    }
    const updates: CheckedUpdate[] = []
    let opens: Set<number> | null = null
    for (const update of block.updates) {
      const reading = readUpdate(update)
      if (!reading.ok) return { ok: false, reason: `an update: ${reading.reason}` }
      // At the first one: of a hostile block the others are not worth the work.
      const { writes } = reading.update
      if (writes !== null && !this.#has(writes.client)) {
        opens ??= this.#ids.unopened(this.key, sessions)
        if (!opens.has(writes.client)) return { ok: false, reason: FOREIGN }
      }
      updates.push({ bytes: update, contents: reading.update })
    }
    return { ok: true, block: { updates, sessions, size: bytes.byteLength } }
  }

  /** Why what a block writes is not what this stream may write next; null when it is. Its sessions must be open. */
  fault({ updates }: CheckedBlock): string | null {
    const next = new Map<number, number>()
    for (const { contents } of updates) {
      if (contents.writes === null) continue
      const { client, clock, length } = contents.writes
      if (!this.#has(client)) return FOREIGN
      if (clock !== (next.get(client) ?? this.clockOf(client))) return 'an update that leaves out or repeats clocks'
      next.set(client, clock + length)
    }
    return null
  }

  /** Puts a block that was checked behind those that wait. Returns lanes whose first one this is, unless it must wait for the snapshot. */
  push(block: CheckedBlock): Lane[] {
    for (const { contents } of block.updates) {
      if (contents.writes === null) continue
      const { client, clock, length } = contents.writes
      const runs = this.#runs.get(client) ?? []
      for (const begin of contents.breaks) runs.push(begin)
      this.#runs.set(client, runs)
      this.#next.set(client, clock + length)
    }
    for (; this.#announced < block.sessions; this.#announced++) this.#openedAt.set(this.#announced, this.length)
    if (this.#pieces !== null && this.isBeginning) return this.#pushPieces(this.#pieces, block)
    this.waiting.push(block)
    this.#waitingBytes += block.size
    return this.#pieces === null && this.waiting.length === 1 ? [this.waiting] : []
  }

  /** Forgets the blocks that wait. */
  drop(): void {
    this.waiting.clear()
    this.#waitingBytes = 0
  }

  /** Takes the first of a lane: it is applied. */
  shift(lane: Lane = this.waiting): void {
    if (this.#pieces !== null) {
      this.#pieces.shift(lane)
      this.#settle(this.#pieces)
      return
    }
    this.#waitingBytes -= this.waiting.shift()?.size ?? 0
    this.applied++
  }

  #pushPieces(pieces: SnapshotPieces, block: CheckedBlock): Lane[] {
    const lanes = pieces.push(block)
    this.#settle(pieces)
    return lanes
  }

  /** May its next block write with a clientID? Behind its snapshot with none of a former stream: what that has of these is all. */
  #has(client: number): boolean {
    return this.#ids.ownerOf(client) === this.key && (this.isBeginning || this.#ids.streamOf(client) === this.key)
  }

  /** What follows a snapshot is applied once all of that is. */
  #settle(pieces: SnapshotPieces): void {
    if (!pieces.isWhole) return
    this.applied = this.#snapshotBlocks
    this.#pieces = null
  }
}

function lastUpTo(sorted: readonly number[], value: number): number | undefined {
  return sorted[countUpTo(sorted, value) - 1]
}
