import fs from 'node:fs'
import path from 'node:path'
import { asNodeError, CHOICE_OF_COPY, COPY_STEPS, messageOf, NodeError } from '../../../kit/errors.js'
import type { ErrorCode } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import { isDiskFull } from './disk-space.js'
import type { PidRecord } from './pid-file.js'

interface Fault {
  readonly code: ErrorCode
  readonly says: (place: string) => string
  readonly next?: (place: string) => readonly string[]
  readonly data?: unknown
}

const NO_PERMISSION: Fault = {
  code: 'NO_PERMISSION',
  says: (place) => `no permission to write ${place}`,
  next: (place) => [`ls -ld ${place}   (shows its owner)`, 'a2a-node start --home <directory you may write>']
}
const DISK_FULL: Fault = {
  code: 'DISK_FULL',
  says: (place) => `no space left to write ${place}`,
  next: (place) => [`df -h ${place}`]
}
const NO_DIRECTORY: Fault = {
  code: 'CONFIG_INVALID',
  says: (place) => `${blockingFile(place)} is not a directory`,
  next: () => ['a2a-node start --home <directory>']
}

/** The part of a path that is a file, else the path. */
function blockingFile(place: string): string {
  let at = place
  while (!fs.existsSync(at) && path.dirname(at) !== at) at = path.dirname(at)
  return fs.existsSync(at) && fs.statSync(at).isDirectory() ? place : at
}

const NO_LOCKS: Fault = {
  code: 'CONFIG_INVALID',
  says: (place) => `the file system of ${place} locks no files, so two nodes could use one home`,
  next: () => ['a2a-node start --home <directory on another file system>']
}
const DAMAGED: Fault = {
  code: 'STORE_DAMAGED',
  says: (place) => `the store ${place} is damaged`
}
/** `doctor` and `start` offer both: a node of its own, or the original replaced. */
const COPIED: Fault = {
  code: 'STORE_DAMAGED',
  says: (place) => `the store ${place} was copied or moved from elsewhere. ${CHOICE_OF_COPY}`,
  next: () => COPY_STEPS,
  data: { isCopy: true }
}

const BAD_DISK: Fault = {
  code: 'STORE_DAMAGED',
  says: (place) => `${place} cannot be read or written: it is damaged, or its disk is`,
  next: () => [
    'dmesg | tail   (shows errors of the disk)',
    'a2a-node doctor',
    'a2a-node doctor --repair',
    'a2a-node restore <backup> --home <new directory>'
  ]
}

const BY_CODE: Readonly<Record<string, Fault>> = {
  EACCES: NO_PERMISSION,
  EPERM: NO_PERMISSION,
  EROFS: NO_PERMISSION,
  ENOSPC: DISK_FULL,
  EDQUOT: DISK_FULL,
  ENAMETOOLONG: { code: 'PATH_TOO_LONG', says: (place) => `the path ${place} is too long for this system` },
  EIO: BAD_DISK,
  EISDIR: DAMAGED,
  ENOTDIR: NO_DIRECTORY,
  EEXIST: NO_DIRECTORY,
  ENOLCK: NO_LOCKS,
  ENOTSUP: NO_LOCKS,
  EOPNOTSUPP: NO_LOCKS,
  DEVICE_FILE: COPIED
}

/** The store engine gives many errors no code; these are its words. */
const BY_WORDS: readonly (readonly [RegExp, Fault])[] = [
  [/no space left on device|disk quota exceeded/i, DISK_FULL],
  [/input\/output error/i, BAD_DISK],
  [/permission denied|read-only file system/i, NO_PERMISSION],
  [/^invalid device file/i, COPIED],
  [/corrupt|checksum mismatch|existing log file|another corestore is stored here/i, DAMAGED]
]

const LOCKED = /lock hold by|could not be locked|while lock file|resource temporarily unavailable/i

/**
 * Any error of the file system or the store engine as a NodeError with a next step.
 * @param place the file or directory, for the message
 */
export function storeError(error: unknown, place: string): NodeError {
  if (error instanceof NodeError) return error
  if (LOCKED.test(messageOf(error))) return lockedError(place, error)
  const fault = faultOf(error)
  // Store engines call a disk that takes nothing many names, damage among them.
  if ((fault === undefined || fault.code === 'STORE_DAMAGED') && isDiskFull(place)) return diskFull(place, error)
  return fault === undefined ? asNodeError(error) : faultError(fault, place, error)
}

/** The error of a place whose disk is full. */
export function diskFull(place: string, cause?: unknown): NodeError {
  return faultError(DISK_FULL, place, cause)
}

/** The error of a place where this user may not write, whatever the system called it. */
export function noPermission(place: string, cause: unknown): NodeError {
  return faultError(NO_PERMISSION, place, cause)
}

function faultError(fault: Fault, place: string, cause: unknown): NodeError {
  const { code, data } = fault
  return new NodeError(code, fault.says(place), {
    cause,
    next: fault.next?.(place) ?? [],
    ...(data === undefined ? {} : { data })
  })
}

/** Does the error say that a store was copied or moved from elsewhere, so that it is not opened? */
export function isCopied({ data }: NodeError): boolean {
  return isRecord(data) && data['isCopy'] === true
}

/** Any error of reading what this program wrote itself: what is no other fault is damage. */
export function damageError(error: unknown, place: string): NodeError {
  const known = storeError(error, place)
  return known.code === 'INTERNAL' ? faultError(DAMAGED, place, error) : known
}

/** The error of a second node on one home: ALREADY_RUNNING with the pid and socket of the first as data. */
export function runningError({ pid, socket }: PidRecord): NodeError {
  return new NodeError('ALREADY_RUNNING', `a node already runs here (pid ${pid})`, { data: { pid, socket } })
}

function lockedError(place: string, cause: unknown): NodeError {
  return new NodeError('STORE_LOCKED', `the store ${place} is in use by another process`, { cause })
}

/** An error of the system may be the cause of an error of the store engine. */
function faultOf(error: unknown): Fault | undefined {
  const code = codeOf(error)
  if (code !== null && Object.hasOwn(BY_CODE, code)) return BY_CODE[code]
  const words = messageOf(error)
  const fault = BY_WORDS.find(([pattern]) => pattern.test(words))?.[1]
  return fault === undefined && error instanceof Error && error.cause !== undefined ? faultOf(error.cause) : fault
}

/** The `code` of an error of the system (`ENOENT`), or null. */
export function codeOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null || !('code' in error)) return null
  return typeof error.code === 'string' ? error.code : null
}
