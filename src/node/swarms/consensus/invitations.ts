import { messageOf } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import { encodePayload } from '../../../domain/envelope/codec.js'
import { majorityOf } from '../../../domain/swarm/coordination.js'
import { PLAN_INDEX } from '../../../domain/swarm/participant-message.js'
import type { ParticipantMessageOf } from '../../../domain/swarm/participant-message.js'
import type { SwarmHead, SwarmItem } from '../store.js'
import { pieceOf } from './content-transfer.js'
import type { Piece } from './content-transfer.js'
import type { ParticipantDeps } from './participant.js'
import type { ParticipantRecord } from './vote-store.js'
import type { VoterStart } from '../../../domain/swarm/coordination-vote.js'

/** An invitation is repeated to a node that has not joined after this many milliseconds. */
const AGAIN_MS = 1000

/** Which nodes are invited to which swarm. */
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

/** What a participant has to have to carry a swarm on, as the launcher hands it over. */
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
  /** What is durable of it. */
  #own: ParticipantRecord
  /** The same with what is being recorded. */
  #next: ParticipantRecord
  /** Those that said that they vote. */
  readonly #open = new Set<NodeId>()
  readonly #askedAt = new Map<NodeId, number>()
  /** null while nobody needs it. */
  #plan: Promise<SharedPlan | null> | null = null

  constructor(deps: ParticipantDeps, offering: Invitation) {
    this.#deps = deps
    this.#offering = offering
    this.#own = this.#next = offering.own
  }

  /** Do enough participants vote for the launcher to be a candidate? One that joined earlier counts: it resumes from its disk. */
  get hasMajority(): boolean {
    const { self } = this.#deps
    const votes = this.#offering.voters.filter((node) => node === self || this.#open.has(node) || node in this.#offering.own.seated)
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

  /** A participant is gone: it may come back without what it had. */
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

  /** What this node had lost of its vote is learned again, and durable. */
  async relearned(): Promise<void> {
    await this.#record({ ...this.#next, state: 'open' })
  }

  /**
   * Nothing is offered by what a crash would forget: who then lost its ledger would pass for one that never voted. False: it
   * could not be recorded; it is asked again.
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

  /** The pieces of the plan that a participant asks for. */
  async pieces(wants: ParticipantMessageOf<'want'>['wants']): Promise<Piece[]> {
    const plan = await this.#read()
    return wants.flatMap((one) =>
      one.index === PLAN_INDEX && plan?.digest === one.digest && one.at < plan.bytes.byteLength ? [pieceOf(one, plan.bytes, one.at)] : []
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

/** Which participant it is. */
interface OwnMembershipOf {
  readonly swarm: string
  readonly record: ParticipantRecord
  /** Those of the launcher, whose record says more; null elsewhere. */
  readonly offers: Invitations | null
}

/** This node as a participant of one swarm, as its ledger has it. */
export class OwnMembership {
  readonly #deps: Pick<ParticipantDeps, 'commit' | 'swarmVotes' | 'telemetry'>
  readonly #of: OwnMembershipOf
  #record: ParticipantRecord

  constructor(deps: Pick<ParticipantDeps, 'commit' | 'swarmVotes' | 'telemetry'>, of: OwnMembershipOf) {
    this.#deps = deps
    this.#of = of
    this.#record = of.record
  }

  /** The launcher knows of it now. True: this node votes from now on, for the first time. @throws NodeError what the ledger refuses. */
  async confirm(ledger: string): Promise<boolean> {
    if (this.#record.state !== 'invited' || this.#record.ledger !== ledger) return false
    const record = { ...this.#record, state: 'open' } as const
    await this.#deps.commit([this.#deps.swarmVotes.participantChange(this.#of.swarm, record)])
    if (this.#record.state !== 'invited') return false
    this.#record = record
    return true
  }

  /** What was lost has been learned again, and is durable: the next start goes on from there. */
  async recovered(): Promise<void> {
    if (this.#record.state !== 'lost') return
    const { commit, swarmVotes, telemetry } = this.#deps
    const { swarm, offers } = this.#of
    this.#record = { ...this.#record, state: 'open' }
    if (offers !== null) return await offers.relearned()
    await commit([swarmVotes.participantChange(swarm, this.#record)]).catch((error: unknown) =>
      telemetry.log('warn', 'that a vote was learned again could not be recorded', { reason: messageOf(error) })
    )
  }

  /** From what its voter goes on. @throws NodeError STORE_DAMAGED */
  async start(): Promise<VoterStart> {
    if (this.#record.state === 'lost') return { type: 'lost' }
    return { type: 'restarted', stored: await this.#deps.swarmVotes.stored(this.#of.swarm) }
  }
}
