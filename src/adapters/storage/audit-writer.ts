import { constants } from 'node:fs'
import fs from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { syncDir } from './atomic-file.js'
import { GENESIS, lineText, nextLine } from './audit-line.js'
import type { AuditEntry, ChainHead } from './audit-line.js'
import { CURRENT, cutUnfinishedLine, lastLine, readHead, rotate, writeHead } from './audit-segments.js'
import type { StoredHead } from './audit-segments.js'

/** Bounds of the files. */
export interface AuditLimits {
  /** Bytes after which a new file is begun. */
  readonly maxBytes: number
  /** Files kept, the growing one included; at least 2. */
  readonly keepFiles: number
}

/** Appends entries to the chain on disk. One writer a directory, one call at a time. */
export class AuditWriter {
  readonly #dir: string
  readonly #limits: AuditLimits
  #handle: FileHandle
  #size: number
  #head: StoredHead

  private constructor(dir: string, limits: AuditLimits, opened: { handle: FileHandle; size: number; head: StoredHead }) {
    this.#dir = dir
    this.#limits = limits
    this.#handle = opened.handle
    this.#size = opened.size
    this.#head = opened.head
  }

  /** Opens the chain where it ended. `notes` says what was wrong with it, to be put on record in it. */
  static async open(dir: string, limits: AuditLimits): Promise<{ writer: AuditWriter; notes: string[] }> {
    await fs.mkdir(dir, { recursive: true, mode: 0o700 })
    const cut = await cutUnfinishedLine(path.join(dir, CURRENT))
    const { head, notes } = await resume(dir)
    if (cut > 0) notes.unshift(`an unfinished line of ${cut} bytes was removed`)
    const opened = await openCurrent(dir)
    await writeHead(dir, head)
    return { writer: new AuditWriter(dir, limits, { ...opened, head }), notes }
  }

  /** Writes the entries as the next lines, on disk when it resolves. When it rejects, none of them is in the chain. */
  async append(entries: readonly AuditEntry[]): Promise<void> {
    if (this.#size >= this.#limits.maxBytes) await this.#rotate()
    let head: ChainHead = this.#head
    const texts = entries.map((entry) => {
      const line = nextLine(entry, head)
      head = line
      return `${lineText(line)}\n`
    })
    const bytes = Buffer.from(texts.join(''))
    // What a failed try left behind the last good line goes first.
    await this.#handle.truncate(this.#size)
    await writeAll(this.#handle, bytes, this.#size)
    await this.#handle.datasync()
    const next = { seq: head.seq, hash: head.hash, first: this.#head.first }
    await writeHead(this.#dir, next)
    this.#size += bytes.byteLength
    this.#head = next
  }

  /** Closes the file. */
  async close(): Promise<void> {
    await this.#handle.close()
  }

  async #rotate(): Promise<void> {
    await rotate(this.#dir, this.#limits.keepFiles, async (first) => {
      this.#head = { ...this.#head, first: { seq: first.seq, prev: first.prev } }
      await writeHead(this.#dir, this.#head)
    })
    const before = this.#handle
    const opened = await openCurrent(this.#dir)
    this.#handle = opened.handle
    this.#size = opened.size
    await before.close()
  }
}

async function openCurrent(dir: string): Promise<{ handle: FileHandle; size: number }> {
  const file = path.join(dir, CURRENT)
  // Not in append mode: what a failed try left is overwritten at its place.
  const handle = await fs.open(file, constants.O_RDWR | constants.O_CREAT, 0o600)
  await syncDir(dir)
  return { handle, size: (await handle.stat()).size }
}

async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  let done = 0
  while (done < bytes.byteLength) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.byteLength - done, position + done)
    done += bytesWritten
  }
}

/** Where to go on, from the last line and the stored head; the stored head wins where lines are missing. */
async function resume(dir: string): Promise<{ head: StoredHead; notes: string[] }> {
  const stored = await readHead(dir)
  const last = await lastLine(dir)
  const first = stored?.first ?? { seq: 1, prev: GENESIS }
  const known: ChainHead = stored ?? { seq: 0, hash: GENESIS }
  if (last === 'damaged') return { head: { ...known, first }, notes: ['the last line was damaged'] }
  if (last === null || last.seq < known.seq) {
    const missing = (last?.seq ?? first.seq - 1) + 1
    const notes = missing <= known.seq ? [`the lines ${missing} to ${known.seq} were missing`] : []
    return { head: { ...known, first }, notes }
  }
  return { head: { seq: last.seq, hash: last.hash, first }, notes: stored === null ? ['the file audit.head was missing'] : [] }
}
