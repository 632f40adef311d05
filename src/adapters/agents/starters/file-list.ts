import type { Stats } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { shown } from '../../../kit/text.js'
import { type GrantedPaths, PARTIAL_DIR } from '../files/granted-paths.js'
import { inDirectory } from '../files/open-place.js'
import { MAX_ENTRIES } from './files-limits.js'

/** Names of one directory that are examined. */
const MAX_NAMES = 20_000

/** Type, bytes and time of the last change of a file. */
export interface FileFacts {
  readonly type: 'file' | 'directory' | 'other'
  readonly size: number
  /** ISO time. */
  readonly modifiedAt: string
}

/** A directory and its entries by name. */
interface Listing {
  /** Empty for the granted directories. */
  readonly path: string
  readonly entries: readonly (FileFacts & { readonly name: string })[]
  readonly truncated: boolean
}

/** The facts of a file. */
export function factsOf(stat: Stats): FileFacts {
  const type = stat.isFile() ? 'file' : stat.isDirectory() ? 'directory' : 'other'
  return { type, size: stat.size, modifiedAt: stat.mtime.toISOString() }
}

/**
 * Lists a directory, or without a path the granted directories. Names with control characters are left out.
 * @throws NodeError FORBIDDEN
 */
export async function listDirectory(paths: GrantedPaths, wanted: string | null): Promise<Listing> {
  if (wanted === null)
    return { path: '', ...(await entriesOf('', { names: await paths.directories(), isWhole: true })) }
  const dir = await paths.resolve(wanted, 'directory')
  return { path: dir, ...(await inDirectory(dir, async (base) => await entriesOf(base, await namesIn(base)))) }
}

async function entriesOf(dir: string, { names, isWhole }: ListedNames): Promise<Omit<Listing, 'path'>> {
  const entries: (FileFacts & { name: string })[] = []
  for (const name of names.slice(0, MAX_ENTRIES)) {
    const stat = await fs.lstat(path.resolve(dir, name)).catch(() => null)
    if (stat !== null) entries.push({ name, ...factsOf(stat) })
  }
  return { entries, truncated: !isWhole || names.length > MAX_ENTRIES }
}

interface ListedNames {
  readonly names: readonly string[]
  /** Were all names of the directory examined? */
  readonly isWhole: boolean
}

/** Names of a directory, in order. */
async function namesIn(dir: string): Promise<ListedNames> {
  const names: string[] = []
  let seen = 0
  for await (const { name } of await fs.opendir(dir)) {
    if (++seen > MAX_NAMES) break
    if (name !== PARTIAL_DIR && shown(name, Number.POSITIVE_INFINITY) === name) names.push(name)
  }
  return { names: names.sort(), isWhole: seen <= MAX_NAMES }
}
