import { crc32 } from 'node:zlib'
import c from 'compact-encoding'
import type { LedgerChange } from '../../../ports/ledger.js'

/** One commit as the journal holds it. */
export interface JournalCommit {
  /** Counts from 1, without gaps. */
  readonly number: number
  /** Every commit up to this one had been promised when this one was written. */
  readonly promised: number
  readonly changes: readonly LedgerChange[]
}

/** A change as it stands in a record. */
export type RecordedChange = LedgerChange & { readonly value: Uint8Array | null }

/** A commit as it stands in a record. */
export interface RecordedCommit extends JournalCommit {
  readonly changes: readonly RecordedChange[]
}

/** The mark of the records of one journal, and the seed of their checksums: 32 bits each. */
export interface JournalSeal {
  readonly mark: number
  readonly seed: number
}

/** For records without a random seal: another checksum covers every byte of them. */
export const NO_SEAL: JournalSeal = { mark: 0x4c_32_41_6a, seed: 0 }
/** Mark, length and checksum of the body, four bytes each. */
const HEAD = 12

/**
 * A commit as a record (mark, length, checksum, body), and the commit with its values as views of that record. No one
 * may change those.
 */
export function encodeCommit(
  { number, promised, changes }: JournalCommit,
  { mark, seed }: JournalSeal
): {
  readonly record: Uint8Array
  readonly commit: RecordedCommit
} {
  const lengths = changes.map(({ value }) => lengthOf(value))
  const end = HEAD + bodyLength({ number, promised, changes }, lengths)
  const record = Buffer.allocUnsafe(end)
  const body = { start: HEAD, end, buffer: record }
  c.uint.encode(body, number)
  c.uint.encode(body, promised)
  c.uint.encode(body, changes.length)
  const recorded: RecordedChange[] = []
  for (let at = 0; at < changes.length; at++) {
    const change = changes[at]
    if (change !== undefined) recorded.push(encodeChange(body, change, lengths[at] ?? 0))
  }
  record.writeUInt32LE(mark, 0)
  record.writeUInt32LE(end - HEAD, 4)
  record.writeUInt32LE(crc32(record.subarray(HEAD), seed), 8)
  return { record, commit: { number, promised, changes: recorded } }
}

/** `lengths`: of the values. */
function bodyLength({ number, promised, changes }: JournalCommit, lengths: readonly number[]): number {
  const state = c.state()
  c.uint.preencode(state, number)
  c.uint.preencode(state, promised)
  c.uint.preencode(state, changes.length)
  for (let at = 0; at < changes.length; at++) {
    const { key = '', value = null } = changes[at] ?? {}
    // Keys are ASCII: as many bytes as characters.
    c.uint.preencode(state, key.length)
    state.end += key.length
    c.bool.preencode(state, value !== null)
    const length = lengths[at] ?? 0
    if (value !== null) c.uint.preencode(state, length)
    state.end += length
  }
  return state.end
}

function encodeChange(
  body: { start: number; end: number; readonly buffer: Buffer },
  { key, value, isNew = false }: LedgerChange,
  length: number
): RecordedChange {
  const { buffer } = body
  c.uint.encode(body, key.length)
  body.start += buffer.write(key, body.start, key.length, 'latin1')
  c.bool.encode(body, value !== null)
  if (value === null) return { key, value, isNew }
  c.uint.encode(body, length)
  const { start } = body
  body.start += length
  // Written in place, without a copy: most values are text.
  if (typeof value === 'string') buffer.write(value, start, length, 'utf8')
  else buffer.set(value, start)
  return { key, value: buffer.subarray(start, start + length), isNew }
}

function lengthOf(value: LedgerChange['value']): number {
  return value === null ? 0 : typeof value === 'string' ? Buffer.byteLength(value) : value.byteLength
}

/**
 * Every whole record of a journal file in order, whatever happened to the file. A record inside the bytes of a cut one
 * has another seal, unless its author knew this seal. Never throws.
 */
export function readJournal(bytes: Buffer, seal: JournalSeal): RecordedCommit[] {
  const mark = Buffer.alloc(4)
  mark.writeUInt32LE(seal.mark)
  const commits: RecordedCommit[] = []
  for (let at = bytes.indexOf(mark); at !== -1; at = bytes.indexOf(mark, at)) {
    const record = recordAt(bytes, at, seal)
    if (record !== null) commits.push(record.commit)
    at = record?.end ?? at + 1
  }
  return commits
}

function recordAt(
  bytes: Buffer,
  at: number,
  { mark, seed }: JournalSeal
): { readonly commit: RecordedCommit; readonly end: number } | null {
  if (at + HEAD > bytes.byteLength || bytes.readUInt32LE(at) !== mark) return null
  const end = at + HEAD + bytes.readUInt32LE(at + 4)
  if (end > bytes.byteLength || crc32(bytes.subarray(at + HEAD, end), seed) !== bytes.readUInt32LE(at + 8)) return null
  try {
    return { commit: decodeBody(c.state(at + HEAD, end, bytes)), end }
  } catch {
    // A checksum that fits by chance.
    return null
  }
}

function decodeBody(state: ReturnType<typeof c.state>): RecordedCommit {
  const number = c.uint.decode(state)
  const promised = c.uint.decode(state)
  const changes: RecordedChange[] = []
  for (let left = c.uint.decode(state); left > 0; left--) {
    const key = c.string.decode(state)
    // An empty value is decoded as none.
    const value = c.bool.decode(state) ? (c.buffer.decode(state) ?? new Uint8Array(0)) : null
    changes.push({ key, value })
  }
  return { number, promised, changes }
}
