import type { Stats } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { shown } from '../../../kit/text.js'
import { type GrantedPaths, PARTIAL_DIR } from '../files/granted-paths.js'
import { MAX_ENTRIES } from './files-limits.js'

/** ListedNames of one directory that are looked at. */
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
 * Lists a directory, or without a path the granted directories. ListedNames with control characters are left out.
 * @throws NodeError FORBIDDEN
 */
export async function listDirectory(paths: GrantedPaths, wanted: string | null): Promise<Listing> {
  if (wanted === null) return await listing('', { names: await paths.directories(), isWhole: true })
  const dir = await paths.resolve(wanted, 'directory')
  return await listing(dir, await namesIn(dir))
}

async function listing(dir: string, { names, isWhole }: ListedNames): Promise<Listing> {
  const entries: (FileFacts & { name: string })[] = []
  for (const name of names.slice(0, MAX_ENTRIES)) {
    const stat = await fs.lstat(path.resolve(dir, name)).catch(() => null)
    if (stat !== null) entries.push({ name, ...factsOf(stat) })
  }
  return { path: dir, entries, truncated: !isWhole || names.length > MAX_ENTRIES }
}

interface ListedNames {
  readonly names: readonly string[]
  /** Were all names of the directory looked at? */
  readonly isWhole: boolean
}

/** ListedNames of a directory in order. A file has its own name. */
async function namesIn(dir: string): Promise<ListedNames> {
  const names: string[] = []
  let seen = 0
  for await (const { name } of await fs.opendir(dir)) {
    if (++seen > MAX_NAMES) break
    if (name !== PARTIAL_DIR && shown(name, Number.POSITIVE_INFINITY) === name) names.push(name)
  }
  return { names: names.sort(), isWhole: seen <= MAX_NAMES }
}
