import type { NodeId } from '../../kit/ids.js'
import {
  stepSwarm,
  swarmStatus,
  type RunOutcome,
  type SwarmEffect,
  type SwarmInput,
  type SwarmState
} from '../../domain/swarm/machine.js'
import type { SwarmEvent, SwarmInfo, SwarmResults, SwarmStatus } from '../../ports/swarm-api.js'
import type { Directory } from '../cards/directory.js'
import { CommitQueue, type CommitQueueDeps, type NotificationQueue } from '../ledger/commit-queue.js'
import { eventLogOf, infoOf, type SwarmObserver, type SwarmView } from './finished-swarm.js'
import type { Cancellation, SwarmEnd, SwarmHead, SwarmItem, SwarmLease } from './store.js'
import type { Following } from './event-log.js'
import type { ItemRun, LeaseRequests, LeasesOf } from './lease-requests.js'
import type { SwarmLaunch } from './create.js'
import { restoreState, type SwarmPast } from './restore.js'
import { subTaskIndex, type SwarmSession } from './session.js'
import type { Recruiter, Recruiting } from './offers.js'
import { SwarmOutcomes, type OutcomesDeps } from './outcomes.js'
import { SwarmReport, type LeaseName } from './report.js'
import type { StageChange } from './stages.js'
import type { Leadership } from './consensus/leadership.js'
import type { Survey } from './eligibility.js'

/** Dependencies of a coordinator. */
export interface CoordinatorDeps extends CommitQueueDeps, OutcomesDeps {
  readonly directory: Directory
  readonly limits: { readonly leaseMs: number; readonly defaultTtlMs: number }
  readonly observer: SwarmObserver<Coordinator>
  /** Makes the lease requests of a swarm. */
  createLeases(swarm: LeasesOf): LeaseRequests
  /** Makes the offers of a swarm. */
  createRecruiter(swarm: Recruiting): Recruiter
}

/** One swarm under way: performs the effects of the lease machine, and reports them once they are durable. */
export class Coordinator implements SwarmView {
  readonly head: SwarmHead
  readonly #deps: CoordinatorDeps
  /** Empty once it has ended. */
  #items: readonly SwarmItem[]
  readonly #state: SwarmState
  readonly #report: SwarmReport
  readonly #recruiting: Recruiter
  readonly #leases: LeaseRequests
  readonly #outcomes: SwarmOutcomes
  readonly #notifications: NotificationQueue
  readonly #term: Leadership | null
  #canceledBy: Cancellation | null = null
  #isStopped = false
  #shownStatus: SwarmStatus = 'running'

  constructor(deps: CoordinatorDeps, { head, items, allowed, past, term }: SwarmLaunch) {
    this.head = head
    this.#deps = deps
    this.#term = term ?? null
    this.#notifications = term ?? new CommitQueue(deps)
    this.#items = items
    this.#state = restoreState({ head, items, past, term }, deps.clock, deps.limits.leaseMs)
    const eventLog = term?.eventLog ?? eventLogOf(head, deps.telemetry)
    this.#report = new SwarmReport(deps.directory, { head, items, eventLog, term: this.#term })
    this.#outcomes = new SwarmOutcomes(deps, {
      head,
      report: this.#report,
      notifications: this.#notifications,
      standing: () => this.#standing(),
      onChange: (change) => this.#go(change),
      onEnd: () => deps.observer.onEnd(this)
    })
    this.#leases = this.#createLeases()
    this.#recruiting = deps.createRecruiter({
      head,
      onInput: (input) => this.#step(input),
      onLeftOut: (leftOut) => eventLog.tell({ type: 'left-out', ...leftOut })
    })
    if (past !== null) this.#resume(past)
    this.#go(this.#report.stages.begin(past?.rows ?? []))
    this.#recruiting.offer(allowed)
  }

  /** True until it has ended; it may be stalled. */
  get isRunning(): boolean {
    return this.end === null
  }

  /** Its status: `stalled` while it runs without any agent that could get a lease. */
  get status(): SwarmStatus {
    if (this.end !== null) return this.end.status
    return this.#recruiting.isRecruiting || this.#state.status !== 'running' ? 'running' : swarmStatus(this.#state)
  }

  /** Its end, once that is durable; null until then. */
  get end(): SwarmEnd | null {
    return this.#outcomes.end
  }

  /** Approximate bytes of its results and errors. */
  get bytes(): number {
    return this.#outcomes.bytes
  }

  /** Its state in the terms of the specification. */
  session(): SwarmSession {
    return this.#report.session(this.#state, this.end, this.#recruiting.isRecruiting)
  }

  /** Offers parts to more agents, by need, at once. */
  invite(agents: readonly (readonly string[])[]): void {
    if (this.isRunning) this.#recruiting.offer(agents)
  }

  /**
   * Ends the live lease of an item with an outcome that is not its agent's, and tells the agent to stop. False: no
   * lease.
   */
  settle(subTask: string, outcome: RunOutcome): boolean {
    const index = subTaskIndex(this.head.id, subTask)
    const lease = index === null ? undefined : this.#leases.of(index)
    if (lease === undefined) return false
    this.#leases.cancel(lease.index, lease.attempt)
    this.#step({ type: 'result', index: lease.index, agent: lease.agent, attempt: lease.attempt, outcome })
    return true
  }

  /**
   * Time passed: asks new agents, drops removed ones, checks leases and deadline. `found`: eligible agents, by need.
   */
  tick(found: readonly Survey[]): void {
    if (this.#isStopped) return
    const known = found.map(({ allowed, leftOut }) => new Set([...allowed, ...leftOut.map((one) => one.agent)]))
    this.#recruiting.dropRemoved(known)
    if (this.#state.status === 'running') this.#recruiting.offer(found.map(({ allowed }) => allowed))
    this.#leases.tick()
    this.#step({ type: 'tick' })
    this.#showStatus()
  }

  #showStatus(): void {
    const { status } = this
    if (status === this.#shownStatus || (status !== 'running' && status !== 'stalled')) return
    this.#shownStatus = status
    this.#report.eventLog.tell({ type: 'status', status })
    this.#deps.observer.onStatus(this, status)
  }

  /** Cancels it: leases are released, open items end. Resolves when that is durable. */
  async cancel(by: Cancellation | null = null): Promise<void> {
    this.#canceledBy ??= by
    this.#step({ type: 'cancel' })
    await this.#notifications.flushed()
  }

  /** This node stops: the swarm resumes from the ledger at its next start. Resolves when no write is under way. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#recruiting.stop()
    this.#leases.stop()
    await this.#notifications.stop()
  }

  /**
   * A peer reports runs of items: in progress, or waiting for a person there (`awaitsApproval`). Returns the runs
   * without a live lease.
   */
  onHeartbeat(peer: NodeId, runs: readonly ItemRun[], awaitsApproval: boolean): ItemRun[] {
    return this.#leases.onHeartbeat(peer, runs, awaitsApproval)
  }

  /** Do all its leases wait for a person, by the reports of their nodes? */
  get awaitsApproval(): boolean {
    const { waiting, size } = this.#leases
    return waiting > 0 && waiting === size
  }

  /** A peer is gone: leases of its agents that others may get return at once. */
  lost(peer: NodeId): void {
    const agents = this.#recruiting.lost(peer)
    if (agents.length > 0) this.#step({ type: 'gone', agents, reason: 'its node is gone' })
  }

  /** The events so far, and a subscription to later ones. */
  follow(listener: (event: SwarmEvent) => void): Following {
    return this.#report.eventLog.follow(listener)
  }

  /** Its accepted results so far, in the order of the items. */
  results(): SwarmResults {
    return this.#report.results(this.status, this.end !== null)
  }

  /** Its full state. */
  info(): SwarmInfo {
    const { head, status } = this
    const { waiting, size } = this.#leases
    return {
      ...infoOf(head, this.end ?? { ...this.#standing(), status, error: null }, this.#deps.directory),
      running: size - waiting,
      waitingForApproval: waiting
    }
  }

  #createLeases(): LeaseRequests {
    const [{ swarmStore }, { head }] = [this.#deps, this]
    return this.#deps.createLeases({
      head,
      work: (index) => ({
        capability: this.#report.stages.capability(index),
        input: this.#report.stages.input(index, this.#items)
      }),
      changes: (lease) => [swarmStore.leased(head.id, lease)],
      term: this.#term,
      fault: (lease, result) => this.#outcomes.fault(lease, result),
      onInput: (input) => this.#step(input),
      onApprovalChange: (lease, awaitsApproval) => this.#report.awaits(lease, awaitsApproval)
    })
  }

  /** Applies the stage changes after a recorded outcome. */
  #go({ moves, events }: StageChange): void {
    for (const event of events) this.#report.eventLog.tell(event)
    for (const move of moves) {
      const { from = 0, count = 0 } = this.head.stages[move.stage] ?? {}
      this.#step(inputOf(move, from, count))
    }
  }

  #resume({ rows, leases }: SwarmPast): void {
    for (const row of rows) {
      if (row.holder !== '') this.#report.participants.add(row.holder)
      this.#outcomes.restore(row)
    }
    const settled = new Set(rows.map(({ index }) => index))
    for (const lease of leases) {
      // A resting lease was not requested when this node stopped.
      if (settled.has(lease.index) || lease.rest !== undefined) this.#report.participants.add(lease.agent)
      else {
        this.#report.leased(lease)
        this.#leases.resume(lease)
      }
    }
  }

  #elapsed(): number {
    return Math.round(this.#deps.clock.monotonic() - this.#state.createdAt)
  }

  #step(input: SwarmInput): void {
    if (this.#isStopped || this.#term?.isOn === false) return
    const { effects } = stepSwarm(this.#state, input, this.#deps.clock.monotonic())
    for (const effect of effects) this.#perform(effect)
  }

  #perform(effect: SwarmEffect): void {
    switch (effect.type) {
      case 'lease':
        return this.#begin(effect)
      case 'release':
        this.#leases.cancel(effect.index, effect.attempt)
        return this.#report.released(effect, effect.reason)
      case 'retry':
        this.#leases.rest(leaseOf(this.#state, effect), effect.afterMs)
        return this.#report.released(effect, `failed, is tried again: ${effect.error.message}`)
      case 'item':
        this.#leases.drop(effect.index, effect.attempt)
        return this.#outcomes.settle(effect)
      case 'done':
        return this.#finish(effect.status)
    }
  }

  #begin(effect: Extract<SwarmEffect, { type: 'lease' }>): void {
    this.#report.leased(effect)
    this.#leases.begin({ ...leaseOf(this.#state, effect), leasedAt: this.#deps.clock.now() })
  }

  #finish(ended: SwarmEnd['status']): void {
    this.#recruiting.stop()
    this.#leases.cancelAll()
    this.#items = []
    this.#outcomes.finish(ended, this.#elapsed(), this.#canceledBy)
  }

  #standing(): Omit<SwarmEnd, 'status' | 'error'> {
    return this.#report.standing(this.#elapsed(), this.#recruiting.leftOut)
  }
}

function leaseOf({ items }: SwarmState, { index, agent, attempt }: LeaseName): SwarmLease {
  const { failures = 0, isRepeatable = false } = items[index] ?? {}
  return { index, agent, attempt, failures, isRepeatable }
}

function inputOf(move: StageChange['moves'][number], from: number, count: number): SwarmInput {
  if (move.type === 'open') return { type: 'open', from, count }
  return { type: 'drop', from, count, status: move.status, reason: move.reason }
}
