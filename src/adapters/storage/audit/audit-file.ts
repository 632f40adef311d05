import { BoundedSet } from '../../../kit/bounded.js'
import type { Clock, Timer } from '../../../kit/clock.js'
import type { NodeError } from '../../../kit/errors.js'
import type { Audit, AuditEvent } from '../../../ports/audit.js'
import type { AuditChain } from './audit-chains.js'
import type { AuditEntry } from './audit-line.js'
import { RepeatWindows } from './audit-repeats.js'
import { auditError, currentFile, recentRefs } from './audit-segments.js'
import { AuditWriter } from './audit-writer.js'
import type { ChainOpening } from './audit-writer.js'
import { storeError } from '../home/store-errors.js'

/** Milliseconds that lines wait to share one fsync. */
const GATHER_MS = 50
/** Milliseconds between counts of repeats that are written while they go on. */
const COUNT_MS = 1000
/** Milliseconds before a failed write is tried again. */
const RETRY_MS = 1000
/** Lines that wait for the disk; later ones are dropped and counted. */
const MAX_WAITING = 10_000
/** Lines of one write. */
const MAX_BATCH = 1000

/** References that are remembered, to write no event twice. */
const MAX_REFS = 4096

/** Options of one chain of the audit log. */
export interface AuditFileOptions {
  /** Its directory; made 0700 when it is not there. */
  readonly dir: string
  readonly chain: AuditChain
  readonly clock: Clock
  /**
   * Called for each failed write (it is tried again), with the number of lines that had to be dropped and are not on
   * record yet, and the file of the chain.
   */
  readonly onError: (error: NodeError, droppedLines: number, file: string) => void
  /** Called for the first write of a file that works again. */
  readonly onRecovered?: (file: string) => void
  readonly opening: Pick<ChainOpening, 'chains' | 'isLost'>
}

/**
 * Opens one chain of the audit log: one JSON object a line, each with the hash of the line before. Goes on where the
 * chain ended and puts what it found amiss on record as a line of kind `control` and code `CHAIN_NOTE`. Lines of 50 ms
 * share one fsync.
 * @throws NodeError NO_PERMISSION, DISK_FULL, STORE_DAMAGED (a directory in the place of a file)
 */
export async function openAuditFile({ opening, ...options }: AuditFileOptions): Promise<Audit> {
  const { dir, chain } = options
  const place = { dir, name: chain.name }
  const opened = AuditWriter.open(place, { ...chain, ...opening })
  const { writer, notes } = await opened.catch((error: unknown) => Promise.reject(auditError(error, dir)))
  const refs = await recentRefs(place, MAX_REFS)
  return new AuditFile({ ...options, file: currentFile(place), writer, refs, notes })
}

interface FileDeps extends Omit<AuditFileOptions, 'opening'> {
  readonly file: string
  readonly writer: AuditWriter
  readonly refs: ReadonlySet<string>
  readonly notes: readonly string[]
}

class AuditFile implements Audit {
  readonly #deps: FileDeps
  readonly #windows: RepeatWindows
  readonly #refs = new BoundedSet<string>(MAX_REFS)
  #waiting: AuditEntry[] = []
  #dropped = 0
  /** Did the last write fail? */
  #isFailing = false
  #writeTimer: Timer | null = null
  #windowTimer: Timer | null = null
  #countTimer: Timer | null = null
  /** When counts were written last, on the monotonic clock. */
  #countedAt = Number.NEGATIVE_INFINITY
  #writing: Promise<void> = Promise.resolve()
  #closed = false

  constructor(deps: FileDeps) {
    this.#deps = deps
    this.#windows = new RepeatWindows(deps.chain)
    for (const ref of deps.refs) this.#refs.add(ref)
    // Not as events: each says something else, and none may be folded.
    this.#add(deps.notes.map((reason) => this.#note(reason)))
  }

  append(event: AuditEvent, at = this.#deps.clock.now()): void {
    if (this.#closed) this.#dropped++
    else if (this.#isNew(event)) this.#add(this.#windows.take(event, at))
  }

  async flush(): Promise<void> {
    this.#add(this.#windows.ended(Number.POSITIVE_INFINITY))
    await this.#write()
  }

  async close(): Promise<void> {
    if (this.#closed) return this.#writing
    this.#add(this.#windows.ended(Number.POSITIVE_INFINITY))
    this.#closed = true
    this.#stopTimers()
    // The first try may only find that the file was removed. onError got the failure; closing continues.
    await this.#write()
      .catch(() => this.#write())
      .catch(() => {})
    this.#stopTimers()
    await this.#deps.writer.close()
  }

  #isNew({ ref }: AuditEvent): boolean {
    if (ref === undefined) return true
    if (this.#refs.has(ref)) return false
    this.#refs.add(ref)
    return true
  }

  #add(entries: readonly AuditEntry[], delayMs = GATHER_MS): void {
    if (this.#countTimer === null && this.#windows.hasCounts) this.#countLater()
    // A repeat: the other timers run already.
    if (entries.length === 0) return
    const left = MAX_WAITING - this.#waiting.length
    this.#waiting.push(...entries.slice(0, left))
    this.#dropped += Math.max(0, entries.length - left)
    this.#schedule(delayMs)
  }

  /**
   * The count of repeats that begin comes with the lines of the next 50 ms, further ones once a second: a kill loses no
   * more.
   */
  #countLater(): void {
    const { clock } = this.#deps
    const waitMs = Math.max(GATHER_MS, this.#countedAt + COUNT_MS - clock.monotonic())
    this.#countTimer = clock.after(waitMs, () => {
      this.#countTimer = null
      this.#countedAt = clock.monotonic()
      this.#add(this.#windows.grown(clock.now()), 0)
    })
  }

  #schedule(delayMs: number): void {
    const { clock } = this.#deps
    if (this.#waiting.length > 0) this.#writeTimer ??= clock.after(delayMs, () => this.#writeLater())
    const end = this.#windows.nextEnd
    if (end !== null) this.#windowTimer ??= clock.after(Math.max(0, end - clock.now()), () => this.#endWindows())
  }

  #endWindows(): void {
    this.#windowTimer = null
    this.#add(this.#windows.ended(this.#deps.clock.now()))
    this.#schedule(GATHER_MS)
  }

  #writeLater(): void {
    this.#write().catch(() => {})
  }

  #write(): Promise<void> {
    this.#deps.clock.clear(this.#writeTimer)
    this.#writeTimer = null
    // One after the other; a failed one, also of a flush, must not fail the next.
    const result = this.#writing.then(() => this.#writeWaiting())
    this.#writing = result.catch(() => {
      if (!this.#closed) this.#schedule(RETRY_MS)
    })
    return result
  }

  async #writeWaiting(): Promise<void> {
    while (this.#waiting.length > 0 || this.#dropped > 0) {
      const batch = this.#waiting.slice(0, MAX_BATCH)
      const dropped = this.#dropped
      try {
        await this.#deps.writer.append(
          dropped > 0
            ? [...batch, { ...this.#note('lines were dropped, the disk did not keep up'), count: dropped }]
            : batch
        )
      } catch (error) {
        const fault = storeError(error, this.#deps.dir)
        this.#isFailing = true
        this.#deps.onError(fault, dropped, this.#deps.file)
        throw fault
      }
      if (this.#isFailing) this.#deps.onRecovered?.(this.#deps.file)
      this.#isFailing = false
      this.#waiting = this.#waiting.slice(batch.length)
      this.#dropped -= dropped
    }
  }

  #note(reason: string): AuditEntry {
    return { kind: 'control', code: 'CHAIN_NOTE', reason, at: new Date(this.#deps.clock.now()).toISOString() }
  }

  #stopTimers(): void {
    this.#deps.clock.clear(this.#writeTimer)
    this.#deps.clock.clear(this.#windowTimer)
    this.#deps.clock.clear(this.#countTimer)
    this.#countTimer = null
    this.#writeTimer = null
    this.#windowTimer = null
  }
}
