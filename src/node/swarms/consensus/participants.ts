import { messageOf } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import { coordinationOf } from '../../../domain/swarm/coordination.js'
import { decodePlan } from '../../../domain/swarm/handover.js'
import { MAX_PLAN_BYTES, PLAN_INDEX } from '../../../domain/swarm/seat-message.js'
import type { SeatMessage, SeatMessageOf } from '../../../domain/swarm/seat-message.js'
import { effectiveParty } from '../../../domain/routing/effective.js'
import type { Hash } from '../../../kit/sign.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import { parseAddress } from '../../../domain/card/card.js'
import type { Directory } from '../../cards/directory.js'
import type { LedgerRoom } from '../../ledger/quota.js'
import { planOf } from './invitations.js'
import { SeatedSwarm } from './replicated-swarm.js'
import type { SeatedSwarmParts } from './replicated-swarm.js'
import type { SwarmHead, SwarmItem } from '../store.js'
import type { SwarmWord } from './participant.js'
import { contentsOf } from './content-transfer.js'
import type { SwarmContents } from './content-transfer.js'
import type { SeatRecord } from './vote-store.js'

/** Nodes that a swarm needs for another to take over: of two, the one that is left is no majority. */
const MIN_VOTERS = 3
/** Swarms of one launcher that have not ended, in which this node takes a seat. */
const MAX_SEATS_A_PEER = 64
/** The same of all launchers. */
const MAX_SEATS = 256
/** Plans that are fetched at once. */
const MAX_PLANS = 4
/** One of which nothing came for so many milliseconds makes room for another. */
const PLAN_IDLE_MS = 5000

/** What seats need. */
export interface SwarmSeatsParts extends Omit<SeatedSwarmParts, 'isPutOut'> {
  readonly hash: Hash
  readonly directory: Directory
  readonly ledgerRoom: Pick<LedgerRoom, 'isFull'>
  /** What this node calls its ledger; null until it is open. */
  ledgerName(): string | null
  /** A swarm with several participants that is in memory. */
  seated(id: string): SeatedSwarm | undefined
  /** Those of them that have not ended. */
  running(): readonly SeatedSwarm[]
  /** It is in memory from now on. */
  add(swarm: SeatedSwarm): void
}

interface Fetching {
  readonly from: NodeId
  readonly digest: string
  /** What the launcher knows of this node's ledger. */
  readonly ledger: string | null
  readonly contents: SwarmContents
  /** When something of it came, or it was begun: monotonic. */
  heardAt: number
}

/** The seats of this node in swarms, its own and those of others: takes them, and hands on what participants say. */
export class SwarmSeats {
  readonly #parts: SwarmSeatsParts
  readonly #asMade: SeatedSwarmParts
  /** Plans that are on their way, by swarm. */
  readonly #fetching = new Map<string, Fetching>()

  constructor(parts: SwarmSeatsParts) {
    this.#parts = parts
    this.#asMade = { ...parts, isPutOut: (node) => parts.directory.isPutOut(node) }
  }

  /** The head of a swarm about to be launched, with who votes in it: unless there are too few, or it is too large to be handed over. */
  seatedHead(head: SwarmHead, items: readonly SwarmItem[], agents: readonly string[]): SwarmHead {
    const { self, directory, hash } = this.#parts
    if (head.request.takeover === false) return head
    const sandbox = directory.certificate(self)?.sandboxId ?? null
    const isNear = (node: NodeId): boolean => (directory.certificate(node)?.sandboxId ?? null) === sandbox
    const nodes = agents.flatMap((agent) => parseAddress(agent)?.nodeId ?? []).filter(isNear)
    const { voters } = coordinationOf({ swarm: head.id, itemCount: items.length, mayTakeOver: true, launcher: self, nodes }, hash)
    const seated = { ...head, voters }
    return voters.length < MIN_VOTERS || !isPortable(seated, items) ? head : seated
  }

  /** The changes with which this node has the first seat of its own swarm; none for one without voters. */
  launchChanges(head: SwarmHead): LedgerChange[] {
    return head.voters === undefined ? [] : [this.#parts.swarmVotes.seatChange(head.id, this.#seat('open'))]
  }

  /** The first seat of a swarm that this node has just launched. */
  launched(head: SwarmHead, items: readonly SwarmItem[]): SeatedSwarm {
    const swarm = new SeatedSwarm(this.#asMade, { head, items, seat: this.#seat('open'), isCancelWished: false })
    this.#parts.add(swarm)
    swarm.open({ type: 'fresh' })
    swarm.tick(this.#parts.survey(head))
    return swarm
  }

  /** Goes on with a seat after this node was started again. @throws NodeError STORE_DAMAGED */
  async resume(head: SwarmHead, items: readonly SwarmItem[]): Promise<SeatedSwarm> {
    const { swarmBook, swarmVotes } = this.#parts
    const isCancelWished = await swarmBook.isCancelWished(head.id)
    const kept = (await swarmVotes.seat(head.id)) ?? this.#seat('lost')
    // A ledger that was put back to an older copy has forgotten what it promised.
    const seat: SeatRecord = kept.ledger === this.#parts.ledgerName() ? kept : { ...kept, ...this.#seat('lost'), seated: kept.seated }
    const swarm = new SeatedSwarm(this.#asMade, { head, items, seat, isCancelWished })
    this.#parts.add(swarm)
    if (seat.state === 'lost') swarm.open({ type: 'lost' })
    if (seat.state === 'open') swarm.open({ type: 'restarted', stored: await swarmVotes.stored(head.id) })
    return swarm
  }

  #seat(state: SeatRecord['state']): SeatRecord {
    return { ledger: this.#parts.ledgerName() ?? '', state, seated: {} }
  }

  /** Does a peer vote in a swarm that has not ended here? */
  has(peer: NodeId): boolean {
    return this.#parts.running().some(({ head }) => head.voters?.includes(peer) === true)
  }

  /** Is a lease of an epoch void, since this node has granted a higher one? */
  isPast(peer: NodeId, id: string, epoch: number): boolean {
    const swarm = this.#parts.seated(id)
    return swarm?.head.voters?.includes(peer) === true && epoch < swarm.epoch
  }

  /** Do nodes vote in a swarm that this one votes in? */
  areVoters(id: string, nodes: readonly NodeId[]): boolean {
    const voters = this.#parts.seated(id)?.head.voters
    return voters !== undefined && nodes.every((node) => voters.includes(node))
  }

  /** A peer says something to the participants of a swarm. Never throws. */
  onWord(peer: NodeId, word: SwarmWord): void {
    if (word.name === 'coordination') {
      const swarm = this.#parts.seated(word.body.swarm)
      if (swarm?.head.voters?.includes(peer) === true) swarm.onCoordination(peer, word.body)
      return
    }
    this.#heard(peer, word.body).catch((error: unknown) =>
      this.#parts.telemetry.log('warn', 'a message of a participant could not be handled', { peer, reason: messageOf(error) })
    )
  }

  async #heard(peer: NodeId, message: SeatMessage): Promise<void> {
    if (message.kind === 'seat') return await this.#offered(peer, message)
    if (message.kind === 'pieces' && (await this.#planned(peer, message))) return
    const isAfterEnd = message.kind === 'follow' || message.kind === 'want'
    const swarm = this.#parts.seated(message.swarm) ?? (isAfterEnd ? await this.#recall(message.swarm, peer) : undefined)
    if (swarm?.head.voters?.includes(peer) !== true) return
    switch (message.kind) {
      case 'seated':
        return await swarm.onSeated(peer, message)
      case 'want':
        return await swarm.onWant(peer, message)
      case 'pieces':
        return swarm.onPieces(peer, message)
      case 'follow':
        return await swarm.onFollow(peer, message)
      case 'cancel':
        return swarm.onCancel()
      case 'accepted':
        return swarm.onAcceptedThere(peer, message)
    }
  }

  /** A swarm that has ended, and is no longer in memory. */
  async #recall(id: string, peer: NodeId): Promise<SeatedSwarm | undefined> {
    const head = await this.#parts.swarmBook.get(id)
    const known = this.#parts.seated(id)
    if (known !== undefined || head === null || head.end === null || head.voters?.includes(peer) !== true) return known
    const swarm = new SeatedSwarm(this.#asMade, { head, items: [], seat: this.#seat('open'), isCancelWished: false })
    swarm.recall(await this.#parts.swarmBook.results(id))
    this.#parts.add(swarm)
    return swarm
  }

  /** A launcher offers a seat: what it is has to be durable here before anything is promised. */
  async #offered(peer: NodeId, { swarm: id, digest, ledger }: SeatMessageOf<'seat'>): Promise<void> {
    const known = this.#parts.seated(id)
    if (known !== undefined) {
      if (known.head.voters?.[0] !== peer) return
      if (ledger !== null) await known.confirm(ledger)
      return this.#seated(peer, known)
    }
    const own = this.#parts.running().filter(({ head }) => head.voters?.[0] === peer)
    const isFull = own.length >= MAX_SEATS_A_PEER || this.#parts.running().length >= MAX_SEATS || this.#parts.ledgerRoom.isFull
    const before = this.#fetching.get(id)
    if (before?.digest === digest && before.from === peer) return before.contents.tick()
    if (isFull || (before === undefined && this.#fetching.size >= MAX_PLANS && !this.#makeRoom())) return
    const contents = contentsOf(this.#parts, id)
    this.#fetching.set(id, { from: peer, digest, ledger, contents, heardAt: this.#parts.clock.monotonic() })
    contents.want([{ index: PLAN_INDEX, digest }], [peer])
  }

  /** One of which nothing comes goes: its launcher offers again. */
  #makeRoom(): boolean {
    const since = this.#parts.clock.monotonic() - PLAN_IDLE_MS
    const idle = [...this.#fetching].find(([, { heardAt }]) => heardAt <= since)
    return idle !== undefined && this.#fetching.delete(idle[0])
  }

  #seated(peer: NodeId, swarm: SeatedSwarm): void {
    const ledger = this.#parts.ledgerName()
    if (ledger === null) return
    this.#parts.tell(peer, { name: 'swarm', body: { kind: 'seated', swarm: swarm.head.id, ledger, isOpen: swarm.isOpen } })
  }

  /** True: the pieces are of a plan that is fetched. */
  async #planned(peer: NodeId, message: SeatMessageOf<'pieces'>): Promise<boolean> {
    const { swarm: id, pieces } = message
    const fetching = this.#fetching.get(id)
    if (fetching === undefined || fetching.from !== peer) return false
    fetching.heardAt = this.#parts.clock.monotonic()
    if (!fetching.contents.take(peer, pieces, false)) return true
    const bytes = fetching.contents.get({ index: PLAN_INDEX, digest: fetching.digest })
    this.#fetching.delete(id)
    if (bytes !== undefined) await this.#take({ id, peer, ledger: fetching.ledger, bytes })
    return true
  }

  /** Takes the seat. Whoever has had it before under another ledger has lost what it promised. */
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
    const { clock, self, swarmBook, swarmVotes, commit, directory } = this.#parts
    const plan = decodePlan(bytes, clock.now())
    const certificate = directory.certificate(peer)
    if (plan === null || plan.head.id !== id || certificate === null || this.#parts.ledgerName() === null) return
    const { voters } = plan.head
    if (voters[0] !== peer || !voters.includes(self) || (await swarmBook.get(id)) !== null) return
    // Whatever this node may do: the swarm may do what its launcher may.
    const hops = plan.head.onBehalfOf === undefined ? [] : [plan.head.onBehalfOf]
    const { tier: maxTier, sandboxId } = effectiveParty({ certificate, card: null, hops })
    const head: SwarmHead = { ...plan.head, taskId: '', key: null, end: null, onBehalfOf: { maxTier, sandboxId } }
    const seat = this.#seat(ledger === null ? 'invited' : 'lost')
    await commit([...swarmBook.launched(head, plan.items), swarmVotes.seatChange(id, seat)])
    if (this.#parts.seated(id) !== undefined) return
    const swarm = new SeatedSwarm(this.#asMade, { head, items: plan.items, seat, isCancelWished: false })
    this.#parts.add(swarm)
    if (seat.state === 'lost') swarm.open({ type: 'lost' })
    this.#seated(peer, swarm)
  }
}

/** Can it be handed over? */
function isPortable(head: SwarmHead, items: readonly SwarmItem[]): boolean {
  try {
    const bytes = planOf(head, items)
    return bytes.byteLength <= MAX_PLAN_BYTES && decodePlan(bytes, head.createdAt) !== null
  } catch {
    return false
  }
}
