import { constants } from 'node:fs'
import fs from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { NodeError } from '../../../kit/errors.js'
import { syncDir } from '../home/atomic-file.js'
import { GENESIS, lineText, nextLine, UNPROVEN } from './audit-line.js'
import type { AuditEntry, AuditLine, ChainHead } from './audit-line.js'
import {
  chainEnd,
  currentFile,
  cutUnfinishedLine,
  FRESH_HEAD,
  isGone,
  leadTo,
  oldestLine,
  readHead,
  rotate,
  writeHead
} from './audit-segments.js'
import type { ChainPlace, StoredHead } from './audit-segments.js'

/** Bounds of the files. */
export interface AuditLimits {
  /** Bytes after which a new file is begun. */
  readonly maxBytes: number
  /** Files kept, the growing one included; at least 2. */
  readonly keepFiles: number
}

/** How a chain is opened. */
export interface ChainOpening extends AuditLimits {
  readonly chains: readonly string[]
  /** Others of the log are there and this one is not, though it was. */
  readonly isLost: boolean
}

/** Appends entries to the chain on disk. One writer a directory, one call at a time. */
export class AuditWriter {
  readonly #place: ChainPlace
  readonly #limits: AuditLimits
  #handle: FileHandle
  #size: number
  /** The full file has made room for one that could not be opened yet: another move would push out what is not old. */
  #isMoved = false
  #head: StoredHead

  private constructor(
    place: ChainPlace,
    limits: AuditLimits,
    opened: { handle: FileHandle; size: number; head: StoredHead }
  ) {
    this.#place = place
    this.#limits = limits
    this.#handle = opened.handle
    this.#size = opened.size
    this.#head = opened.head
  }

  /** Opens the chain where it ended. `notes` says what was wrong with it, to be put on record in it. */
  static async open(place: ChainPlace, opening: ChainOpening): Promise<{ writer: AuditWriter; notes: string[] }> {
    await fs.mkdir(place.dir, { recursive: true, mode: 0o700 })
    const cut = await cutUnfinishedLine(currentFile(place))
    const { head, notes } = await resume(place, opening.isLost)
    const next = { ...head, chains: opening.chains }
    // The head first: lines without one are lines whose head somebody took away.
    await writeHead(place, next)
    const opened = await openCurrent(place)
    const cuts = cut > 0 ? [`an unfinished line of ${cut} bytes was removed`] : []
    return { writer: new AuditWriter(place, opening, { ...opened, head: next }), notes: [...cuts, ...notes] }
  }

  /** Writes the entries as the next lines, on disk when it resolves. When it rejects, none of them is in the chain. */
  async append(entries: readonly AuditEntry[]): Promise<void> {
    await this.#assertInPlace()
    if (this.#size >= this.#limits.maxBytes) await this.#rotate()
    let head: ChainHead = this.#head
    const texts = entries.map((entry) => {
      const line = nextLine(entry, head)
      head = line
      return `${lineText(line)}\n`
    })
    const bytes = Buffer.from(texts.join(''))
    // The rest of a failed write is removed first.
    await this.#handle.truncate(this.#size)
    await writeAll(this.#handle, bytes, this.#size)
    await this.#handle.datasync()
    const next = { ...this.#head, seq: head.seq, hash: head.hash }
    await writeHead(this.#place, next)
    this.#size += bytes.byteLength
    this.#head = next
  }

  /** Closes the file. */
  async close(): Promise<void> {
    await this.#handle.close()
  }

  /** Lines in a removed file could not be read, and a file cut short would be filled up with zeros. */
  async #assertInPlace(): Promise<void> {
    const file = currentFile(this.#place)
    const [named, open] = await Promise.all([fs.stat(file).catch(() => null), this.#handle.stat()])
    const isSame = named !== null && named.ino === open.ino && named.dev === open.dev
    if (this.#isMoved || (isSame && open.size >= this.#size)) return
    await fs.mkdir(this.#place.dir, { recursive: true, mode: 0o700 })
    await this.#reopen()
    throw new NodeError('STORE_DAMAGED', `${file} was removed, replaced or cut short while the node ran`, {
      next: ['a2a-node audit --verify']
    })
  }

  async #rotate(): Promise<void> {
    if (!this.#isMoved) {
      await rotate(this.#place, this.#limits.keepFiles, async (first, removed) => {
        // A break must not be forgotten with the file that it is in: what is missing then stays missing.
        if (!(await leadTo(first, removed, this.#head.first))) return
        this.#head = { ...this.#head, first: { seq: first.seq, prev: first.prev } }
        await writeHead(this.#place, this.#head)
      })
      this.#isMoved = true
    }
    await this.#reopen()
  }

  async #reopen(): Promise<void> {
    const before = this.#handle
    const opened = await openCurrent(this.#place)
    this.#isMoved = false
    this.#handle = opened.handle
    this.#size = opened.size
    await before.close()
  }
}

async function openCurrent(place: ChainPlace): Promise<{ handle: FileHandle; size: number }> {
  const file = currentFile(place)
  // Not in append mode: what a failed try left is overwritten at its place.
  const handle = await fs.open(file, constants.O_RDWR | constants.O_CREAT, 0o600)
  try {
    await syncDir(place.dir)
    return { handle, size: (await handle.stat()).size }
  } catch (error) {
    await handle.close()
    throw error
  }
}

async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  let done = 0
  while (done < bytes.byteLength) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.byteLength - done, position + done)
    done += bytesWritten
  }
}

type Resumed = { readonly head: Omit<StoredHead, 'chains'>; readonly notes: readonly string[] }

/**
 * The state from which writing resumes, read from the newest lines and the stored head. The head wins where its line is
 * missing, so that new lines do not fit to the remaining ones. Whole lines after the head belong to a writer that ended
 * before it wrote the head.
 */
async function resume(place: ChainPlace, isLost: boolean): Promise<Resumed> {
  const stored = !isLost && (await isGone(place)) ? FRESH_HEAD : await readHead(place)
  const { last, named, isDamaged } = await chainEnd(place, stored?.seq ?? Number.POSITIVE_INFINITY)
  if (stored === null || stored.hash === UNPROVEN) return await unproven(place, last)
  const { seq, hash, first } = stored
  if (isDamaged) return { head: stored, notes: ['the last line was damaged'] }
  if (seq === 0 || named?.hash === hash)
    return { head: { seq: last?.seq ?? seq, hash: last?.hash ?? hash, first }, notes: [] }
  const missing = (named?.seq ?? first.seq - 1) + 1
  return {
    head: stored,
    notes: [missing > seq ? `the line ${seq} was changed` : `the lines ${missing} to ${seq} were missing`]
  }
}

/**
 * Without a head the number of lines is unknown. The chain resumes after a line that no one can show, and stays broken.
 */
async function unproven(place: ChainPlace, last: AuditLine | null): Promise<Resumed> {
  const { seq, prev } = (await oldestLine(place)) ?? { seq: 1, prev: GENESIS }
  const head = { seq: (last?.seq ?? 0) + 1, hash: UNPROVEN, first: { seq, prev } }
  const behind = `the file ${place.name}.head was gone or unreadable: lines behind line ${last?.seq ?? 0} may be missing`
  return { head, notes: [last === null ? 'every line so far was missing' : behind] }
}
