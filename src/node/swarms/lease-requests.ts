import { wait, type Clock } from '../../kit/clock.js'
import { asNodeError, NodeError, type ErrorBody, type ErrorCode } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { isRecord, writtenJson } from '../../kit/json.js'
import { givenText } from '../../kit/schema/text.js'
import { shown } from '../../kit/text.js'
import type { Hash } from '../../kit/sign.js'
import { isNotTaken, isRefusal } from '../../domain/reliable/repeat.js'
import { votersDigest } from '../../domain/swarm/coordination.js'
import type { RunOutcome, SwarmInput } from '../../domain/swarm/machine.js'
import type { LedgerChange } from '../../ports/ledger.js'
import { OPERATOR, parseAddress } from '../../domain/card/card.js'
import type { Answer, AskedLease } from '../requests/caller/request-codec.js'
import { ENDINGS } from '../../domain/task/outcome.js'
import { isEnd, MAX_STATED_REASON, type StatedState, statedState } from '../../domain/task/stated.js'
import type { PeerTable } from '../peers/peer-table.js'
import type { Asked, Requests } from '../requests/caller/requests.js'
import type { SwarmHead, SwarmLease } from './store.js'
import { justified } from './offers.js'
import type { PastLease } from './restore.js'
import { subTaskId } from './session.js'
import type { Leadership } from './consensus/leadership.js'

/** Errors of this node's ledger while it refuses changes. */
const NOT_RECORDED: ReadonlySet<ErrorCode> = new Set(['DISK_FULL', 'NO_PERMISSION'])
/** Errors of this node for a request that was sent, so it may have begun. */
const BROKEN_OFF: ReadonlySet<ErrorCode> = new Set(['PEER_OFFLINE', 'CHANNEL_CLOSED'])

/** Dependencies of lease requests. */
export interface LeaseRequestsDeps {
  readonly clock: Clock
  readonly hash: Hash
  readonly requests: Requests
  readonly peers: Pick<PeerTable, 'isOnline'>
  readonly self: NodeId
  /** Commits changes to the ledger. @throws NodeError the ledger's error. */
  commit(changes: readonly LedgerChange[]): Promise<void>
}

/** The swarm of the leases, and its callbacks. */
export interface LeasesOf {
  readonly head: SwarmHead
  /** The term of this node as coordinator, in a swarm with several participants. */
  readonly term: Pick<Leadership, 'epoch' | 'mark'> | null
  /** The requested capability and its input. @throws NodeError when the input cannot be made, or was not stored. */
  work(index: number): { readonly capability: string; readonly input: unknown }
  /** Ledger changes of a lease, for the commit that sends its request. */
  changes(lease: SwarmLease): readonly LedgerChange[]
  /** Why a result is refused; null when it is accepted. */
  fault(lease: SwarmLease, result: unknown): NodeError | null
  /** Gets heartbeats and results of leases. */
  onInput(input: SwarmInput): void
  /** A lease starts or stops waiting for a person of its node. */
  onApprovalChange(lease: SwarmLease, awaitsApproval: boolean): void
}

/** A run of an item, by the item's index and the number of its lease. */
export interface ItemRun {
  readonly index: number
  readonly attempt: number
}

interface OpenLease {
  readonly lease: SwarmLease
  /** It was given by the launcher's previous process, or by an earlier coordinator. */
  readonly isResumed: boolean
  /**
   * The earlier coordinator that requested it; null: this node did. A result of the lease is the outcome. If it failed,
   * that node may have given the item to another agent without a mark.
   */
  readonly givenBy: NodeId | null
  asked: Asked | null
  isAsking: boolean
  awaitsApproval: boolean
}

/** The live leases of one swarm: makes their requests, handles the answers, and cancels them. */
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

  /** Leases that wait for a person, by the reports of their nodes. */
  get waiting(): number {
    return [...this.#leases.values()].filter((one) => one.awaitsApproval).length
  }

  /** Makes the request of a new lease. */
  begin(lease: SwarmLease): void {
    this.#ask(this.#hold(lease, { isResumed: false, givenBy: null }))
  }

  /**
   * Resumes an earlier lease: its agent is asked under the same number once it is reachable, and does nothing twice.
   */
  resume({ givenBy, ...lease }: PastLease): void {
    const open = this.#hold(lease, { isResumed: true, givenBy: givenBy ?? null })
    if (this.#nodeOf(lease) !== this.#deps.self) return
    // Work of this node's agents for it has ended with it; their work for another node is in its ledger.
    if (givenBy === undefined || givenBy === this.#deps.self) this.#lost(open, ENDINGS.interrupted.error)
    else this.#ask(open)
  }

  /** Time passed: agents that are back are asked for their earlier leases. */
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

  /** Removes a lease that has its outcome. */
  drop(index: number, attempt: number): void {
    if (this.of(index)?.attempt === attempt) this.#leases.delete(index)
  }

  /**
   * A lease has failed, and its item rests for a while; the ledger keeps that for a restart. If it cannot be recorded,
   * its agent is asked once more then.
   */
  rest(lease: SwarmLease, ms: number): void {
    const { clock, commit } = this.#deps
    const { leasedAt } = this.of(lease.index) ?? {}
    const rest = { until: clock.now() + ms, ms }
    commit(this.#swarm.changes({ ...lease, rest, ...(leasedAt === undefined ? {} : { leasedAt }) })).catch(
      () => undefined
    )
    this.drop(lease.index, lease.attempt)
  }

  /** Removes a lease, and tells its agent to stop. */
  cancel(index: number, attempt: number): void {
    const open = this.#leases.get(index)
    if (open?.lease.attempt !== attempt) return
    this.#leases.delete(index)
    const peer = this.#nodeOf(open.lease)
    if (open.asked !== null) open.asked.cancel()
    else if (open.isResumed && peer !== null) this.#deps.requests.withdraw(peer, this.#name(index), attempt)
  }

  /** Removes all leases, and tells their agents to stop. */
  cancelAll(): void {
    for (const { lease } of [...this.#leases.values()]) this.cancel(lease.index, lease.attempt)
  }

  /** This node stops: the leases stay in the ledger. */
  stop(): void {
    this.#isStopped = true
  }

  /**
   * A peer reports runs of items: in progress, or waiting for a person there (`awaitsApproval`). Returns the runs
   * without a live lease.
   */
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

  /** Asks the agent to do the item; its answer goes back into the machine with its attempt. */
  async #asked(open: OpenLease): Promise<void> {
    const { lease } = open
    const { clock, self } = this.#deps
    try {
      const asked = await this.#send(open)
      // It may have been released during the send.
      if (this.#leases.get(lease.index) !== open) asked.cancel()
      open.asked = asked
    } catch (error) {
      return this.#notSent(open, asNodeError(error).toBody())
    }
    const answer = await open.asked.answer
    // Agents of this node answer without any I/O: without a pause here they would starve the agents of all other nodes.
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
    // The next coordinator must know that it may have begun.
    if (term !== null && !isRepeatable && !(await term.mark(lease)))
      throw new NodeError('CANCELED', 'this node coordinates no more')
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
      // Its node may have lost its disk meanwhile: an unrepeatable item is only queried.
      lease: {
        swarm: id,
        ...(term === null ? {} : { epoch: term.epoch }),
        requestId: this.#name(index),
        attempt,
        isQuery: isResumed && !isRepeatable,
        ...(givenBy === null ? {} : { askedBy: { agentId: OPERATOR, nodeId: givenBy } }),
        ...(head.voters === undefined || isRepeatable ? {} : votersOf(head.voters, givenBy, this.#deps.hash)),
        changes: () => this.#recorded(open)
      }
    })
  }

  /**
   * The ledger changes of a sent lease.
   * @throws NodeError CANCELED when it is no longer live: the next one has replaced it.
   */
  #recorded(open: OpenLease): readonly LedgerChange[] {
    if (this.#leases.get(open.lease.index) !== open)
      throw new NodeError('CANCELED', 'the item was assigned anew before its request was sent')
    return this.#swarm.changes(open.lease)
  }

  /** The request did not leave this node, so nothing has begun, unless the previous process had sent it. */
  #notSent(open: OpenLease, error: ErrorBody): void {
    open.isAsking = false
    if (this.#isStopped) return
    const isLater = isNotTaken(error.code) || NOT_RECORDED.has(error.code)
    if (!isLater && isInDoubt(open)) return this.#lost(open, error)
    if (!isLater) return this.#failed(open, error, true)
    // It may be asked again until its lease ends: see `tick`.
    if (!open.isResumed) this.#swarm.onInput({ type: 'busy', ...open.lease })
  }

  #answered(open: OpenLease, answer: Answer): void {
    if (answer.outcome === 'COMPLETED') return this.#completed(open, answer.result)
    const { error } = answer
    if (answer.outcome === 'UNKNOWN') return this.#end(open, { ok: false, error, isUnknown: true })
    // Its node ended a run of the previous process, since its launcher was away for too long.
    if (open.isResumed && error.code === 'CANCELED') return this.#lost(open, ENDINGS.interrupted.error)
    // A refusal now does not tell the outcome of an earlier run.
    if (BROKEN_OFF.has(error.code) || (open.isResumed && isNotTaken(error.code))) return this.#lost(open, error)
    if (isInDoubt(open) && (open.givenBy !== null || isRefusal(error.code))) return this.#lost(open, error)
    this.#failed(open, error)
  }

  #completed(open: OpenLease, result: unknown): void {
    const stated = statedState(result)
    if (stated !== null && !isEnd(stated)) return this.#failed(open, unanswered(stated))
    const fault = this.#swarm.fault(open.lease, result)
    if (fault !== null && open.givenBy !== null) this.#lost(open, fault.toBody())
    else if (fault !== null) this.#failed(open, fault.toBody())
    else this.#end(open, { ok: true, result })
  }

  /** `isUnsent`: the lease never left this node. */
  #failed(open: OpenLease, error: ErrorBody, isUnsent = false): void {
    this.#end(open, { ok: false, error, isRefusal: isRefusal(error.code), ...(isUnsent ? { isUnsent } : {}) })
  }

  /** It may have begun, and has no outcome. A repeatable item goes to a free agent, without a retry. */
  #lost(open: OpenLease, error: ErrorBody): void {
    if (open.lease.isRepeatable) this.#swarm.onInput({ type: 'busy', ...open.lease })
    else this.#end(open, { ok: false, error, isUnknown: true })
  }

  #end({ lease }: OpenLease, outcome: RunOutcome): void {
    const { index, attempt, agent } = lease
    const kept = outcome.ok
      ? outcome
      : { ...outcome, error: this.#kept(lease, withGiven(this.#swarm, lease, outcome.error)) }
    this.#swarm.onInput({ type: 'result', index, attempt, agent, outcome: kept })
  }

  /** Drops the error data of a failure when there is no room for it. */
  #kept(lease: SwarmLease, { data, ...bare }: ErrorBody): ErrorBody {
    return data === undefined || this.#swarm.fault(lease, data) !== null ? bare : { ...bare, data }
  }
}

/** A question of an agent is no result. A swarm has no answer, so another run would ask it again. */
function unanswered({ state, message: question = '' }: StatedState): ErrorBody {
  const asked = shown(typeof question === 'string' ? question : writtenJson(question), MAX_STATED_REASON)
  const message = `the agent asks, and a swarm gives no answer (${state}): ${asked}`
  return { ...new NodeError('TASK_FAILED', message, { retryable: false }).toBody(), isFinal: true }
}

/** Adds the refused input of a sub-task, which the request of the swarm does not show. */
function withGiven({ head, work }: LeasesOf, { index }: SwarmLease, error: ErrorBody): ErrorBody {
  const { data = {} } = error
  if (error.code !== 'INVALID_INPUT' || head.stages.length < 2 || !isRecord(data)) return error
  try {
    return { ...error, data: { ...data, given: givenText(work(index).input) } }
  } catch {
    // The input cannot be made, or was not kept: the error says so.
    return error
  }
}

/**
 * A later coordinator may query a lease that it did not give. A node that is no participant knows the voters by the
 * lease's digest.
 */
function votersOf(
  voters: readonly NodeId[],
  givenBy: NodeId | null,
  hash: Hash
): Pick<AskedLease, 'voters' | 'amongVoters'> {
  return givenBy === null ? { voters: votersDigest(voters, hash) } : { amongVoters: voters }
}

/**
 * May an unrepeatable run have begun before? Its agent was only queried, so a request that was not sent proves nothing.
 */
function isInDoubt({ isResumed, lease }: OpenLease): boolean {
  return isResumed && !lease.isRepeatable
}
