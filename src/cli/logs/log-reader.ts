import fs from 'node:fs/promises'
import type { Stats } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { StringDecoder } from 'node:string_decoder'

/** The most bytes read of one file, its last ones: a log of another rotation may be longer. */
const MAX_BYTES = 32 * 1024 * 1024
/** Bytes that are read at once while a log is followed. */
const CHUNK_BYTES = 1024 * 1024
/** How often a followed log is looked at, in milliseconds. */
const LOOK_MS = 200

/** The text of a file of a log. */
export interface LogText {
  readonly text: string
  /** When it was last written, unix milliseconds. */
  readonly endMs: number
  /** The place in the file after the text. */
  readonly end: TailPlace
}

/** A place in a file: a following read goes on there. */
export interface TailPlace {
  readonly inode: number
  readonly offset: number
}

/** The last bytes of a file of a log, from a line's beginning on; null for none. @throws the system's error */
export async function readLogFile(file: string): Promise<LogText | null> {
  const handle = await openLog(file)
  if (handle === null) return null
  try {
    const stats = await handle.stat()
    const start = Math.max(0, stats.size - MAX_BYTES)
    const bytes = Buffer.alloc(stats.size - start)
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, start)
    const text = bytes.subarray(0, bytesRead).toString('utf8')
    return {
      text: start === 0 ? text : text.slice(text.indexOf('\n') + 1),
      endMs: stats.mtimeMs,
      end: placeOf(stats, start + bytesRead)
    }
  } finally {
    await handle.close()
  }
}

/**
 * Follows a log from a place on: whole lines, each once. A file that was emptied, or took the place of the former one,
 * is read from its beginning. Ends with the signal.
 */
export async function* followLog(file: string, from: TailPlace | null, signal: AbortSignal): AsyncGenerator<string> {
  let place = from
  let rest = ''
  let decoder = new StringDecoder('utf8')
  while (!signal.aborted) {
    const { bytes, isNew, end } = await readFrom(file, place)
    if (isNew) [rest, decoder] = ['', new StringDecoder('utf8')]
    place = end ?? place
    const lines = (rest + decoder.write(bytes)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line !== '') yield line
    if (bytes.length === 0) await delay(LOOK_MS, null, { signal }).catch(() => {})
  }
}

interface TailPiece {
  readonly bytes: Buffer
  /** The file is another one than that of the place, or was emptied. */
  readonly isNew: boolean
  /** null where there is no file now. */
  readonly end: TailPlace | null
}

async function readFrom(file: string, place: TailPlace | null): Promise<TailPiece> {
  const handle = await openLog(file)
  if (handle === null) return { bytes: Buffer.alloc(0), isNew: false, end: null }
  try {
    const stats = await handle.stat()
    const isNew = place === null || place.inode !== stats.ino || stats.size < place.offset
    const offset = isNew ? 0 : place.offset
    const bytes = Buffer.alloc(Math.min(CHUNK_BYTES, stats.size - offset))
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, offset)
    return { bytes: bytes.subarray(0, bytesRead), isNew, end: placeOf(stats, offset + bytesRead) }
  } finally {
    await handle.close()
  }
}

function placeOf({ ino }: Stats, offset: number): TailPlace {
  return { inode: ino, offset }
}

async function openLog(file: string): Promise<fs.FileHandle | null> {
  return await fs.open(file, 'r').catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  })
}
