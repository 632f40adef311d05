import { wait } from '../kit/clock.js'
import { asNodeError, NodeError } from '../kit/errors.js'
import type { ErrorBody, ErrorCode } from '../kit/errors.js'
import { Emitter } from '../kit/events.js'
import type { NodeId } from '../kit/ids.js'
import type { CertifiedPower } from '../domain/routing/effective.js'
import { createSwarm, stepSwarm, swarmStatus } from '../domain/swarm/machine.js'
import type { RunOutcome, SwarmEffect, SwarmInput, SwarmState } from '../domain/swarm/machine.js'
import type { LeftOut, SwarmEvent, SwarmInfo, SwarmRequest, SwarmResults, SwarmStatus } from '../ports/swarm-api.js'
import type { Telemetry } from '../ports/telemetry.js'
import { OPERATOR } from './agents.js'
import { parseAddress } from './directory.js'
import { isRefusal, stepsFor } from './next-steps.js'
import type { Answer } from './asking.js'
import type { Asked, Requests } from './requests.js'
import { sizeOf } from './size.js'
import { sessionOf } from './swarm-session.js'
import type { SwarmSession } from './swarm-session.js'
import { justified, SwarmOffers } from './swarm-offers.js'
import type { SwarmOffersParts } from './swarm-offers.js'

/** What one swarm needs. */
export interface SwarmRunParts extends SwarmOffersParts {
  readonly telemetry: Telemetry
  readonly requests: Requests
  readonly limits: { readonly leaseMs: number; readonly deadlineMs: number }
  /** May a result of so many bytes be kept? */
  hasRoom(bytes: number): boolean
  /** Called once, when it has ended. */
  onEnd(run: SwarmRun): void
}

/** What a swarm is launched with. */
export interface SwarmLaunch {
  readonly id: string
  readonly taskId: string
  readonly request: SwarmRequest
  /** What an agent must be able to do to take part; the first is the one that is asked for. */
  readonly capabilities: readonly string[]
  /** Who launches it, when that may be weaker than the operator. */
  readonly onBehalfOf?: CertifiedPower
  /** `pinnedTo`: address of the only agent that may do the item; its name then too. */
  readonly items: readonly { readonly name: string; readonly input: unknown; readonly pinnedTo?: string }[]
  /** Addresses of agents that may take part. */
  readonly allowed: readonly string[]
  readonly leftOut: readonly LeftOut[]
}

/** What every agent would answer alike: the item itself is at fault. */
const FINAL: ReadonlySet<ErrorCode> = new Set(['INVALID_INPUT', 'PAYLOAD_TOO_LARGE'])
/** What says that the work has not begun: the lease goes back, and no retry is spent. Whether the agent is gone, its card tells. */
const NOT_BEGUN: ReadonlySet<ErrorCode> = new Set([
  'PEER_OFFLINE',
  'CHANNEL_CLOSED',
  'OVERLOADED',
  'AGENT_NOT_FOUND',
  'CAPABILITY_NOT_FOUND'
])

interface Lease {
  readonly index: number
  readonly agent: string
  readonly attempt: number
}

/** One swarm under way: performs what the lease machine decides, and keeps what people want to see. */
export class SwarmRun {
  readonly id: string
  readonly taskId: string
  /** What it was launched with, but for the inputs. */
  readonly request: SwarmRequest
  /** What its agents must be able to do. */
  readonly capabilities: readonly string[]
  /** Who launched it, when that may be weaker than the operator. */
  readonly onBehalfOf: CertifiedPower | undefined
  readonly #parts: SwarmRunParts
  /** By item; none once it has ended. */
  #inputs: readonly unknown[]
  readonly #offers: SwarmOffers
  readonly #names: readonly string[]
  readonly #createdAt: number
  readonly #state: SwarmState
  readonly #events: SwarmEvent[] = []
  readonly #live: Emitter<SwarmEvent>
  readonly #leases = new Map<number, { readonly agent: string; readonly attempt: number; asked: Asked | null; isHeld: boolean }>()
  readonly #results: { readonly index: number; readonly row: SwarmResults['results'][number] }[] = []
  readonly #participants = new Set<string>()
  #bytes = 0
  #durationMs: number | null = null

  constructor(parts: SwarmRunParts, launch: SwarmLaunch) {
    const { clock, telemetry, directory } = parts
    const { items, allowed, onBehalfOf } = launch
    const { items: _items, input: _input, ...request } = launch.request
    const namer = directory.namer()
    this.id = launch.id
    this.taskId = launch.taskId
    this.request = request
    this.capabilities = launch.capabilities
    this.onBehalfOf = onBehalfOf
    this.#parts = parts
    this.#inputs = items.map((one) => one.input)
    this.#createdAt = clock.now()
    this.#names = items.map((one) => (one.pinnedTo === undefined ? one.name : namer(one.name)))
    this.#live = new Emitter((error) => telemetry.log('error', 'a swarm listener failed', { error: String(error) }))
    // The machine's clock must never go back, so it is not the wall clock.
    this.#state = createSwarm(this.#swarm(items), clock.monotonic())
    const leftOut = launch.leftOut.map((one) => ({ agent: namer(one.agent), rule: one.rule }))
    this.#tell({ type: 'swarm', id: this.id, agents: allowed.map((one) => namer(one)), leftOut })
    this.#offers = new SwarmOffers(parts, {
      request,
      capabilities: launch.capabilities,
      ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
      itemCount: items.length,
      leftOut,
      onRecruited: (agents) => this.#step({ type: 'recruited', agents }),
      onAccepted: (recruit) => this.#step({ type: 'accepted', ...recruit }),
      onLeft: ({ agent, leftOut: left, error }) => {
        this.#tell({ type: 'left-out', ...left })
        this.#step({ type: 'left', agent, reason: left.rule, error })
      }
    })
    this.#offers.offer(allowed)
  }

  /** Has it not ended? It may be stalled. */
  get isRunning(): boolean {
    return this.#state.status === 'running'
  }

  /** Where it stands: `stalled` while it runs without any agent that could get a lease. */
  get status(): SwarmStatus {
    return this.#offers.isRecruiting ? this.#state.status : swarmStatus(this.#state)
  }

  /** About how many bytes its results and errors hold. */
  get bytes(): number {
    return this.#bytes
  }

  /** Where it stands, in the words of the specification. */
  session(): SwarmSession {
    const results = new Map(this.#results.flatMap(({ index, row }) => (row.status === 'completed' ? [[index, row.result]] : [])))
    return sessionOf({
      id: this.id,
      goal: this.request.goal,
      capabilities: this.capabilities,
      names: this.#names,
      state: this.#state,
      isRecruiting: this.#offers.isRecruiting,
      participants: this.#participants,
      results,
      createdAt: this.#createdAt
    })
  }

  /** Offers a part to one more agent, at once. */
  invite(agent: string): void {
    if (this.isRunning) this.#offers.offer([agent])
  }

  /** Ends the live lease of an item with an outcome that did not come from its agent, which is told to stop. False: no lease. */
  settle(index: number, outcome: RunOutcome): boolean {
    const lease = this.#leases.get(index)
    if (lease === undefined) return false
    const { agent, attempt, asked } = lease
    this.#step({ type: 'result', index, agent, attempt, outcome })
    asked?.cancel()
    return true
  }

  /** Time passed: new agents are asked, those that no longer exist (not in `known`) left, leases and deadline looked at. */
  tick({ allowed, known }: { readonly allowed: readonly string[]; readonly known: ReadonlySet<string> }): void {
    for (const agent of this.#offers.removed(known)) this.#left(agent, 'it is no longer there')
    if (this.isRunning) this.#offers.offer(allowed)
    this.#step({ type: 'tick' })
  }

  /** Stops it: leases are released, what is not done ends. */
  cancel(): void {
    this.#step({ type: 'cancel' })
  }

  /** A peer says which requests it works on, or which wait for a person of it (`isHeld`); it may only renew its own leases. */
  heartbeat(peer: NodeId, keys: readonly string[], isHeld: boolean): void {
    const prefix = `${this.id}.`
    const leases = keys.flatMap((key) => {
      const at = key.startsWith(prefix) ? /^(\d{1,9})#(\d{1,9})$/.exec(key.slice(prefix.length)) : null
      const holder = at === null ? undefined : this.#leases.get(Number(at[1]))?.agent
      return at !== null && holder !== undefined && parseAddress(holder)?.nodeId === peer
        ? [{ index: Number(at[1]), attempt: Number(at[2]) }]
        : []
    })
    if (leases.length > 0) this.#step({ type: 'heartbeat', leases })
    for (const { index, attempt } of leases) {
      const lease = this.#leases.get(index)
      if (lease?.attempt !== attempt || lease.isHeld === isHeld) continue
      lease.isHeld = isHeld
      this.#tell({ type: 'waiting', ...this.#shown({ index, ...lease }), waitingFor: isHeld ? 'approval' : null })
    }
  }

  /** Do leases of it wait for a person, by what their nodes say, and is none worked on? */
  get isHeld(): boolean {
    return this.#held > 0 && this.#held === this.#leases.size
  }

  get #held(): number {
    return [...this.#leases.values()].filter((one) => one.isHeld).length
  }

  /** A peer is gone: the leases of its agents go back at once. */
  lost(peer: NodeId): void {
    const agents = this.#offers.lost(peer)
    if (agents.length > 0) this.#step({ type: 'gone', agents, reason: 'its node is gone' })
  }

  /** What has happened so far, and a subscription to what comes. */
  follow(listener: (event: SwarmEvent) => void): { readonly past: readonly SwarmEvent[]; readonly stop: () => void } {
    return { past: [...this.#events], stop: this.#live.on(listener) }
  }

  /** Its accepted results so far, in the order of the items. */
  results(): SwarmResults {
    const rows = [...this.#results].sort((a, b) => a.index - b.index).map((one) => one.row)
    return { id: this.id, status: this.status, results: rows }
  }

  /** Where it stands, in full. */
  info(): SwarmInfo {
    const namer = this.#parts.directory.namer()
    const { completed, failed, items } = this.#state
    const { goal, capability, strategy } = this.request
    return {
      id: this.id,
      goal,
      capability,
      strategy,
      status: this.status,
      participants: [...this.#participants].map((one) => namer(one)),
      leftOut: this.#offers.leftOut,
      counts: { total: items.length, completed, failed },
      running: this.#leases.size - this.#held,
      waitingForApproval: this.#held,
      createdAt: new Date(this.#createdAt).toISOString(),
      durationMs: this.#durationMs ?? this.#elapsed()
    }
  }

  /** The first failure, for the swarm's own outcome. */
  firstError(): ErrorBody | null {
    return this.#results.find((one) => one.row.error !== null)?.row.error ?? null
  }

  #swarm(items: SwarmLaunch['items']): Parameters<typeof createSwarm>[0] {
    const { clock, limits } = this.#parts
    const { id, request } = this
    return {
      id,
      items: items.map(({ name, pinnedTo }) => (pinnedTo === undefined ? { name } : { name, pinnedTo })),
      maxParallel: request.maxParallel ?? Number.MAX_SAFE_INTEGER,
      retries: request.retries ?? 2,
      deadlineAt: clock.monotonic() + this.#deadlineMs,
      leaseMs: limits.leaseMs
    }
  }

  get #deadlineMs(): number {
    return this.request.deadlineMs ?? this.#parts.limits.deadlineMs
  }

  #elapsed(): number {
    return Math.round(this.#parts.clock.monotonic() - this.#state.createdAt)
  }

  #left(agent: string, reason: string): void {
    const error = new NodeError('AGENT_NOT_FOUND', `${this.#parts.directory.shownAddress(agent)} does not take part: ${reason}`).toBody()
    this.#step({ type: 'left', agent, reason, error })
  }

  #step(input: SwarmInput): void {
    const { effects } = stepSwarm(this.#state, input, this.#parts.clock.monotonic())
    for (const effect of effects) this.#perform(effect)
  }

  #perform(effect: SwarmEffect): void {
    switch (effect.type) {
      case 'lease':
        return this.#begin({ index: effect.index, agent: effect.agent, attempt: effect.attempt })
      case 'release':
        this.#drop(effect)?.cancel()
        return this.#tell({ type: 'released', ...this.#shown(effect), reason: effect.reason })
      case 'retry':
        this.#drop(effect)
        return this.#tell({ type: 'released', ...this.#shown(effect), reason: `failed, is tried again: ${effect.error.message}` })
      case 'item':
        return this.#settle(effect)
      case 'done':
        return this.#finish(effect)
    }
  }

  #begin(lease: Lease): void {
    this.#participants.add(lease.agent)
    this.#leases.set(lease.index, { agent: lease.agent, attempt: lease.attempt, asked: null, isHeld: false })
    this.#tell({ type: 'lease', ...this.#shown(lease) })
    void this.#lease(lease)
  }

  /** Forgets a lease; gives what was asked for it, if it is under way. */
  #drop({ index, attempt }: Lease): Asked | null {
    const lease = this.#leases.get(index)
    if (lease?.attempt !== attempt) return null
    this.#leases.delete(index)
    return lease.asked
  }

  #shown({ index, agent, attempt }: Lease): { item: string; agent: string; attempt: number } {
    return { item: this.#names[index] ?? String(index), agent: agent === '' ? '-' : this.#parts.directory.shownAddress(agent), attempt }
  }

  /** Asks the agent to do the item; its answer goes back into the machine with the attempt it belongs to. */
  async #lease(lease: Lease): Promise<void> {
    try {
      const asked = await this.#ask(lease)
      const held = this.#leases.get(lease.index)
      // It may have been released while the message was on its way out.
      if (held?.attempt === lease.attempt) held.asked = asked
      else asked.cancel()
      const answer = await asked.answer
      // Agents of this node answer without any I/O: without a breath here they would starve those of all other nodes.
      if (parseAddress(lease.agent)?.nodeId === this.#parts.self) await wait(this.#parts.clock, 0)
      this.#answered(lease, answer)
    } catch (error) {
      this.#failed(lease, asNodeError(error).toBody())
    }
  }

  #ask({ index, agent, attempt }: Lease): Promise<Asked> {
    const { requests, self } = this.#parts
    const { request, onBehalfOf } = this
    const target = parseAddress(agent)
    if (target === null) throw new NodeError('AGENT_NOT_FOUND', 'the agent has no address')
    return requests.ask({
      sender: { agentId: OPERATOR, nodeId: self },
      target,
      capability: request.capability,
      input: this.#inputs[index],
      description: request.goal,
      ...justified(request),
      ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
      timeoutMs: this.#deadlineMs,
      mayQueue: false,
      lease: { swarm: this.id, requestId: `${this.id}.${index}`, attempt }
    })
  }

  #answered(lease: Lease, answer: Answer): void {
    if (answer.outcome !== 'COMPLETED') return this.#failed(lease, answer.error)
    if (!this.#parts.hasRoom(sizeOf(answer.result))) {
      return this.#failed(lease, new NodeError('PAYLOAD_TOO_LARGE', 'the results of the swarms take all the memory they may have').toBody())
    }
    this.#step({ type: 'result', ...lease, outcome: { ok: true, result: answer.result } })
  }

  #failed(lease: Lease, { data, ...bare }: ErrorBody): void {
    if (NOT_BEGUN.has(bare.code)) return this.#step({ type: 'busy', ...lease })
    const error = data === undefined || !this.#parts.hasRoom(sizeOf(data)) ? bare : { ...bare, data }
    const outcome = { ok: false, error, isFinal: FINAL.has(error.code), isRefusal: isRefusal(error.code) } as const
    this.#step({ type: 'result', ...lease, outcome })
  }

  #settle(effect: Extract<SwarmEffect, { type: 'item' }>): void {
    this.#leases.delete(effect.index)
    const { status, result, durationMs } = effect
    const shown = this.#shown(effect)
    const error = effect.error === null ? null : stepsFor(effect.error, shown.agent)
    this.#bytes += sizeOf(result) + sizeOf(error)
    this.#results.push({ index: effect.index, row: { ...shown, status, result, error, durationMs } })
    this.#tell({ type: 'item', ...shown, status, result, error })
  }

  #finish({ status, counts }: Extract<SwarmEffect, { type: 'done' }>): void {
    this.#offers.stop()
    for (const lease of this.#leases.values()) lease.asked?.cancel()
    this.#leases.clear()
    this.#inputs = []
    this.#durationMs = this.#elapsed()
    const canceled = status === 'canceled' ? new NodeError('CANCELED', 'the swarm was canceled').toBody() : null
    const error = status === 'completed' ? null : (canceled ?? this.firstError())
    this.#parts.onEnd(this)
    this.#tell({ type: 'done', id: this.id, status, counts, durationMs: this.#durationMs, error })
  }

  #tell(event: SwarmEvent): void {
    this.#events.push(event)
    this.#live.emit(event)
  }
}
