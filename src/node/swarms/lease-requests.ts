import { wait, type Clock } from '../../kit/clock.js'
import { asNodeError, NodeError, type ErrorBody, type ErrorCode } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import type { Hash } from '../../kit/sign.js'
import { isNotTaken, isRefusal } from '../../domain/reliable/repeat.js'
import { votersDigest } from '../../domain/swarm/coordination.js'
import type { RunOutcome, SwarmInput } from '../../domain/swarm/machine.js'
import type { LedgerChange } from '../../ports/ledger.js'
import { OPERATOR, parseAddress } from '../../domain/card/card.js'
import type { Answer, AskedLease } from '../requests/caller/request-codec.js'
import { ENDINGS } from '../../domain/task/outcome.js'
import type { PeerTable } from '../peers/peer-table.js'
import type { Asked, Requests } from '../requests/caller/requests.js'
import type { SwarmHead, SwarmLease } from './store.js'
import { justified } from './offers.js'
import type { PastLease } from './restore.js'
import { subTaskId } from './session.js'
import type { Leadership } from './consensus/leadership.js'

/** This node's ledger takes nothing now. */
const NOT_RECORDED: ReadonlySet<ErrorCode> = new Set(['DISK_FULL', 'NO_PERMISSION'])
/** This node says so of what was asked before, so it may have begun. */
const BROKEN_OFF: ReadonlySet<ErrorCode> = new Set(['PEER_OFFLINE', 'CHANNEL_CLOSED'])

/** What asking agents to do leased items needs. */
export interface LeaseRequestsDeps {
  readonly clock: Clock
  readonly hash: Hash
  readonly requests: Requests
  readonly peers: Pick<PeerTable, 'isOnline'>
  readonly self: NodeId
  /** Makes changes of the ledger. @throws NodeError what it refuses. */
  commit(changes: readonly LedgerChange[]): Promise<void>
}

/** The swarm whose items are leased, and what it is told. */
interface LeasesOf {
  readonly head: SwarmHead
  /** The time in which this node coordinates, where others could. */
  readonly term: Pick<Leadership, 'epoch' | 'mark'> | null
  /** What is asked for, and with what input. @throws NodeError when that cannot be made, or was not kept. */
  work(index: number): { readonly capability: string; readonly input: unknown }
  /** What the ledger holds of a lease, from the commit on that lets its request out. */
  changes(lease: SwarmLease): readonly LedgerChange[]
  /** May a result be taken? Why not, or null. */
  fault(lease: SwarmLease, result: unknown): NodeError | null
  /** What becomes of leases. */
  onInput(input: SwarmInput): void
  /** A lease begins, or ceases, to wait for a person of its node. */
  onApprovalChange(lease: SwarmLease, awaitsApproval: boolean): void
}

/** A run of an item: which, and the number of its lease. */
export interface ItemRun {
  readonly index: number
  readonly attempt: number
}

interface OpenLease {
  readonly lease: SwarmLease
  /** It was given by the launcher's process before this one, or by whoever coordinated before. */
  readonly isResumed: boolean
  /**
   * The node that coordinated before, and asked its agent; null: this one did. What that lease completed is the outcome; when it
   * failed, that node may have given the item to another of which no mark tells.
   */
  readonly givenBy: NodeId | null
  asked: Asked | null
  isAsking: boolean
  awaitsApproval: boolean
}

/** The live leases of one swarm: asks their agents, hears them, tells them to stop. */
export class LeaseRequests {
  readonly #deps: LeaseRequestsDeps
  readonly #swarm: LeasesOf
  readonly #leases = new Map<number, OpenLease>()
  #isStopped = false

  constructor(deps: LeaseRequestsDeps, swarm: LeasesOf) {
    this.#deps = deps
    this.#swarm = swarm
  }

  /** Live leases. */
  get size(): number {
    return this.#leases.size
  }

  /** Those that wait for a person of their node, by what it says. */
  get waiting(): number {
    return [...this.#leases.values()].filter((one) => one.awaitsApproval).length
  }

  /** Asks the agent of a new lease. */
  begin(lease: SwarmLease): void {
    this.#ask(this.#hold(lease, { isResumed: false, givenBy: null }))
  }

  /** A lease of the process before goes on: its agent is asked under the same number once it is there, and does nothing twice. */
  resume({ givenBy, ...lease }: PastLease): void {
    const open = this.#hold(lease, { isResumed: true, givenBy: givenBy ?? null })
    if (this.#nodeOf(lease) !== this.#deps.self) return
    // What agents of this very node did for it has ended with it; what they did for another is in its ledger.
    if (givenBy === undefined || givenBy === this.#deps.self) this.#lost(open, ENDINGS.interrupted.error)
    else this.#ask(open)
  }

  /** Time passed: agents that are back are asked for what they had. */
  tick(): void {
    for (const open of this.#leases.values()) {
      const peer = this.#nodeOf(open.lease)
      if (open.asked === null && !open.isAsking && peer !== null && this.#deps.peers.isOnline(peer)) this.#ask(open)
    }
  }

  /** The live lease of an item. */
  of(index: number): SwarmLease | undefined {
    return this.#leases.get(index)?.lease
  }

  /** Forgets a lease that has its outcome. */
  drop(index: number, attempt: number): void {
    if (this.of(index)?.attempt === attempt) this.#leases.delete(index)
  }

  /**
   * A lease has failed, and its item rests for a while: this node knows so also after a restart. Where that cannot be recorded its
   * agent is asked once more then.
   */
  rest(lease: SwarmLease, ms: number): void {
    const { clock, commit } = this.#deps
    const { leasedAt } = this.of(lease.index) ?? {}
    const rest = { until: clock.now() + ms, ms }
    commit(this.#swarm.changes({ ...lease, rest, ...(leasedAt === undefined ? {} : { leasedAt }) })).catch(() => undefined)
    this.drop(lease.index, lease.attempt)
  }

  /** Forgets a lease, and tells its agent to stop. */
  cancel(index: number, attempt: number): void {
    const open = this.#leases.get(index)
    if (open?.lease.attempt !== attempt) return
    this.#leases.delete(index)
    const peer = this.#nodeOf(open.lease)
    if (open.asked !== null) open.asked.cancel()
    else if (open.isResumed && peer !== null) this.#deps.requests.withdraw(peer, this.#name(index), attempt)
  }

  /** Forgets all of them, and tells their agents to stop. */
  cancelAll(): void {
    for (const { lease } of [...this.#leases.values()]) this.cancel(lease.index, lease.attempt)
  }

  /** This node stops: the leases live on in the ledger. */
  stop(): void {
    this.#isStopped = true
  }

  /** A peer works on runs of items, or says that they wait for a person there (`awaitsApproval`). Gives those that are no live leases of it. */
  onHeartbeat(peer: NodeId, runs: readonly ItemRun[], awaitsApproval: boolean): ItemRun[] {
    const live = runs.flatMap((run) => this.#live(peer, run) ?? [])
    if (live.length > 0) this.#swarm.onInput({ type: 'heartbeat', leases: live.map(({ lease }) => lease) })
    for (const open of live) {
      if (open.awaitsApproval === awaitsApproval) continue
      open.awaitsApproval = awaitsApproval
      this.#swarm.onApprovalChange(open.lease, awaitsApproval)
    }
    return runs.filter((run) => this.#live(peer, run) === null)
  }

  #live(peer: NodeId, { index, attempt }: ItemRun): OpenLease | null {
    const open = this.#leases.get(index)
    return open === undefined || open.lease.attempt !== attempt || this.#nodeOf(open.lease) !== peer ? null : open
  }

  #hold(lease: SwarmLease, from: Pick<OpenLease, 'isResumed' | 'givenBy'>): OpenLease {
    const open = { lease, ...from, asked: null, isAsking: false, awaitsApproval: false }
    this.#leases.set(lease.index, open)
    return open
  }

  #nodeOf({ agent }: SwarmLease): NodeId | null {
    return parseAddress(agent)?.nodeId ?? null
  }

  #name(index: number): string {
    return subTaskId(this.#swarm.head.id, index)
  }

  #ask(open: OpenLease): void {
    open.isAsking = true
    void this.#asked(open)
  }

  /** Asks the agent to do the item; its answer goes back into the machine with the attempt it belongs to. */
  async #asked(open: OpenLease): Promise<void> {
    const { lease } = open
    const { clock, self } = this.#deps
    try {
      const asked = await this.#send(open)
      // It may have been released while the message was on its way out.
      if (this.#leases.get(lease.index) !== open) asked.cancel()
      open.asked = asked
    } catch (error) {
      return this.#notSent(open, asNodeError(error).toBody())
    }
    const answer = await open.asked.answer
    // Agents of this node answer without any I/O: without a breath here they would starve those of all other nodes.
    if (this.#nodeOf(lease) === self) await wait(clock, 0)
    if (!this.#isStopped) this.#answered(open, answer)
  }

  async #send(open: OpenLease): Promise<Asked> {
    const { lease, isResumed, givenBy } = open
    const { requests, self, clock } = this.#deps
    const { head, work, term } = this.#swarm
    const { request, onBehalfOf, id, deadline } = head
    const { index, attempt, agent, isRepeatable } = lease
    const target = parseAddress(agent)
    if (target === null) throw new NodeError('AGENT_NOT_FOUND', 'the agent has no address')
    // Whoever coordinates next has to know that it may have begun.
    if (term !== null && !isRepeatable && !(await term.mark(lease))) throw new NodeError('CANCELED', 'this node coordinates no more')
    return await requests.ask({
      sender: { agentId: OPERATOR, nodeId: self },
      target,
      ...work(index),
      description: request.goal,
      ...justified(request),
      ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
      timeoutMs: Math.max(1, deadline - clock.now()),
      mayQueue: false,
      allowRepeat: request.allowRepeat === true,
      // Its node may have lost its disk meanwhile: what may not be repeated is only asked after.
      lease: {
        swarm: id,
        ...(term === null ? {} : { epoch: term.epoch }),
        requestId: this.#name(index),
        attempt,
        isQuery: isResumed && !isRepeatable,
        ...(givenBy === null ? {} : { askedBy: { agentId: OPERATOR, nodeId: givenBy } }),
        ...(head.voters === undefined || isRepeatable ? {} : this.#forVoters(head.voters, givenBy)),
        changes: () => this.#recorded(open)
      }
    })
  }

  /** Who takes over may ask after what it did not ask for, also a node that is no participant: of that node it has to be one of those that it was told. */
  #forVoters(voters: readonly NodeId[], givenBy: NodeId | null): Pick<AskedLease, 'voters' | 'amongVoters'> {
    return givenBy === null ? { voters: votersDigest(voters, this.#deps.hash) } : { amongVoters: voters }
  }

  /** What the ledger holds of a lease that is sent. @throws NodeError CANCELED when it is no longer live: the next one has its place. */
  #recorded(open: OpenLease): readonly LedgerChange[] {
    if (this.#leases.get(open.lease.index) !== open) throw new NodeError('CANCELED', 'the lease has ended before it left')
    return this.#swarm.changes(open.lease)
  }

  /** The request did not leave this node, so nothing has begun, unless the process before had sent it. */
  #notSent(open: OpenLease, error: ErrorBody): void {
    open.isAsking = false
    if (this.#isStopped) return
    const isLater = isNotTaken(error.code) || NOT_RECORDED.has(error.code)
    if (!isLater && isInDoubt(open)) return this.#lost(open, error)
    if (!isLater) return this.#failed(open, error, true)
    // Until its time is over it may be asked again: see `tick`.
    if (!open.isResumed) this.#swarm.onInput({ type: 'busy', ...open.lease })
  }

  #answered(open: OpenLease, answer: Answer): void {
    if (answer.outcome === 'COMPLETED') return this.#completed(open, answer.result)
    const { error } = answer
    if (answer.outcome === 'UNKNOWN') return this.#end(open, { ok: false, error, isUnknown: true })
    // A run of the process before was ended by its node, which had missed its launcher for too long.
    if (open.isResumed && error.code === 'CANCELED') return this.#lost(open, ENDINGS.interrupted.error)
    // Nor does what it says now tell what it did for the process before.
    if (BROKEN_OFF.has(error.code) || (open.isResumed && isNotTaken(error.code))) return this.#lost(open, error)
    if (isInDoubt(open) && (open.givenBy !== null || isRefusal(error.code))) return this.#lost(open, error)
    this.#failed(open, error)
  }

  #completed(open: OpenLease, result: unknown): void {
    const fault = this.#swarm.fault(open.lease, result)
    if (fault !== null && open.givenBy !== null) this.#lost(open, fault.toBody())
    else if (fault !== null) this.#failed(open, fault.toBody())
    else this.#end(open, { ok: true, result })
  }

  /** `isUnsent`: the lease never left this node. */
  #failed(open: OpenLease, error: ErrorBody, isUnsent = false): void {
    this.#end(open, { ok: false, error, isRefusal: isRefusal(error.code), ...(isUnsent ? { isUnsent } : {}) })
  }

  /** It may have begun, and has no outcome. What may be repeated goes to whoever is free, without a retry. */
  #lost(open: OpenLease, error: ErrorBody): void {
    if (open.lease.isRepeatable) this.#swarm.onInput({ type: 'busy', ...open.lease })
    else this.#end(open, { ok: false, error, isUnknown: true })
  }

  #end({ lease }: OpenLease, outcome: RunOutcome): void {
    const { index, attempt, agent } = lease
    const kept = outcome.ok ? outcome : { ...outcome, error: this.#kept(lease, outcome.error) }
    this.#swarm.onInput({ type: 'result', index, attempt, agent, outcome: kept })
  }

  /** What else an agent says of a failure is left out when there is no room for it. */
  #kept(lease: SwarmLease, { data, ...bare }: ErrorBody): ErrorBody {
    return data === undefined || this.#swarm.fault(lease, data) !== null ? bare : { ...bare, data }
  }
}

/** May a run have begun before, which must not be repeated? Its agent was only asked how it stands, so not to have been asked proves nothing. */
function isInDoubt({ isResumed, lease }: OpenLease): boolean {
  return isResumed && !lease.isRepeatable
}
