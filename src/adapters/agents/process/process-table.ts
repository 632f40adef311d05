import { execFileSync } from 'node:child_process'
import fs from 'node:fs'

/** One process of a group. */
export interface GroupMember {
  readonly pid: number
  /** Ended, but not yet collected by its parent: no longer runs anything. */
  readonly isZombie: boolean
  /** Session id; on systems that do not tell, the group's own id. */
  readonly session: number
}

/**
 * Identity of a process, unlike that of a later one with the same pid: its start time and boot id. null when there is
 * no such process, or only its zombie. Linux: from /proc; elsewhere best effort through `ps -o lstart`.
 */
export function processIdentity(pid: number): string | null {
  if (process.platform !== 'linux') {
    const line = ps(['-o', 'stat=,lstart=', '-p', String(pid)]).trim()
    return line === '' || line.startsWith('Z') ? null : line.replace(/^\S+\s+/, '')
  }
  const stat = readStat(pid)
  return stat === null || stat.isZombie ? null : `${bootId()}:${stat.startTicks}`
}

/** The processes of a group. Zombies are listed too. */
export function groupMembers(processGroup: number): GroupMember[] {
  if (process.platform !== 'linux') return membersFromPs(processGroup)
  const members: GroupMember[] = []
  for (const name of fs.readdirSync('/proc')) {
    const pid = Number(name)
    const stat = Number.isInteger(pid) ? readStat(pid) : null
    if (stat !== null && stat.processGroup === processGroup)
      members.push({ pid, isZombie: stat.isZombie, session: stat.session })
  }
  return members
}

/**
 * Does a process of the group still run? Zombies do not count: where nobody collects orphans (a container without
 * an init) they stay for ever.
 */
export function isGroupAlive(processGroup: number): boolean {
  try {
    process.kill(-processGroup, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  try {
    return groupMembers(processGroup).some((member) => !member.isZombie)
  } catch {
    // No file descriptor is free: report it alive, so that the caller asks again.
    return true
  }
}

/** Sends a signal to every process of the group; one that is gone is no fault. */
export function signalGroup(processGroup: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-processGroup, signal)
  } catch {
    // Gone meanwhile, or (EPERM) all that is left of it are zombies or processes of another user.
  }
}

interface Stat {
  readonly isZombie: boolean
  readonly processGroup: number
  readonly session: number
  readonly startTicks: string
}

/** proc(5): the name in parentheses may hold anything, so fields are counted from the last one. */
function readStat(pid: number): Stat | null {
  let text: string
  try {
    text = fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return null
  }
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, , processGroup, session] = fields
  const startTicks = fields[19]
  if (state === undefined || startTicks === undefined) return null
  return { isZombie: /[ZXx]/.test(state), processGroup: Number(processGroup), session: Number(session), startTicks }
}

/** Ticks count from boot: without its id a process of an earlier boot could look like one of this. */
function bootId(): string {
  try {
    return fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return ''
  }
}

function membersFromPs(processGroup: number): GroupMember[] {
  return ps(['-axo', 'pid=,pgid=,stat='])
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, pgid]) => Number(pgid) === processGroup)
    .map(([pid, , state]) => ({ pid: Number(pid), isZombie: state?.startsWith('Z') === true, session: processGroup }))
}

function ps(args: readonly string[]): string {
  try {
    return execFileSync('ps', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    return ''
  }
}
