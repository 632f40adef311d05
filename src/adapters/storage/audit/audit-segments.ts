import fs from 'node:fs/promises'
import path from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { NodeError } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import { shellWord } from '../../../kit/text.js'
import { readIfThere, replaceFile, syncDir } from '../home/atomic-file.js'
import { GENESIS, parseLine } from './audit-line.js'
import type { AuditLine, ChainHead } from './audit-line.js'
import { codeOf, storeError } from '../home/store-errors.js'

/** Where a chain lies: its directory and its name. */
export interface ChainPlace {
  readonly dir: string
  readonly name: string
}

/** The file that grows. Older ones are `<name>.1.ndjson` (the newest of them), `<name>.2.ndjson`, ... */
export function currentFile({ dir, name }: ChainPlace): string {
  return path.join(dir, `${name}.ndjson`)
}

const NEWLINE = 0x0a

/** The content of `<name>.head`. It is stored beside the chain to detect missing lines at either end. */
export interface StoredHead extends ChainHead {
  /** Number and `prev` of the oldest line that must still be there. */
  readonly first: { readonly seq: number; readonly prev: string }
  /** Names of the chains that belong together: one that is gone altogether is missed by the others. */
  readonly chains: readonly string[]
}

/** The head of a chain without lines. */
export const FRESH_HEAD: StoredHead = { seq: 0, hash: GENESIS, first: { seq: 1, prev: GENESIS }, chains: [] }

function headFile({ dir, name }: ChainPlace): string {
  return path.join(dir, `${name}.head`)
}

/** The stored head; null when there is none or it cannot be read. */
export async function readHead(place: ChainPlace): Promise<StoredHead | null> {
  const text = await readIfThere(headFile(place))
  try {
    const value: unknown = JSON.parse(text ?? '')
    return isHead(value) ? { ...value, chains: namesOf(value.chains) } : null
  } catch {
    return null
  }
}

function isHead(value: unknown): value is StoredHead {
  if (!isRecord(value) || !isRecord(value['first'])) return false
  const { seq, hash, first } = value
  return (
    Number.isSafeInteger(seq) &&
    typeof hash === 'string' &&
    Number.isSafeInteger(first['seq']) &&
    typeof first['prev'] === 'string'
  )
}

/** Chains of a head; none in one that an older version wrote. */
function namesOf(chains: unknown): string[] {
  return Array.isArray(chains) ? chains.filter((one) => typeof one === 'string') : []
}

/** Replaces the stored head. */
export async function writeHead(place: ChainPlace, { seq, hash, first, chains }: StoredHead): Promise<void> {
  await replaceFile(headFile(place), `${JSON.stringify({ seq, hash, first, chains })}\n`)
}

/** Is there neither a head nor a file of the chain? */
export async function isGone(place: ChainPlace): Promise<boolean> {
  return (await readIfThere(headFile(place))) === null && (await segmentFiles(place)).length === 0
}

/**
 * An error of opening or reading the files of a log in `dir` as a NodeError. Causes are a file in the place of a
 * directory, a directory in the place of a file, or the disk.
 */
export function auditError(error: unknown, dir: string): NodeError {
  const next = [`ls -la ${shellWord(dir)}`, 'a2a-node doctor']
  const code = codeOf(error)
  if (code === 'ENOTDIR')
    return new NodeError('STORE_DAMAGED', `${dir} is no directory: the audit log belongs there`, { cause: error, next })
  const message = `a directory in ${dir} has the name of a file of the audit log`
  return code === 'EISDIR' ? new NodeError('STORE_DAMAGED', message, { cause: error, next }) : storeError(error, dir)
}

/** Paths of the files that are there, oldest first. Empty when the directory does not exist. */
export async function segmentFiles({ dir, name: chain }: ChainPlace): Promise<string[]> {
  const names = await fs
    .readdir(dir)
    .catch((error: unknown) => (codeOf(error) === 'ENOENT' ? [] : Promise.reject(error)))
  return names
    .map((name) => ({ name, age: ageOf(name, chain) }))
    .filter(({ age }) => age >= 0)
    .sort((a, b) => b.age - a.age)
    .map(({ name }) => path.join(dir, name))
}

/** A text that differs when any file, or the head, was written, moved or removed meanwhile. */
export async function segmentMark(place: ChainPlace): Promise<string> {
  const marks = [...(await segmentFiles(place)), headFile(place)].map(async (file) => {
    const { ino, size, mtimeMs } = await fs.stat(file).catch(() => ({ ino: 0, size: 0, mtimeMs: 0 }))
    return `${path.basename(file)} ${ino} ${size} ${mtimeMs}`
  })
  return (await Promise.all(marks)).join('\n')
}

function ageOf(name: string, chain: string): number {
  if (name === `${chain}.ndjson`) return 0
  const match = /^\.(\d{1,6})\.ndjson$/.exec(name.startsWith(chain) ? name.slice(chain.length) : '')
  return match === null ? -1 : Number(match[1])
}

/**
 * Puts the current file behind the others and removes the oldest when there are more than `keep` files in all.
 * `beforeRemoval` gets the first line that stays and the files that go, before anything is removed: a crash in between
 * loses nothing.
 */
export async function rotate(
  place: ChainPlace,
  keep: number,
  beforeRemoval: (first: AuditLine, removed: readonly string[]) => Promise<void>
): Promise<void> {
  const files = await segmentFiles(place)
  const kept = files.slice(Math.max(0, files.length - (keep - 1)))
  const removed = files.slice(0, files.length - kept.length)
  const first = kept[0] === undefined || removed.length === 0 ? null : await firstLine(kept[0])
  if (first !== null) await beforeRemoval(first, removed)
  for (const file of removed) await fs.rm(file)
  // The oldest moves first, so that no name is taken twice.
  for (const [index, file] of kept.entries())
    await fs.rename(file, path.join(place.dir, `${place.name}.${kept.length - index}.ndjson`))
  await syncDir(place.dir)
}

async function firstLine(file: string): Promise<AuditLine | null> {
  const text = await fs.readFile(file, 'utf8')
  return parseLine(text.slice(0, text.indexOf('\n')))
}

/** The lines of a file, and the text behind its last newline ('' when it ends well). */
export async function linesOf(file: string): Promise<{ readonly lines: string[]; readonly rest: string }> {
  const lines = ((await readIfThere(file)) ?? '').split('\n')
  return { rest: lines.pop() ?? '', lines }
}

/**
 * Removes a line at the end of a file that a crash cut, and syncs the whole lines: a head may name them then. Returns
 * the number of removed bytes.
 */
export async function cutUnfinishedLine(file: string): Promise<number> {
  const handle = await fs
    .open(file, 'r+')
    .catch((error: unknown) => (codeOf(error) === 'ENOENT' ? null : Promise.reject(error)))
  if (handle === null) return 0
  try {
    const bytes = await handle.readFile()
    const end = bytes.lastIndexOf(NEWLINE) + 1
    if (end < bytes.byteLength) await handle.truncate(end)
    await handle.datasync()
    return bytes.byteLength - end
  } finally {
    await handle.close()
  }
}

/** Where the lines of a chain end. */
export interface ChainEnd {
  /** The newest that can be read. */
  readonly last: AuditLine | null
  /** The newest of those up to the number that was asked for. */
  readonly named: AuditLine | null
  /** Is there one behind `named` that cannot be read? */
  readonly isDamaged: boolean
}

/** The end of a chain, back to the line with that number. */
export async function chainEnd(place: ChainPlace, seq: number): Promise<ChainEnd> {
  let last: AuditLine | null = null
  let isDamaged = false
  for (const file of (await segmentFiles(place)).reverse()) {
    for (const text of (await linesOf(file)).lines.reverse()) {
      const line = parseLine(text)
      last ??= line
      if (line === null) isDamaged = true
      else if (line.seq <= seq) return { last, named: line, isDamaged }
    }
  }
  return { last, named: null, isDamaged }
}

/** The oldest line of all files; null when there is none or it cannot be read. */
export async function oldestLine(place: ChainPlace): Promise<AuditLine | null> {
  const [oldest] = await segmentFiles(place)
  return oldest === undefined ? null : await firstLine(oldest)
}

/** Lines that are checked in one go, before others have their turn. */
export const LINES_A_TURN = 250

/**
 * Do the lines of these files lead, without a break, from the first that must be there to `next`, the line behind them?
 */
export async function leadTo(next: AuditLine, files: readonly string[], first: StoredHead['first']): Promise<boolean> {
  let expected = first
  for (const file of files) {
    for (const [at, text] of (await linesOf(file)).lines.entries()) {
      if (at % LINES_A_TURN === 0) await setImmediate()
      const line = parseLine(text)
      if (line === null) return false
      // Left where a removal was interrupted.
      if (line.seq < first.seq) continue
      if (line.seq !== expected.seq || line.prev !== expected.prev) return false
      expected = { seq: line.seq + 1, prev: line.hash }
    }
  }
  return next.seq === expected.seq && next.prev === expected.prev
}

/** The newest references, at most `max`, from the two newest files. */
export async function recentRefs(place: ChainPlace, max: number): Promise<ReadonlySet<string>> {
  const refs: string[] = []
  for (const file of (await segmentFiles(place)).slice(-2)) {
    const { lines } = await linesOf(file)
    for (const line of lines) {
      const ref = line.includes('"ref":') ? parseLine(line)?.ref : undefined
      if (ref !== undefined) refs.push(ref)
    }
  }
  return new Set(refs.slice(-max))
}
