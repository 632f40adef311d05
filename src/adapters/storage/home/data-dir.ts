import { constants } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { makeDirectories } from '../../../kit/directories.js'
import { NodeError } from '../../../kit/errors.js'
import { codeOf, noPermission, storeError } from './store-errors.js'

/** The directories of one node. */
export interface DataDirs {
  readonly home: string
  /** Further ones to make, as a rule below home. */
  readonly dirs: readonly string[]
}

/**
 * Makes the missing directories of a node, each 0700. After a failure the directories of this call are removed again.
 * An existing home keeps its mode unless others may write in it. It is then closed to them if it is this user's and
 * empty or a node's; else it is refused.
 * @throws NodeError NO_PERMISSION, DISK_FULL, PATH_TOO_LONG, CONFIG_INVALID (a file has that name)
 */
export async function makeDataDirs({ home, dirs }: DataDirs): Promise<void> {
  const made: string[] = []
  try {
    for (const dir of [home, ...dirs]) await makeDir(dir, made)
    await closeToOthers(home, dirs)
  } catch (error) {
    // Only while they are empty: another start may be using them by now.
    for (const dir of made.reverse()) await fs.rmdir(dir).catch(() => {})
    throw error
  }
}

async function makeDir(dir: string, made: string[]): Promise<void> {
  try {
    await makeDirectories(dir, { mkdir: (one) => makeOne(one, made), isDirectory, parent: path.dirname })
    await fs.access(dir, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    // The parent exists: this file system allows no directories, such as /proc.
    throw codeOf(error) === 'ENOENT' ? noPermission(dir, error) : storeError(error, dir)
  }
}

async function makeOne(dir: string, made: string[]): Promise<void> {
  await fs.mkdir(dir, { mode: 0o700 })
  made.push(dir)
}

async function isDirectory(dir: string): Promise<boolean> {
  return await fs.stat(dir).then(
    (stats) => stats.isDirectory(),
    () => false
  )
}

async function closeToOthers(home: string, dirs: readonly string[]): Promise<void> {
  const { mode, uid } = await fs.stat(home)
  if ((mode & 0o022) === 0) return
  const own = new Set(dirs.map((dir) => path.relative(home, dir).split(path.sep)[0]))
  const names = await fs.readdir(home)
  const isOurs = uid === process.getuid?.() && (mode & 0o1000) === 0 && names.every((name) => own.has(name))
  if (isOurs) return fs.chmod(home, 0o700)
  throw new NodeError('NO_PERMISSION', `others may write in ${home}: a node's directory must be its user's alone`, {
    next: [`chmod 700 ${home}`, 'a2a-node start --home <new directory>']
  })
}
