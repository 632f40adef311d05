import { randomBytes } from 'node:crypto'
import { constants, writevSync } from 'node:fs'
import fs from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../../../kit/errors.js'
import { syncDir } from '../home/atomic-file.js'
import { NO_SEAL, readJournal } from './ledger-record.js'
import type { RecordedCommit, JournalSeal } from './ledger-record.js'

/** Number and seal of a journal file. Files of earlier versions have no seal. */
const NAME = /^journal-\d{12}(?:-([0-9a-f]{8})([0-9a-f]{8}))?$/

/**
 * The journal of a ledger: commits in order, in files named after their first number and their random seal. The seal
 * keeps bytes of peers from being read as a commit, also where their record was cut short.
 */
export class LedgerJournal {
  readonly #dir: string
  #file: string
  #seal: JournalSeal
  #handle: FileHandle
  #size = 0
  /** Was something written since the last one of {@link #syncing} began? */
  #isBehind = false
  #syncing: Promise<void> = Promise.resolve()

  private constructor(parts: { readonly dir: string; readonly file: string; readonly handle: FileHandle }) {
    this.#dir = parts.dir
    this.#file = parts.file
    this.#seal = sealOf(parts.file)
    this.#handle = parts.handle
  }

  /** Begins a new file for the commits from `first` on. */
  static async begin(dir: string, first: number): Promise<LedgerJournal> {
    const opened = await create(dir, first)
    return new LedgerJournal({ dir, ...opened })
  }

  /** The file that grows. */
  get file(): string {
    return this.#file
  }

  /** The seal of its records. */
  get seal(): JournalSeal {
    return this.#seal
  }

  /** Its bytes. */
  get bytes(): number {
    return this.#size
  }

  /**
   * Writes records behind the last. Null: they are there, as durable as they need be. When it rejects none of them is
   * there.
   * `isSynced`: they are on disk when it resolves, and all before them.
   */
  append(records: readonly Uint8Array[], { isSynced }: { readonly isSynced: boolean }): Promise<void> | null {
    const from = this.#size
    try {
      for (const part of inCalls(records)) {
        // At once: it goes to the memory of the system, which takes less time than handing it to another thread.
        const written = writevSync(this.#handle.fd, part, this.#size)
        this.#size += written
        if (written < lengthOf(part)) throw Object.assign(new Error('a write was cut short'), { code: 'ENOSPC' })
      }
      this.#isBehind = true
      return isSynced ? this.sync().catch((error: unknown) => this.#fail(from, error)) : null
    } catch (error) {
      return this.#fail(from, error)
    }
  }

  async #fail(from: number, error: unknown): Promise<never> {
    await this.undo(from)
    throw error
  }

  /** Appended records are on disk when it resolves. */
  async sync(): Promise<void> {
    if (this.#isBehind) {
      this.#isBehind = false
      this.#syncing = this.#handle.datasync()
    }
    await this.#syncing
  }

  /** Takes back what was written behind a place. @throws what the system says; the file then has to be opened anew. */
  async undo(to: number): Promise<void> {
    await this.#handle.truncate(to)
    await this.#handle.datasync()
    this.#size = to
  }

  /** Goes on in a new file; resolves to the one that is full. */
  async rotate(first: number): Promise<string> {
    const full = { file: this.#file, handle: this.#handle }
    const next = await create(this.#dir, first)
    this.#file = next.file
    this.#seal = sealOf(next.file)
    this.#handle = next.handle
    this.#size = 0
    await full.handle.close()
    return full.file
  }

  /** Closes the file. */
  async close(): Promise<void> {
    await this.#handle.close()
  }
}

/** The journal files of a directory, oldest first. */
export async function journalFiles(dir: string): Promise<string[]> {
  const names = (await fs.readdir(dir)).filter((name) => NAME.test(name)).sort()
  return names.map((name) => path.join(dir, name))
}

/**
 * The commits of journal files after commit `kept`, without a gap. An unfinished end, which was never acknowledged, is
 * left out.
 * @throws NodeError STORE_DAMAGED when an acknowledged commit cannot be read
 */
export async function commitsBehind(files: readonly string[], kept: number): Promise<RecordedCommit[]> {
  const commits: RecordedCommit[] = []
  let promised = 0
  for (const file of files) {
    for (const commit of readJournal(await fs.readFile(file), sealOf(file))) {
      promised = Math.max(promised, commit.promised)
      if (commit.number === kept + commits.length + 1) commits.push(commit)
    }
  }
  if (promised > kept + commits.length) throw damagedError(path.dirname(files[0] ?? ''))
  return commits
}

/** The error of a ledger that has lost what it promised. */
export function damagedError(place: string): NodeError {
  return new NodeError('STORE_DAMAGED', `the ledger ${place} has lost data: it is damaged, or an older copy`)
}

async function create(dir: string, first: number): Promise<{ file: string; handle: FileHandle }> {
  const file = path.join(dir, `journal-${String(first).padStart(12, '0')}-${randomBytes(8).toString('hex')}`)
  // Not in append mode: what a failed try left is overwritten at its place.
  const handle = await fs.open(file, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600)
  try {
    await syncDir(dir)
  } catch (error) {
    await handle.close()
    throw error
  }
  return { file, handle }
}

function sealOf(file: string): JournalSeal {
  const [, mark, seed] = NAME.exec(path.basename(file)) ?? []
  return mark === undefined || seed === undefined
    ? NO_SEAL
    : { mark: Number.parseInt(mark, 16), seed: Number.parseInt(seed, 16) }
}

/** Buffers that one call of the system takes at most. */
const MAX_BUFFERS = 1024

/** Records in as many calls as the system needs for them. */
function inCalls(records: readonly Uint8Array[]): readonly (readonly Uint8Array[])[] {
  if (records.length <= MAX_BUFFERS) return [records]
  const all: Uint8Array[][] = []
  for (let at = 0; at < records.length; at += MAX_BUFFERS) all.push(records.slice(at, at + MAX_BUFFERS))
  return all
}

function lengthOf(records: readonly Uint8Array[]): number {
  let length = 0
  for (const { byteLength } of records) length += byteLength
  return length
}
