import type { Timer } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import type { IdSource, NodeId } from '../../../kit/ids.js'
import { encodePayload } from '../../../domain/envelope/codec.js'
import { majorityOf } from '../../../domain/swarm/coordination.js'
import { PLAN_INDEX, type ParticipantMessageOf } from '../../../domain/swarm/participant-message.js'
import { RECORDS } from '../../../domain/swarm/record-index.js'
import type { Directory } from '../../cards/directory.js'
import type { Survey } from '../eligibility.js'
import type { SwarmHead, SwarmItem, SwarmStore } from '../store.js'
import { pieceOf, type ContentName, type Piece } from './content-transfer.js'
import { Participant, type ParticipantDeps, type ParticipantOf } from './participant.js'
import type { ParticipantRecord } from './vote-store.js'
import type { VoterStart } from '../../../domain/swarm/coordination-vote.js'

/** Milliseconds until an invitation to a node that has not joined is repeated. */
const AGAIN_MS = 1000
/** Milliseconds until a vote that could not be recorded is opened again. */
const REOPEN_MS = 1000

/** The nodes invited to a swarm. */
export interface Invitation {
  readonly head: SwarmHead
  readonly voters: readonly NodeId[]
  readonly own: ParticipantRecord
  items(): Promise<readonly SwarmItem[]>
}

interface SharedPlan {
  readonly bytes: Uint8Array
  readonly digest: string
}

/** The plan from the launcher, which a participant needs to continue a swarm. */
export function planOf(
  { key: _key, taskId: _taskId, end: _end, isRestored: _isRestored, ...head }: SwarmHead,
  items: readonly SwarmItem[]
): Uint8Array {
  return encodePayload({ head, items })
}

/** The launcher's invitations to one swarm. A participant votes once the launcher has recorded that it joined. */
export class Invitations {
  readonly #deps: ParticipantDeps
  readonly #offering: Invitation
  /** The durable record. */
  #own: ParticipantRecord
  /** The record with the changes being committed. */
  #next: ParticipantRecord
  /** Nodes that reported that they vote. */
  readonly #open = new Set<NodeId>()
  readonly #askedAt = new Map<NodeId, number>()
  /** null while it is not needed. */
  #plan: Promise<SharedPlan | null> | null = null

  constructor(deps: ParticipantDeps, offering: Invitation) {
    this.#deps = deps
    this.#offering = offering
    this.#own = this.#next = offering.own
  }

  /**
   * Do enough participants vote for the launcher to be a candidate? One that joined earlier counts: it resumes from its
   * disk.
   */
  get hasMajority(): boolean {
    const { self } = this.#deps
    const votes = this.#offering.voters.filter(
      (node) => node === self || this.#open.has(node) || node in this.#offering.own.seated
    )
    return votes.length >= majorityOf(this.#offering)
  }

  /** Invites the nodes that have not joined. */
  tick(): void {
    const now = this.#deps.clock.monotonic()
    for (const node of this.#offering.voters) {
      const isDue = now - (this.#askedAt.get(node) ?? Number.NEGATIVE_INFINITY) >= AGAIN_MS
      if (node !== this.#deps.self && isDue && !this.#open.has(node)) void this.#offer(node)
    }
  }

  /** A participant is gone: it may come back with an empty ledger. */
  lost(node: NodeId): void {
    this.#open.delete(node)
  }

  /** A participant has the plan. */
  async onJoined(from: NodeId, { ledger, isOpen }: ParticipantMessageOf<'seated'>): Promise<void> {
    if (!this.#offering.voters.includes(from)) return
    if (this.#next.seated[from] === undefined) {
      const isRecorded = await this.#record({ ...this.#next, seated: { ...this.#next.seated, [from]: ledger } })
      return isRecorded ? await this.#offer(from) : undefined
    }
    if (isOpen) this.#open.add(from)
    if (this.#open.size === this.#offering.voters.length - 1) this.#plan = null
  }

  /** The lost vote of this node is learned again and durable. */
  async relearned(): Promise<void> {
    await this.#record({ ...this.#next, state: 'open' })
  }

  /**
   * Records a join before it is used: after a crash, a node that lost its ledger must not pass for one that never
   * voted. False: it could not be recorded; it is asked again.
   */
  async #record(next: ParticipantRecord): Promise<boolean> {
    const { swarmVotes, commit, telemetry } = this.#deps
    this.#next = next
    try {
      await commit([swarmVotes.participantChange(this.#offering.head.id, next)])
      this.#own = next
      return true
    } catch (error) {
      this.#next = this.#own
      telemetry.log('warn', 'joining a swarm could not be recorded', { reason: messageOf(error) })
      return false
    }
  }

  /** The pieces of the plan for a participant's request. */
  async pieces(wants: ParticipantMessageOf<'want'>['wants']): Promise<Piece[]> {
    const plan = await this.#read()
    return wants.flatMap((one) =>
      one.index === PLAN_INDEX && plan?.digest === one.digest && one.at < plan.bytes.byteLength
        ? [pieceOf(one, plan.bytes, one.at)]
        : []
    )
  }

  async #offer(node: NodeId): Promise<void> {
    this.#askedAt.set(node, this.#deps.clock.monotonic())
    const plan = await this.#read()
    if (plan === null) return
    const { bytes, digest } = plan
    const ledger = this.#own.seated[node] ?? null
    const body = { kind: 'seat', swarm: this.#offering.head.id, digest, bytes: bytes.byteLength, ledger } as const
    this.#deps.tell(node, { name: 'swarm', body })
  }

  #read(): Promise<SharedPlan | null> {
    this.#plan ??= this.#readNow()
    return this.#plan
  }

  async #readNow(): Promise<SharedPlan | null> {
    try {
      const bytes = planOf(this.#offering.head, await this.#offering.items())
      return { bytes, digest: this.#deps.swarmVotes.digest(bytes) }
    } catch (error) {
      this.#deps.telemetry.log('error', 'what a swarm is could not be read', { reason: messageOf(error) })
      this.#plan = null
      return null
    }
  }
}

/** Dependencies of a membership. */
export interface MembershipDeps extends ParticipantDeps {
  readonly ids: IdSource
  readonly swarmStore: Pick<SwarmStore, 'unfinished'>
  readonly directory: Pick<Directory, 'isPutOut'>
}

/** The swarm of a membership, and its callbacks. */
interface MembershipOf extends Pick<ParticipantOf, 'contentStore' | 'isVoid' | 'onAccepted' | 'onEnded'> {
  readonly head: SwarmHead
  readonly record: ParticipantRecord
  /** See {@link ParticipantOf.onBegin}. */
  onBegin(participant: Participant, epoch: number, accepted: readonly ContentName[]): void
}

/** This node's membership in one swarm, by its ledger: votes once it has joined, and invites others as the launcher. */
export class SwarmMembership {
  /** The launcher's invitations; null at other nodes. */
  readonly offers: Invitations | null
  readonly #deps: MembershipDeps
  readonly #swarm: MembershipOf
  readonly #voters: readonly NodeId[]
  #record: ParticipantRecord
  #participant: Participant | null = null
  #timer: Timer | null = null
  #isStopped = false

  constructor(deps: MembershipDeps, swarm: MembershipOf) {
    const { head, record: own } = swarm
    const voters = head.voters ?? []
    const items = async (): Promise<readonly SwarmItem[]> => (await deps.swarmStore.unfinished(head.id)).items
    this.#deps = deps
    this.#swarm = swarm
    this.#voters = voters
    this.#record = own
    this.offers = voters[0] === deps.self ? new Invitations(deps, { head, voters, own, items }) : null
  }

  /** null while it does not vote. */
  get participant(): Participant | null {
    return this.#participant
  }

  /** Starts to vote. */
  open(start: VoterStart): void {
    if (this.#isStopped) return
    const { head, onBegin, ...swarm } = this.#swarm
    const { id, itemCount: items } = head
    const records = { itemCount: RECORDS.count(items), endIndex: RECORDS.end(items) }
    const participant: Participant = new Participant(this.#deps, {
      ...swarm,
      coordination: { swarm: id, ...records, voters: this.#voters, mayTakeOver: true },
      items,
      run: this.#deps.ids.next('run'),
      start,
      onBegin: (epoch, accepted) => onBegin(participant, epoch, accepted),
      onStored: () => void this.#recovered(),
      onFailed: () => this.#reopen()
    })
    this.#participant = participant
    participant.standing(false)
  }

  /** The launcher has recorded the join: this node votes from now on. @throws NodeError the ledger's error. */
  async confirm(ledger: string): Promise<void> {
    if (this.#record.state !== 'invited' || this.#record.ledger !== ledger) return
    const record = { ...this.#record, state: 'open' } as const
    await this.#deps.commit([this.#deps.swarmVotes.participantChange(this.#swarm.head.id, record)])
    if (this.#record.state !== 'invited') return
    this.#record = record
    this.open({ type: 'fresh' })
  }

  /** Time passed. `found`: eligible agents, by need. */
  tick(found: readonly Survey[]): void {
    const [launcher] = this.#voters
    const isWelcome =
      launcher !== undefined &&
      !this.#deps.directory.isPutOut(launcher) &&
      found.every(({ allowed }) => allowed.length > 0)
    this.#participant?.standing(this.offers === null ? isWelcome : this.offers.hasMajority)
    this.#participant?.tick()
  }

  /** Ends the vote. */
  stop(): void {
    this.#isStopped = true
    this.#deps.clock.clear(this.#timer)
    this.#participant?.close()
  }

  /** The swarm has ended. */
  end(): void {
    this.stop()
    this.#participant = null
  }

  /** A vote could not be recorded: it is opened again from the ledger. */
  #reopen(): void {
    this.#swarm.onEnded()
    this.#participant = null
    if (this.#isStopped) return
    this.#timer = this.#deps.clock.after(REOPEN_MS, () => {
      this.#start().then(
        (start) => this.open(start),
        () => this.#reopen()
      )
    })
  }

  /** The lost vote is learned again and durable: the next start resumes from it. */
  async #recovered(): Promise<void> {
    if (this.#record.state !== 'lost') return
    const { commit, swarmVotes, telemetry } = this.#deps
    this.#record = { ...this.#record, state: 'open' }
    if (this.offers !== null) return await this.offers.relearned()
    await commit([swarmVotes.participantChange(this.#swarm.head.id, this.#record)]).catch((error: unknown) =>
      telemetry.log('warn', 'that a vote was learned again could not be recorded', { reason: messageOf(error) })
    )
  }

  /** The state from which its voter starts. @throws NodeError STORE_DAMAGED */
  async #start(): Promise<VoterStart> {
    if (this.#record.state === 'lost') return { type: 'lost' }
    return { type: 'restarted', stored: await this.#deps.swarmVotes.stored(this.#swarm.head.id) }
  }
}
