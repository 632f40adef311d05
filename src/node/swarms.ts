import type { Timer } from '../kit/clock.js'
import { NodeError } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import { shown } from '../kit/text.js'
import type { AgentRegistry, RegisteredCard } from '../domain/card/registry.js'
import type { RefusalCode } from '../domain/routing/decide.js'
import type { CertifiedPower } from '../domain/routing/effective.js'
import type { LeftOut, SwarmEvent, SwarmInfo, SwarmRequest, SwarmResults } from '../ports/swarm-api.js'
import { OPERATOR } from './agents.js'
import type { NodeEvents } from './events.js'
import type { Peers } from './peers.js'
import type { RunOutcome } from '../domain/swarm/machine.js'
import { justified } from './swarm-offers.js'
import { SwarmRun } from './swarm-run.js'
import type { SwarmRunParts } from './swarm-run.js'
import { subTaskIndex } from './swarm-session.js'
import type { SwarmSession } from './swarm-session.js'
import type { Tasks } from './tasks.js'
import type { Visibility } from './visibility.js'

/** Swarms that are kept; the oldest finished ones go first. */
const KEPT = 100
/** Bytes of results that are kept; the same. When those of running swarms take it all, further results are refused. */
const KEPT_BYTES = 128 * 1024 * 1024
/** Items of one swarm, at most. */
export const MAX_ITEMS = 10_000
/** How often leases and deadlines are looked at, in milliseconds. */
const TICK_MS = 500

/** What swarms need. */
export interface SwarmsParts extends Omit<SwarmRunParts, 'onEnd' | 'hasRoom'> {
  readonly registry: AgentRegistry
  readonly peers: Peers
  readonly tasks: Tasks
  readonly events: NodeEvents
  readonly visibility: Visibility
}

/** Who could take part: who may, who is left out and why. */
interface Survey {
  readonly allowed: readonly string[]
  readonly leftOut: readonly LeftOut[]
  readonly refusals: readonly RefusalCode[]
}

/** What a program launches. */
export interface SwarmPlan extends SwarmRequest {
  /** What agents must be able to do beside the capability that they are asked for. Default: nothing. */
  readonly furtherCapabilities?: readonly string[]
}

/** The swarms launched here. */
export class Swarms {
  readonly #parts: SwarmsParts
  readonly #runs = new Map<string, SwarmRun>()
  /** By running swarm: addresses of agents that the rules refuse, each on record once. */
  readonly #refused = new Map<string, Set<string>>()
  #timer: Timer | null = null

  constructor(parts: SwarmsParts) {
    this.#parts = parts
  }

  /** Begins to watch leases and deadlines. */
  start(): void {
    this.#timer = this.#parts.clock.every(TICK_MS, () => {
      for (const run of this.#running()) {
        const { allowed, leftOut } = this.#survey(run, this.#refused.get(run.id))
        run.tick({ allowed, known: new Set([...allowed, ...leftOut.map((one) => one.agent)]) })
      }
      this.#showHeld()
    })
  }

  /** Cancels what runs. */
  stop(): void {
    this.#parts.clock.clear(this.#timer)
    for (const run of this.#running()) run.cancel()
  }

  /**
   * Launches a swarm and returns its id; its course is in {@link Swarms.follow}.
   * @throws NodeError NO_CAPABLE_AGENT when nobody can; TIER_VIOLATION, SANDBOX_VIOLATION or ESCALATION_REQUIRED (with the
   * rule) when some can, but none may; PEER_OFFLINE when those who can are all offline; USAGE for no or too many items.
   */
  launch({ furtherCapabilities = [], ...request }: SwarmPlan, onBehalfOf?: CertifiedPower): string {
    const { ids, tasks, events } = this.#parts
    const capabilities = [request.capability, ...furtherCapabilities]
    const refused = new Set<string>()
    const survey = this.#survey({ request, capabilities, onBehalfOf }, refused)
    if (survey.allowed.length === 0) throw this.#nobody(request, survey)
    const items = itemsOf(request, survey.allowed)
    if (items.length === 0) throw new NodeError('USAGE', 'there are no items to work on')
    if (items.length > MAX_ITEMS) throw new NodeError('USAGE', `a swarm takes at most ${MAX_ITEMS} items, not ${items.length}`)
    const id = ids.next('swarm')
    const { capability, goal } = request
    const taskId = tasks.open({ kind: 'swarm', role: 'caller', agent: capability, capability, description: goal })
    tasks.working(taskId)
    events.add('swarm', 'a swarm was launched', { swarm: id, capability, items: items.length })
    const by = onBehalfOf === undefined ? {} : { onBehalfOf }
    const hooks = { onEnd: (ended: SwarmRun) => this.#ended(ended), hasRoom: (bytes: number) => this.#hasRoom(bytes) }
    const run = new SwarmRun({ ...this.#parts, ...hooks }, { id, taskId, request, capabilities, items, ...survey, ...by })
    this.#runs.set(id, run)
    this.#refused.set(id, refused)
    this.#trim(0)
    return id
  }

  /** Stops a swarm. @throws NodeError SWARM_NOT_FOUND, AMBIGUOUS_NAME. */
  cancel(id: string): SwarmInfo {
    const run = this.#get(id)
    run.cancel()
    return run.info()
  }

  /** Cancels by the swarm's task; false when no running swarm has it. */
  cancelTask(taskId: string): boolean {
    const run = this.#running().find((one) => one.taskId === taskId)
    run?.cancel()
    return run !== undefined
  }

  /** Every kept swarm, newest first. */
  list(): SwarmInfo[] {
    return [...this.#runs.values()].reverse().map((run) => run.info())
  }

  /** One swarm. @throws NodeError SWARM_NOT_FOUND, AMBIGUOUS_NAME. */
  show(id: string): SwarmInfo {
    return this.#get(id).info()
  }

  /** One swarm in the words of the specification; undefined for an unknown one. */
  session(id: string): SwarmSession | undefined {
    return this.#runs.get(id)?.session()
  }

  /** Those that have not ended, oldest first. */
  activeSessions(): SwarmSession[] {
    return this.#running().map((run) => run.session())
  }

  /**
   * Offers a part in a running swarm to one more agent.
   * @throws NodeError SWARM_NOT_FOUND; CAPABILITY_NOT_FOUND when it may not or cannot take part.
   */
  invite(id: string, agent: string): void {
    const run = this.#get(id)
    const refused = this.#refused.get(run.id)
    // Who asks once more is refused once more.
    refused?.delete(agent)
    const { allowed, leftOut } = this.#survey(run, refused)
    if (allowed.includes(agent)) return run.invite(agent)
    const rule = leftOut.find((one) => one.agent === agent)?.rule ?? 'it lacks a capability'
    throw new NodeError('CAPABILITY_NOT_FOUND', `${this.#parts.directory.shownAddress(agent)} cannot take part: ${rule}`)
  }

  /** Ends the live lease of an item in the place of its agent. @throws NodeError SWARM_NOT_FOUND; TASK_NOT_FOUND without a lease. */
  settle(id: string, subTask: string, outcome: RunOutcome): void {
    const run = this.#get(id)
    const index = subTaskIndex(run.id, subTask)
    if (index === null || !run.settle(index, outcome)) throw new NodeError('TASK_NOT_FOUND', `nobody works on "${shown(subTask)}" now`)
  }

  /** Its accepted results so far. @throws NodeError SWARM_NOT_FOUND, AMBIGUOUS_NAME. */
  results(id: string): SwarmResults {
    return this.#get(id).results()
  }

  /** Its events so far and those to come. @throws NodeError SWARM_NOT_FOUND, AMBIGUOUS_NAME. */
  follow(id: string, listener: (event: SwarmEvent) => void): ReturnType<SwarmRun['follow']> {
    return this.#get(id).follow(listener)
  }

  /** A peer says which requests it works on. */
  onHeartbeat(peer: NodeId, keys: readonly string[]): void {
    for (const run of this.#running()) run.heartbeat(peer, keys, false)
    this.#showHeld()
  }

  /** A peer says which requests wait for a person of it: their leases live, but nobody works on them. */
  onApproval(peer: NodeId, keys: readonly string[]): void {
    for (const run of this.#running()) run.heartbeat(peer, keys, true)
    this.#showHeld()
  }

  #showHeld(): void {
    const { tasks } = this.#parts
    for (const { taskId, isHeld } of this.#running()) {
      if (isHeld) tasks.lost(taskId)
      else tasks.working(taskId)
      tasks.waitFor(taskId, isHeld ? 'approval' : null)
    }
  }

  /** A peer is gone: its leases go back at once. */
  onOffline(peer: NodeId): void {
    for (const run of this.#running()) run.lost(peer)
  }

  /** `refused`: agents whose refusal is on record; others are put there. */
  #survey(
    { request, capabilities, onBehalfOf }: Pick<SwarmRun, 'request' | 'capabilities' | 'onBehalfOf'>,
    refused = new Set<string>()
  ): Survey {
    const { registry, peers, outbox, self, visibility } = this.#parts
    const by = onBehalfOf === undefined ? {} : { onBehalfOf }
    const sender = { agentId: OPERATOR, nodeId: self }
    const allowed: string[] = []
    const leftOut: LeftOut[] = []
    const refusals: RefusalCode[] = []
    const leaveOut = (card: RegisteredCard, rule: string): void => {
      if (sees(card)) leftOut.push({ agent: card.address, rule })
    }
    const sees = (card: RegisteredCard): boolean => onBehalfOf === undefined || visibility.toCaller(card, onBehalfOf)
    const [, ...further] = capabilities
    for (const card of registry.findByCapability(request.capability)) {
      if (!further.every((id) => card.capabilities.some((one) => one.id === id))) continue
      if (card.nodeId !== self && !peers.isOnline(card.nodeId)) {
        leaveOut(card, 'offline')
        continue
      }
      const recipient = { agentId: card.id, nodeId: card.nodeId }
      const draft = { sender, recipient, type: 'task-proposal', capability: request.capability, ...justified(request), ...by } as const
      const verdict = outbox.verdict(draft)
      if (verdict.allowed) {
        allowed.push(card.address)
        continue
      }
      if (!refused.has(card.address)) outbox.judge(draft)
      refused.add(card.address)
      leaveOut(card, verdict.rule)
      if (sees(card)) refusals.push(verdict.code)
    }
    return { allowed, leftOut, refusals }
  }

  /** Nobody takes part: tells "nobody can" from "may not" and from "all away". */
  #nobody({ capability }: SwarmRequest, { leftOut, refusals }: Survey): NodeError {
    if (leftOut.length === 0)
      return new NodeError('NO_CAPABLE_AGENT', `no agent in the mesh has the capability ${capability}`, { data: { capability } })
    const namer = this.#parts.directory.namer()
    const named = leftOut.map((one) => ({ agent: namer(one.agent), rule: one.rule }))
    const why = named.map((one) => `${one.agent} (${one.rule})`).join(', ')
    return new NodeError(refusals[0] ?? 'PEER_OFFLINE', `no agent that has ${capability} may take part: ${why}`, {
      data: { leftOut: named }
    })
  }

  #ended(run: SwarmRun): void {
    const { tasks, events } = this.#parts
    this.#refused.delete(run.id)
    const { counts } = run.info()
    events.add('swarm', 'a swarm ended', { swarm: run.id, status: run.status, ...counts })
    if (run.status === 'completed' || run.status === 'partial') return tasks.complete(run.taskId, { status: run.status, counts })
    const canceled = run.status === 'canceled'
    const error = new NodeError(canceled ? 'CANCELED' : 'TASK_FAILED', `the swarm ended ${run.status}`).toBody()
    tasks.fail(run.taskId, canceled ? error : (run.firstError() ?? error))
  }

  #get(id: string): SwarmRun {
    const exact = this.#runs.get(id)
    if (exact !== undefined) return exact
    const hits = [...this.#runs.values()].filter((one) => id.length >= 4 && one.id.startsWith(id))
    const [hit] = hits
    if (hits.length > 1)
      throw new NodeError('AMBIGUOUS_NAME', `"${shown(id)}" may mean several swarms`, {
        data: { candidates: hits.map((one) => one.id) },
        next: ['a2a-node swarm ls']
      })
    if (hit === undefined) throw new NodeError('SWARM_NOT_FOUND', `no swarm "${shown(id)}" on this node`)
    return hit
  }

  #running(): SwarmRun[] {
    return [...this.#runs.values()].filter((run) => run.isRunning)
  }

  /** Makes room by forgetting; says whether there is enough then. */
  #hasRoom(bytes: number): boolean {
    return this.#trim(bytes) <= KEPT_BYTES
  }

  /** Forgets swarms that have ended, oldest first, until so many bytes have room too; gives the bytes held with them. */
  #trim(more: number): number {
    let bytes = [...this.#runs.values()].reduce((sum, run) => sum + run.bytes, more)
    for (const [id, run] of this.#runs) {
      if (this.#runs.size <= KEPT && bytes <= KEPT_BYTES) break
      if (run.isRunning) continue
      this.#runs.delete(id)
      bytes -= run.bytes
    }
    return bytes
  }
}

function itemsOf(request: SwarmRequest, allowed: readonly string[]): { name: string; input: unknown; pinnedTo?: string }[] {
  if (request.strategy === 'map') return (request.items ?? []).map((one) => ({ name: one.item, input: one.input }))
  return allowed.map((agent) => ({ name: agent, input: request.input ?? {}, pinnedTo: agent }))
}
