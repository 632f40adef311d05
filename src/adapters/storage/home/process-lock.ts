import { close, constants, fstat, open } from 'node:fs'
import fs from 'node:fs/promises'
import { promisify } from 'node:util'
import extensions from 'fs-native-extensions'
import { NodeError } from '../../../kit/errors.js'
import { readPidFile, removePidFile, type PidRecord, writePidFile } from './pid-file.js'
import { codeOf, runningError, storeError } from './store-errors.js'

/** Times that the lock file may be replaced by others before this process gives up. */
const MAX_ROUNDS = 32

/** A place that this process alone uses, until it releases it or ends in any way. */
export interface ProcessLock {
  /** The process before ended without releasing the place: by a kill, or by a power cut. */
  readonly isAfterKill: boolean
  /** Removes both files and lets others in. Call it once, last of all. */
  release(): Promise<void>
}

/**
 * Takes a place for this process, or fails at once. The kernel's lock of `<place>.lock` alone decides; it ends with the
 * process, however that ends. `<place>.pid`, written under the lock, only tells others who holds it: a stale or damaged
 * one has no effect. A second holder in the same process fails as well.
 * @throws NodeError ALREADY_RUNNING with `{pid, socket}` of the holder; STORE_LOCKED when the pid file does not tell;
 * NO_PERMISSION, DISK_FULL
 */
export async function takeProcessLock(place: string, record: PidRecord): Promise<ProcessLock> {
  const [lockFile, pidFile] = [`${place}.lock`, `${place}.pid`]
  const fd = await lockedFile(lockFile).catch((error: unknown) => Promise.reject(storeError(error, lockFile)))
  if (fd === null) throw await lockedError(lockFile, pidFile)
  try {
    const isAfterKill = await isThere(pidFile)
    await writePidFile(pidFile, record)
    return { isAfterKill, release: () => release(fd, { lockFile, pidFile }) }
  } catch (error) {
    // A pid file of the process before stays: the next holder learns of its kill by it.
    await release(fd, { lockFile, pidFile: null })
    throw error
  }
}

// A descriptor and no FileHandle: one that is garbage collected would close the file, and so unlock it.
const openFile = promisify(open)
const closeFile = promisify(close)
const statFile = promisify(fstat)

/** The descriptor of the locked file; null when another holder has it. */
async function lockedFile(file: string): Promise<number | null> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const fd = await openFile(file, constants.O_RDWR | constants.O_CREAT, 0o600)
    let isOurs = false
    try {
      if (!extensions.tryLock(fd)) return null
      // Its holder may have removed it between opening and locking: then others lock another file of this name.
      isOurs = await isAt(fd, file)
      if (isOurs) return fd
    } finally {
      if (!isOurs) await closeFile(fd)
    }
  }
  return null
}

async function lockedError(lockFile: string, pidFile: string): Promise<NodeError> {
  const runner = await readPidFile(pidFile)
  return runner === null ? new NodeError('STORE_LOCKED', `another process holds ${lockFile}`) : runningError(runner)
}

/** Removed before it is unlocked: who locks it afterwards sees that it is not the file of that name any more. */
async function release(
  fd: number,
  { lockFile, pidFile }: { readonly lockFile: string; readonly pidFile: string | null }
): Promise<void> {
  try {
    if (!(await isAt(fd, lockFile))) return
    if (pidFile !== null) await removePidFile(pidFile)
    await fs.rm(lockFile, { force: true })
  } finally {
    await closeFile(fd)
  }
}

async function isAt(fd: number, file: string): Promise<boolean> {
  const [own, named] = await Promise.all([statFile(fd), fs.stat(file).catch(ifGone)])
  return named !== null && own.ino === named.ino && own.dev === named.dev
}

async function isThere(file: string): Promise<boolean> {
  return (await fs.lstat(file).catch(ifGone)) !== null
}

function ifGone(error: unknown): null {
  if (codeOf(error) === 'ENOENT') return null
  throw error
}
