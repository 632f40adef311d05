import fs from 'node:fs/promises'
import path from 'node:path'
import { isRecord } from '../../kit/json.js'
import { readIfThere, replaceFile, syncDir } from './atomic-file.js'
import { parseLine } from './audit-line.js'
import type { AuditLine, ChainHead } from './audit-line.js'
import { codeOf } from './store-errors.js'

/** The file that grows. Older ones are `audit.1.ndjson` (the newest of them), `audit.2.ndjson`, ... */
export const CURRENT = 'audit.ndjson'
const HEAD = 'audit.head'
const NEWLINE = 0x0a

/** What `audit.head` keeps beside the chain itself, so that lines missing at either end are found. */
export interface StoredHead extends ChainHead {
  /** Number and `prev` of the oldest line that must still be there. */
  readonly first: { readonly seq: number; readonly prev: string }
}

/** The stored head; null when there is none or it cannot be read. */
export async function readHead(dir: string): Promise<StoredHead | null> {
  const text = await readIfThere(path.join(dir, HEAD))
  try {
    const value: unknown = JSON.parse(text ?? '')
    return isHead(value) ? value : null
  } catch {
    return null
  }
}

function isHead(value: unknown): value is StoredHead {
  if (!isRecord(value) || !isRecord(value['first'])) return false
  const { seq, hash, first } = value
  return Number.isSafeInteger(seq) && typeof hash === 'string' && Number.isSafeInteger(first['seq']) && typeof first['prev'] === 'string'
}

/** Replaces the stored head. */
export async function writeHead(dir: string, { seq, hash, first }: StoredHead): Promise<void> {
  await replaceFile(path.join(dir, HEAD), `${JSON.stringify({ seq, hash, first })}\n`)
}

/** Paths of the files that are there, oldest first. Empty when the directory does not exist. */
export async function segmentFiles(dir: string): Promise<string[]> {
  const names = await fs.readdir(dir).catch((error: unknown) => (codeOf(error) === 'ENOENT' ? [] : Promise.reject(error)))
  return names
    .map((name) => ({ name, age: ageOf(name) }))
    .filter(({ age }) => age >= 0)
    .sort((a, b) => b.age - a.age)
    .map(({ name }) => path.join(dir, name))
}

/** A text that differs when any file, or the head, was written, moved or removed meanwhile. */
export async function segmentMark(dir: string): Promise<string> {
  const marks = [...(await segmentFiles(dir)), path.join(dir, HEAD)].map(async (file) => {
    const { ino, size, mtimeMs } = await fs.stat(file).catch(() => ({ ino: 0, size: 0, mtimeMs: 0 }))
    return `${path.basename(file)} ${ino} ${size} ${mtimeMs}`
  })
  return (await Promise.all(marks)).join('\n')
}

function ageOf(name: string): number {
  if (name === CURRENT) return 0
  const match = /^audit\.(\d{1,6})\.ndjson$/.exec(name)
  return match === null ? -1 : Number(match[1])
}

/**
 * Puts the current file behind the others and removes the oldest when there are more than `keep` files in all.
 * `beforeRemoval` gets the first line that stays, before anything is removed: a crash in between loses nothing.
 */
export async function rotate(dir: string, keep: number, beforeRemoval: (first: AuditLine) => Promise<void>): Promise<void> {
  const files = await segmentFiles(dir)
  const kept = files.slice(Math.max(0, files.length - (keep - 1)))
  const removed = files.slice(0, files.length - kept.length)
  const first = kept[0] === undefined || removed.length === 0 ? null : await firstLine(kept[0])
  if (first !== null) await beforeRemoval(first)
  for (const file of removed) await fs.rm(file)
  // The oldest moves first, so that no name is taken twice.
  for (const [index, file] of kept.entries()) await fs.rename(file, path.join(dir, `audit.${kept.length - index}.ndjson`))
  await syncDir(dir)
}

async function firstLine(file: string): Promise<AuditLine | null> {
  const text = await fs.readFile(file, 'utf8')
  return parseLine(text.slice(0, text.indexOf('\n')))
}

/** The lines of a file and what stands behind its last newline ('' when it ends well). */
export async function linesOf(file: string): Promise<{ readonly lines: string[]; readonly rest: string }> {
  const lines = ((await readIfThere(file)) ?? '').split('\n')
  return { rest: lines.pop() ?? '', lines }
}

/** Removes a line that a crash cut in the middle, at the end of a file. Returns how many bytes it had. */
export async function cutUnfinishedLine(file: string): Promise<number> {
  const bytes = await fs.readFile(file).catch((error: unknown) => (codeOf(error) === 'ENOENT' ? null : Promise.reject(error)))
  if (bytes === null) return 0
  const end = bytes.lastIndexOf(NEWLINE) + 1
  if (end < bytes.byteLength) await fs.truncate(file, end)
  return bytes.byteLength - end
}

/** The last line of all files: null when there is none, 'damaged' when it cannot be trusted. */
export async function lastLine(dir: string): Promise<AuditLine | 'damaged' | null> {
  for (const file of (await segmentFiles(dir)).reverse()) {
    const { lines } = await linesOf(file)
    const text = lines.at(-1)
    if (text !== undefined) return parseLine(text) ?? 'damaged'
  }
  return null
}
