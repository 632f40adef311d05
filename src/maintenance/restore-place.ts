import fs from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../kit/errors.js'
import { shellWord } from '../kit/text.js'
import type { HomePaths } from '../config/paths.js'
import { syncDir } from '../adapters/storage/home/atomic-file.js'
import { configDir } from '../adapters/storage/home/home-files.js'
import { takeProcessLock } from '../adapters/storage/home/process-lock.js'

const UNFINISHED = '.restoring'

/** Where a home is made before it takes its place. */
export function stagedFor({ home }: Pick<HomePaths, 'home'>): string {
  return `${home}${UNFINISHED}`
}

/**
 * Runs a restore exclusively: no other restore to this home runs, and the rest of an interrupted one is removed before.
 * @throws NodeError CONFLICT when another restore runs, or an unknown directory is in the way
 */
export async function restoreAlone<T>(home: HomePaths, now: number, run: () => Promise<T>): Promise<T> {
  const staged = stagedFor(home)
  await fs.mkdir(path.dirname(staged), { recursive: true, mode: 0o700 })
  const record = { pid: process.pid, startedAt: now, socket: '' }
  const lock = await takeProcessLock(staged, record).catch((error: unknown) => Promise.reject(atWork(error, home)))
  try {
    if (lock.isAfterKill) await clear(staged, configDir(home))
    else if (await isThere(staged))
      throw new NodeError('CONFLICT', `${staged} is in the way`, { next: [`rm -r ${shellWord(staged)}`] })
    return await run()
  } finally {
    await lock.release()
  }
}

/**
 * Puts what was made in its place: settings first, then, at one moment, the home. Cut off before that, there is no
 * home.
 */
export async function place(home: HomePaths): Promise<void> {
  const staged = stagedFor(home)
  const [from, to] = [path.join(staged, 'config'), configDir(home)]
  const placed: string[] = []
  try {
    const isShared = to === home.home
    for (const name of isShared ? [] : await namesIn(from)) {
      const target = path.join(to, name)
      await fs.mkdir(to, { recursive: true, mode: 0o700 })
      await fs.cp(path.join(from, name), `${target}${UNFINISHED}`, { recursive: true })
      await fs.rename(`${target}${UNFINISHED}`, target)
      placed.push(target)
    }
    // A directory takes the place of an empty one.
    await fs.rename(staged, home.home)
    await syncDir(path.dirname(home.home))
    if (!isShared) await fs.rm(path.join(home.home, 'config'), { recursive: true, force: true })
  } catch (error) {
    for (const target of placed) await fs.rm(target, { recursive: true, force: true })
    throw error
  }
}

/** Of settings that were placed already only those go that are still as they were placed. */
async function clear(staged: string, config: string): Promise<void> {
  const from = path.join(staged, 'config')
  for (const name of await namesIn(from)) {
    const target = path.join(config, name)
    await fs.rm(`${target}${UNFINISHED}`, { recursive: true, force: true })
    if (await isCopy(path.join(from, name), target)) await fs.rm(target, { recursive: true, force: true })
  }
  await fs.rm(staged, { recursive: true, force: true })
}

async function isCopy(of: string, file: string): Promise<boolean> {
  const kinds = await Promise.all([of, file].map((one) => fs.stat(one).catch(() => null)))
  const [first, second] = kinds
  if (!first || !second || first.isDirectory() !== second.isDirectory()) return false
  if (!first.isDirectory()) return (await fs.readFile(of)).equals(await fs.readFile(file))
  const [names, others] = [await namesIn(of), await namesIn(file)]
  if (names.length !== others.length) return false
  for (const name of names) if (!(await isCopy(path.join(of, name), path.join(file, name)))) return false
  return true
}

function atWork(error: unknown, { home }: HomePaths): unknown {
  if (!(error instanceof NodeError) || (error.code !== 'ALREADY_RUNNING' && error.code !== 'STORE_LOCKED')) return error
  const pid = (error.data as { pid?: unknown } | undefined)?.pid
  const isKnown = typeof pid === 'number'
  return new NodeError('CONFLICT', `another restore to ${home} is at work${isKnown ? ` (pid ${pid})` : ''}`, {
    next: isKnown ? [`kill ${pid}`] : [],
    cause: error
  })
}

async function namesIn(dir: string): Promise<string[]> {
  return await fs.readdir(dir).catch(() => [])
}

async function isThere(file: string): Promise<boolean> {
  return await fs.lstat(file).then(
    () => true,
    () => false
  )
}
