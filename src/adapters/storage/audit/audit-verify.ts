import { setImmediate } from 'node:timers/promises'
import { AUDIT_CHAINS } from './audit-chains.js'
import { parseLine, UNPROVEN } from './audit-line.js'
import type { AuditLine, ChainHead } from './audit-line.js'
import { lostChains } from './audit-log.js'
import { auditError, isGone, LINES_A_TURN, linesOf, readHead, segmentFiles, segmentMark } from './audit-segments.js'
import type { ChainPlace, StoredHead } from './audit-segments.js'

/**
 * Why the first broken line is broken. `changed`: its own hash does not fit. `misplaced`: it does not follow the line
 * before it. `missing`: the files end before it. `headless`: the head is or was gone or unreadable, so missing lines
 * cannot be detected. `gone`: nothing is left of the chain.
 */
export type ChainFault = 'changed' | 'misplaced' | 'missing' | 'headless' | 'gone'

/** A chain that does not hold. */
export interface BrokenChain {
  /** Its name, also that of its files. */
  readonly chain: string
  /** Number in the chain, from 1, of the first line that does not hold. */
  readonly line: number
  readonly fault: ChainFault
  /** The file in which the chain breaks, absolute; null when there is none. */
  readonly file: string | null
  /**
   * Where in that file, from 1, as an editor counts; one more than its lines where it ends too early. null without a
   * file.
   */
  readonly fileLine: number | null
}

/** Result of a check of the audit log. */
export interface AuditCheck {
  readonly ok: boolean
  /** Lines that hold: all of whole chains, those up to the first that does not of broken ones. */
  readonly entries: number
  /** Every chain that does not hold. */
  readonly broken: readonly BrokenChain[]
}

/** A node that runs may begin a new file while its files are read. */
const MAX_TRIES = 10

/** How the audit log is checked. */
export interface VerifyOptions {
  /** Ends the check, which rejects then. */
  readonly signal?: AbortSignal
  /**
   * Absolute path of the node's note that there was a log, see `AuditLogOptions`: without it a log that is gone
   * altogether holds.
   */
  readonly seen?: string
}

/**
 * Checks every line of the audit log in `dir` against its chain, and both ends of each chain against its head. A
 * running node may go on writing. A directory that never had a log holds. The process may do other things meanwhile.
 * @throws NodeError STORE_DAMAGED (a directory in the place of a file, or the other way round), NO_PERMISSION
 */
export async function verifyAudit(dir: string, options: VerifyOptions = {}): Promise<AuditCheck> {
  return await checkLog(dir, options).catch((error: unknown) => Promise.reject(auditError(error, dir)))
}

async function checkLog(dir: string, { signal, seen }: VerifyOptions): Promise<AuditCheck> {
  const names = AUDIT_CHAINS.map((one) => one.name)
  const lost = await lostChains({ dir, ...(seen === undefined ? {} : { seen }) }, names)
  const broken: BrokenChain[] = []
  let entries = 0
  for (const name of names) {
    const check = lost.includes(name) ? GONE : await checkChain({ dir, name }, signal)
    entries += check.entries
    if (check.broken !== null) broken.push({ chain: name, ...check.broken })
  }
  return { ok: broken.length === 0, entries, broken }
}

/** A broken chain in words: position and fault. */
export function brokenText({ chain, line, fault, file, fileLine }: BrokenChain): string {
  const name = `line ${line} of the chain ${chain}`
  if (fault === 'headless') {
    const place = file === null ? '' : `${file}:${fileLine ?? 1}: `
    return `${place}${chain}.head, the head of this chain, was gone or unreadable: whether ${name} and later ones are missing cannot be told`
  }
  if (file === null || fault === 'gone')
    return fault === 'gone' ? `nothing is left of the chain ${chain}` : `${name} is missing`
  if (fault === 'missing') return `${file} ends after ${fileLine === null ? 0 : fileLine - 1} lines: ${name} is missing`
  const place = `${file}:${fileLine ?? 1}: ${name}`
  if (fault === 'changed') return `${place} was changed`
  return `${place} belongs here: it is missing, or this line or the one before was changed`
}

interface ChainCheck {
  readonly entries: number
  /** null: it holds. */
  readonly broken: Omit<BrokenChain, 'chain'> | null
}

const GONE: ChainCheck = { entries: 0, broken: { line: 1, fault: 'gone', file: null, fileLine: null } }

async function checkChain(place: ChainPlace, signal: AbortSignal | undefined): Promise<ChainCheck> {
  for (let tries = 1; ; tries++) {
    const before = await segmentMark(place)
    // Read first: lines are always on disk before the head that names them.
    const check = await checkFiles(place, await readHead(place), signal)
    if (check.broken === null || tries >= MAX_TRIES || (await segmentMark(place)) === before) return check
  }
}

async function checkFiles(
  place: ChainPlace,
  head: StoredHead | null,
  signal: AbortSignal | undefined
): Promise<ChainCheck> {
  const files = await segmentFiles(place)
  const walk = new Walk(head)
  let end: ChainPosition = { file: null, fileLine: null }
  for (const [index, file] of files.entries()) {
    const { lines, rest } = await linesOf(file)
    for (const [at, text] of lines.entries()) {
      if (at % LINES_A_TURN === 0) await setImmediate(undefined, signal === undefined ? {} : { signal })
      const fault = walk.step(parseLine(text))
      if (fault !== null) return walk.broken(fault, { file, fileLine: at + 1 })
    }
    end = { file, fileLine: lines.length + 1 }
    // The unfinished line of a running writer: it is not in the chain yet.
    const isBeingWritten = index === files.length - 1 && walk.isPastHead
    if (rest !== '' && !isBeingWritten) return walk.broken('changed', end)
  }
  const holds = walk.isComplete || (await isGone(place))
  return holds ? { entries: walk.entries, broken: null } : walk.broken(walk.endFault, end)
}

type ChainPosition = Pick<BrokenChain, 'file' | 'fileLine'>

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

  /** Takes the next line; what is wrong with it. */
  step(line: AuditLine | null): ChainFault | null {
    if (line === null) return 'changed'
    if (!this.#follows(line) || !this.#agreesWithHead(line))
      return line.prev === UNPROVEN && this.#last !== null ? 'headless' : 'misplaced'
    this.#last = line
    this.entries++
    return null
  }

  get isComplete(): boolean {
    return this.isPastHead && (this.#sawFirst || this.#last === null)
  }

  /** The fault of files that end too early. */
  get endFault(): ChainFault {
    return this.#head === null || this.#head.hash === UNPROVEN ? 'headless' : 'missing'
  }

  broken(fault: ChainFault, place: ChainPosition): ChainCheck {
    return { entries: this.entries, broken: { line: this.#expected(), fault, ...place } }
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
