import type { Timer } from '../../../kit/clock.js'
import { messageOf, NodeError } from '../../../kit/errors.js'
import type { IdSource, NodeId } from '../../../kit/ids.js'
import type { CoordinationMessage } from '../../../domain/swarm/coordination-message.js'
import type { VoterStart } from '../../../domain/swarm/coordination-vote.js'
import type { RunOutcome } from '../../../domain/swarm/machine.js'
import { RECORDS } from '../../../domain/swarm/record-index.js'
import type { ParticipantMessageOf } from '../../../domain/swarm/participant-message.js'
import type { SwarmEvent, SwarmInfo, SwarmResults, SwarmStatus } from '../../../ports/swarm-api.js'
import { CommittedResults } from './committed-results.js'
import { CancelRequest } from './cancel-request.js'
import { eventLogOf, infoOf } from '../finished-swarm.js'
import type { SwarmView } from '../finished-swarm.js'
import {
  FollowedStages,
  followedSession,
  stagesOf,
  standingOf,
  type FollowerView,
  FollowerSync,
  NO_MAJORITY,
  LeaderStatus
} from './follower.js'
import { OwnMembership, Invitations } from './invitations.js'
import type { SwarmEnd, SwarmHead, SwarmItem, SwarmRow } from '../store.js'
import type { ContentName } from './content-transfer.js'
import type { Following, SwarmEventLog } from '../event-log.js'
import type { ItemRun } from '../lease-requests.js'
import { leasesBefore } from '../restore.js'
import { Coordinator } from '../coordinator.js'
import type { CoordinatorDeps } from '../coordinator.js'
import { Participant } from './participant.js'
import type { ParticipantDeps } from './participant.js'
import type { SwarmSession } from '../session.js'
import type { Survey } from '../eligibility.js'
import { ContentStore } from './content-store.js'
import { Leadership } from './leadership.js'
import type { ParticipantRecord } from './vote-store.js'

/** A vote that could not be recorded is opened again after so many milliseconds. */
const REOPEN_MS = 1000

/** What a swarm with several participants needs. */
export interface ReplicatedSwarmDeps extends Omit<CoordinatorDeps, 'onStatus' | 'onEnd'>, ParticipantDeps {
  readonly ids: IdSource
  isPutOut(node: NodeId): boolean
  onStatus(swarm: ReplicatedSwarm, status: 'running' | 'stalled'): void
  /** Called once, when it has ended here. */
  onEnd(swarm: ReplicatedSwarm): void
  /** Who may take part now, by need. */
  survey(head: SwarmHead): Survey[]
}

/** How this node takes part. */
export interface OpenMembership {
  readonly head: SwarmHead
  /** Without their inputs. */
  readonly items: readonly SwarmItem[]
  readonly record: ParticipantRecord
  readonly isCancelRequested: boolean
}

/** A swarm with several participants, as one of them sees it: it votes, follows who coordinates, and coordinates itself when it is to. */
export class ReplicatedSwarm implements SwarmView {
  readonly head: SwarmHead
  readonly #deps: ReplicatedSwarmDeps
  readonly #items: readonly SwarmItem[]
  readonly #voters: readonly NodeId[]
  readonly #eventLog: SwarmEventLog
  readonly #contentStore: ContentStore
  readonly #accepted: CommittedResults
  readonly #following: FollowerSync
  readonly #cancelRequest: CancelRequest
  readonly #offers: Invitations | null
  readonly #place: OwnMembership
  #participant: Participant | null = null
  #run: Coordinator | null = null
  #term: Leadership | null = null
  /** Counts terms and openings: what was begun in one of them ends with it. */
  #generation = 0
  #end: SwarmEnd | null
  #isStopped = false
  #timer: Timer | null = null
  readonly #leaderStatus: LeaderStatus
  readonly #stages = new FollowedStages()

  constructor(deps: ReplicatedSwarmDeps, { head, items, record, isCancelRequested }: OpenMembership) {
    this.head = head
    this.#voters = head.voters ?? []
    this.#deps = deps
    this.#items = items.map(({ name, pinnedTo }) => ({ name, ...(pinnedTo === undefined ? {} : { pinnedTo }) }))
    this.#end = head.end
    this.#eventLog = eventLogOf(head, deps.telemetry)
    this.#leaderStatus = new LeaderStatus(deps, { eventLog: this.#eventLog, onStatus: (status) => deps.onStatus(this, status) })
    const isLauncher = this.#voters[0] === deps.self
    const offering = { head, voters: this.#voters, own: record, items: async () => (await deps.swarmStore.unfinished(head.id)).items }
    this.#contentStore = new ContentStore(deps, head)
    this.#accepted = new CommittedResults(deps, {
      head,
      eventLog: this.#eventLog,
      contentStore: this.#contentStore,
      onOver: (end) => {
        this.#ended(end)
        this.#tellEnd(end)
      }
    })
    this.#cancelRequest = new CancelRequest(deps, { head, eventLog: this.#eventLog, isWanted: isCancelRequested })
    this.#following = new FollowerSync(deps, {
      swarm: head.id,
      voters: this.#voters,
      accepted: this.#accepted,
      cancelRequest: this.#cancelRequest
    })
    this.#offers = isLauncher ? new Invitations(deps, offering) : null
    this.#place = new OwnMembership(deps, { swarm: head.id, record, offers: this.#offers })
  }

  /** Begins to vote. */
  open(start: VoterStart): void {
    if (this.#isStopped || this.#end !== null) return
    const { ids } = this.#deps
    const { id, itemCount: items } = this.head
    const generation = ++this.#generation
    const coordination = {
      swarm: id,
      itemCount: RECORDS.count(items),
      endIndex: RECORDS.end(items),
      voters: this.#voters,
      mayTakeOver: true
    }
    this.#participant = new Participant(this.#deps, {
      coordination,
      items,
      contentStore: this.#contentStore,
      isVoid: (name) => this.#accepted.records.isVoid(name),
      run: ids.next('run'),
      start,
      onBegin: (epoch, accepted) => void this.#begin(epoch, accepted),
      onAccepted: (epoch, accepted) => this.#onAccepted(epoch, accepted),
      onEnded: () => this.#leave(),
      onStored: () => void this.#place.recovered(),
      onFailed: () => this.#reopen(generation)
    })
    this.#participant.standing(false)
  }

  /** The launcher knows now that this node joined. */
  async confirm(ledger: string): Promise<void> {
    if (await this.#place.confirm(ledger)) this.open({ type: 'fresh' })
  }

  /** It had ended before: this is what came of it. */
  recall(rows: readonly SwarmRow[]): void {
    for (const row of rows) this.#eventLog.settled(row)
    if (this.#end !== null) this.#tellEnd(this.#end)
  }

  /** Does this node vote in it? */
  get isOpen(): boolean {
    return this.#participant !== null || this.#end !== null
  }

  get isRunning(): boolean {
    return this.#end === null
  }

  /** Does this node coordinate it? */
  get isHere(): boolean {
    return this.#term?.isOn === true
  }

  /** The highest epoch that this node has granted. */
  get epoch(): number {
    return this.#participant?.granted ?? 0
  }

  get status(): SwarmStatus {
    if (this.#end !== null) return this.#end.status
    if (this.#run !== null && this.isHere) return this.#run.status
    return this.#leaderStatus.status
  }

  get bytes(): number {
    return Math.max(this.#eventLog.bytes, this.#run?.bytes ?? 0)
  }

  get awaitsApproval(): boolean {
    return this.#run?.awaitsApproval === true
  }

  get end(): SwarmEnd | null {
    return this.#end
  }

  session(): SwarmSession {
    return this.#run?.session() ?? followedSession(this.#deps, this.#view, this.#end)
  }

  invite(agents: readonly (readonly string[])[]): void {
    this.#run?.invite(agents)
  }

  settle(subTask: string, outcome: RunOutcome): boolean {
    return this.#run?.settle(subTask, outcome) === true
  }

  /** Time passed. `found`: who may take part, by need. */
  tick(found: readonly Survey[]): void {
    if (this.#isStopped || this.#end !== null) return
    this.#offers?.tick()
    this.#contentStore.contents.tick()
    this.#stand(found)
    if (!this.isHere) this.#following.tick(this.#participant?.coordinator.node ?? null)
    this.#run?.tick(found)
    this.#tell()
  }

  #stand(found: readonly Survey[]): void {
    const [launcher] = this.#voters
    const isWelcome = launcher !== undefined && !this.#deps.isPutOut(launcher) && found.every(({ allowed }) => allowed.length > 0)
    this.#participant?.standing(this.#offers === null ? isWelcome : this.#offers.hasMajority)
    this.#participant?.tick()
  }

  #tell(): void {
    if (!this.isHere) this.#stages.tell(this.#view)
    this.#leaderStatus.look(this.#participant?.coordinator ?? { node: null, epoch: 0, lack: NO_MAJORITY }, this.isHere)
  }

  /**
   * Stops it, or has it stopped by who coordinates it: that may take a while, or wait for a majority, so it need not have ended
   * when this resolves. @throws NodeError CONFLICT when its time is over; what the ledger refuses.
   */
  async cancel(): Promise<void> {
    if (this.#end !== null) return
    // Also here: this node may lose its lease before the end is accepted.
    await this.#cancelRequest.make()
    const { node = null } = this.#participant?.coordinator ?? {}
    if (this.isHere) await this.#run?.cancel()
    else this.#following.ask(node)
    if (this.isRunning && node !== null) await this.#cancelRequest.heeded()
  }

  /** A participant wishes it canceled. */
  onCancel(): void {
    if (this.isHere) void this.#run?.cancel()
  }

  /** Its records are about to go, and nobody coordinates it: whoever has more of it goes on without this node. */
  async expire(): Promise<void> {
    const { lack = NO_MAJORITY } = this.#participant?.coordinator ?? {}
    await this.stop()
    const error = new NodeError('TIMEOUT', `${lack}, until all that is known of it expired`).toBody()
    const end = { ...standingOf(this.#deps, this.#view), status: 'failed', error } as const
    this.#ended(end)
    this.#tellEnd(end)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#generation++
    this.#deps.clock.clear(this.#timer)
    this.#participant?.close()
    this.#cancelRequest.stop()
    await this.#run?.stop()
    await this.#accepted.stop()
  }

  onHeartbeat(peer: NodeId, runs: readonly ItemRun[], awaitsApproval: boolean): ItemRun[] {
    if (this.#run !== null) return this.#run.onHeartbeat(peer, runs, awaitsApproval)
    return this.#end === null ? [] : [...runs]
  }

  lost(peer: NodeId): void {
    this.#offers?.lost(peer)
    this.#run?.lost(peer)
  }

  follow(listener: (event: SwarmEvent) => void): Following {
    return this.#eventLog.follow(listener)
  }

  results(): SwarmResults {
    const together = this.#end === null ? {} : stagesOf(this.#view).together()
    return { id: this.head.id, status: this.status, ...together, results: this.#eventLog.results() }
  }

  info(): SwarmInfo {
    const { coordinator, epoch } =
      this.#participant === null ? { coordinator: null, epoch: this.#accepted.records.epoch } : this.#leaderStatus.coordinator
    const participants = this.#voters.map((node) => this.#deps.directory.ref(node).name)
    const cancelRequested = this.isRunning && this.#cancelRequest.isOpen ? { willBeCanceled: true as const } : {}
    const more = { coordination: { coordinator, epoch, participants }, ...cancelRequested }
    if (this.#run !== null && this.#end === null) return { ...this.#run.info(), status: this.status, ...more }
    const info = infoOf(this.head, this.#end ?? { ...standingOf(this.#deps, this.#view), status: this.status, error: null })
    return { ...info, ...(this.isRunning ? { running: null, waitingForApproval: null } : {}), ...more }
  }

  get #view(): FollowerView {
    return { head: this.head, eventLog: this.#eventLog, items: this.#items }
  }

  /** A participant speaks of who coordinates. */
  onCoordination(from: NodeId, message: CoordinationMessage): void {
    this.#participant?.receive(from, message)
    if (message.kind === 'granted' || message.kind === 'refused') this.#tell()
  }

  async onAccepted(from: NodeId, message: ParticipantMessageOf<'seated'>): Promise<void> {
    await this.#offers?.onJoined(from, message)
    this.tick(this.#deps.survey(this.head))
  }

  onPieces(from: NodeId, message: ParticipantMessageOf<'pieces'>): void {
    if (!this.#contentStore.contents.take(from, message.pieces, from === this.#participant?.supplier)) return
    this.#participant?.supplied()
    this.#accepted.take([], from)
  }

  /** Somebody asks for contents. */
  async onWant(from: NodeId, { wants }: ParticipantMessageOf<'want'>): Promise<void> {
    await this.#contentStore.give(from, wants, (await this.#offers?.pieces(wants)) ?? [])
  }

  /** Somebody asks what was accepted. */
  async onFollow(from: NodeId, message: ParticipantMessageOf<'follow'>): Promise<void> {
    if (this.#end !== null && this.#accepted.records.size === 0) await this.#accepted.recall()
    if (this.#end !== null || this.#participant?.isCoordinating === true) this.#following.answer(from, message)
  }

  /** The coordinator, or who saw the end, says what was accepted. */
  onAcceptedThere(from: NodeId, message: ParticipantMessageOf<'accepted'>): void {
    if (this.#end !== null || this.isHere) return
    this.#participant?.onAccepted(from, message.epoch)
    this.#following.onMessage(from, message)
  }

  #onAccepted(epoch: number, accepted: readonly ContentName[]): void {
    this.#following.announce(epoch, accepted)
    this.#term?.onAccepted(accepted)
  }

  /** This node coordinates: it goes on from what was accepted before. */
  async #begin(epoch: number, accepted: readonly ContentName[]): Promise<void> {
    const { swarmStore, telemetry, self } = this.#deps
    const generation = ++this.#generation
    const isOver = (): boolean => generation !== this.#generation || this.#end !== null
    const { id, itemCount } = this.head
    this.#accepted.learn(accepted, { total: 0, epoch })
    try {
      const { rows, marks } = await this.#accepted.read(accepted)
      if (isOver()) return
      if (this.#accepted.hasEnd) return this.#accepted.take(accepted, self)
      const { items, leases } = await swarmStore.unfinished(id)
      if (isOver() || this.#participant === null) return
      for (const row of rows) this.#eventLog.settled(row)
      const known = new Set(accepted.map(({ index }) => index))
      const term = new Leadership({
        ...this.#deps,
        participant: this.#participant,
        eventLog: this.#eventLog,
        epoch,
        items: itemCount,
        accepted: known
      })
      const past = { rows, leases: leasesBefore(leases, marks, self) }
      this.#term = term
      telemetry.log('info', 'this node coordinates a swarm', { swarm: id, epoch, accepted: rows.length })
      this.#tell()
      const hooks = {
        onEnd: (run: Coordinator) => this.#ended(run.end),
        onStatus: (_run: Coordinator, status: 'running' | 'stalled') => this.#deps.onStatus(this, status)
      }
      const isNew = rows.length + past.leases.length === 0
      const allowed = this.#deps.survey(this.head).map((one) => one.allowed)
      this.#run = new Coordinator({ ...this.#deps, ...hooks }, { head: this.head, items, allowed, past: isNew ? null : past, term })
      if (this.#cancelRequest.isOpen) this.onCancel()
    } catch (error) {
      telemetry.log('error', 'a swarm could not be read', { swarm: id, reason: messageOf(error) })
      if (!isOver()) this.#participant?.retreat()
    }
  }

  /** It coordinates no more: whoever does goes on from what was accepted. */
  #leave(): void {
    this.#generation++
    const [run, term] = [this.#run, this.#term]
    this.#run = null
    this.#term = null
    void run?.stop()
    void (term?.stop() ?? Promise.resolve()).then(() => {
      if (this.#end === null) this.#accepted.takeUntold(this.#deps.self)
    })
    if (run !== null) this.#deps.telemetry.log('info', 'this node coordinates a swarm no more', { swarm: this.head.id })
    this.#tell()
  }

  #reopen(generation: number): void {
    this.#leave()
    this.#participant = null
    if (this.#isStopped || generation > this.#generation) return
    this.#timer = this.#deps.clock.after(REOPEN_MS, () => {
      this.#place.start().then(
        (start) => this.open(start),
        () => this.#reopen(this.#generation)
      )
    })
  }

  #tellEnd({ status, counts, durationMs, error }: SwarmEnd): void {
    this.#stages.tell(this.#view)
    this.#eventLog.tell({ type: 'done', id: this.head.id, status, counts, durationMs, error, ...stagesOf(this.#view).together() })
  }

  #ended(end: SwarmEnd | null): void {
    if (end === null || this.#end !== null) return
    this.#end = end
    this.#participant?.close()
    this.#participant = null
    this.#accepted.close()
    this.#deps.onEnd(this)
  }
}
