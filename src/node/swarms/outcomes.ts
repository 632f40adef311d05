import type { Clock } from '../../kit/clock.js'
import { asNodeError, NodeError, type ErrorBody } from '../../kit/errors.js'
import { encodePayload } from '../../domain/envelope/codec.js'
import type { SwarmEffect } from '../../domain/swarm/machine.js'
import { RECORDS } from '../../domain/swarm/record-index.js'
import type { LedgerEntry } from '../../ports/ledger.js'
import type { NotificationQueue } from '../ledger/commit-queue.js'
import { stepsFor } from '../messaging/error-hints.js'
import { sizeOf } from '../../kit/size.js'
import type { SwarmReport } from './report.js'
import { retryable } from './retry.js'
import type { StageChange } from './stages.js'
import type { Cancellation, SwarmEnd, SwarmHead, SwarmLease, SwarmRow, SwarmStore } from './store.js'

/** Bytes of an agent's error data that the outcome of the whole swarm repeats. */
const MAX_DATA_BYTES = 16 * 1024

/** Approximate bytes of an item's result and error. */
export function bytesOf({ row: { result, error } }: SwarmRow): number {
  return sizeOf(result) + sizeOf(error)
}

/** Dependencies of outcomes. */
export interface OutcomesDeps {
  readonly clock: Clock
  readonly swarmStore: SwarmStore
  readonly limits: { readonly defaultTtlMs: number }
  /** Is there room for a result of this many bytes? */
  hasCapacity(bytes: number): boolean
}

/** The swarm whose outcomes are recorded. */
interface OutcomesOf {
  readonly head: SwarmHead
  readonly report: SwarmReport
  readonly notifications: NotificationQueue
  /** Its state at the end. */
  standing(): Omit<SwarmEnd, 'status' | 'error'>
  /** An outcome is durable: now other items may use it. */
  onChange(change: StageChange): void
  /** Its end is durable. */
  onEnd(): void
}

/** Records the outcomes of one swarm, of its items and of itself, and reports each once it is durable. */
export class SwarmOutcomes {
  readonly #deps: OutcomesDeps
  readonly #swarm: OutcomesOf
  #bytes = 0
  /** Outcomes so far. */
  #order = 0
  #end: SwarmEnd | null = null

  constructor(deps: OutcomesDeps, swarm: OutcomesOf) {
    this.#deps = deps
    this.#swarm = swarm
  }

  /** Approximate bytes of the outcomes. */
  get bytes(): number {
    return this.#bytes
  }

  /** The end of the swarm, once that is durable; null until then. */
  get end(): SwarmEnd | null {
    return this.#end
  }

  /** Adds an outcome recorded before this start. */
  restore(row: SwarmRow): void {
    this.#bytes += bytesOf(row)
    this.#order = Math.max(this.#order, row.order)
    this.#swarm.report.eventLog.settled(row)
  }

  /** Why a result is refused; null when it is accepted. */
  fault(lease: SwarmLease, result: unknown): NodeError | null {
    const { swarmStore, hasCapacity } = this.#deps
    const { head, report } = this.#swarm
    if (!hasCapacity(sizeOf(result)))
      return new NodeError('PAYLOAD_TOO_LARGE', 'the results of the swarms take all the memory they may have')
    try {
      const row = {
        ...report.shown(lease),
        status: 'completed',
        result,
        error: null,
        durationMs: Number.MAX_SAFE_INTEGER
      } as const
      swarmStore.settled(head, { index: lease.index, order: Number.MAX_SAFE_INTEGER, holder: lease.agent, row })
      return null
    } catch (error) {
      return asNodeError(error)
    }
  }

  /** Records the outcome of an item. */
  settle(effect: Extract<SwarmEffect, { type: 'item' }>): void {
    const { head, report, notifications, onChange } = this.#swarm
    const { index, agent: holder, status, result, durationMs } = effect
    const shown = report.shown(effect)
    const error = effect.error === null ? null : stepsFor(effect.error, shown.agent)
    const { row, change } = keptRow(this.#deps.swarmStore, head, {
      index,
      order: ++this.#order,
      holder,
      row: { ...shown, status, result, error, durationMs }
    })
    this.#bytes += bytesOf(row)
    const notify = (): void => {
      report.eventLog.settled(row)
      onChange(report.stages.settled(row))
    }
    notifications.add({ changes: [change], record: { index, content: change.value }, notify })
  }

  /** Ends the swarm: its result is determined once all its outcomes were reported. */
  finish(ended: SwarmEnd['status'], durationMs: number, canceledBy: Cancellation | null = null): void {
    const { clock, limits, swarmStore } = this.#deps
    const { head, report, notifications, standing, onEnd } = this.#swarm
    const { stages, eventLog } = report
    notifications.addLast(() => {
      const status = ended === 'canceled' ? ended : stages.verdict()
      const error = endError(head, status, repeatedError(stages.fault() ?? eventLog.firstError()))
      const by = ended === 'canceled' && canceledBy !== null ? { canceledBy } : {}
      const end = { ...standing(), status, durationMs, error, ...by }
      const changes = swarmStore.ended(head, {
        end,
        expiresAt: clock.now() + limits.defaultTtlMs,
        kept: retryable(head, eventLog.rows.values())
      })
      const notify = (): void => {
        this.#end = end
        onEnd()
        eventLog.tell({
          type: 'done',
          id: head.id,
          status,
          counts: end.counts,
          durationMs,
          error,
          ...stages.together()
        })
      }
      return { changes, record: { index: RECORDS.end(head.itemCount), content: encodePayload(end) }, notify }
    })
  }
}

/** The error of an ended swarm; null when all went well. `fault`: its first failure. */
function endError({ isRestored }: SwarmHead, status: SwarmEnd['status'], fault: ErrorBody | null): ErrorBody | null {
  if (status !== 'canceled') return status === 'completed' ? null : fault
  const restored =
    'this home was restored from a backup that was made while the swarm ran: what it has done since is not known here'
  return new NodeError(
    'CANCELED',
    isRestored === true ? `${restored}, so it was canceled` : 'the swarm was canceled'
  ).toBody()
}

/** The change that records an item's outcome. Its error data may be too large to be stored: then it is dropped. */
function keptRow(
  swarmStore: SwarmStore,
  head: SwarmHead,
  row: SwarmRow
): { readonly row: SwarmRow; readonly change: LedgerEntry } {
  try {
    return { row, change: swarmStore.settled(head, row) }
  } catch {
    const bare = { ...row, row: { ...row.row, error: bareOf(row.row.error) } }
    return { row: bare, change: swarmStore.settled(head, bare) }
  }
}

/** An item's error as the outcome of the whole swarm repeats it. */
function repeatedError(error: ErrorBody | null): ErrorBody | null {
  return sizeOf(error?.data) > MAX_DATA_BYTES ? bareOf(error) : error
}

function bareOf(error: ErrorBody | null): ErrorBody | null {
  if (error === null) return null
  const { data: _data, ...bare } = error
  return bare
}
