import fs from 'node:fs/promises'
import path from 'node:path'
import { shown } from '../../../kit/text.js'
import { matchesGlob } from '../../../kit/glob.js'
import { type GrantedPaths, PARTIAL_DIR } from './granted-paths.js'
import { inDirectory } from './open-place.js'

/** Bounds of one search: files looked at, bytes read in all and of one file, depth of directories. */
const MAX_FILES = 20_000
const MAX_TOTAL_BYTES = 64 * 1024 * 1024
const MAX_FILE_BYTES = 1024 * 1024
const MAX_DEPTH = 32
const SKIPPED: ReadonlySet<string> = new Set(['.git', 'node_modules', PARTIAL_DIR])

/** A search by pattern, text or both. */
export interface FileSearch {
  readonly pattern: string | null
  readonly text: string | null
  readonly limit: number
  readonly signal: AbortSignal
}

/** A file, or a line of one. */
export interface FileHit {
  readonly path: string
  /** 1-based. */
  readonly line?: number
  /** The line, cut at 256 characters. */
  readonly text?: string
}

/** Searches the granted directories, in order of names. Symbolic links are not followed. */
export async function searchFiles(
  paths: GrantedPaths,
  search: FileSearch
): Promise<{ hits: readonly FileHit[]; truncated: boolean }> {
  const hits: FileHit[] = []
  const isComplete = await collect(paths, search, hits)
  return { hits: hits.slice(0, search.limit), truncated: !isComplete || hits.length > search.limit }
}

/** Collects up to one hit more than the limit. False when a bound ended the search. */
async function collect(
  paths: GrantedPaths,
  { pattern, text, limit, signal }: FileSearch,
  hits: FileHit[]
): Promise<boolean> {
  const budget = { files: MAX_FILES, bytes: MAX_TOTAL_BYTES }
  for (const root of await paths.directories()) {
    for await (const file of walk(root, signal)) {
      if (--budget.files < 0 || budget.bytes <= 0 || hits.length > limit) return false
      if (pattern !== null && !matchesGlob(pattern, path.relative(root, file).split(path.sep).join('/'))) continue
      if (text === null) hits.push({ path: file })
      else budget.bytes -= await searchLines(paths, file, { text, limit, hits })
    }
  }
  return true
}

async function* walk(root: string, signal: AbortSignal): AsyncGenerator<string> {
  const stack = [{ dir: root, depth: 0 }]
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    const { dir, depth } = top
    const entries = await inDirectory(dir, (base) => fs.readdir(base, { withFileTypes: true })).catch(() => [])
    entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    for (const entry of entries) {
      signal.throwIfAborted()
      if (entry.isFile()) yield path.join(dir, entry.name)
    }
    const below = entries.filter((entry) => entry.isDirectory() && !SKIPPED.has(entry.name) && depth < MAX_DEPTH)
    for (const entry of below.reverse()) stack.push({ dir: path.join(dir, entry.name), depth: depth + 1 })
  }
}

/** Adds the lines that hold the text; returns the bytes read. Files that are large or hold NUL bytes are left out. */
async function searchLines(
  paths: GrantedPaths,
  file: string,
  { text, limit, hits }: { text: string; limit: number; hits: FileHit[] }
): Promise<number> {
  const opened = await paths.open(file).catch(() => null)
  if (opened === null) return 0
  try {
    if (opened.size > MAX_FILE_BYTES) return 0
    const content = (await opened.file.readFile()).toString('utf8')
    if (!content.includes(text) || content.includes('\0')) return opened.size
    content.split('\n').forEach((line, i) => {
      if (hits.length <= limit && line.includes(text)) hits.push({ path: file, line: i + 1, text: shown(line) })
    })
    return opened.size
  } finally {
    await opened.file.close()
  }
}
