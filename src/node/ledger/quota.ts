import type { Clock, Timer } from '../../kit/clock.js'
import { messageOf } from '../../kit/errors.js'
import type { ErrorBody } from '../../kit/errors.js'
import type { Ledger } from '../../ports/ledger.js'
import type { Problem } from '../../ports/node-api.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { ENDINGS } from '../../domain/task/outcome.js'

/** How often the size of the ledger is measured, in milliseconds. */
const WEIGH_MS = 5000
/** Share of the quota below which a full ledger takes new requests again. */
const BELOW = 0.9

/** Dependencies of the ledger quota. */
export interface LedgerQuotaDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly ledger: Pick<Ledger, 'size' | 'fault'>
  /** Bytes on disk above which new requests are refused. */
  readonly maxBytes: number
}

/** Whether the ledger has room for new requests. Requests on record always run to their end: nothing is evicted. */
export class LedgerQuota {
  readonly #deps: LedgerQuotaDeps
  #isFull = false
  #timer: Timer | null = null

  constructor(deps: LedgerQuotaDeps) {
    this.#deps = deps
  }

  /** The error for peers with new requests; null: they are admitted. */
  get refusal(): ErrorBody | null {
    const { fault = null } = this.#deps.ledger
    if (fault !== null) return (fault.code === 'DISK_FULL' ? ENDINGS.diskFull : ENDINGS.unwritable).error
    return this.#isFull ? ENDINGS.full.error : null
  }

  /** Is the ledger over its quota? */
  get isFull(): boolean {
    return this.#isFull
  }

  /** Starts the measurements. */
  start(): void {
    this.#timer = this.#deps.clock.every(WEIGH_MS, () => void this.#weigh())
  }

  /** Stops the measurements. */
  stop(): void {
    this.#deps.clock.clear(this.#timer)
  }

  /** The problem for `status` while the ledger is full. */
  problems(): readonly Problem[] {
    if (!this.#isFull) return []
    const message = `the ledger has more than ${this.#deps.maxBytes} bytes: new requests are refused until old ones expire`
    return [{ code: 'OVERLOADED', message, next: 'a2a-node config show' }]
  }

  async #weigh(): Promise<void> {
    const { ledger, maxBytes, telemetry } = this.#deps
    try {
      const { bytes } = await ledger.size()
      const isFull = bytes > maxBytes * (this.#isFull ? BELOW : 1)
      if (isFull !== this.#isFull)
        telemetry.log('warn', isFull ? 'the ledger is full' : 'the ledger has room again', { bytes })
      this.#isFull = isFull
    } catch (error) {
      telemetry.log('warn', 'the ledger could not be weighed', { reason: messageOf(error) })
    }
  }
}
