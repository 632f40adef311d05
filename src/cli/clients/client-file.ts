import { randomBytes } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../../kit/errors.js'
import { fileReason } from '../../kit/file-reason.js'
import { shellWord } from '../../kit/text.js'

/** Largest file that is edited, in bytes. */
export const CLIENT_FILE_MAX_BYTES = 64 * 1024 * 1024
const BOM = '\ufeff'
/** A client's file may hold keys of other services. */
const NEW_FILE_MODE = 0o600

/** A client's file as it was read. */
export interface ClientFile {
  /** Its path as the client knows it. */
  readonly file: string
  /** Its text, without a byte order mark; null when it is not there. */
  readonly text: string | null
  /** The content that {@link writeClientFile} compares with; null when there is no file. */
  readonly read: { readonly bytes: Buffer; readonly stats: Stats; readonly target: string } | null
}

/**
 * Reads a client's file; a link is followed.
 * @throws NodeError CONFIG_INVALID unless it is a regular file of at most 64 MiB in UTF-8; NO_PERMISSION
 */
export async function readClientFile(file: string): Promise<ClientFile> {
  try {
    const read = await readWhole(file)
    return { file, read, text: read === null ? null : textOf(file, read.bytes) }
  } catch (error) {
    throw reported(file, error)
  }
}

/** Settings of {@link writeClientFile}. */
export interface WriteOptions {
  /** Time of the copy of the old file, in unix milliseconds. */
  readonly now: number
  /** Only the owner may read the new file: it holds secrets. Default: the mode of the old one. */
  readonly isPrivate?: boolean
  /** The command to give again after a conflict. Default: `a2a-node connect`. */
  readonly again?: string
}

/** @throws NodeError NO_PERMISSION for a file that its owner made read-only: that is on purpose */
export function checkWritable({ file, read }: ClientFile): void {
  if (read === null || (read.stats.mode & 0o222) !== 0) return
  throw new NodeError('NO_PERMISSION', `${file} is read-only, and was left alone`, {
    next: [`chmod u+w ${shellWord(file)}`]
  })
}

/**
 * Removes a client's file, but not one behind a link.
 * @returns false for a link: nothing was removed
 * @throws NodeError CONFLICT when the file has changed since; NO_PERMISSION
 */
export async function removeClientFile(before: ClientFile, again = 'a2a-node connect'): Promise<boolean> {
  checkWritable(before)
  try {
    if (await isLink(before.file)) return false
    await checkUnchanged(before, again)
    await fs.rm(before.file)
    return true
  } catch (error) {
    throw reported(before.file, error)
  }
}

/**
 * Replaces the content of a client's file atomically: a new file with the same mode and owner takes its name. Of a
 * link, the target is replaced.
 * @returns the path of the copy of the old file; null for none
 * @throws NodeError CONFLICT when the file has changed since; NO_PERMISSION, also for a read-only one; DISK_FULL
 */
export async function writeClientFile(before: ClientFile, text: string, options: WriteOptions): Promise<string | null> {
  const { now, isPrivate = false, again = 'a2a-node connect' } = options
  const { file, read } = before
  checkWritable(before)
  const bytes = Buffer.from(read?.bytes.subarray(0, 3).toString() === BOM ? BOM + text : text)
  const target = read?.target ?? file
  const fresh = path.join(path.dirname(target), `.${path.basename(target)}.${randomBytes(6).toString('hex')}.tmp`)
  // ISO 8601, its basic form: a colon is no character for a file name everywhere.
  const backup = read === null ? null : `${file}.${new Date(now).toISOString().replaceAll(/[-:]/g, '')}.bak`
  const made: string[] = []
  try {
    await writeNew(fresh, bytes, read?.stats ?? null, isPrivate ? 0o700 : 0o7777)
    made.push(fresh)
    if (backup !== null && read !== null) {
      await writeNew(backup, read.bytes, read.stats, 0o7777)
      made.push(backup)
    }
    await checkUnchanged(before, again)
    await fs.rename(fresh, target)
    return backup
  } catch (error) {
    await Promise.all(made.map((one) => fs.rm(one, { force: true }).catch(() => {})))
    throw reported(file, error)
  }
}

async function readWhole(file: string): Promise<ClientFile['read']> {
  // A pipe of that name would be waited for.
  const handle = await fs
    .open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    .catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      if (await isLink(file))
        throw new NodeError('CONFIG_INVALID', `${file} is a link that leads nowhere`, { next: lookAt(file) })
      return null
    })
  if (handle === null) return null
  try {
    const stats = await handle.stat()
    if (!stats.isFile())
      throw new NodeError('CONFIG_INVALID', `${file} is ${stats.isDirectory() ? 'a directory' : 'no regular file'}`, {
        next: lookAt(file)
      })
    const tooLarge = new NodeError('CONFIG_INVALID', `${file} is larger than ${CLIENT_FILE_MAX_BYTES} bytes`, {
      next: lookAt(file)
    })
    if (stats.size > CLIENT_FILE_MAX_BYTES) throw tooLarge
    const bytes = await handle.readFile()
    if (bytes.length > CLIENT_FILE_MAX_BYTES) throw tooLarge
    return { bytes, stats, target: await fs.realpath(file) }
  } finally {
    await handle.close()
  }
}

async function isLink(file: string): Promise<boolean> {
  const stats = await fs.lstat(file).catch(() => null)
  return stats?.isSymbolicLink() === true
}

function textOf(file: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new NodeError('CONFIG_INVALID', `${file} is no UTF-8 text`, {
      cause: error,
      next: [`file ${shellWord(file)}`]
    })
  }
}

/**
 * Writes a file that is not there, with the mode of another as far as `mask` allows. On disk when this resolves; a
 * failure leaves none.
 */
async function writeNew(file: string, bytes: Buffer, ...[like, mask]: readonly [Stats | null, number]): Promise<void> {
  const handle = await fs.open(file, 'wx', NEW_FILE_MODE)
  try {
    await handle.writeFile(bytes)
    if (like !== null) {
      const own = await handle.stat()
      if (own.uid !== like.uid || own.gid !== like.gid) await handle.chown(like.uid, like.gid)
      await handle.chmod(like.mode & mask)
    }
    await handle.sync()
  } catch (error) {
    await fs.rm(file, { force: true })
    throw error
  } finally {
    await handle.close()
  }
}

/** A client that runs may write its file at any moment. */
async function checkUnchanged({ file, read }: ClientFile, again: string): Promise<void> {
  const now = await readWhole(file)
  if (now === null ? read === null : read?.bytes.equals(now.bytes) === true && read.target === now.target) return
  throw new NodeError(
    'CONFLICT',
    `${file} was changed by another program meanwhile; nothing was written. Quit that program, then try again`,
    { next: [again] }
  )
}

/** An error of the file system as one that says what to do. */
function reported(file: string, error: unknown): NodeError {
  if (error instanceof NodeError) return error
  const { code } = error as NodeJS.ErrnoException
  const details = { cause: error, next: lookAt(file) }
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG') {
    return new NodeError('DISK_FULL', `${file} was not written: the disk is full`, { ...details, next: ['df -h'] })
  }
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
    return new NodeError('NO_PERMISSION', `no permission to read or replace ${file}`, details)
  }
  return new NodeError('CONFIG_INVALID', `${file} cannot be read or replaced: ${fileReason(error)}`, details)
}

function lookAt(file: string): string[] {
  return [`ls -ld ${shellWord(path.dirname(file))} ${shellWord(file)}`]
}
