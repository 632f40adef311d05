import path from 'node:path'
import type { Clock, Timer } from '../../../kit/clock.js'
import { fileReason } from '../../../kit/file-reason.js'
import { shellWord } from '../../../kit/text.js'
import type { Problem } from '../../../ports/node-api.js'
import { storeError } from './store-errors.js'

/** How often the writes that failed are tried again, in milliseconds. */
const RETRY_MS = 2000

/** A write that failed. */
export interface FailedWrite {
  readonly error: unknown
  /** Tries it again. Absent: its writer does, and reports the result. */
  readonly again?: () => Promise<void>
}

/** Dependencies of {@link WriteFaults}. */
export interface WriteFaultsDeps {
  readonly clock: Pick<Clock, 'every' | 'clear'>
}

/**
 * Files of a home whose last write failed, for `status`: audit log, documents, remembered flags. Each one leaves with
 * the next write that works.
 */
export class WriteFaults {
  readonly #deps: WriteFaultsDeps
  readonly #failed = new Map<string, FailedWrite>()
  #timer: Timer | null = null
  #trying: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(deps: WriteFaultsDeps) {
    this.#deps = deps
  }

  /** Takes the result of a write. `file` is absolute; null: it worked. */
  report(file: string, failed: FailedWrite | null): void {
    if (failed === null) this.#failed.delete(file)
    else this.#failed.set(file, failed)
    if (this.#failed.size > 0 && !this.#isClosed) this.#timer ??= this.#deps.clock.every(RETRY_MS, () => this.#retry())
    else this.#stop()
  }

  /** One problem for each file whose last write failed. */
  problems(): readonly Problem[] {
    return [...this.#failed].map(([file, { error }]) => writeProblem(file, error))
  }

  /** Ends a try that is under way, and begins no further one. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#stop()
    await this.#trying
  }

  #stop(): void {
    this.#deps.clock.clear(this.#timer)
    this.#timer = null
  }

  #retry(): void {
    this.#trying = this.#trying.then(async () => {
      for (const [file, failed] of this.#failed) await this.#tryAgain(file, failed)
    })
  }

  async #tryAgain(file: string, { again }: FailedWrite): Promise<void> {
    if (again === undefined || this.#timer === null) return
    try {
      await again()
      this.report(file, null)
    } catch (error) {
      this.report(file, { error, again })
    }
  }
}

/** Codes of errors whose message names the file and the cause. */
const PLAIN: ReadonlySet<string> = new Set(['DISK_FULL', 'NO_PERMISSION', 'PATH_TOO_LONG'])

/** The problem of a file that takes nothing, with its cause and a next step. */
export function writeProblem(file: string, failed: unknown): Problem {
  const { code, message, next, cause } = storeError(failed, file)
  const look = `ls -ld ${shellWord(path.dirname(file))}`
  if (PLAIN.has(code)) return { code, message: `${message}; it is tried again`, next: next[0] ?? look }
  const reason = fileReason(cause ?? failed)
  return { code: 'STORE_DAMAGED', message: `${file} cannot be written: ${reason}; it is tried again`, next: look }
}
