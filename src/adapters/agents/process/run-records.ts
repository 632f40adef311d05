import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { isRecord } from '../../../kit/json.js'
import { groupMembers, isGroupAlive, processIdentity, signalGroup } from './process-table.js'

/** A process group started by a node, as stored in `<home>/run/agent-<group>.json`. */
export interface RunRecord {
  /** Process group, which is the pid of its first process. */
  readonly processGroup: number
  /** {@link processIdentity} of its first process. */
  readonly identity: string
  /** The request it works for; null for a child that stays up between requests. */
  readonly requestId: string | null
  /** The node that started it. */
  readonly owner: { readonly pid: number; readonly identity: string }
}

const FILE_NAME = /^agent-(\d{1,10})\.json$/
/** How often a group that was just killed is looked at, and how many times at most. */
const LOOK_MS = 10
const MAX_LOOKS = 200

/**
 * Notes a process group before its program runs, so that the next start of the node can end it. Synchronous: the
 * caller lets the program run only afterwards. Makes the directory (0700) when it is missing.
 * @throws Error of the file system.
 */
export function writeRunRecord(runDir: string, processGroup: number, requestId: string | null): void {
  const record: RunRecord = {
    processGroup,
    identity: processIdentity(processGroup) ?? '',
    requestId,
    owner: { pid: process.pid, identity: processIdentity(process.pid) ?? '' }
  }
  fs.mkdirSync(runDir, { recursive: true, mode: 0o700 })
  fs.writeFileSync(fileOf(runDir, processGroup), `${JSON.stringify(record)}\n`, { mode: 0o600 })
}

/** Forgets a group that is gone. A missing record is no fault. */
export function removeRunRecord(runDir: string, processGroup: number): void {
  fs.rmSync(fileOf(runDir, processGroup), { force: true })
}

/**
 * Kills process groups left by dead nodes, and removes their records. Spares groups whose node still lives, and a later
 * process with the same pid.
 * @returns the records of the groups that were killed
 */
export async function killLeftovers(runDir: string): Promise<readonly RunRecord[]> {
  const killed: RunRecord[] = []
  for (const name of listRecords(runDir)) {
    const file = path.join(runDir, name)
    const record = readRecord(file)
    if (record !== null && processIdentity(record.owner.pid) === record.owner.identity) continue
    if (record !== null && isLeftover(record)) {
      signalGroup(record.processGroup, 'SIGKILL')
      await gone(record.processGroup)
      killed.push(record)
    }
    fs.rmSync(file, { force: true })
  }
  return killed
}

function fileOf(runDir: string, processGroup: number): string {
  return path.join(runDir, `agent-${processGroup}.json`)
}

function listRecords(runDir: string): readonly string[] {
  try {
    return fs.readdirSync(runDir).filter((name) => FILE_NAME.test(name))
  } catch {
    return []
  }
}

/** null for a damaged record: it was being written when the node died, so its program never ran. */
function readRecord(file: string): RunRecord | null {
  try {
    const value: unknown = JSON.parse(fs.readFileSync(file, 'utf8'))
    if (!isRecord(value) || !isRecord(value['owner'])) return null
    const { processGroup, identity, requestId, owner } = value
    if (
      !isPid(processGroup) ||
      typeof identity !== 'string' ||
      !isPid(owner['pid']) ||
      typeof owner['identity'] !== 'string'
    )
      return null
    return {
      processGroup,
      identity,
      requestId: typeof requestId === 'string' ? requestId : null,
      owner: { pid: owner['pid'], identity: owner['identity'] }
    }
  } catch {
    return null
  }
}

/** 0 and 1 as a group would mean "my own" and "everybody". */
function isPid(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 1
}

function isLeftover(record: RunRecord): boolean {
  const identity = processIdentity(record.processGroup)
  if (identity !== null) return identity === record.identity
  // Its first process has ended. The kernel gives a pid away again only when no group has that number, so members
  // that are in the session of the same number are its children.
  return groupMembers(record.processGroup).some((member) => !member.isZombie && member.session === record.processGroup)
}

async function gone(processGroup: number): Promise<void> {
  for (let looks = 0; looks < MAX_LOOKS && isGroupAlive(processGroup); looks++) await pause(LOOK_MS)
}
