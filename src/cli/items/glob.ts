import { readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../../kit/errors.js'
import { nameGlob } from '../../kit/glob.js'

/** Most entries of directories that one glob looks at. */
const LOOKED_AT_MAX = 200_000
/** Not entered unless the pattern names them. */
const SKIPPED = new Set(['node_modules', '.git'])
const MAGIC = /[*?{}[\]]/

/** Has the text a character that makes it a pattern? */
export function isGlob(text: string): boolean {
  return MAGIC.test(text)
}

/**
 * Files that match a pattern of `*` and `?` (within one name), `**` (any directories), `{a,b}` and `[abc]`. Paths are
 * relative to `cwd` if the pattern is, and sorted. A name with a leading dot needs a pattern part with one. Links to
 * files count as files; links to directories are not followed. Only regular files are given.
 * @throws NodeError USAGE beyond 200,000 visited entries, or for too many braces
 */
export async function globFiles(pattern: string, cwd: string): Promise<string[]> {
  const found = new Set<string>()
  const budget = { left: LOOKED_AT_MAX }
  for (const one of expandBraces(pattern)) {
    const root = one.startsWith('/') ? '/' : ''
    const parts = one.split('/').filter((part) => part !== '' && part !== '.')
    await walk({ cwd, found, budget }, root, parts)
  }
  return [...found].sort()
}

interface GlobWalk {
  readonly cwd: string
  readonly found: Set<string>
  readonly budget: { left: number }
}

async function walk(state: GlobWalk, dir: string, parts: readonly string[]): Promise<void> {
  const [part, ...rest] = parts
  if (part === undefined) return
  if (part === '..') return await walk(state, `${dir}../`, rest)
  if (part === '**') return await walkDeep(state, dir, rest)
  const matches = nameGlob(part)
  for (const entry of await entries(state, dir)) {
    if (!matches(entry.name) || (entry.name.startsWith('.') && !part.startsWith('.'))) continue
    const at = dir + entry.name
    if (rest.length === 0) {
      if (entry.isFile() || (entry.isSymbolicLink() && (await isFile(path.resolve(state.cwd, at))))) state.found.add(at)
    } else if (entry.isDirectory() && (!SKIPPED.has(entry.name) || part === entry.name))
      await walk(state, `${at}/`, rest)
  }
}

/** `**`: the rest may match here and in every directory below. */
async function walkDeep(state: GlobWalk, dir: string, rest: readonly string[]): Promise<void> {
  await walk(state, dir, rest.length === 0 ? ['*'] : rest)
  for (const entry of await entries(state, dir)) {
    if (entry.isDirectory() && !entry.name.startsWith('.') && !SKIPPED.has(entry.name))
      await walkDeep(state, `${dir}${entry.name}/`, rest)
  }
}

/** Of a link: what it leads to. */
async function isFile(file: string): Promise<boolean> {
  return await stat(file).then(
    (stats) => stats.isFile(),
    () => false
  )
}

async function entries(state: GlobWalk, dir: string): ReturnType<typeof readEntries> {
  const list = await readEntries(path.resolve(state.cwd, dir === '' ? '.' : dir))
  state.budget.left -= list.length
  if (state.budget.left < 0)
    throw new NodeError('USAGE', `the glob looks at more than ${LOOKED_AT_MAX} files; begin it with a directory`)
  return list
}

async function readEntries(dir: string) {
  try {
    return await readdir(dir, { withFileTypes: true })
  } catch {
    // Not there, or not ours to read: nothing in it matches.
    return []
  }
}

/** `{a,b}` multiplied out; unbalanced braces stay as they are. */
function expandBraces(pattern: string): string[] {
  const done: string[] = []
  const queue = [pattern]
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const match = /\{([^{}]*,[^{}]*)\}/.exec(next)
    if (match === null) done.push(next)
    else {
      const [whole, inner = ''] = match
      for (const choice of inner.split(','))
        queue.push(next.slice(0, match.index) + choice + next.slice(match.index + whole.length))
    }
    if (done.length + queue.length > 1000) throw new NodeError('USAGE', 'the glob has too many alternatives in braces')
  }
  return done
}
