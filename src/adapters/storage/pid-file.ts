import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import { isRecord } from '../../kit/json.js'
import { codeOf, runningError, storeError } from './store-errors.js'

/** Who runs in a home. */
export interface RunRecord {
  readonly pid: number
  /** Unix milliseconds. */
  readonly startedAt: number
  /** Path of its control socket. */
  readonly socket: string
}

/** The mark of a process that has ended and is not collected by its parent yet. */
const ENDED = 'ended'
/** Rounds of clearing away what dead nodes left before giving up. */
const MAX_ROUNDS = 8

/**
 * Writes down that this process runs in the home; the file is 0600 and appears whole.
 * What a dead process left is replaced. Of several processes that try at once one succeeds.
 * @throws NodeError ALREADY_RUNNING with `{pid, socket}` when a living node is written there; NO_PERMISSION, DISK_FULL
 */
export async function writePidFile(file: string, record: RunRecord): Promise<void> {
  const aside = `${file}.${record.pid}`
  try {
    await fs.writeFile(aside, `${JSON.stringify({ ...record, process: processMark(record.pid) })}\n`, { mode: 0o600 })
    await claim(file, aside)
  } catch (error) {
    throw storeError(error, file)
  } finally {
    await fs.rm(aside, { force: true })
  }
}

async function claim(file: string, aside: string): Promise<void> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    try {
      // A link either takes the name or fails; there is no moment with half a file.
      return await fs.link(aside, file)
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
    }
    const runner = await readPidFile(file)
    if (runner !== null) throw runningError(runner)
    await clearStale(file, `${aside}.stale`)
  }
  throw new Error(`the pid file ${file} keeps changing`)
}

// Between looking and removing, another starter may have put its own file there: take the file away, look again, put it back.
async function clearStale(file: string, taken: string): Promise<void> {
  try {
    await fs.rename(file, taken)
    if ((await readPidFile(taken)) !== null) await fs.link(taken, file)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'EEXIST') throw error
  } finally {
    await fs.rm(taken, { force: true })
  }
}

/** The node that runs in the home; null when none is written there, the file is unreadable, or that process is gone. */
export async function readPidFile(file: string): Promise<RunRecord | null> {
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

/** Removes the file when it is this process's own, or nobody's any more. */
export async function removePidFile(file: string, pid: number = process.pid): Promise<void> {
  const runner = await readPidFile(file)
  if (runner === null || runner.pid === pid) await fs.rm(file, { force: true })
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

/** What tells two processes of one pid apart: boot and start time. Null where the system does not say. */
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
