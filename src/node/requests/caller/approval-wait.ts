import type { Clock, Timer } from '../../../kit/clock.js'
import type { AgentAddress } from '../../../domain/card/card.js'
import type { ReportedApproval } from '../../../domain/channel/control.js'
import { MAX_APPROVAL_WAIT_MS } from '../../../domain/task/approval-wait.js'
import { PATIENCE } from './request-codec.js'

/**
 * The report of a peer on a request: it is in progress (null), or waits for a free slot of its agent, or for a person,
 * with the approval if the peer names it.
 */
export type ReportedWait = 'slot' | { readonly approval: ReportedApproval | null } | null

/** The present wait of a request for a person. */
export interface PresentWait {
  /** Unix milliseconds of the first report. */
  readonly since: number
  /** By the last report: the id at its peer, and its end in Unix milliseconds; null from older builds. */
  readonly approval: { readonly id: string; readonly until: number } | null
}

/** A request that waits for a person at its peer. */
export interface AwaitedApproval extends PresentWait {
  readonly target: AgentAddress
  readonly capability: string | null
  /** null for leases. */
  readonly taskId: string | null
  /** Id of the swarm whose lease it is. */
  readonly swarm: string | null
}

/**
 * The time that a request waited for a person at its peer, by the reports of the peer: at most
 * {@link MAX_APPROVAL_WAIT_MS} in all. A report counts for `leaseMs`, then the wait counts as over.
 */
export class ApprovalWait {
  readonly #clock: Clock
  readonly #leaseMs: number
  /** Milliseconds of earlier waits. */
  #beforeMs = 0
  /** Monotonic milliseconds of the first and the last report of the present wait; null: it does not wait. */
  #now: { readonly since: number; readonly reportedAt: number } | null = null
  #present: PresentWait | null = null

  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock
    this.#leaseMs = leaseMs
  }

  /** The present wait, by the last report; null: none. */
  get present(): PresentWait | null {
    return this.#present
  }

  /** Does it wait, by the last report? */
  get isWaiting(): boolean {
    return this.#now !== null
  }

  /** Its milliseconds so far. */
  get ms(): number {
    return Math.min(MAX_APPROVAL_WAIT_MS, this.#beforeMs + this.#presentMs)
  }

  /** Milliseconds that it may still wait. */
  get leftMs(): number {
    return MAX_APPROVAL_WAIT_MS - this.ms
  }

  /** Milliseconds until the present wait counts as over without a further report; 0 without one. */
  get graceMs(): number {
    if (this.#now === null || this.leftMs === 0) return 0
    return Math.max(0, Math.min(this.leftMs, this.#now.reportedAt + this.#leaseMs - this.#clock.monotonic()))
  }

  /** Its peer reports that it waits, with the approval if it names it. */
  reported(report: Exclude<ReportedWait, 'slot'> = null): void {
    const now = this.#clock.monotonic()
    const [wall, approval] = [this.#clock.now(), report?.approval ?? null]
    const since = this.#present?.since ?? wall
    // Time after a report has run out is none of waiting.
    if (this.#now !== null && this.graceMs === 0) this.over()
    this.#now = { since: this.#now?.since ?? now, reportedAt: now }
    this.#present = { since, approval: approval && { id: approval.id, until: wall + approval.leftMs } }
  }

  /** Its peer reports that it waits no longer. */
  over(): void {
    this.#beforeMs += this.#presentMs
    this.#now = null
    this.#present = null
  }

  get #presentMs(): number {
    if (this.#now === null) return 0
    const { since, reportedAt } = this.#now
    return Math.min(this.#clock.monotonic(), reportedAt + this.#leaseMs) - since
  }
}

/** Callbacks of the timers of a caller. */
interface TimerListener {
  /** The timeout of the answer is over. */
  onTimeout(): void
  /** The peer stays offline. */
  onGone(): void
  /** A late answer counts no longer. */
  onLate(): void
}

/**
 * The times for which the caller of a request waits: for its answer, for a peer that is offline, and for a late answer.
 * The first does not pass during a wait for approval, if it is extended.
 */
export class CallerTimers {
  readonly #clock: Clock
  readonly #wait: ApprovalWait
  readonly #options: TimerListener & { readonly isExtended: boolean }
  /** Of the timeout, then of the time for a late answer. */
  #timer: Timer | null = null
  #goneTimer: Timer | null = null
  /** The end of the timeout without waits for approval, on the monotonic clock. */
  #endsAt = 0

  constructor(clock: Clock, wait: ApprovalWait, options: TimerListener & { readonly isExtended: boolean }) {
    this.#clock = clock
    this.#wait = wait
    this.#options = options
  }

  /** Starts the timeout. */
  start(ms: number): void {
    this.#endsAt = this.#clock.monotonic() + ms
    this.#after(ms, () => this.#onTime())
  }

  /** A wait for approval is over: the rest of the timeout passes from now on. */
  goesOn(): void {
    this.#after(this.#leftMs, () => this.#onTime())
  }

  /** Starts the time for a late answer, in the place of the timeout. */
  startLate(ms: number): void {
    this.peerIsBack()
    this.#after(ms, () => this.#options.onLate())
  }

  /** The peer is offline. */
  peerIsGone(): void {
    this.#goneTimer ??= this.#clock.after(PATIENCE.goneMs, () => this.#options.onGone())
  }

  /** The peer is back. */
  peerIsBack(): void {
    this.#clock.clear(this.#goneTimer)
    this.#goneTimer = null
  }

  /** Stops all timers. */
  stop(): void {
    this.#clock.clear(this.#timer)
    this.peerIsBack()
  }

  get #leftMs(): number {
    const waitedMs = this.#options.isExtended ? this.#wait.ms : 0
    return Math.max(0, this.#endsAt + waitedMs - this.#clock.monotonic())
  }

  #after(ms: number, onTime: () => void): void {
    this.#clock.clear(this.#timer)
    this.#timer = this.#clock.after(ms, onTime)
  }

  #onTime(): void {
    const left = this.#leftMs
    if (left === 0) this.#options.onTimeout()
    else this.#after(left + this.#wait.graceMs, () => this.#onTime())
  }
}
