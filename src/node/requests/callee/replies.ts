import { backoffMs } from '../../../kit/backoff.js'
import type { Clock, Timer } from '../../../kit/clock.js'
import { asNodeError, messageOf, NodeError, type ErrorBody, type ErrorCode } from '../../../kit/errors.js'
import type { RequestRecord } from '../../../domain/reliable/records.js'
import { isForgotten } from '../../../domain/reliable/repeat.js'
import { SETTLED } from '../../../domain/reliable/request.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import type { NodeId } from '../../../kit/ids.js'
import { OPERATOR } from '../../../domain/card/card.js'
import type { CalleeRequests } from './record.js'
import type { ExchangeTable } from '../../messaging/exchange-table.js'
import type { Directory } from '../../cards/directory.js'
import type { Thread } from '../../messaging/inbound-message.js'
import type { OutboundDraft, Outbound } from '../../messaging/outbound.js'
import type { NextHop } from '../../relay/next-hop.js'
import type { RequestStore } from '../store.js'

/** Errors of a ledger that may take changes later. */
const LATER: ReadonlySet<ErrorCode> = new Set(['DISK_FULL', 'NO_PERMISSION'])
/** First delay between attempts to commit, in milliseconds; doubled each time. */
const RETRY_MS = 1000
/** Longest such delay, in milliseconds. */
const MAX_RETRY_MS = 60_000

/** Dependencies of replies. */
export interface RepliesDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly outbound: Pick<Outbound, 'send'>
  readonly exchanges: Pick<ExchangeTable, 'end'>
  readonly directory: Pick<Directory, 'card'>
  readonly nextHop: Pick<NextHop, 'isReachable'>
  readonly self: NodeId
  readonly requestStore: RequestStore
  readonly callee: CalleeRequests
  /** How long a recorded reply waits for its caller, in milliseconds. */
  readonly answerTtlMs: number
  /** Commits changes to the ledger. @throws NodeError the ledger's error. */
  commit(changes: readonly LedgerChange[]): Promise<void>
}

/** Options of a response. */
export interface ResponseParts {
  /** Ledger changes to commit with it. */
  readonly changes?: readonly LedgerChange[]
  /** The result fits no message, so the request failed with this error. */
  onUnfit?(error: ErrorBody): void
}

/** The last reply to a request, and the ledger changes with it. */
interface Last extends ResponseParts {
  readonly type: 'response' | 'error'
  readonly payload: unknown
  readonly changes: readonly LedgerChange[]
}

/**
 * Replies on threads. The last reply to a request that was recorded, or came over a lane, goes over a lane. One commit
 * has it and the end of the request. Other requests only read: their reply is sent once, and a caller that missed it
 * asks again.
 */
export class Replies {
  readonly #deps: RepliesDeps
  readonly #waits = new Map<Timer, () => void>()
  #isStopping = false
  #isClosed = false

  constructor(deps: RepliesDeps) {
    this.#deps = deps
  }

  /**
   * Ends a request with a response. Resolves when it is on its way or waits for its caller: true when the changes are
   * on record.
   * Never rejects.
   */
  respond(thread: Thread, payload: unknown, parts: ResponseParts = {}): Promise<boolean> {
    return this.#last(thread, { type: 'response', payload, ...parts, changes: parts.changes ?? [] })
  }

  /** Tells the sender of an opening message that it was refused, which ends a recorded request. As {@link respond}. */
  async refuse(thread: Thread, error: ErrorBody): Promise<boolean> {
    return await this.#last(thread, { type: 'error', payload: error, changes: await this.refused(thread, error) })
  }

  /** Ends a request with a result that fits no message. */
  async #refuseUnfit(thread: Thread, error: ErrorBody): Promise<void> {
    await this.#last(thread, { type: 'error', payload: error, changes: await this.refused(thread, error, true) })
  }

  /** Ends a recorded request without a waiting caller. As {@link respond}. */
  async withdraw(thread: Thread): Promise<boolean> {
    this.#deps.exchanges.end(thread)
    const error = new NodeError('CANCELED', 'canceled by its caller').toBody()
    return await this.#commit(await this.refused(thread, error))
  }

  /** Commits changes without a reply. Never rejects. */
  async note(changes: readonly LedgerChange[]): Promise<void> {
    await this.#commit(changes)
  }

  /** Sends progress, if the caller is reachable. */
  progress(thread: Thread, payload: unknown): void {
    const { nodeId } = thread.recipient
    if (nodeId !== this.#deps.self && !this.#deps.nextHop.isReachable(nodeId)) return
    this.#send(thread, { type: 'stream-data', payload }).catch((error: unknown) => this.#note(thread, error))
  }

  /** This node stops: unrecorded replies are sent now or never; pending commits are retried at once and often. */
  stopping(): void {
    this.#isStopping = true
    this.#wake()
  }

  /** Ends all retries. */
  close(): void {
    this.#isClosed = true
    this.#wake()
  }

  #wake(): void {
    for (const [timer, go] of this.#waits) {
      this.#deps.clock.clear(timer)
      go()
    }
    this.#waits.clear()
  }

  /**
   * The changes by which a refusal ends a recorded request. Unrepeatable work that has begun ends only with its run;
   * `hasRun`: it is over.
   */
  async refused({ request }: Thread, error: ErrorBody, hasRun = false): Promise<readonly LedgerChange[]> {
    if (request === undefined) return []
    const { requestStore, callee } = this.#deps
    const record: RequestRecord | null = await requestStore
      .get(request)
      .catch((failure: unknown) => this.#damaged(failure))
    if (
      record === null ||
      SETTLED.has(record.status) ||
      (record.status === 'started' && !record.isRepeatable && !hasRun)
    )
      return []
    return isForgotten(error.code) ? requestStore.removal(record) : callee.end(record, { status: 'failed', error })
  }

  async #last(thread: Thread, last: Last): Promise<boolean> {
    const { exchanges, self, answerTtlMs: ttlMs } = this.#deps
    const isByLane = thread.recipient.nodeId !== self && (thread.isReliable === true || thread.request !== undefined)
    const { type, payload, changes } = last
    const requestId = thread.request ?? null
    const reliable = { requestId, mayWait: true, ttlMs, changes: () => changes }
    let isKept = true
    try {
      if (isByLane) await this.#insist(() => this.#send(thread, { type, payload, reliable }))
      else {
        isKept = await this.#commit(changes)
        await this.#send(thread, { type, payload })
      }
    } catch (error) {
      isKept = await this.#unsent(thread, last, asNodeError(error))
    }
    exchanges.end(thread)
    return isKept
  }

  #send(thread: Thread, reply: Pick<OutboundDraft, 'type' | 'payload' | 'reliable'>): Promise<unknown> {
    // A node that stops does not wait for a channel to reopen.
    return this.#deps.outbound.send({ isKept: this.#isStopping, ...reply, ...asOperatorIfGone(thread, this.#deps) })
  }

  /** The reply is not sent; the end of the request must be on record all the same. */
  async #unsent(thread: Thread, { type, changes, onUnfit }: Last, error: NodeError): Promise<boolean> {
    const isUnfit = error.code === 'PAYLOAD_TOO_LARGE' || error.code === 'INVALID_ENVELOPE'
    if (type === 'response' && isUnfit) {
      onUnfit?.(error.toBody())
      await this.#refuseUnfit(thread, error.toBody())
      return false
    }
    this.#note(thread, error)
    return await this.#commit(changes)
  }

  /** True: the changes are on record. */
  async #commit(changes: readonly LedgerChange[]): Promise<boolean> {
    if (changes.length === 0) return true
    return await this.#insist(() => this.#deps.commit(changes)).then(
      () => true,
      (error: unknown) => {
        this.#damaged(error)
        return false
      }
    )
  }

  /** Repeats an action while the ledger refuses changes. */
  #insist(run: () => Promise<unknown>): Promise<unknown> {
    return run().catch((error: unknown) => this.#again(run, error))
  }

  async #again(run: () => Promise<unknown>, error: unknown): Promise<unknown> {
    let failure = error
    for (let retry = 0; ; retry++) {
      if (this.#isClosed || !LATER.has(asNodeError(failure).code)) throw failure
      await this.#pause(this.#isStopping ? RETRY_MS : backoffMs({ baseMs: RETRY_MS, maxMs: MAX_RETRY_MS }, retry))
      try {
        return await run()
      } catch (next) {
        failure = next
      }
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#deps.clock.after(ms, () => {
        this.#waits.delete(timer)
        resolve()
      })
      this.#waits.set(timer, resolve)
    })
  }

  #damaged(error: unknown): null {
    this.#deps.telemetry.count('errors', 'ledger')
    this.#deps.telemetry.log('error', 'the end of a request could not be recorded', { reason: messageOf(error) })
    return null
  }

  #note({ correlationId }: Thread, error: unknown): void {
    this.#deps.telemetry.log('warn', 'an answer could not be sent', { correlationId, reason: messageOf(error) })
  }
}

/** The operator answers for an agent that is missing or was removed. */
function asOperatorIfGone(thread: Thread, { directory, self }: Pick<RepliesDeps, 'directory' | 'self'>): Thread {
  return directory.card(thread.sender) === undefined
    ? { ...thread, sender: { agentId: OPERATOR, nodeId: self } }
    : thread
}
