import { NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { encodePayload } from '../../domain/envelope/codec.js'
import { stepSwarm, swarmStatus } from '../../domain/swarm/machine.js'
import type { RunOutcome, SwarmEffect, SwarmInput, SwarmState } from '../../domain/swarm/machine.js'
import { RECORDS } from '../../domain/swarm/record-index.js'
import type { LedgerChange } from '../../ports/ledger.js'
import type { SwarmEvent, SwarmInfo, SwarmResults, SwarmStatus } from '../../ports/swarm-api.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { isIdempotent } from '../requests/callee/record.js'
import { parseAddress } from '../../domain/card/card.js'
import { CommitQueue } from '../ledger/commit-queue.js'
import type { NotificationQueue } from '../ledger/commit-queue.js'
import { eventLogOf, endError, infoOf } from './finished-swarm.js'
import type { SwarmView } from './finished-swarm.js'
import { stepsFor } from '../messaging/error-hints.js'
import type { PeerTable } from '../peers/peer-table.js'
import type { Requests } from '../requests/caller/requests.js'
import { sizeOf } from '../../kit/size.js'
import type { SwarmStore, SwarmEnd, SwarmHead, SwarmItem, SwarmLease, SwarmRow } from './store.js'
import type { SwarmEventLog } from './event-log.js'
import type { Following } from './event-log.js'
import { LeaseRequests, type LeaseRequestsDeps } from './lease-requests.js'
import type { SwarmLaunch } from './create.js'
import type { ItemRun } from './lease-requests.js'
import { restoreState } from './restore.js'
import type { SwarmPast } from './restore.js'
import { sessionOf, subTaskIndex } from './session.js'
import type { SwarmSession } from './session.js'
import { type SwarmOffersDeps, Recruiter } from './offers.js'
import { bytesOf, keptRow, repeatedError, rowFault } from './rows.js'
import { SwarmStages } from './stages.js'
import type { StageChange } from './stages.js'
import type { Leadership } from './consensus/leadership.js'
import type { Survey } from './eligibility.js'

/** What one swarm needs. */
export interface CoordinatorDeps extends SwarmOffersDeps, Pick<LeaseRequestsDeps, 'hash'> {
  readonly telemetry: Telemetry
  readonly requests: Requests
  readonly peers: Pick<PeerTable, 'isOnline'>
  readonly swarmStore: SwarmStore
  readonly limits: { readonly leaseMs: number; readonly deadlineMs: number; readonly defaultTtlMs: number }
  /** Makes changes of the ledger. @throws NodeError what it refuses. */
  commit(changes: readonly LedgerChange[]): Promise<void>
  /** May a result of so many bytes be kept? */
  hasCapacity(bytes: number): boolean
  /** It has nobody who could do what waits, or somebody again. */
  onStatus(run: Coordinator, status: 'running' | 'stalled'): void
  /** Called once, when it has ended. */
  onEnd(run: Coordinator): void
}

/** One swarm under way: performs what the lease machine decides, and tells it once it is durable. */
export class Coordinator implements SwarmView {
  readonly head: SwarmHead
  readonly #deps: CoordinatorDeps
  /** None once it has ended. */
  #items: readonly SwarmItem[]
  readonly #names: readonly string[]
  readonly #state: SwarmState
  readonly #eventLog: SwarmEventLog
  readonly #recruiting: Recruiter
  readonly #stages: SwarmStages
  readonly #leases: LeaseRequests
  /** Addresses of agents that got a lease. */
  readonly #participants = new Set<string>()
  #bytes = 0
  /** Outcomes so far. */
  #order = 0
  /** How it ended, once that is durable. */
  #end: SwarmEnd | null = null
  readonly #notifications: NotificationQueue
  readonly #term: Leadership | null
  #isStopped = false
  #shownStatus: SwarmStatus = 'running'

  constructor(deps: CoordinatorDeps, { head, items, allowed, past, term }: SwarmLaunch) {
    const { telemetry, directory } = deps
    const namer = directory.namer()
    this.head = head
    this.#deps = deps
    this.#term = term ?? null
    this.#notifications = term ?? new CommitQueue(deps)
    this.#items = items
    this.#names = items.map((one) => (one.pinnedTo === undefined ? one.name : namer(one.name)))
    this.#state = restoreState({ head, items, past, term }, deps.clock, deps.limits.leaseMs)
    this.#eventLog = term?.eventLog ?? eventLogOf(head, telemetry)
    this.#stages = new SwarmStages(head)
    this.#leases = this.#createLeases()
    this.#recruiting = this.#createRecruiting()
    if (past !== null) this.#resume(past)
    this.#go(this.#stages.begin(past?.rows ?? []))
    this.#recruiting.offer(allowed)
  }

  /** Has it not ended? It may be stalled. */
  get isRunning(): boolean {
    return this.#end === null
  }

  /** Where it stands: `stalled` while it runs without any agent that could get a lease. */
  get status(): SwarmStatus {
    if (this.#end !== null) return this.#end.status
    return this.#recruiting.isRecruiting || this.#state.status !== 'running' ? 'running' : swarmStatus(this.#state)
  }

  /** How it ended, once that is durable; null until then. */
  get end(): SwarmEnd | null {
    return this.#end
  }

  /** About how many bytes its results and errors hold. */
  get bytes(): number {
    return this.#bytes
  }

  /** Where it stands, in the words of the specification. */
  session(): SwarmSession {
    const { id, request, capabilities, createdAt } = this.head
    return sessionOf({
      id,
      goal: request.goal,
      capabilities,
      names: this.#names,
      state: this.#state,
      end: this.#end?.status ?? null,
      isRecruiting: this.#recruiting.isRecruiting,
      participants: this.#participants,
      rows: this.#eventLog.rows,
      createdAt
    })
  }

  /** Offers parts to more agents, by need, at once. */
  invite(agents: readonly (readonly string[])[]): void {
    if (this.isRunning) this.#recruiting.offer(agents)
  }

  /** Ends the live lease of an item with an outcome that did not come from its agent, which is told to stop. False: no lease. */
  settle(subTask: string, outcome: RunOutcome): boolean {
    const index = subTaskIndex(this.head.id, subTask)
    const lease = index === null ? undefined : this.#leases.of(index)
    if (lease === undefined) return false
    this.#leases.cancel(lease.index, lease.attempt)
    this.#step({ type: 'result', index: lease.index, agent: lease.agent, attempt: lease.attempt, outcome })
    return true
  }

  /** Time passed: new agents are asked, those that no longer exist left, leases and deadline looked at. `found`: who may take part, by need. */
  tick(found: readonly Survey[]): void {
    if (this.#isStopped) return
    const known = found.map(({ allowed, leftOut }) => new Set([...allowed, ...leftOut.map((one) => one.agent)]))
    for (const { agent, need } of this.#recruiting.removed(known)) this.#left(agent, need)
    if (this.#state.status === 'running') this.#recruiting.offer(found.map(({ allowed }) => allowed))
    this.#leases.tick()
    this.#step({ type: 'tick' })
    this.#showStatus()
  }

  #showStatus(): void {
    const { status } = this
    if (status === this.#shownStatus || (status !== 'running' && status !== 'stalled')) return
    this.#shownStatus = status
    this.#eventLog.tell({ type: 'status', status })
    this.#deps.onStatus(this, status)
  }

  /** Stops it: leases are released, what is not done ends. Resolves when that is durable. */
  async cancel(): Promise<void> {
    this.#step({ type: 'cancel' })
    await this.#notifications.flushed()
  }

  /** This node stops: the swarm goes on from the ledger at its next start. Resolves when nothing is written any more. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#recruiting.stop()
    this.#leases.stop()
    await this.#notifications.stop()
  }

  /** A peer works on runs of items, or says that they wait for a person there (`awaitsApproval`). Gives those that are no live leases of it. */
  onHeartbeat(peer: NodeId, runs: readonly ItemRun[], awaitsApproval: boolean): ItemRun[] {
    return this.#leases.onHeartbeat(peer, runs, awaitsApproval)
  }

  /** Do leases of it wait for a person, by what their nodes say, and is none worked on? */
  get awaitsApproval(): boolean {
    const { waiting, size } = this.#leases
    return waiting > 0 && waiting === size
  }

  /** A peer is gone: leases of its agents that others may have go back at once. */
  lost(peer: NodeId): void {
    const agents = this.#recruiting.lost(peer)
    if (agents.length > 0) this.#step({ type: 'gone', agents, reason: 'its node is gone' })
  }

  /** What has happened so far, and a subscription to what comes. */
  follow(listener: (event: SwarmEvent) => void): Following {
    return this.#eventLog.follow(listener)
  }

  /** Its accepted results so far, in the order of the items. */
  results(): SwarmResults {
    const together = this.#end === null ? {} : this.#stages.together()
    return { id: this.head.id, status: this.status, ...together, results: this.#eventLog.results() }
  }

  /** Where it stands, in full. */
  info(): SwarmInfo {
    const { head, status } = this
    const { waiting, size } = this.#leases
    return {
      ...infoOf(head, this.#end ?? { ...this.#standing(), status, error: null }),
      running: size - waiting,
      waitingForApproval: waiting
    }
  }

  #createLeases(): LeaseRequests {
    const { swarmStore } = this.#deps
    const { head } = this
    return new LeaseRequests({
      ...this.#deps,
      head,
      work: (index) => ({ capability: this.#capability(index), input: this.#stages.input(index, this.#items) }),
      changes: (lease) => [swarmStore.leased(head.id, lease)],
      term: this.#term,
      fault: (lease, result) => this.#fault(lease, result),
      onInput: (input) => this.#step(input),
      onApprovalChange: (lease, awaitsApproval) =>
        this.#eventLog.tell({ type: 'waiting', ...this.#shown(lease), waitingFor: awaitsApproval ? 'approval' : null })
    })
  }

  #createRecruiting(): Recruiter {
    return new Recruiter(this.#deps, {
      head: this.head,
      isRepeatable: (agent, capability) => this.#isRepeatable(agent, capability),
      onInput: (input) => this.#step(input),
      onLeftOut: (leftOut) => this.#eventLog.tell({ type: 'left-out', ...leftOut })
    })
  }

  /** What a recorded outcome leads to. */
  #go({ moves, events }: StageChange): void {
    for (const event of events) this.#eventLog.tell(event)
    for (const move of moves) {
      const { from = 0, count = 0 } = this.head.stages[move.stage] ?? {}
      this.#step(
        move.type === 'open' ? { type: 'open', from, count } : { type: 'drop', from, count, status: move.status, reason: move.reason }
      )
    }
  }

  #resume({ rows, leases }: SwarmPast): void {
    for (const row of rows) {
      this.#bytes += bytesOf(row)
      this.#order = Math.max(this.#order, row.order)
      if (row.holder !== '') this.#participants.add(row.holder)
      this.#eventLog.settled(row)
    }
    const settled = new Set(rows.map(({ index }) => index))
    for (const lease of leases) {
      this.#participants.add(lease.agent)
      // What rests was not asked for when this node stopped.
      if (settled.has(lease.index) || lease.rest !== undefined) continue
      this.#eventLog.tell({ type: 'lease', ...this.#shown(lease) })
      this.#leases.resume(lease)
    }
  }

  #isRepeatable(agent: string, capability: string): boolean {
    const address = parseAddress(agent)
    return this.head.request.allowRepeat === true || (address !== null && isIdempotent(this.#deps.directory, address, capability))
  }

  #capability(index: number): string {
    return this.#stages.of(index)?.capability ?? this.head.request.capability
  }

  /** Why a result cannot be taken; null when it can. */
  #fault(lease: SwarmLease, result: unknown): NodeError | null {
    const { swarmStore, hasCapacity } = this.#deps
    if (hasCapacity(sizeOf(result))) return rowFault(swarmStore, this.head.id, { lease, shown: this.#shown(lease), result })
    return new NodeError('PAYLOAD_TOO_LARGE', 'the results of the swarms take all the memory they may have')
  }

  #elapsed(): number {
    return Math.round(this.#deps.clock.monotonic() - this.#state.createdAt)
  }

  #left(agent: string, need: number): void {
    const reason = 'it is no longer there'
    const error = new NodeError('AGENT_NOT_FOUND', `${this.#deps.directory.shownAddress(agent)} does not take part: ${reason}`).toBody()
    this.#step({ type: 'left', agent, reason, error, need })
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
        return this.#eventLog.tell({ type: 'released', ...this.#shown(effect), reason: effect.reason })
      case 'retry':
        this.#rest(effect)
        this.#leases.drop(effect.index, effect.attempt)
        return this.#eventLog.tell({ type: 'released', ...this.#shown(effect), reason: `failed, is tried again: ${effect.error.message}` })
      case 'item':
        return this.#settle(effect)
      case 'done':
        return this.#finish(effect.status)
    }
  }

  /** Its lease has ended, and this node knows so also after a restart; where that cannot be recorded its agent is asked once more then. */
  #rest({
    index,
    agent,
    attempt,
    afterMs
  }: Pick<Extract<SwarmEffect, { type: 'retry' }>, 'index' | 'agent' | 'attempt' | 'afterMs'>): void {
    const { failures = 0, isRepeatable = false } = this.#state.items[index] ?? {}
    const { leasedAt } = this.#leases.of(index) ?? {}
    const rest = { until: this.#deps.clock.now() + afterMs, ms: afterMs }
    const ended = { index, agent, attempt, failures, isRepeatable, rest, ...(leasedAt === undefined ? {} : { leasedAt }) }
    this.#deps.commit([this.#deps.swarmStore.leased(this.head.id, ended)]).catch(() => undefined)
  }

  #begin({ index, agent, attempt }: Extract<SwarmEffect, { type: 'lease' }>): void {
    const { failures = 0, isRepeatable = false } = this.#state.items[index] ?? {}
    this.#participants.add(agent)
    this.#eventLog.tell({ type: 'lease', ...this.#shown({ index, agent, attempt }) })
    this.#leases.begin({ index, agent, attempt, failures, isRepeatable, leasedAt: this.#deps.clock.now() })
  }

  #shown({ index, agent, attempt }: { readonly index: number; readonly agent: string; readonly attempt: number }): {
    stage?: string
    item: string
    agent: string
    attempt: number
  } {
    const stage = this.#stages.of(index)?.id
    const sub = this.head.stages.length === 1 || stage === undefined ? {} : { stage }
    return {
      ...sub,
      item: this.#names[index] ?? String(index),
      agent: agent === '' ? '-' : this.#deps.directory.shownAddress(agent),
      attempt: this.#term?.attemptOf(attempt) ?? attempt
    }
  }

  #settle(effect: Extract<SwarmEffect, { type: 'item' }>): void {
    const { index, attempt, agent: holder, status, result, durationMs } = effect
    this.#leases.drop(index, attempt)
    const shown = this.#shown(effect)
    const error = effect.error === null ? null : stepsFor(effect.error, shown.agent)
    const { row, change } = keptRow(this.#deps.swarmStore, this.head.id, {
      index,
      order: ++this.#order,
      holder,
      row: { ...shown, status, result, error, durationMs }
    })
    this.#bytes += bytesOf(row)
    this.#notifications.add({ changes: [change], record: { index, content: change.value }, notify: () => this.#flushed(row) })
  }

  /** An outcome is durable: only now may others be built on it. */
  #flushed(row: SwarmRow): void {
    this.#eventLog.settled(row)
    this.#go(this.#stages.settled(row))
  }

  #finish(ended: SwarmEnd['status']): void {
    const { clock, limits, swarmStore } = this.#deps
    this.#recruiting.stop()
    this.#leases.cancelAll()
    this.#items = []
    const durationMs = this.#elapsed()
    // What it ended with is known when all of its outcomes were told.
    this.#notifications.addLast(() => {
      const status = ended === 'canceled' ? ended : this.#stages.verdict()
      const error = endError(this.head, status, repeatedError(this.#stages.fault() ?? this.#eventLog.firstError()))
      const end = { ...this.#standing(), status, durationMs, error }
      const changes = swarmStore.ended(this.head, { end, expiresAt: clock.now() + limits.defaultTtlMs })
      const notify = (): void => {
        this.#end = end
        this.#deps.onEnd(this)
        this.#eventLog.tell({ type: 'done', id: this.head.id, status, counts: end.counts, durationMs, error, ...this.#stages.together() })
      }
      return { changes, record: { index: RECORDS.end(this.head.itemCount), content: encodePayload(end) }, notify }
    })
  }

  #standing(): Omit<SwarmEnd, 'status' | 'error'> {
    const namer = this.#deps.directory.namer()
    return {
      counts: this.#eventLog.counts(this.head.itemCount),
      durationMs: this.#elapsed(),
      participants: [...this.#participants].map((one) => namer(one)),
      leftOut: this.#recruiting.leftOut,
      stages: this.#stages.info()
    }
  }
}
