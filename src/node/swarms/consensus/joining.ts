import type { NodeId } from '../../../kit/ids.js'
import { decodePlan } from '../../../domain/swarm/handover.js'
import { PLAN_INDEX, type ParticipantMessageOf } from '../../../domain/swarm/participant-message.js'
import { effectiveParty } from '../../../domain/routing/effective.js'
import type { Directory } from '../../cards/directory.js'
import type { LedgerQuota } from '../../ledger/quota.js'
import type { SwarmMemory } from '../memory.js'
import type { SwarmHead, SwarmStore } from '../store.js'
import { ContentTransfer } from './content-transfer.js'
import type { ParticipantDeps } from './participant.js'
import type { OpenMembership, ReplicatedSwarm } from './replicated-swarm.js'
import type { ParticipantRecord } from './vote-store.js'

/** Open swarms of one launcher in which this node is a participant. */
const MAX_PARTICIPATIONS_A_PEER = 64
/** The same for all launchers. */
const MAX_PARTICIPATIONS = 256
/** Plans fetched at once. */
const MAX_PLANS = 4
/** Milliseconds without data after which the transfer of a plan makes room for another. */
const PLAN_IDLE_MS = 5000

/** Dependencies of joining. */
export interface JoiningDeps extends Omit<ParticipantDeps, 'telemetry'> {
  readonly directory: Pick<Directory, 'certificate'>
  readonly ledgerQuota: Pick<LedgerQuota, 'isFull'>
  readonly swarmStore: Pick<SwarmStore, 'get' | 'launched'>
  readonly memory: Pick<SwarmMemory, 'add' | 'replicated' | 'runningReplicated'>
  /** Name of this node's ledger; null until it is open. */
  ledgerName(): string | null
  /** Makes a swarm with several participants, at this node. */
  createReplica(membership: OpenMembership): ReplicatedSwarm
}

interface Fetching {
  readonly from: NodeId
  readonly digest: string
  /** This node's ledger name as known to the launcher. */
  readonly ledger: string | null
  readonly contents: ContentTransfer
  /** Monotonic milliseconds of the last data, or of the start. */
  lastSeenAt: number
}

/** Joins swarms of other nodes: answers their invitations and fetches their plans. */
export class Joining {
  readonly #deps: JoiningDeps
  /** Plans being fetched, by swarm. */
  readonly #fetching = new Map<string, Fetching>()

  constructor(deps: JoiningDeps) {
    this.#deps = deps
  }

  /** A launcher invites this node: the plan must be durable here before any promise. */
  async onInvitation(peer: NodeId, { swarm: id, digest, ledger }: ParticipantMessageOf<'seat'>): Promise<void> {
    const known = this.#deps.memory.replicated(id)
    if (known !== undefined) {
      if (known.head.voters?.[0] !== peer) return
      if (ledger !== null) await known.confirm(ledger)
      return this.#joined(peer, known)
    }
    const all = this.#deps.memory.runningReplicated()
    const own = all.filter(({ head }) => head.voters?.[0] === peer)
    const isFull =
      own.length >= MAX_PARTICIPATIONS_A_PEER || all.length >= MAX_PARTICIPATIONS || this.#deps.ledgerQuota.isFull
    const before = this.#fetching.get(id)
    if (before?.digest === digest && before.from === peer) return before.contents.tick()
    if (isFull || (before === undefined && this.#fetching.size >= MAX_PLANS && !this.#evict())) return
    const contents = new ContentTransfer(this.#deps, id)
    this.#fetching.set(id, { from: peer, digest, ledger, contents, lastSeenAt: this.#deps.clock.monotonic() })
    contents.want([{ index: PLAN_INDEX, digest }], [peer])
  }

  /** Drops a transfer without data: its launcher invites again. */
  #evict(): boolean {
    const since = this.#deps.clock.monotonic() - PLAN_IDLE_MS
    const idle = [...this.#fetching].find(([, { lastSeenAt }]) => lastSeenAt <= since)
    return idle !== undefined && this.#fetching.delete(idle[0])
  }

  #joined(peer: NodeId, swarm: ReplicatedSwarm): void {
    const ledger = this.#deps.ledgerName()
    if (ledger === null) return
    this.#deps.tell(peer, {
      name: 'swarm',
      body: { kind: 'seated', swarm: swarm.head.id, ledger, isOpen: swarm.isOpen }
    })
  }

  /** Handles pieces of contents. True: they belong to a plan being fetched. */
  async onPieces(peer: NodeId, message: ParticipantMessageOf<'pieces'>): Promise<boolean> {
    const { swarm: id, pieces } = message
    const fetching = this.#fetching.get(id)
    if (fetching === undefined || fetching.from !== peer) return false
    fetching.lastSeenAt = this.#deps.clock.monotonic()
    if (!fetching.contents.take(peer, pieces, false)) return true
    const bytes = fetching.contents.get({ index: PLAN_INDEX, digest: fetching.digest })
    this.#fetching.delete(id)
    if (bytes !== undefined) await this.#join(id, fetching, bytes)
    return true
  }

  /** Joins. A node that joined before under another ledger has lost its promises. */
  async #join(id: string, { from: peer, ledger }: Fetching, bytes: Uint8Array): Promise<void> {
    const { clock, self, swarmStore, swarmVotes, commit, directory } = this.#deps
    const ledgerName = this.#deps.ledgerName()
    const plan = decodePlan(bytes, clock.now())
    const certificate = directory.certificate(peer)
    if (plan === null || plan.head.id !== id || certificate === null || ledgerName === null) return
    const { voters } = plan.head
    if (voters[0] !== peer || !voters.includes(self) || (await swarmStore.get(id)) !== null) return
    // The launcher's rights apply to the swarm, whatever this node's are.
    const hops = plan.head.onBehalfOf === undefined ? [] : [plan.head.onBehalfOf]
    const { tier: maxTier, sandboxId } = effectiveParty({ certificate, card: null, hops })
    const head: SwarmHead = { ...plan.head, taskId: '', key: null, end: null, onBehalfOf: { maxTier, sandboxId } }
    const record: ParticipantRecord = { ledger: ledgerName, state: ledger === null ? 'invited' : 'lost', seated: {} }
    await commit([...swarmStore.launched(head, plan.items), swarmVotes.participantChange(id, record)])
    if (this.#deps.memory.replicated(id) !== undefined) return
    const swarm = this.#deps.createReplica({ head, items: plan.items, record, cancelRequest: null })
    this.#deps.memory.add(swarm)
    if (record.state === 'lost') swarm.open({ type: 'lost' })
    this.#joined(peer, swarm)
  }
}
