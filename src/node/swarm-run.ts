import type { Clock } from '../kit/clock.js'
import { asNodeError, NodeError } from '../kit/errors.js'
import type { ErrorBody } from '../kit/errors.js'
import { Emitter } from '../kit/events.js'
import type { IdSource, NodeId } from '../kit/ids.js'
import type { AgentAddress } from '../domain/card/card.js'
import type { EnvelopeHeader } from '../domain/envelope/codec.js'
import { createSwarm, stepSwarm } from '../domain/swarm/machine.js'
import type { SwarmEffect, SwarmInput, SwarmState } from '../domain/swarm/machine.js'
import { TaskRejectPayloadSchema } from '../domain/task/negotiation.js'
import type { TaskProposalPayload } from '../domain/task/negotiation.js'
import { offerAcceptSchema } from '../domain/task/payloads.js'
import type { SwarmEvent, SwarmInfo, SwarmRequest, SwarmResults, SwarmStatus } from '../ports/node-api.js'
import type { Telemetry } from '../ports/telemetry.js'
import { OPERATOR } from './agents.js'
import { parseAddress } from './directory.js'
import type { Directory } from './directory.js'
import type { Outbox } from './outbox.js'
import type { Asked, Requests } from './requests.js'

/** An agent that does not answer an offer in this time may be asked again, in milliseconds. */
const OFFER_TIMEOUT_MS = 5000
/** Leases wait for the first answers so long, in milliseconds: else the nearest agents would take a small swarm whole. */
const RECRUIT_MS = 500

/** What one swarm needs. */
export interface SwarmRunParts {
  readonly clock: Clock
  readonly ids: IdSource
  readonly telemetry: Telemetry
  readonly directory: Directory
  readonly outbox: Outbox
  readonly requests: Requests
  readonly self: NodeId
  readonly limits: { readonly leaseMs: number; readonly deadlineMs: number }
  /** Called once, when it has ended. */
  onEnd(run: SwarmRun): void
}

/** An agent that could, but does not take part, and the rule or reason. */
export interface LeftOut {
  readonly agent: string
  readonly rule: string
}

/** What a swarm is launched with. */
export interface SwarmLaunch {
  readonly id: string
  readonly taskId: string
  readonly request: SwarmRequest
  readonly items: readonly { readonly name: string; readonly input: unknown; readonly pinnedTo?: string }[]
  /** Addresses of agents that may take part. */
  readonly allowed: readonly string[]
  readonly leftOut: readonly LeftOut[]
}

/** One swarm under way: performs what the lease machine decides, and keeps what people want to see. */
export class SwarmRun {
  readonly id: string
  readonly taskId: string
  readonly request: SwarmRequest
  status: SwarmStatus = 'running'
  readonly #parts: SwarmRunParts
  readonly #inputs: readonly unknown[]
  readonly #names: readonly string[]
  readonly #createdAt: number
  readonly #state: SwarmState
  readonly #events: SwarmEvent[] = []
  readonly #live: Emitter<SwarmEvent>
  readonly #leases = new Map<number, { readonly agent: string; readonly attempt: number; asked: Asked | null }>()
  /** Agents that were offered a part, and what they said. */
  readonly #offered = new Map<string, 'asked' | 'accepted' | 'refused'>()
  readonly #results: { readonly index: number; readonly row: SwarmResults['results'][number] }[] = []
  readonly #participants = new Set<string>()
  /** Agents that accepted while recruiting; null once leases are given. */
  #recruits: { readonly agent: string; readonly slots: number }[] | null = []
  #leftOut: LeftOut[]
  #endedAt: number | null = null

  constructor(parts: SwarmRunParts, launch: SwarmLaunch) {
    const { clock, telemetry, directory, limits } = parts
    const { request, items, allowed } = launch
    const namer = directory.namer()
    this.#parts = parts
    this.id = launch.id
    this.taskId = launch.taskId
    this.request = request
    this.#createdAt = clock.now()
    // The machine's clock must never go back, so it is not the wall clock.
    const startedAt = clock.monotonic()
    this.#inputs = items.map((one) => one.input)
    this.#names = items.map((one) => (one.pinnedTo === undefined ? one.name : namer(one.name)))
    this.#leftOut = launch.leftOut.map((one) => ({ agent: namer(one.agent), rule: one.rule }))
    this.#live = new Emitter((error) => telemetry.log('error', 'a swarm listener failed', { error: String(error) }))
    const swarm = {
      id: launch.id,
      items: items.map(({ name, pinnedTo }) => (pinnedTo === undefined ? { name } : { name, pinnedTo })),
      maxParallel: request.maxParallel ?? Number.MAX_SAFE_INTEGER,
      retries: request.retries ?? 2,
      deadlineAt: startedAt + (request.deadlineMs ?? limits.deadlineMs),
      leaseMs: limits.leaseMs
    }
    this.#state = createSwarm(swarm, startedAt)
    this.#tell({ type: 'swarm', id: this.id, agents: allowed.map((one) => namer(one)), leftOut: this.#leftOut })
    clock.after(RECRUIT_MS, () => this.#recruited())
    this.offer(allowed)
  }

  /** Offers a part to every agent of the list that was not asked yet. */
  offer(agents: readonly string[]): void {
    for (const agent of agents) if (!this.#offered.has(agent)) void this.#offer(agent)
  }

  /** Time passed: leases without heartbeat and the deadline are looked at. */
  tick(): void {
    this.#step({ type: 'tick' })
  }

  /** Stops it: leases are released, what is not done ends. */
  cancel(): void {
    this.#step({ type: 'cancel' })
  }

  /** A peer says which requests it works on; it may only renew its own leases. */
  heartbeat(peer: NodeId, keys: readonly string[]): void {
    const prefix = `${this.id}.`
    const leases = keys.flatMap((key) => {
      const at = key.startsWith(prefix) ? /^(\d+)#(\d+)$/.exec(key.slice(prefix.length)) : null
      const holder = at === null ? undefined : this.#leases.get(Number(at[1]))?.agent
      return at !== null && holder !== undefined && parseAddress(holder)?.nodeId === peer
        ? [{ index: Number(at[1]), attempt: Number(at[2]) }]
        : []
    })
    if (leases.length > 0) this.#step({ type: 'heartbeat', leases })
  }

  /** A peer is gone: the leases of its agents go back at once. */
  lost(peer: NodeId): void {
    const agents = [...this.#offered.keys()].filter((agent) => parseAddress(agent)?.nodeId === peer)
    for (const agent of agents) this.#offered.delete(agent)
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

  /** Where it stands. */
  info(): SwarmInfo {
    const namer = this.#parts.directory.namer()
    const completed = this.#results.filter((one) => one.row.status === 'completed').length
    const { goal, capability, strategy } = this.request
    return {
      id: this.id,
      goal,
      capability,
      strategy,
      status: this.status,
      participants: [...this.#participants].map((one) => namer(one)),
      leftOut: this.#leftOut,
      counts: { total: this.#inputs.length, completed, failed: this.#results.length - completed },
      running: this.#leases.size,
      createdAt: new Date(this.#createdAt).toISOString(),
      durationMs: (this.#endedAt ?? this.#parts.clock.now()) - this.#createdAt
    }
  }

  /** The first failure, for the swarm's own outcome. */
  firstError(): ErrorBody | null {
    return this.#results.find((one) => one.row.error !== null)?.row.error ?? null
  }

  get #from(): AgentAddress {
    return { agentId: OPERATOR, nodeId: this.#parts.self }
  }

  /** Everybody asked at first has answered, or has had its time: the leases begin. */
  #recruited(): void {
    const agents = this.#recruits
    this.#recruits = null
    if (agents !== null) this.#step({ type: 'recruited', agents })
  }

  async #offer(agent: string): Promise<void> {
    const recipient = parseAddress(agent)
    if (recipient === null) return
    this.#offered.set(agent, 'asked')
    const { clock, outbox, ids } = this.#parts
    const timer = clock.after(OFFER_TIMEOUT_MS, () => {
      if (this.#offered.get(agent) === 'asked') this.#offered.delete(agent)
    })
    const payload: TaskProposalPayload = {
      taskDescription: this.request.goal,
      requiredCapabilities: [this.request.capability],
      estimatedComplexity: complexityOf(this.#inputs.length),
      deadlineMs: OFFER_TIMEOUT_MS
    }
    const handler = (header: EnvelopeHeader, answer: unknown): void => {
      clock.clear(timer)
      this.#answered(agent, header, answer)
    }
    const correlationId = ids.next('thr')
    try {
      await outbox.send({
        sender: this.#from,
        recipient,
        type: 'task-proposal',
        correlationId,
        payload,
        ...justified(this.request),
        replies: { ttlMs: OFFER_TIMEOUT_MS, handler }
      })
    } catch (error) {
      // The timer runs on: it is asked again when that is over.
      this.#leaveOut(agent, asNodeError(error).message)
    }
  }

  #answered(agent: string, header: EnvelopeHeader, payload: unknown): void {
    if (this.#offered.get(agent) !== 'asked') return
    const accept = header.type === 'task-accept' ? offerAcceptSchema.safeParse(payload) : null
    if (accept?.success === true) {
      this.#offered.set(agent, 'accepted')
      const { slots } = accept.data
      if (this.#recruits === null) return this.#step({ type: 'accepted', agent, slots })
      this.#recruits.push({ agent, slots })
      return this.#recruitedAll()
    }
    const reject = TaskRejectPayloadSchema.safeParse(payload)
    const rule = reject.success ? `rejected: ${reject.data.rejectionReason}` : 'refused by its node'
    this.#offered.set(agent, 'refused')
    this.#leaveOut(agent, rule)
    this.#step({ type: 'left', agent, reason: rule })
    this.#recruitedAll()
  }

  /** Nobody's answer is missing: no need to wait longer. */
  #recruitedAll(): void {
    if ([...this.#offered.values()].every((state) => state !== 'asked')) this.#recruited()
  }

  #leaveOut(agent: string, rule: string): void {
    const shown = this.#parts.directory.shownAddress(agent)
    this.#leftOut = [...this.#leftOut.filter((one) => one.agent !== shown), { agent: shown, rule }]
  }

  #step(input: SwarmInput): void {
    if (this.status !== 'running') return
    const { effects } = stepSwarm(this.#state, input, this.#parts.clock.monotonic())
    for (const effect of effects) this.#perform(effect)
  }

  #perform(effect: SwarmEffect): void {
    switch (effect.type) {
      case 'lease':
        this.#participants.add(effect.agent)
        this.#leases.set(effect.index, { agent: effect.agent, attempt: effect.attempt, asked: null })
        this.#tell({ type: 'lease', ...this.#shown(effect) })
        void this.#lease(effect)
        return
      case 'release': {
        const lease = this.#leases.get(effect.index)
        if (lease?.attempt === effect.attempt) {
          this.#leases.delete(effect.index)
          lease.asked?.cancel()
        }
        return this.#tell({ type: 'released', ...this.#shown(effect), reason: effect.reason })
      }
      case 'retry':
        this.#leases.delete(effect.index)
        return this.#tell({ type: 'released', ...this.#shown(effect), reason: `failed, is tried again: ${effect.error.message}` })
      case 'item':
        return this.#settle(effect)
      case 'done':
        return this.#finish(effect)
    }
  }

  #shown({ index, agent, attempt }: { index: number; agent: string; attempt: number }): { item: string; agent: string; attempt: number } {
    return { item: this.#names[index] ?? String(index), agent: agent === '' ? '-' : this.#parts.directory.shownAddress(agent), attempt }
  }

  /** Asks the agent to do the item; its answer goes back into the machine with the attempt it belongs to. */
  async #lease(lease: { readonly index: number; readonly agent: string; readonly attempt: number }): Promise<void> {
    const { requests, limits } = this.#parts
    const { index, agent, attempt } = lease
    const target = parseAddress(agent)
    if (target === null) return
    try {
      const asked = await requests.ask({
        sender: this.#from,
        target,
        capability: this.request.capability,
        input: this.#inputs[index],
        description: this.request.goal,
        ...justified(this.request),
        timeoutMs: this.request.deadlineMs ?? limits.deadlineMs,
        mayQueue: false,
        lease: { swarm: this.id, requestId: `${this.id}.${index}`, attempt }
      })
      const held = this.#leases.get(index)
      if (held?.attempt === attempt && this.status === 'running') held.asked = asked
      else asked.cancel()
      const answer = await asked.answer
      if (answer.outcome !== 'COMPLETED') return this.#failed(lease, answer.error)
      this.#step({ type: 'result', index, attempt, agent, outcome: { ok: true, result: answer.result } })
    } catch (error) {
      this.#failed(lease, asNodeError(error).toBody())
    }
  }

  #failed(held: { readonly index: number; readonly agent: string; readonly attempt: number }, error: ErrorBody): void {
    // What is given may be a whole effect: only these three are meant.
    const lease = { index: held.index, agent: held.agent, attempt: held.attempt }
    if (this.#leases.get(lease.index)?.attempt !== lease.attempt) return
    if (error.code === 'OVERLOADED') return this.#step({ type: 'busy', ...lease })
    // The link went down under the message: the lease goes back as with any lost peer, not as a failed try.
    const isLost = error.code === 'PEER_OFFLINE' || error.code === 'CHANNEL_CLOSED'
    if (isLost) return this.#step({ type: 'busy', ...lease })
    this.#step({ type: 'result', ...lease, outcome: { ok: false, error } })
  }

  #settle(effect: Extract<SwarmEffect, { type: 'item' }>): void {
    this.#leases.delete(effect.index)
    const { status, result, error, durationMs } = effect
    const shown = this.#shown(effect)
    this.#results.push({ index: effect.index, row: { ...shown, status, result, error, durationMs } })
    this.#tell({ type: 'item', ...shown, status, result, error })
  }

  #finish({ status, counts }: Extract<SwarmEffect, { type: 'done' }>): void {
    for (const lease of this.#leases.values()) lease.asked?.cancel()
    this.#leases.clear()
    this.status = status
    this.#endedAt = this.#parts.clock.now()
    const canceled = status === 'canceled' ? new NodeError('CANCELED', 'the swarm was canceled').toBody() : null
    const error = status === 'completed' ? null : (canceled ?? this.firstError())
    this.#parts.onEnd(this)
    this.#tell({ type: 'done', id: this.id, status, counts, durationMs: this.#endedAt - this.#createdAt, error })
  }

  #tell(event: SwarmEvent): void {
    this.#events.push(event)
    this.#live.emit(event)
  }
}

/** The justification of a swarm's messages, when it has one. */
export function justified(request: SwarmRequest): { justification?: string } {
  return request.justification === undefined ? {} : { justification: request.justification }
}

function complexityOf(items: number): TaskProposalPayload['estimatedComplexity'] {
  if (items <= 10) return 'simple'
  return items <= 100 ? 'medium' : 'complex'
}
