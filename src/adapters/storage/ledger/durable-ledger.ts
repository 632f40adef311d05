import fs from 'node:fs/promises'
import path from 'node:path'
import { setImmediate as endOfTurn, setTimeout as pause } from 'node:timers/promises'
import { NodeError } from '../../../kit/errors.js'
import type {
  Ledger,
  LedgerChange,
  LedgerChanges,
  LedgerDurability,
  LedgerEntry,
  LedgerRange,
  LedgerSize
} from '../../../ports/ledger.js'
import { commitsBehind, damagedError, journalFiles, LedgerJournal } from './ledger-journal.js'
import { encodeCommit } from './ledger-record.js'
import type { RecordedCommit } from './ledger-record.js'
import { LedgerStore } from './ledger-store.js'
import { storeError } from '../home/store-errors.js'

/** Bytes of a journal file after which a new one is begun. */
const JOURNAL_BYTES = 8 * 1024 * 1024
const MAX_GROUP = 1024
/** Turns for which a group waits at most, while each brings more of it. */
const MAX_TURNS = 8
/** Bytes of records that share one write, beyond the first. */
const MAX_GROUP_BYTES = 8 * 1024 * 1024

const MAX_KEY_LENGTH = 512
const NO_KEY_CHARACTER = /[^!-~]/

/** How long after a commit its number is kept elsewhere, in milliseconds. */
const MARK_MS = 1000

/** How a durable ledger is opened. */
export interface DurableLedgerOptions {
  /** Its directory; made 0700 when it is not there. */
  readonly dir: string
  readonly durability: LedgerDurability
  /**
   * A number of commits that the ledger once had, kept elsewhere: one that has fewer now is damaged or an old copy. It
   * is written a second after a commit, so that a process that is killed leaves no more than that unnoticed.
   */
  readonly mark: { readonly read: () => Promise<number>; readonly write: (commits: number) => Promise<void> }
}

interface WaitingCommit {
  readonly changes: LedgerChanges
  readonly survives: LedgerDurability
  readonly done: () => void
  readonly failed: (error: NodeError) => void
}

interface Group {
  readonly group: readonly WaitingCommit[]
  readonly commits: readonly RecordedCommit[]
  readonly records: readonly Uint8Array[]
}

/**
 * Opens the ledger of a directory: a journal in front of a key-value store. One fsync of the journal covers all waiting
 * commits; the store gets them later in batches. Opening replays commits that the store lacks.
 * @throws NodeError STORE_DAMAGED, DISK_FULL, NO_PERMISSION, STORE_LOCKED
 */
export async function openDurableLedger(options: DurableLedgerOptions): Promise<LedgerOnDisk> {
  const { dir } = options
  try {
    await fs.mkdir(path.join(dir, 'store'), { recursive: true, mode: 0o700 })
    const store = await LedgerStore.open(dir)
    try {
      return await DurableLedger.open(store, options)
    } catch (error) {
      await store.close()
      throw error
    }
  } catch (error) {
    throw storeError(error, dir)
  }
}

/** A ledger on disk. */
export interface LedgerOnDisk extends Ledger {
  /**
   * Every entry as it is after one commit, in key order, at most `limit` at a time and fewer large ones.
   * @throws NodeError STORE_DAMAGED
   */
  pages(limit: number): AsyncGenerator<LedgerEntry[]>
}

class DurableLedger implements LedgerOnDisk {
  readonly #options: DurableLedgerOptions
  readonly #store: LedgerStore
  readonly #journal: LedgerJournal
  #waiting: WaitingCommit[] = []
  #writing: Promise<void> | null = null
  #checkpoint: Promise<void> | null = null
  #marking: Promise<void> | null = null
  #marked: number
  readonly #closing = new AbortController()
  /** Set when neither the journal nor the store tells any more what is there. */
  #broken: NodeError | null = null
  #isClosed = false

  private constructor(
    options: DurableLedgerOptions,
    parts: { readonly store: LedgerStore; readonly journal: LedgerJournal }
  ) {
    this.#options = options
    this.#store = parts.store
    this.#journal = parts.journal
    this.#marked = parts.store.last
  }

  static async open(store: LedgerStore, options: DurableLedgerOptions): Promise<DurableLedger> {
    const { dir, mark } = options
    const files = await journalFiles(dir)
    for (const commit of await commitsBehind(files, store.last)) {
      store.take([commit])
      if (store.isDue) await store.write()
    }
    const { last } = store
    if (last < (await mark.read())) throw damagedError(dir)
    await store.flush()
    const journal = await LedgerJournal.begin(dir, last + 1)
    for (const file of files) if (file !== journal.file) await fs.rm(file)
    await mark.write(last)
    return new DurableLedger(options, { store, journal })
  }

  get(key: string): Promise<Uint8Array | null> {
    return this.#store.get(key).catch(this.#notRead)
  }

  readonly #notRead = (error: unknown): never => {
    throw storeError(error, this.#options.dir)
  }

  async list(range: LedgerRange): Promise<LedgerEntry[]> {
    return range.limit <= 0 || range.from >= range.to ? [] : this.#read(() => this.#store.list(range))
  }

  async *pages(limit: number): AsyncGenerator<LedgerEntry[]> {
    try {
      yield* this.#store.pages(limit)
    } catch (error) {
      throw storeError(error, this.#options.dir)
    }
  }

  commit(changes: LedgerChanges, survives = this.#options.durability): Promise<void> {
    if (this.#isClosed) return Promise.reject(new NodeError('INTERNAL', 'the ledger is closed'))
    return new Promise((done, failed) => {
      if (typeof changes !== 'function') assertChanges(changes)
      this.#waiting.push({ changes, survives, done, failed })
      this.#writing ??= this.#writeAll()
    })
  }

  async compact(): Promise<void> {
    await this.#read(() => this.#store.compact())
  }

  async size(): Promise<LedgerSize> {
    return { commits: this.#store.last, bytes: await bytesOf(this.#options.dir) }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#closing.abort()
    await this.#writing
    await this.#marking
    await this.#checkpoint
    // The journal has the changes that cannot be written now.
    if (this.#broken === null) await this.#store.write().catch(() => {})
    const isSynced = this.#broken === null && (await this.#trySync())
    await this.#journal.close()
    await this.#store.close()
    if (isSynced) await this.#mark(this.#store.last)
  }

  /**
   * Syncs the journal, which commits that need only survive the process did not. False: a mark must not name what is in
   * it.
   */
  #trySync(): Promise<boolean> {
    return this.#journal.sync().then(
      () => true,
      () => false
    )
  }

  async #read<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      throw storeError(error, this.#options.dir)
    }
  }

  /** One group after the other; what was called while one was written waits for the next, and shares it. */
  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Callers of one turn share a write, and callers of the next turn as well while each brings more. Callers that
      // are served together ask again together and share the cost of a write and of waking.
      for (let turns = 0, known = 0; turns < MAX_TURNS && known < this.#waiting.length && known < MAX_GROUP; turns++) {
        known = this.#waiting.length
        await endOfTurn()
      }
      let group: readonly WaitingCommit[] = []
      try {
        const next = this.#nextGroup()
        group = next.group
        if (group.length === 0) continue
        if (this.#store.isFull) await this.#store.write()
        const appending = this.#append(next)
        // No further await: callers resume in this turn.
        if (appending !== null) await appending
        this.#take(next.commits)
        if (this.#journal.bytes >= JOURNAL_BYTES) await this.#rotate()
        for (const { done } of group) done()
      } catch (error) {
        const fault = storeError(error, this.#options.dir)
        const others = this.#waiting.splice(0)
        for (const { failed } of [...group, ...others]) failed(fault)
      }
    }
    this.#writing = null
  }

  /** One that cannot be written is refused by itself: the others are none of its business. */
  #nextGroup(): Group {
    const group: WaitingCommit[] = []
    const commits: RecordedCommit[] = []
    const records: Uint8Array[] = []
    const { seal } = this.#journal
    const { last } = this.#store
    let bytes = 0
    let taken = 0
    for (const waiting of this.#waiting) {
      if (commits.length >= MAX_GROUP || bytes > MAX_GROUP_BYTES) break
      taken++
      try {
        const number = last + commits.length + 1
        const { commit, record } = encodeCommit({ number, promised: last, changes: changesOf(waiting) }, seal)
        group.push(waiting)
        commits.push(commit)
        records.push(record)
        bytes += record.byteLength
      } catch (error) {
        waiting.failed(storeError(error, this.#options.dir))
      }
    }
    this.#waiting.splice(0, taken)
    return { group, commits, records }
  }

  #append({ group, records }: Group): Promise<void> | null {
    if (this.#broken !== null) throw this.#broken
    const before = this.#journal.bytes
    const isSynced = group.some(({ survives }) => survives === 'power')
    return (
      this.#journal.append(records, { isSynced })?.catch((error: unknown) => this.#breakUnless(before, error)) ?? null
    )
  }

  #take(commits: readonly RecordedCommit[]): void {
    this.#store.take(commits)
    this.#store.writeIfDue()
    this.#marking ??= this.#markSoon()
  }

  async #markSoon(): Promise<void> {
    try {
      while (this.#store.last > this.#marked) {
        await pause(MARK_MS, undefined, { ref: false, signal: this.#closing.signal })
        await this.#checkpoint
        const { last } = this.#store
        // The mark must not be ahead of the journal after a power failure.
        await this.#journal.sync()
        await this.#mark(last)
      }
    } catch {
      // The next commit tries again.
    } finally {
      this.#marking = null
    }
  }

  /** The mark never goes back. */
  async #mark(last: number): Promise<void> {
    if (last <= this.#marked) return
    this.#marked = last
    try {
      await this.#options.mark.write(last)
    } catch (error) {
      this.#marked = 0
      throw error
    }
  }

  /** After a failed truncation the content is unknown until the ledger is opened anew. */
  #breakUnless(size: number, error: unknown): never {
    if (this.#journal.bytes !== size) this.#broken = storeError(error, this.#options.dir)
    throw error
  }

  /**
   * A full file goes once the store has on disk what it holds. A failure leaves a journal that is longer than it need
   * be.
   */
  async #rotate(): Promise<void> {
    if (this.#checkpoint !== null) return
    try {
      const last = this.#store.last
      // Also what did not wait for the disk: it is before what did.
      if (this.#options.durability === 'power') await this.#journal.sync()
      const full = await this.#journal.rotate(last + 1)
      this.#checkpoint = this.#finishCheckpoint(full, last).finally(() => {
        this.#checkpoint = null
      })
    } catch {
      // The next commit tries again.
    }
  }

  async #finishCheckpoint(file: string, last: number): Promise<void> {
    try {
      await this.#store.flush()
      await this.#mark(last)
      await fs.rm(file)
    } catch {
      // The file stays until the next start, which reads it once more.
    }
  }
}

function changesOf({ changes }: WaitingCommit): readonly LedgerChange[] {
  if (typeof changes !== 'function') return changes
  const made = changes()
  assertChanges(made)
  return made
}

/** Are the keys of the changes such as a ledger takes? @throws NodeError INTERNAL */
export function assertChanges(changes: readonly LedgerChange[]): void {
  for (const { key } of changes)
    if (key === '' || key.length > MAX_KEY_LENGTH || NO_KEY_CHARACTER.test(key))
      throw new NodeError('INTERNAL', 'not a key of the ledger')
}

async function bytesOf(dir: string): Promise<number> {
  let bytes = 0
  for (const entry of await fs.readdir(dir, { recursive: true, withFileTypes: true })) {
    // Files come and go while the store tidies up.
    if (entry.isFile())
      bytes += (await fs.stat(path.join(entry.parentPath, entry.name)).catch(() => ({ size: 0 }))).size
  }
  return bytes
}
