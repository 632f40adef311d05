import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import { isRecord } from '../../../kit/json.js'
import { codeOf, storeError } from './store-errors.js'

/** Which process holds a home, or another place. */
export interface PidRecord {
  readonly pid: number
  /** Unix milliseconds. */
  readonly startedAt: number
  /** Path of its control socket; empty for a process without one. */
  readonly socket: string
}

/** The mark of a process that has ended and is not collected by its parent yet. */
const ENDED = 'ended'

/**
 * Writes down which process holds a place; the file is 0600 and appears whole. Only the holder of the lock of that
 * place writes it: see `process-lock.ts`. @throws NodeError NO_PERMISSION, DISK_FULL
 */
export async function writePidFile(file: string, record: PidRecord): Promise<void> {
  const aside = `${file}.new`
  try {
    await fs.writeFile(aside, `${JSON.stringify({ ...record, process: processMark(record.pid) })}\n`, { mode: 0o600 })
    await fs.rename(aside, file)
  } catch (error) {
    await fs.rm(aside, { force: true }).catch(() => {})
    throw storeError(error, file)
  }
}

/**
 * The process that the file names; null when there is no file, it is unreadable, or that process is gone. It decides
 * nothing: the lock does.
 */
export async function readPidFile(file: string): Promise<PidRecord | null> {
  let value: unknown
  try {
    value = JSON.parse(await fs.readFile(file, 'utf8'))
  } catch {
    return null
  }
  if (!isRecord(value)) return null
  const { pid, startedAt, socket, process: mark } = value
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0) return null
  if (typeof startedAt !== 'number' || typeof socket !== 'string') return null
  return isAlive(pid, typeof mark === 'string' ? mark : null) ? { pid, startedAt, socket } : null
}

/** Removes the file. Only the holder of the lock does. */
export async function removePidFile(file: string): Promise<void> {
  await fs.rm(file, { force: true })
}

/** Does this very process still run? A pid that was given to another process since does not count. */
function isAlive(pid: number, mark: string | null): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if (codeOf(error) !== 'EPERM') return false
  }
  const now = processMark(pid)
  if (now === ENDED) return false
  return mark === null || now === null || now === mark
}

/** Boot and start time, which distinguish two processes of one pid. Null where the system does not tell. */
function processMark(pid: number): string | null {
  try {
    if (process.platform === 'linux') return linuxMark(pid)
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || null
  } catch {
    return null
  }
}

function linuxMark(pid: number): string | null {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The second field is the command in brackets and may hold anything; the 22nd is the start time in ticks since boot.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (fields[0] === 'Z') return ENDED
  const ticks = fields[19]
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return ticks === undefined ? null : `${boot}/${ticks}`
}
