import { BLOCK_LIMITS, decodeBlock } from './block.js'
import { type ClientIds, MAX_SESSIONS, type StreamKey } from './client-ids.js'
import { type Crossing, readUpdate, type UpdateContents } from './update/update.js'

/** Bounds of the blocks of one stream that wait for dependencies. */
export const WAITING_LIMITS = { maxBlocks: 256, maxBytes: 1_048_576 } as const

/** A checked update: its bytes and effects. */
export interface CheckedUpdate {
  readonly bytes: Uint8Array
  readonly contents: UpdateContents
}

/** A block that was checked, in the order of its stream. */
export interface CheckedBlock {
  readonly updates: readonly CheckedUpdate[]
  /** Sessions of the stream that are open with it. */
  readonly sessions: number
  readonly size: number
}

/** A checked block, or why it ends its stream. */
export type BlockReading =
  | { readonly ok: true; readonly block: CheckedBlock }
  | { readonly ok: false; readonly reason: string }

/** Does a block only delete? A full document accepts it, since it may make space. */
export function onlyDeletes({ updates }: CheckedBlock): boolean {
  return updates.every(({ contents }) => contents.writes === null)
}

/** The end of a stream. */
export interface StreamEnd {
  /** Blocks that count. */
  readonly at: number
  readonly reason: string
}

/** Effect of the blocks of a stream on a replica. */
export interface StreamPast {
  /** Number of these blocks. */
  readonly length: number
  /** The block that opened each of its sessions. */
  readonly opened: readonly number[]
  /** The clock of each of its clientIDs, and the beginnings of its runs, rising. */
  readonly clients: readonly { readonly client: number; readonly clock: number; readonly runs: readonly number[] }[]
}

/**
 * Can that many blocks have this effect? Each opens at most {@link BLOCK_LIMITS} sessions with one clientID each. A
 * false snapshot would claim effects of later blocks.
 */
export function isPossible({ length, opened, clients }: StreamPast): boolean {
  const isInOrder = (block: number, session: number): boolean =>
    block < length && block >= (opened[session - 1] ?? 0) && block !== opened[session - BLOCK_LIMITS.maxNewSessions]
  return (
    opened.every(isInOrder) &&
    clients.length <= opened.length &&
    clients.every(({ clock, runs }) => runs.every((run) => run < clock))
  )
}

const NO_PAST: StreamPast = { length: 0, opened: [], clients: [] }

/** The end of a stream: later blocks of it do not count. */
export interface StreamStop {
  readonly stream: StreamKey
  /** Blocks of it that count. */
  readonly at: number
  /** In words of this node. */
  readonly reason: string
  /**
   * Does this replica hold data that no longer counts? Then make a new one, tell it of this stop first, and give it all
   * streams again.
   */
  readonly needsRebuild: boolean
}

/**
 * One member's stream as a replica follows it. Whether a block counts depends on the stream alone, never on other
 * streams or the order of arrival. So every replica ends it at the same block.
 */
export class DocumentStream {
  readonly key: StreamKey
  applied: number
  /** Blocks that always count: a snapshot in force holds them. */
  readonly floor: number
  /** Why it ended; null while it goes on. */
  end: StreamEnd | null = null
  readonly waiting: CheckedBlock[] = []
  #waitingBytes = 0
  readonly #ids: ClientIds
  /** Sessions that blocks have announced, and the block that announced each. */
  #announced = 0
  readonly #openedAt = new Map<number, number>()
  /** The next clock of each of its clientIDs. */
  readonly #next = new Map<number, number>()

  /**
   * For each of its clientIDs the clocks at which a run begins: text that was written on and on, each piece behind the
   * one before.
   */
  readonly #runs = new Map<number, number[]>()

  constructor(
    key: StreamKey,
    ids: ClientIds,
    { past = NO_PAST, floor = 0 }: { past?: StreamPast; floor?: number } = {}
  ) {
    this.key = key
    this.floor = floor
    this.#ids = ids
    this.applied = past.length
    this.#announced = past.opened.length
    for (const [session, block] of past.opened.entries()) this.#openedAt.set(session, block)
    for (const { client, clock, runs } of past.clients) {
      this.#next.set(client, clock)
      this.#runs.set(client, [...runs])
    }
  }

  /**
   * The effect of its applied blocks, to start another one with. `clockOf`: the clock of a clientID in the document.
   */
  past(clockOf: (client: number) => number): StreamPast {
    const opened = [...this.#openedAt.values()].filter((block) => block < this.applied)
    const clients = [...this.#next.keys()].map((client) => {
      const clock = clockOf(client)
      return { client, clock, runs: (this.#runs.get(client) ?? []).filter((begin) => begin < clock) }
    })
    return {
      length: this.applied,
      opened,
      clients: clients.filter(({ clock }) => clock > 0).sort((a, b) => a.client - b.client)
    }
  }

  /** Sessions that its blocks have announced. */
  get announced(): number {
    return this.#announced
  }

  /** Checked blocks: applied and waiting ones. */
  get length(): number {
    return this.applied + this.waiting.length
  }

  /** Are the waiting blocks at their limits? */
  get isFull(): boolean {
    return this.waiting.length >= WAITING_LIMITS.maxBlocks || this.#waitingBytes >= WAITING_LIMITS.maxBytes
  }

  /** The next clock of one of its clientIDs, in checked blocks. */
  clockOf(client: number): number {
    return this.#next.get(client) ?? 0
  }

  /**
   * Is the right item of a crossing in the run of the left one, so before it? Yjs puts such an item where it happens to
   * have cut the run, so replicas would differ; no honest client writes one. `breaks`: cuts of the update itself, if it
   * writes with that clientID.
   */
  isReversed({ client, left, right }: Crossing, breaks: readonly number[] = []): boolean {
    const isBefore = (clock: number): boolean => clock <= left
    const begin = breaks.findLast(isBefore) ?? this.#runs.get(client)?.findLast(isBefore)
    return begin !== undefined && begin <= right
  }

  /** Ends it: only its first `at` blocks count, and all blocks up to its floor. */
  endAt({ at, reason }: StreamEnd): StreamStop {
    const end = { at: Math.max(at, this.floor), reason }
    if (this.end === null || end.at < this.end.at) this.end = end
    return { stream: this.key, ...this.end, needsRebuild: this.length > this.end.at }
  }

  /** The block that opened a session. */
  openedAt(session: number): number {
    return this.#openedAt.get(session) ?? 0
  }

  /** Checks the next block, except for the owners of its clientIDs. */
  check(bytes: Uint8Array): BlockReading {
    const block = decodeBlock(bytes)
    if (block === null) return { ok: false, reason: 'a block is malformed' }
    const known = this.#announced
    const { sessions } = block
    if (sessions < known || sessions > Math.min(known + BLOCK_LIMITS.maxNewSessions, MAX_SESSIONS)) {
      return { ok: false, reason: 'a block with a wrong number of sessions' }
    }
    const updates: CheckedUpdate[] = []
    for (const update of block.updates) {
      const reading = readUpdate(update)
      if (!reading.ok) return { ok: false, reason: `an update: ${reading.reason}` }
      updates.push({ bytes: update, contents: reading.update })
    }
    return { ok: true, block: { updates, sessions, size: bytes.byteLength } }
  }

  /** Why this stream may not write the block next; null when it may. The block's sessions must be open. */
  fault({ updates }: CheckedBlock): string | null {
    const next = new Map<number, number>()
    for (const { contents } of updates) {
      if (contents.writes === null) continue
      const { client, clock, length } = contents.writes
      if (this.#ids.ownerOf(client) !== this.key) return 'an update with the clientID of another'
      if (clock !== (next.get(client) ?? this.clockOf(client))) return 'an update that leaves out or repeats clocks'
      next.set(client, clock + length)
    }
    return null
  }

  /** Appends a checked block to the waiting blocks. */
  push(block: CheckedBlock): void {
    for (const { contents } of block.updates) {
      if (contents.writes === null) continue
      const { client, clock, length } = contents.writes
      const runs = this.#runs.get(client) ?? []
      for (const begin of contents.breaks) runs.push(begin)
      this.#runs.set(client, runs)
      this.#next.set(client, clock + length)
    }
    for (; this.#announced < block.sessions; this.#announced++) this.#openedAt.set(this.#announced, this.length)
    this.waiting.push(block)
    this.#waitingBytes += block.size
  }

  /** Drops the waiting blocks. */
  drop(): void {
    this.waiting.length = 0
    this.#waitingBytes = 0
  }

  /** Removes the first waiting block: it was applied. */
  shift(): void {
    this.#waitingBytes -= this.waiting.shift()?.size ?? 0
    this.applied++
  }
}
