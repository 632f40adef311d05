import { messageOf } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import { coordinationOf } from '../../../domain/swarm/coordination.js'
import { decodePlan } from '../../../domain/swarm/handover.js'
import { MAX_PLAN_BYTES, PLAN_INDEX, type ParticipantMessageOf } from '../../../domain/swarm/participant-message.js'
import { effectiveParty } from '../../../domain/routing/effective.js'
import type { Hash } from '../../../kit/sign.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import { parseAddress } from '../../../domain/card/card.js'
import type { Directory } from '../../cards/directory.js'
import type { LedgerQuota } from '../../ledger/quota.js'
import { planOf } from './invitations.js'
import { ReplicatedSwarm, type ReplicatedSwarmDeps } from './replicated-swarm.js'
import type { SwarmMemory } from '../memory.js'
import type { SwarmHead, SwarmItem } from '../store.js'
import type { SwarmWord } from './participant.js'
import { contentsOf, type ContentTransfer } from './content-transfer.js'
import type { ParticipantRecord } from './vote-store.js'

/** Nodes that a swarm needs for a takeover: of two nodes, the remaining one is no majority. */
const MIN_VOTERS = 3
/** Open swarms of one launcher in which this node is a participant. */
const MAX_PARTICIPATIONS_A_PEER = 64
/** The same for all launchers. */
const MAX_PARTICIPATIONS = 256
/** Plans fetched at once. */
const MAX_PLANS = 4
/** Milliseconds without data after which the transfer of a plan makes room for another. */
const PLAN_IDLE_MS = 5000

/** Dependencies of participants. */
export interface ParticipantsDeps extends Omit<ReplicatedSwarmDeps, 'isPutOut'> {
  readonly hash: Hash
  readonly directory: Directory
  readonly ledgerQuota: Pick<LedgerQuota, 'isFull'>
  /** Name of this node's ledger; null until it is open. */
  ledgerName(): string | null
  readonly memory: Pick<SwarmMemory, 'add' | 'replicated' | 'runningReplicated'>
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

/** This node as a participant of swarms, its own and others': joins them, and dispatches messages of participants. */
export class Participants {
  readonly #deps: ParticipantsDeps
  readonly #asMade: ReplicatedSwarmDeps
  /** Plans being fetched, by swarm. */
  readonly #fetching = new Map<string, Fetching>()

  constructor(deps: ParticipantsDeps) {
    this.#deps = deps
    this.#asMade = { ...deps, isPutOut: (node) => deps.directory.isPutOut(node) }
  }

  /** The head of a swarm to be launched, with its voters, unless there are too few or its plan is too large. */
  joinedHead(head: SwarmHead, items: readonly SwarmItem[], agents: readonly string[]): SwarmHead {
    const { self, directory, hash } = this.#deps
    if (head.request.takeover === false) return head
    const sandbox = directory.certificate(self)?.sandboxId ?? null
    const isNear = (node: NodeId): boolean => (directory.certificate(node)?.sandboxId ?? null) === sandbox
    const nodes = agents.flatMap((agent) => parseAddress(agent)?.nodeId ?? []).filter(isNear)
    const { voters } = coordinationOf({ swarm: head.id, itemCount: items.length, mayTakeOver: true, launcher: self, nodes }, hash)
    const replicated = { ...head, voters }
    return voters.length < MIN_VOTERS || !isPortable(replicated, items) ? head : replicated
  }

  /** The changes that make this node the first participant of its own swarm; none for a swarm without voters. */
  launchChanges(head: SwarmHead): LedgerChange[] {
    return head.voters === undefined ? [] : [this.#deps.swarmVotes.participantChange(head.id, this.#join('open'))]
  }

  /** Adds this node as the first participant of a swarm that it has just launched. */
  launched(head: SwarmHead, items: readonly SwarmItem[]): ReplicatedSwarm {
    const swarm = new ReplicatedSwarm(this.#asMade, { head, items, record: this.#join('open'), isCancelRequested: false })
    this.#deps.memory.add(swarm)
    swarm.open({ type: 'fresh' })
    swarm.tick(this.#deps.eligibility.of(head))
    return swarm
  }

  /** Resumes as a participant after a restart of this node. @throws NodeError STORE_DAMAGED */
  async resume(head: SwarmHead, items: readonly SwarmItem[]): Promise<ReplicatedSwarm> {
    const { swarmStore, swarmVotes } = this.#deps
    const isCancelRequested = await swarmStore.isCancelRequested(head.id)
    const kept = (await swarmVotes.participant(head.id)) ?? this.#join('lost')
    // A ledger restored from an older copy has lost its promises.
    const own: ParticipantRecord = kept.ledger === this.#deps.ledgerName() ? kept : { ...kept, ...this.#join('lost'), seated: kept.seated }
    const swarm = new ReplicatedSwarm(this.#asMade, { head, items, record: own, isCancelRequested })
    this.#deps.memory.add(swarm)
    if (own.state === 'lost') swarm.open({ type: 'lost' })
    if (own.state === 'open') swarm.open({ type: 'restarted', stored: await swarmVotes.stored(head.id) })
    return swarm
  }

  #join(state: ParticipantRecord['state']): ParticipantRecord {
    return { ledger: this.#deps.ledgerName() ?? '', state, seated: {} }
  }

  /** Does a peer vote in a swarm that has not ended here? */
  has(peer: NodeId): boolean {
    return this.#deps.memory.runningReplicated().some(({ head }) => head.voters?.includes(peer) === true)
  }

  /** Is a lease of an epoch void, since this node has granted a higher one? */
  isPast(peer: NodeId, id: string, epoch: number): boolean {
    const swarm = this.#deps.memory.replicated(id)
    return swarm?.head.voters?.includes(peer) === true && epoch < swarm.epoch
  }

  /** Do nodes vote in a swarm that this one votes in? */
  areVoters(id: string, nodes: readonly NodeId[]): boolean {
    const voters = this.#deps.memory.replicated(id)?.head.voters
    return voters !== undefined && nodes.every((node) => voters.includes(node))
  }

  /** Handles a peer's message to the participants of a swarm. Never throws. */
  onWord(peer: NodeId, word: SwarmWord): void {
    this.#onWord(peer, word).catch((error: unknown) =>
      this.#deps.telemetry.log('warn', 'a message of a participant could not be handled', { peer, reason: messageOf(error) })
    )
  }

  async #onWord(peer: NodeId, word: SwarmWord): Promise<void> {
    if (word.body.kind === 'seat') return await this.#offered(peer, word.body)
    if (word.body.kind === 'pieces' && (await this.#planned(peer, word.body))) return
    const { kind, swarm: id } = word.body
    const isAfterEnd = kind === 'follow' || kind === 'want'
    const swarm = this.#deps.memory.replicated(id) ?? (isAfterEnd ? await this.#recall(id, peer) : undefined)
    if (swarm?.head.voters?.includes(peer) === true) await swarm.onWord(peer, word)
  }

  /** An ended swarm that is no longer in memory. */
  async #recall(id: string, peer: NodeId): Promise<ReplicatedSwarm | undefined> {
    const head = await this.#deps.swarmStore.get(id)
    const known = this.#deps.memory.replicated(id)
    if (known !== undefined || head === null || head.end === null || head.voters?.includes(peer) !== true) return known
    const rows = await this.#deps.swarmStore.results(head)
    const swarm = new ReplicatedSwarm(this.#asMade, { head, items: [], record: this.#join('open'), isCancelRequested: false, rows })
    this.#deps.memory.add(swarm)
    return swarm
  }

  /** A launcher invites this node: the plan must be durable here before any promise. */
  async #offered(peer: NodeId, { swarm: id, digest, ledger }: ParticipantMessageOf<'seat'>): Promise<void> {
    const known = this.#deps.memory.replicated(id)
    if (known !== undefined) {
      if (known.head.voters?.[0] !== peer) return
      if (ledger !== null) await known.confirm(ledger)
      return this.#joined(peer, known)
    }
    const own = this.#deps.memory.runningReplicated().filter(({ head }) => head.voters?.[0] === peer)
    const isFull =
      own.length >= MAX_PARTICIPATIONS_A_PEER ||
      this.#deps.memory.runningReplicated().length >= MAX_PARTICIPATIONS ||
      this.#deps.ledgerQuota.isFull
    const before = this.#fetching.get(id)
    if (before?.digest === digest && before.from === peer) return before.contents.tick()
    if (isFull || (before === undefined && this.#fetching.size >= MAX_PLANS && !this.#evict())) return
    const contents = contentsOf(this.#deps, id)
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
    this.#deps.tell(peer, { name: 'swarm', body: { kind: 'seated', swarm: swarm.head.id, ledger, isOpen: swarm.isOpen } })
  }

  /** True: the pieces belong to a plan being fetched. */
  async #planned(peer: NodeId, message: ParticipantMessageOf<'pieces'>): Promise<boolean> {
    const { swarm: id, pieces } = message
    const fetching = this.#fetching.get(id)
    if (fetching === undefined || fetching.from !== peer) return false
    fetching.lastSeenAt = this.#deps.clock.monotonic()
    if (!fetching.contents.take(peer, pieces, false)) return true
    const bytes = fetching.contents.get({ index: PLAN_INDEX, digest: fetching.digest })
    this.#fetching.delete(id)
    if (bytes !== undefined) await this.#take({ id, peer, ledger: fetching.ledger, bytes })
    return true
  }

  /** Joins. A node that joined before under another ledger has lost its promises. */
  async #take({
    id,
    peer,
    ledger,
    bytes
  }: {
    readonly id: string
    readonly peer: NodeId
    readonly ledger: string | null
    readonly bytes: Uint8Array
  }): Promise<void> {
    const { clock, self, swarmStore, swarmVotes, commit, directory } = this.#deps
    const plan = decodePlan(bytes, clock.now())
    const certificate = directory.certificate(peer)
    if (plan === null || plan.head.id !== id || certificate === null || this.#deps.ledgerName() === null) return
    const { voters } = plan.head
    if (voters[0] !== peer || !voters.includes(self) || (await swarmStore.get(id)) !== null) return
    // The launcher's rights apply to the swarm, whatever this node's are.
    const hops = plan.head.onBehalfOf === undefined ? [] : [plan.head.onBehalfOf]
    const { tier: maxTier, sandboxId } = effectiveParty({ certificate, card: null, hops })
    const head: SwarmHead = { ...plan.head, taskId: '', key: null, end: null, onBehalfOf: { maxTier, sandboxId } }
    const own = this.#join(ledger === null ? 'invited' : 'lost')
    await commit([...swarmStore.launched(head, plan.items), swarmVotes.participantChange(id, own)])
    if (this.#deps.memory.replicated(id) !== undefined) return
    const swarm = new ReplicatedSwarm(this.#asMade, { head, items: plan.items, record: own, isCancelRequested: false })
    this.#deps.memory.add(swarm)
    if (own.state === 'lost') swarm.open({ type: 'lost' })
    this.#joined(peer, swarm)
  }
}

/** Can its plan be sent to participants? */
function isPortable(head: SwarmHead, items: readonly SwarmItem[]): boolean {
  try {
    const bytes = planOf(head, items)
    return bytes.byteLength <= MAX_PLAN_BYTES && decodePlan(bytes, head.createdAt) !== null
  } catch {
    return false
  }
}
