import { NodeError } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import type { VoterStart } from '../../../domain/swarm/coordination-vote.js'
import type { ParticipantMessageOf } from '../../../domain/swarm/participant-message.js'
import type { SwarmEvent, SwarmInfo, SwarmResults, SwarmStatus } from '../../../ports/swarm-api.js'
import type { Directory } from '../../cards/directory.js'
import type { Coordinator } from '../coordinator.js'
import type { Survey } from '../eligibility.js'
import type { Following, SwarmEventLog } from '../event-log.js'
import { eventLogOf, type SwarmObserver, type SwarmView } from '../finished-swarm.js'
import type { ItemRun } from '../lease-requests.js'
import type { SwarmSession } from '../session.js'
import type { Cancellation, SwarmEnd, SwarmHead, SwarmItem, SwarmRow, SwarmStore } from '../store.js'
import { CancelRequest } from './cancel-request.js'
import { CommittedResults, type CommittedResultsDeps } from './committed-results.js'
import { ContentStore } from './content-store.js'
import { FollowerReport, FollowerSync, LeaderStatus, NO_MAJORITY } from './follower.js'
import { SwarmMembership, type MembershipDeps } from './invitations.js'
import type { CoordinatorRole, CoordinatorRoleOf } from './leadership.js'
import type { SwarmWord } from './participant.js'
import type { ParticipantRecord } from './vote-store.js'

/** Dependencies of a swarm with several participants. */
export interface ReplicatedSwarmDeps extends CommittedResultsDeps, MembershipDeps {
  readonly directory: Directory
  readonly swarmStore: SwarmStore
  readonly limits: { readonly leaseMs: number; readonly defaultTtlMs: number }
  readonly observer: SwarmObserver<ReplicatedSwarm>
  /** Makes the role of this node as coordinator of a swarm. */
  createRole(swarm: CoordinatorRoleOf): CoordinatorRole
}

/** How this node starts as a participant. */
export interface OpenMembership {
  readonly head: SwarmHead
  /** Without their inputs. */
  readonly items: readonly SwarmItem[]
  readonly record: ParticipantRecord
  /** The cancel request of this node that was made before it started; null: none. */
  readonly cancelRequest: Cancellation | null
  /** The outcomes of a swarm that had ended before. */
  readonly rows?: readonly SwarmRow[]
}

/**
 * A swarm with several participants at one of them: it votes, follows the coordinator, and coordinates when elected.
 */
export class ReplicatedSwarm implements SwarmView {
  readonly head: SwarmHead
  readonly #deps: ReplicatedSwarmDeps
  readonly #eventLog: SwarmEventLog
  readonly #contentStore: ContentStore
  readonly #accepted: CommittedResults
  readonly #cancelRequest: CancelRequest
  readonly #following: FollowerSync
  readonly #membership: SwarmMembership
  readonly #role: CoordinatorRole
  readonly #leaderStatus: LeaderStatus
  readonly #report: FollowerReport
  #end: SwarmEnd | null
  #isStopped = false

  constructor(deps: ReplicatedSwarmDeps, { head, items, record, cancelRequest, rows = [] }: OpenMembership) {
    this.head = head
    this.#deps = deps
    this.#end = head.end
    const eventLog = eventLogOf(head, deps.telemetry)
    const onStatus = (status: 'running' | 'stalled'): void => deps.observer.onStatus(this, status)
    const names = items.map(({ name, pinnedTo }) => ({ name, ...(pinnedTo === undefined ? {} : { pinnedTo }) }))
    this.#eventLog = eventLog
    this.#report = new FollowerReport(deps, { head, eventLog, items: names })
    this.#leaderStatus = new LeaderStatus(deps, { eventLog, onStatus })
    const contentStore = new ContentStore(deps, head)
    this.#contentStore = contentStore
    const isAllowed = (): boolean => this.#role.mayCancel()
    this.#cancelRequest = new CancelRequest(deps, { head, eventLog, request: cancelRequest, isAllowed })
    this.#accepted = new CommittedResults(deps, {
      ...{ head, eventLog, contentStore },
      completed: (end) => this.#cancelRequest.completed(end),
      onOver: (end) => this.#over(end)
    })
    const shared = { accepted: this.#accepted, cancelRequest: this.#cancelRequest }
    this.#following = new FollowerSync(deps, { swarm: head.id, voters: head.voters ?? [], ...shared })
    this.#role = deps.createRole({
      ...{ head, eventLog, ...shared, onStatus },
      isOver: () => this.#end !== null,
      onChange: () => this.#tell(),
      onEnd: (end) => this.#ended(end)
    })
    this.#membership = new SwarmMembership(deps, {
      ...{ head, record, contentStore },
      isVoid: (name) => this.#accepted.records.isVoid(name),
      onBegin: (participant, epoch, known) => void this.#role.begin(participant, epoch, known),
      onAccepted: (epoch, known) => {
        this.#following.announce(epoch, known)
        this.#role.onAccepted(known)
      },
      onEnded: () => this.#role.leave()
    })
    for (const row of rows) eventLog.settled(row)
    if (head.end !== null) this.#report.tellEnd(head.end)
  }

  /** Starts to vote. */
  open(start: VoterStart): void {
    if (this.#end === null) this.#membership.open(start)
  }

  /** The launcher has recorded that this node joined. */
  async confirm(ledger: string): Promise<void> {
    await this.#membership.confirm(ledger)
  }

  /** Does this node vote in it? */
  get isOpen(): boolean {
    return this.#membership.participant !== null || this.#end !== null
  }

  get isRunning(): boolean {
    return this.#end === null
  }

  /** The coordinator, while it is this node. */
  get coordinator(): Coordinator | null {
    return this.#role.run
  }

  /** The highest epoch that this node has granted. */
  get epoch(): number {
    return this.#membership.participant?.granted ?? 0
  }

  get #status(): SwarmStatus {
    if (this.#end !== null) return this.#end.status
    return (this.#role.isOn ? this.coordinator : null)?.status ?? this.#leaderStatus.status
  }

  get bytes(): number {
    return Math.max(this.#eventLog.bytes, this.coordinator?.bytes ?? 0)
  }

  get end(): SwarmEnd | null {
    return this.#end
  }

  session(): SwarmSession {
    return this.coordinator?.session() ?? this.#report.session(this.#end)
  }

  /** Time passed. `found`: eligible agents, by need. */
  tick(found: readonly Survey[]): void {
    if (this.#isStopped || this.#end !== null) return
    this.#membership.offers?.tick()
    this.#contentStore.contents.tick()
    this.#membership.tick(found)
    if (!this.#role.isOn) this.#following.tick(this.#membership.participant?.coordinator.node ?? null)
    this.coordinator?.tick(found)
    this.#tell()
  }

  #tell(): void {
    const { isOn } = this.#role
    if (!isOn) this.#report.tell()
    this.#leaderStatus.look(
      this.#membership.participant?.coordinator ?? { node: null, epoch: 0, lack: NO_MAJORITY },
      isOn
    )
  }

  /**
   * Cancels it, here or at its coordinator. That may take a while or wait for a majority, so the swarm may still run
   * when this resolves.
   * @throws NodeError CONFLICT after its deadline, FORBIDDEN for a guest of the launcher, or the ledger's error.
   */
  async cancel(by: Cancellation): Promise<void> {
    if (this.#end !== null) return
    // Also when it coordinates: it may lose its leadership before the end is accepted.
    await this.#cancelRequest.make(by)
    const { node = null } = this.#membership.participant?.coordinator ?? {}
    if (this.#role.isOn) await this.#role.cancel(by)
    else this.#following.ask(node)
    if (this.isRunning && node !== null) await this.#cancelRequest.heeded()
  }

  /** Its records are about to expire without a coordinator: nodes with newer records go on without this node. */
  async expire(): Promise<void> {
    const { lack = NO_MAJORITY } = this.#membership.participant?.coordinator ?? {}
    await this.stop()
    const error = new NodeError('TIMEOUT', `${lack}, until all that is known of it expired`).toBody()
    this.#over({ ...this.#report.standing(), status: 'failed', error })
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#membership.stop()
    this.#cancelRequest.stop()
    await this.#role.stop()
    await this.#accepted.stop()
  }

  onHeartbeat(peer: NodeId, runs: readonly ItemRun[], awaitsApproval: boolean): ItemRun[] {
    return this.coordinator?.onHeartbeat(peer, runs, awaitsApproval) ?? (this.#end === null ? [] : [...runs])
  }

  lost(peer: NodeId): void {
    this.#membership.offers?.lost(peer)
    this.coordinator?.lost(peer)
  }

  follow(listener: (event: SwarmEvent) => void): Following {
    return this.#eventLog.follow(listener)
  }

  results(): SwarmResults {
    return this.#report.results(this.#status, this.#end !== null)
  }

  info(): SwarmInfo {
    const { coordinator, epoch } =
      this.#membership.participant === null
        ? { coordinator: null, epoch: this.#accepted.records.epoch }
        : this.#leaderStatus.coordinator
    const participants = (this.head.voters ?? []).map((node) => this.#deps.directory.ref(node).name)
    const cancelRequested = this.isRunning && this.#cancelRequest.isOpen ? { willBeCanceled: true as const } : {}
    const more = { coordination: { coordinator, epoch, participants }, ...cancelRequested }
    if (this.coordinator !== null && this.isRunning)
      return { ...this.coordinator.info(), status: this.#status, ...more }
    const unknown = this.isRunning ? { running: null, waitingForApproval: null } : {}
    return { ...this.#report.info(this.#status, this.#end), ...unknown, ...more }
  }

  /** Handles a message of a participant. */
  async onWord(from: NodeId, word: SwarmWord): Promise<void> {
    if (word.name === 'coordination') {
      this.#membership.participant?.receive(from, word.body)
      if (word.body.kind === 'granted' || word.body.kind === 'refused') this.#tell()
      return
    }
    const { body: message } = word
    const { offers } = this.#membership
    switch (message.kind) {
      // An invited node does not know the swarm yet: see {@link Participants}.
      case 'seat':
        return
      case 'seated':
        return await offers?.onJoined(from, message)
      case 'want':
        return await this.#contentStore.give(from, message.wants, (await offers?.pieces(message.wants)) ?? [])
      case 'pieces':
        return this.#onPieces(from, message)
      case 'follow':
        return await this.#onFollow(from, message)
      case 'cancel':
        // The link proves the sender; its caller is known to the sender alone.
        if (!this.#role.mayCancel(from)) return
        return await this.#role.cancel({ node: from, caller: null, at: this.#deps.clock.now() })
      case 'accepted':
        return this.#onAccepted(from, message)
    }
  }

  #onPieces(from: NodeId, { pieces }: ParticipantMessageOf<'pieces'>): void {
    const { participant } = this.#membership
    if (!this.#contentStore.contents.take(from, pieces, from === participant?.supplier)) return
    participant?.supplied()
    this.#accepted.take([], from)
  }

  /** A participant asks for accepted records. */
  async #onFollow(from: NodeId, message: ParticipantMessageOf<'follow'>): Promise<void> {
    if (this.#end !== null && this.#accepted.records.size === 0) await this.#accepted.recall()
    if (this.#end !== null || this.#membership.participant?.isCoordinating === true)
      this.#following.answer(from, message)
  }

  /** The coordinator, or a node that saw the end, reports accepted records. */
  #onAccepted(from: NodeId, message: ParticipantMessageOf<'accepted'>): void {
    if (this.#end !== null || this.#role.isOn) return
    this.#membership.participant?.onAccepted(from, message.epoch)
    this.#following.onMessage(from, message)
  }

  #over(end: SwarmEnd): void {
    this.#ended(end)
    this.#report.tellEnd(end)
  }

  #ended(end: SwarmEnd | null): void {
    if (end === null || this.#end !== null) return
    this.#end = end
    this.#membership.end()
    this.#accepted.close()
    this.#deps.observer.onEnd(this)
  }
}
