import type { Clock } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import type { Problem } from '../../../ports/node-api.js'
import { brokenText, verifyAudit } from './audit-verify.js'
import type { BrokenChain } from './audit-verify.js'

/** How often the whole log is checked while a node runs, in milliseconds: once a day. */
const CHECK_MS = 24 * 3_600_000

/** Dependencies of {@link AuditWatch}. */
export interface AuditWatchDeps {
  readonly dir: string
  /** As in `VerifyOptions`. */
  readonly seen?: string
  readonly clock: Clock
  readonly telemetry: Telemetry
}

/** Checks the audit log of a running node when asked to and once a day, and keeps its faults for `status`. */
export class AuditWatch {
  readonly #deps: AuditWatchDeps
  readonly #end = new AbortController()
  #broken: readonly BrokenChain[] = []
  #running: Promise<void> = Promise.resolve()

  constructor(deps: AuditWatchDeps) {
    this.#deps = deps
    const timer = deps.clock.every(CHECK_MS, () => this.check())
    this.#end.signal.addEventListener('abort', () => deps.clock.clear(timer))
  }

  /** Begins a check, after the one that is under way. */
  check(): void {
    this.#running = this.#running.then(() => this.#check())
  }

  /** The chains that the last check found broken, as one problem: one removal may break several. */
  problems(): Problem[] {
    const [first, ...others] = this.#broken
    if (first === undefined) return []
    const more = others.length === 0 ? '' : `; further broken chains: ${others.map(({ chain }) => chain).join(', ')}`
    const message = `the audit log is broken: ${brokenText(first)}${more}`
    return [{ code: 'STORE_DAMAGED', message, next: 'a2a-node audit --verify' }]
  }

  /** Ends a check that is under way, and begins no further one. */
  async close(): Promise<void> {
    this.#end.abort()
    await this.#running
  }

  async #check(): Promise<void> {
    const { dir, seen, telemetry } = this.#deps
    const { signal } = this.#end
    if (signal.aborted) return
    try {
      const { broken } = await verifyAudit(dir, { signal, ...(seen === undefined ? {} : { seen }) })
      this.#broken = broken
      for (const one of broken) telemetry.log('error', 'the audit log is broken', { ...one })
    } catch (error) {
      if (!signal.aborted) telemetry.log('warn', 'the audit log could not be checked', { reason: messageOf(error) })
    }
  }
}
