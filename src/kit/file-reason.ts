import { messageOf } from './errors.js'

/** Why a file cannot be read or written, by the code of the system. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'it is a directory',
  ELOOP: 'its links form a circle',
  ENAMETOOLONG: 'its path is too long for this system',
  EMFILE: 'this process has too many open files',
  EIO: 'its disk reports an error',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only',
  EACCES: 'this user has no permission',
  EPERM: 'this user has no permission'
}

/** Why a file could not be read or written, in plain words; the message of an error that is not of the file system. */
export function fileReason(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return (typeof code === 'string' && Object.hasOwn(REASONS, code) ? REASONS[code] : undefined) ?? messageOf(error)
}
