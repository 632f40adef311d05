import { constants } from 'node:fs'
import fs from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { syncDir } from './atomic-file.js'
import { GENESIS, lineText, nextLine } from './audit-line.js'
import type { AuditEntry, ChainHead } from './audit-line.js'
import { currentFile, cutUnfinishedLine, lastLine, readHead, rotate, writeHead } from './audit-segments.js'
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
  /** All chains of the log. */
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
  #head: StoredHead

  private constructor(place: ChainPlace, limits: AuditLimits, opened: { handle: FileHandle; size: number; head: StoredHead }) {
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
    const { head, notes } = opening.isLost ? LOST : await resume(place)
    const next = { ...head, chains: opening.chains }
    const opened = await openCurrent(place)
    await writeHead(place, next)
    const cuts = cut > 0 ? [`an unfinished line of ${cut} bytes was removed`] : []
    return { writer: new AuditWriter(place, opening, { ...opened, head: next }), notes: [...cuts, ...notes] }
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
    const next = { ...this.#head, seq: head.seq, hash: head.hash }
    await writeHead(this.#place, next)
    this.#size += bytes.byteLength
    this.#head = next
  }

  /** Closes the file. */
  async close(): Promise<void> {
    await this.#handle.close()
  }

  async #rotate(): Promise<void> {
    await rotate(this.#place, this.#limits.keepFiles, async (first) => {
      this.#head = { ...this.#head, first: { seq: first.seq, prev: first.prev } }
      await writeHead(this.#place, this.#head)
    })
    const before = this.#handle
    const opened = await openCurrent(this.#place)
    this.#handle = opened.handle
    this.#size = opened.size
    await before.close()
  }
}

async function openCurrent(place: ChainPlace): Promise<{ handle: FileHandle; size: number }> {
  const file = currentFile(place)
  // Not in append mode: what a failed try left is overwritten at its place.
  const handle = await fs.open(file, constants.O_RDWR | constants.O_CREAT, 0o600)
  await syncDir(place.dir)
  return { handle, size: (await handle.stat()).size }
}

async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  let done = 0
  while (done < bytes.byteLength) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.byteLength - done, position + done)
    done += bytesWritten
  }
}

type Resumed = { readonly head: Omit<StoredHead, 'chains'>; readonly notes: readonly string[] }

/** A chain that was taken away goes on behind a line that nobody can show: the check finds it missing for ever. */
const LOST: Resumed = {
  head: { seq: 1, hash: 'f'.repeat(64), first: { seq: 1, prev: GENESIS } },
  notes: ['every line so far was missing']
}

/** Where to go on, from the last line and the stored head; the stored head wins where lines are missing. */
async function resume(place: ChainPlace): Promise<Resumed> {
  const stored = await readHead(place)
  const last = await lastLine(place)
  const first = stored?.first ?? { seq: 1, prev: GENESIS }
  const known: ChainHead = stored === null ? { seq: 0, hash: GENESIS } : { seq: stored.seq, hash: stored.hash }
  if (last === 'damaged') return { head: { ...known, first }, notes: ['the last line was damaged'] }
  if (last === null || last.seq < known.seq) {
    const missing = (last?.seq ?? first.seq - 1) + 1
    const notes = missing <= known.seq ? [`the lines ${missing} to ${known.seq} were missing`] : []
    return { head: { ...known, first }, notes }
  }
  return { head: { seq: last.seq, hash: last.hash, first }, notes: stored === null ? [`the file ${place.name}.head was missing`] : [] }
}
