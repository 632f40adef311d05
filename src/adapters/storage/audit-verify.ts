import { setImmediate } from 'node:timers/promises'
import { AUDIT_CHAINS } from './audit-chains.js'
import { parseLine } from './audit-line.js'
import type { AuditLine, ChainHead } from './audit-line.js'
import { lostChains } from './audit-log.js'
import { linesOf, readHead, segmentFiles, segmentMark } from './audit-segments.js'
import type { ChainPlace, StoredHead } from './audit-segments.js'

/** A chain that does not hold. */
export interface BrokenChain {
  /** Its name, also that of its files. */
  readonly chain: string
  /** Number of the first line that is missing, changed or in the wrong place. */
  readonly line: number
}

/** What a check of the audit log found. */
export interface AuditCheck {
  readonly ok: boolean
  /** Lines that hold: all of whole chains, those up to the first that does not of broken ones. */
  readonly entries: number
  /** Every chain that does not hold. */
  readonly broken: readonly BrokenChain[]
}

/** A node that runs may begin a new file while its files are read. */
const MAX_TRIES = 10

/** Lines that are checked in one go, before others have their turn. */
const LINES_A_TURN = 250

/**
 * Checks every line of the audit log in `dir` against its chain, and both ends of each chain against its head. A running node
 * may go on writing. A directory without any log holds. The process may do other things meanwhile; `signal` ends the check, which
 * rejects then.
 */
export async function verifyAudit(dir: string, signal?: AbortSignal): Promise<AuditCheck> {
  const names = AUDIT_CHAINS.map((one) => one.name)
  const lost = await lostChains(dir, names)
  const broken: BrokenChain[] = []
  let entries = 0
  for (const name of names) {
    const check = lost.includes(name) ? { entries: 0, brokenAt: 1 } : await checkChain({ dir, name }, signal)
    entries += check.entries
    if (check.brokenAt !== null) broken.push({ chain: name, line: check.brokenAt })
  }
  return { ok: broken.length === 0, entries, broken }
}

/** A broken chain in words. */
export function brokenText({ chain, line }: BrokenChain): string {
  return `line ${line} of the chain ${chain} is missing, changed or in the wrong place`
}

interface ChainCheck {
  readonly entries: number
  /** null: it holds. */
  readonly brokenAt: number | null
}

async function checkChain(place: ChainPlace, signal: AbortSignal | undefined): Promise<ChainCheck> {
  for (let tries = 1; ; tries++) {
    const before = await segmentMark(place)
    // Read first: lines are always on disk before the head that names them.
    const check = await checkFiles(place, await readHead(place), signal)
    if (check.brokenAt === null || tries >= MAX_TRIES || (await segmentMark(place)) === before) return check
  }
}

async function checkFiles(place: ChainPlace, head: StoredHead | null, signal: AbortSignal | undefined): Promise<ChainCheck> {
  const files = await segmentFiles(place)
  const walk = new Walk(head)
  for (const [index, file] of files.entries()) {
    const { lines, rest } = await linesOf(file)
    for (const [at, text] of lines.entries()) {
      if (at % LINES_A_TURN === 0) await setImmediate(undefined, signal === undefined ? {} : { signal })
      if (!walk.step(parseLine(text))) return walk.broken()
    }
    // The unfinished line of a running writer: it is not in the chain yet.
    const isBeingWritten = index === files.length - 1 && walk.isPastHead
    if (rest !== '' && !isBeingWritten) return walk.broken()
  }
  if (head === null && files.length === 0) return { entries: 0, brokenAt: null }
  return walk.isComplete ? { entries: walk.entries, brokenAt: null } : walk.broken()
}

/** Goes along the chain, line by line. */
class Walk {
  readonly #head: StoredHead | null
  #last: ChainHead | null = null
  #sawFirst = false
  /** Is the line that the stored head names behind us? */
  isPastHead: boolean
  entries = 0

  constructor(head: StoredHead | null) {
    this.#head = head
    this.isPastHead = head?.seq === 0
  }

  /** False when the line does not follow. */
  step(line: AuditLine | null): boolean {
    if (line === null || !this.#follows(line) || !this.#agreesWithHead(line)) return false
    this.#last = line
    this.entries++
    return true
  }

  get isComplete(): boolean {
    return this.isPastHead && (this.#sawFirst || this.#last === null)
  }

  broken(): ChainCheck {
    return { entries: this.entries, brokenAt: this.#expected() }
  }

  #expected(): number {
    return this.#last === null ? (this.#head?.first.seq ?? 1) : this.#last.seq + 1
  }

  #follows(line: AuditLine): boolean {
    if (this.#last !== null) return line.seq === this.#last.seq + 1 && line.prev === this.#last.hash
    // Older lines than the first that must be there may be left where a removal was interrupted.
    return this.#head === null || line.seq <= this.#head.first.seq
  }

  #agreesWithHead(line: AuditLine): boolean {
    if (this.#head === null) return true
    const { seq, hash, first } = this.#head
    if (line.seq === first.seq) {
      if (line.prev !== first.prev) return false
      this.#sawFirst = true
    }
    if (line.seq !== seq) return true
    this.isPastHead = line.hash === hash
    return this.isPastHead
  }
}
