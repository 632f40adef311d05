import { messageOf } from './errors.js'

/** Why a file cannot be read, by the code of the system. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'this user may not read it',
  EPERM: 'this user may not read it'
}

/** Why a file could not be read, in plain words; the message of an error that is not of the file system. */
export function fileReason(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return (typeof code === 'string' && Object.hasOwn(REASONS, code) ? REASONS[code] : undefined) ?? messageOf(error)
}
