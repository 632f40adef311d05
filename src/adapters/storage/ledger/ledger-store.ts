import path from 'node:path'
import RocksDB from 'rocksdb-native'
import type { RocksReadBatch } from 'rocksdb-native'
import { rangeOf } from '../../../domain/reliable/keys.js'
import type { LedgerEntry, LedgerRange } from '../../../ports/ledger.js'
import { KnownKeys } from './known-keys.js'
import type { RecordedChange, RecordedCommit } from './ledger-record.js'

/** Bytes of the table in memory of the store. */
const TABLE_BYTES = 4 * 1024 * 1024
/** Changed keys that wait to be written together: most short-lived keys are removed before. */
const MAX_WAITING = 2048
/** Waiting keys that are not declared new. Waiting does not save their write, and they occupy memory for long. */
const MAX_LASTING = 256
/** Bytes of their values. */
const MAX_WAITING_BYTES = 2 * 1024 * 1024
/** Factor by which the waiting keys may exceed {@link MAX_WAITING} while the store accepts no write. */
const PATIENCE = 4
/** Bytes of the values of one page, beyond the last. */
const PAGE_BYTES = 4 * 1024 * 1024
/** The number of the last commit in the store; before every key of a ledger. */
const NUMBER_KEY = Buffer.from(' commits')

/** Most of these are asked for only once, before they are there: every request is looked up. */
const LOOKED_UP = rangeOf('request')

/** Changes since the last write to the store. */
interface WaitingWrite {
  /** null: removed. */
  readonly values: Map<string, Uint8Array | null>
  /** Keys without a value in the store. */
  readonly fresh: Set<string>
  bytes: number
  last: number
}

/**
 * The key-value store behind a journal. Changes go into memory at once and to the store in batches; the journal has
 * them meanwhile.
 */
export class LedgerStore {
  readonly #rocks: RocksDB
  #waiting: WaitingWrite
  /** Number of the last commit that is in the store itself. */
  #written: number
  #leaving: WaitingWrite | null = null
  #writing: Promise<void> | null = null
  readonly #known = new KnownKeys(() => this.#keys(LOOKED_UP))
  #reading: RocksReadBatch | null = null

  private constructor(rocks: RocksDB, last: number) {
    this.#rocks = rocks
    this.#waiting = nothing(last)
    this.#written = last
  }

  /** Opens the store of a directory. @throws what the store says. */
  static async open(dir: string): Promise<LedgerStore> {
    const rocks = new RocksDB(path.join(dir, 'store'), {
      writeBufferSize: TABLE_BYTES,
      // The cache of the system holds the blocks of tables. Large values filled another 32 MiB here.
      blockCache: false,
      tableCacheIndexAndFilterBlocks: false,
      maxBackgroundJobs: 2,
      maxOpenFiles: 64
    })
    await rocks.ready()
    try {
      const bytes = await rocks.get(NUMBER_KEY)
      return new LedgerStore(rocks, bytes === null ? 0 : Number(Buffer.from(bytes).toString()))
    } catch (error) {
      await rocks.close({ force: true })
      throw error
    }
  }

  /** Number of the last commit that it has, in memory or on disk. */
  get last(): number {
    return this.#waiting.last
  }

  /** Does so much wait that it should be written now? */
  get isDue(): boolean {
    const { values, fresh, bytes } = this.#waiting
    return values.size - fresh.size >= MAX_LASTING || values.size >= MAX_WAITING || bytes >= MAX_WAITING_BYTES
  }

  /** Does so much wait that nothing more may, before that is written? */
  get isFull(): boolean {
    const { values, bytes } = this.#waiting
    return values.size >= PATIENCE * MAX_WAITING || bytes >= PATIENCE * MAX_WAITING_BYTES
  }

  /** Takes the changes of commits that the journal holds. Their values are its own from then on. */
  take(commits: readonly RecordedCommit[]): void {
    for (const { number, changes } of commits) {
      for (const change of changes) this.#change(change)
      this.#waiting.last = number
    }
  }

  #change({ key, value, isNew = false }: RecordedChange): void {
    const { values, fresh } = this.#waiting
    if (value === null && fresh.delete(key)) {
      this.#waiting.bytes -= values.get(key)?.byteLength ?? 0
      values.delete(key)
      return
    }
    if (isNew && value !== null && !values.has(key) && this.#leaving?.values.has(key) !== true) fresh.add(key)
    set(this.#waiting, key, value)
  }

  /** Writes what waits. @throws what the store says; then it waits on. */
  async write(): Promise<void> {
    while (this.#writing !== null) await this.#writing.catch(() => {})
    // A commit without changes counts as well.
    if (this.#waiting.last === this.#written) return
    this.#writing = this.#writeWaiting().finally(() => {
      this.#writing = null
    })
    await this.#writing
  }

  /** Starts a write when enough keys wait. No caller awaits it: the journal has the keys of a failed write. */
  writeIfDue(): void {
    if (this.isDue && this.#writing === null) this.write().catch(() => {})
  }

  /** Writes what waits, fsynced. */
  async flush(): Promise<void> {
    await this.write()
    await this.#rocks.flush()
  }

  /** Gives the room of removed entries back. */
  async compact(): Promise<void> {
    await this.flush()
    await this.#rocks.compactRange()
  }

  /** The value of a key, or null. */
  get(key: string): Promise<Uint8Array | null> {
    const waiting =
      this.#waiting.values.get(key) ?? (this.#waiting.values.has(key) ? null : this.#leaving?.values.get(key))
    if (waiting !== undefined) return Promise.resolve(waiting)
    return !isLookedUp(key) ? this.#read(key) : this.#known.mayHave(key) ? this.#fetch(key) : Promise.resolve(null)
  }

  async #fetch(key: string): Promise<Uint8Array | null> {
    const value = await this.#read(key)
    if (value === null) this.#known.missed()
    return value
  }

  /** The entries of a range. */
  async list({ from, to, limit, isReverse: reverse = false }: LedgerRange): Promise<LedgerEntry[]> {
    const found = new Map<string, Uint8Array | null>()
    for (const { values } of this.#leaving === null ? [this.#waiting] : [this.#leaving, this.#waiting]) {
      for (const [key, value] of values) if (key >= from && key < to) found.set(key, value)
    }
    // Each of these may stand in the place of one entry of the store.
    const most = limit + found.size
    for await (const { key, value } of this.#rocks.iterator({
      gte: Buffer.from(from),
      lt: Buffer.from(to),
      limit: most,
      reverse,
      capacity: Math.min(most, 256)
    })) {
      const text = Buffer.from(key).toString()
      if (!found.has(text)) found.set(text, value)
    }
    const entries: LedgerEntry[] = []
    const keys = [...found.keys()].sort()
    for (const key of reverse ? keys.reverse() : keys) {
      const value = found.get(key)
      if (value !== null && value !== undefined && entries.length < limit) entries.push({ key, value })
    }
    return entries
  }

  /**
   * All entries as they are after one commit, in the order of the keys, at most `limit` at a time, fewer of large ones.
   * @throws what the store says
   */
  async *pages(limit: number): AsyncGenerator<LedgerEntry[]> {
    await this.write()
    const snapshot = this.#rocks.snapshot()
    try {
      let page: LedgerEntry[] = []
      let bytes = 0
      // Behind the store's own key.
      for await (const { key, value } of snapshot.iterator({
        gte: Buffer.from('!'),
        lt: Buffer.from('\x7f'),
        capacity: 256
      })) {
        page.push({ key: Buffer.from(key).toString(), value })
        bytes += value.byteLength
        if (page.length < limit && bytes < PAGE_BYTES) continue
        yield page
        page = []
        bytes = 0
      }
      if (page.length > 0) yield page
    } finally {
      await snapshot.close()
    }
  }

  /** Closes it. The journal has the changes that were not written. */
  async close(): Promise<void> {
    await this.#known.close()
    await this.#rocks.close({ force: true })
  }

  /** Keys of a range in the store or in the batch being written. */
  async *#keys({ from, to }: Pick<LedgerRange, 'from' | 'to'>): AsyncGenerator<string> {
    for (const key of this.#leaving?.values.keys() ?? []) if (key >= from && key < to) yield key
    const range = { gte: Buffer.from(from), lt: Buffer.from(to), values: false, capacity: 1024 }
    for await (const { key } of this.#rocks.iterator(range)) yield Buffer.from(key).toString('latin1')
  }

  /** Reads of one turn are one call. */
  #read(key: string): Promise<Uint8Array | null> {
    if (this.#reading === null) {
      const batch = this.#rocks.read({ autoDestroy: true })
      this.#reading = batch
      queueMicrotask(() => {
        this.#reading = null
        batch.tryFlush()
      })
    }
    return this.#reading.get(Buffer.from(key, 'latin1'))
  }

  async #writeWaiting(): Promise<void> {
    const leaving = this.#waiting
    this.#leaving = leaving
    this.#waiting = nothing(leaving.last)
    try {
      const batch = this.#rocks.write({ autoDestroy: true, capacity: leaving.values.size + 1 })
      for (const [key, value] of leaving.values) {
        if (value !== null && isLookedUp(key)) this.#known.add(key)
        if (value === null) batch.tryDelete(Buffer.from(key, 'latin1'))
        else batch.tryPut(Buffer.from(key, 'latin1'), value)
      }
      batch.tryPut(NUMBER_KEY, Buffer.from(String(leaving.last)))
      await batch.flush()
      this.#written = leaving.last
    } catch (error) {
      for (const [key, value] of leaving.values) if (!this.#waiting.values.has(key)) set(this.#waiting, key, value)
      throw error
    } finally {
      this.#leaving = null
    }
  }
}

function isLookedUp(key: string): boolean {
  return key >= LOOKED_UP.from && key < LOOKED_UP.to
}

function nothing(last: number): WaitingWrite {
  return { values: new Map(), fresh: new Set(), bytes: 0, last }
}

function set(waiting: WaitingWrite, key: string, value: Uint8Array | null): void {
  waiting.bytes += (value?.byteLength ?? 0) - (waiting.values.get(key)?.byteLength ?? 0)
  waiting.values.set(key, value)
}
