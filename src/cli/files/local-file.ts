import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import { NodeError, type ErrorCode } from '../../kit/errors.js'
import { fileReason } from '../../kit/file-reason.js'
import { shown } from '../../kit/text.js'
import { eachChunk } from '../../kit/transfer/chunks.js'
import { MAX_FILE_BYTES } from '../../kit/transfer/limits.js'

const CODES: Readonly<Record<string, ErrorCode>> = {
  EEXIST: 'FILE_EXISTS',
  EACCES: 'NO_PERMISSION',
  EPERM: 'NO_PERMISSION',
  EROFS: 'NO_PERMISSION',
  ENOSPC: 'DISK_FULL',
  EDQUOT: 'DISK_FULL'
}

/** The error of the command for one of the file system. */
export function localError(file: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (error instanceof NodeError || code === undefined || code === 'ABORT_ERR') return error
  return new NodeError(CODES[code] ?? 'USAGE', `${shown(file)}: ${fileReason(error)}`, { cause: error })
}

/** The SHA-256 of the first bytes of an open file, in hex. */
export async function hashOfFile(file: fs.FileHandle, length: number, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  await eachChunk(file, { length, signal }, (bytes) => hash.update(bytes))
  return hash.digest('hex')
}

/** Opens a regular file. @throws NodeError USAGE for a missing file, a directory, a device, or more than 1 GiB */
export async function openRegular(path: string): Promise<{ readonly file: fs.FileHandle; readonly size: number }> {
  const file = await fs.open(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK).catch((error: unknown) => {
    throw localError(path, error)
  })
  const stat = await file.stat()
  const fault = !stat.isFile()
    ? 'it is no regular file'
    : stat.size > MAX_FILE_BYTES
      ? `it has more than ${MAX_FILE_BYTES} bytes`
      : null
  if (fault === null) return { file, size: stat.size }
  await file.close()
  throw new NodeError('USAGE', `${shown(path)}: ${fault}`)
}
