import type { Clock, Timer } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { type IdKind, resolveId } from '../../kit/resolve-id.js'
import { shown } from '../../kit/text.js'
import type { CertifiedPower } from '../../domain/routing/effective.js'
import type { RunOutcome } from '../../domain/swarm/machine.js'
import type { SwarmInfo, SwarmPreview, SwarmRequest, SwarmRetry } from '../../ports/swarm-api.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { Directory } from '../cards/directory.js'
import type { Requests } from '../requests/caller/requests.js'
import { recordedSwarmTask, type RecordedTask } from '../tasks/from-record.js'
import type { Participants } from './consensus/participants.js'
import { ReplicatedSwarm } from './consensus/replicated-swarm.js'
import { Coordinator } from './coordinator.js'
import type { Eligibility } from './eligibility.js'
import { endedSwarm, infoOf, type SwarmView } from './finished-swarm.js'
import type { Launcher, SwarmPlan } from './launcher.js'
import type { ItemRun } from './lease-requests.js'
import type { SwarmLifecycle } from './lifecycle.js'
import { coordinatorOf, type SwarmHere, type SwarmMemory } from './memory.js'
import { previewOf } from './prepare.js'
import { retryRequest } from './retry.js'
import type { SwarmSession } from './session.js'
import type { Cancellation, SwarmEnd, SwarmHead, SwarmStore } from './store.js'

/** How often leases and deadlines are checked, in milliseconds. */
const TICK_MS = 500
/** Characters of the name of a caller that cancels a swarm. */
const MAX_CALLER = 256

/** Dependencies of the swarm table. */
export interface SwarmTableDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly self: NodeId
  readonly directory: Directory
  readonly swarmStore: SwarmStore
  readonly requests: Pick<Requests, 'endRun'>
  readonly memory: SwarmMemory
  readonly eligibility: Eligibility
  readonly lifecycle: Pick<SwarmLifecycle, 'showApprovals'>
  readonly participants: Participants
  readonly launcher: Launcher
}

/** Ids of swarms as people type them. */
const SWARM_IDS: IdKind = {
  one: 'swarm',
  where: 'on this node',
  several: 'swarms',
  prefix: 'swarm_',
  code: 'SWARM_NOT_FOUND',
  list: 'a2a-node swarm ls'
}

/**
 * The swarms launched here, and swarms of other nodes in which this node votes. Running ones resume from the ledger
 * after a restart.
 */
export class SwarmTable {
  /** This node as a participant of swarms. */
  readonly participants: Participants
  readonly #deps: SwarmTableDeps
  #timer: Timer | null = null

  constructor(deps: SwarmTableDeps) {
    this.#deps = deps
    this.participants = deps.participants
  }

  /** See {@link Launcher.resume}. */
  async resume(): Promise<void> {
    await this.#deps.launcher.resume()
  }

  /** Starts the checks of leases and deadlines. */
  start(): void {
    this.#timer = this.#deps.clock.every(TICK_MS, () => {
      for (const run of this.#deps.memory.running()) run.tick(this.#deps.eligibility.check(run.head))
      this.#deps.lifecycle.showApprovals()
    })
  }

  /** A swarm in memory by its whole id: launched here, or one in which this node is a participant. */
  inMemory(id: string): SwarmHere | undefined {
    return this.#deps.memory.get(id)
  }

  /** This node stops; running swarms resume at its next start. */
  async stop(): Promise<void> {
    this.#deps.launcher.stop()
    this.#deps.clock.clear(this.#timer)
    await Promise.all([...this.#deps.memory.all.values()].map((run) => run.stop()))
  }

  /**
   * Launches a swarm, see {@link Launcher.launch}, or tries items of an ended one again, see {@link retryRequest}; its
   * `id` is then the whole id.
   */
  async launch(
    plan: SwarmPlan | SwarmRetry,
    onBehalfOf?: CertifiedPower,
    onRun?: (run: SwarmHere) => void
  ): Promise<string> {
    const request = 'id' in plan ? await retryRequest(this.#deps, plan.id, plan) : plan
    return await this.#deps.launcher.launch(request, onBehalfOf, onRun)
  }

  /** The effects of a launch, and the agents that would be left out. Nothing is recorded. @throws NodeError USAGE */
  preview(request: SwarmRequest, onBehalfOf?: CertifiedPower): SwarmPreview {
    const { eligibility, directory } = this.#deps
    return previewOf(eligibility, directory, { request, further: [], onBehalfOf })
  }

  /**
   * Cancels a swarm; resolves when that is durable. An ended one stays as it is. `caller`: of the API of this node, as
   * its end names it.
   * @throws NodeError SWARM_NOT_FOUND, AMBIGUOUS_NAME.
   */
  async cancel(id: string, caller: string | null = null): Promise<SwarmInfo> {
    const swarm = await this.find(id)
    if (swarm instanceof Coordinator || swarm instanceof ReplicatedSwarm) await swarm.cancel(this.#by(caller))
    return swarm.info()
  }

  /** Cancels by the swarm's task; false when no running swarm has it. */
  async cancelTask(taskId: string, caller: string | null = null): Promise<boolean> {
    const run = this.#deps.memory.running().find((one) => one.head.taskId === taskId)
    await run?.cancel(this.#by(caller))
    return run !== undefined
  }

  #by(caller: string | null): Cancellation {
    const { clock, self } = this.#deps
    return { node: self, caller: caller?.slice(0, MAX_CALLER) ?? null, at: clock.now() }
  }

  /**
   * Tasks of swarms that are no longer in memory, by the beginning of their ids, from the ledger.
   * @throws NodeError STORE_DAMAGED
   */
  async recordedTasks(taskId: string): Promise<RecordedTask[]> {
    return (await this.#deps.swarmStore.ofTasks(taskId)).map(recordedSwarmTask)
  }

  /** Every swarm in memory, newest first. */
  list(): SwarmInfo[] {
    return [...this.#deps.memory.all.values()].reverse().map((run) => run.info())
  }

  /** Every swarm in memory or in the ledger, newest first. @throws NodeError STORE_DAMAGED */
  async listAll(): Promise<SwarmInfo[]> {
    const all = this.list()
    for await (const head of this.#deps.swarmStore.heads())
      if (head.end !== null && !this.#deps.memory.all.has(head.id))
        all.push(infoOf(head, head.end, this.#deps.directory))
    return all.sort((a, b) => (a.createdAt < b.createdAt ? 1 : a.createdAt > b.createdAt ? -1 : 0))
  }

  /**
   * A swarm by its id or the beginning of it, in memory or in the ledger.
   * @throws NodeError SWARM_NOT_FOUND, AMBIGUOUS_NAME, STORE_DAMAGED.
   */
  async find(id: string): Promise<SwarmView> {
    const { swarmStore, telemetry, directory } = this.#deps
    const known = new Map<string, { readonly run: SwarmHere } | { readonly head: SwarmHead; readonly end: SwarmEnd }>()
    for (const [one, run] of this.#deps.memory.all) known.set(one, { run })
    if (!this.#deps.memory.all.has(id))
      for await (const head of swarmStore.heads(id))
        if (head.end !== null && !known.has(head.id)) known.set(head.id, { head, end: head.end })
    const hit = resolveId(id, known, SWARM_IDS)
    return 'run' in hit
      ? hit.run
      : endedSwarm(hit.head, hit.end, { rows: await swarmStore.results(hit.head), telemetry, directory })
  }

  /** Sessions of the running swarms, oldest first. */
  activeSessions(): SwarmSession[] {
    return this.#deps.memory.running().map((run) => run.session())
  }

  /**
   * Offers a part in a running swarm to one more agent.
   * @throws NodeError SWARM_NOT_FOUND; CAPABILITY_NOT_FOUND when it may not or cannot take part.
   */
  invite(id: string, agent: string): void {
    const run = this.get(id)
    this.#deps.eligibility.forget(run.head, agent)
    const found = this.#deps.eligibility.check(run.head)
    if (found.some(({ allowed }) => allowed.includes(agent))) {
      return coordinatorOf(run)?.invite(found.map(({ allowed }) => allowed.filter((one) => one === agent)))
    }
    const rule =
      found.flatMap(({ leftOut }) => leftOut).find((one) => one.agent === agent)?.rule ?? 'it lacks a capability'
    throw new NodeError('CAPABILITY_NOT_FOUND', `${this.#deps.directory.shownAddress(agent)} cannot take part: ${rule}`)
  }

  /**
   * Ends the live lease of an item in place of its agent.
   * @throws NodeError SWARM_NOT_FOUND; TASK_NOT_FOUND without a lease.
   */
  settle(id: string, subTask: string, outcome: RunOutcome): void {
    if (coordinatorOf(this.get(id))?.settle(subTask, outcome) !== true)
      throw new NodeError('TASK_NOT_FOUND', `nobody works on "${shown(subTask)}" now`)
  }

  /**
   * A peer reports requests: in progress, or waiting for a person there (`awaitsApproval`). Their leases stay live. It
   * is told to stop a run without a live lease: its swarm has ended, or has given the item to another agent.
   */
  onHeartbeat(peer: NodeId, keys: readonly string[], awaitsApproval = false): void {
    for (const [id, runs] of runsOf(keys)) {
      const strays = this.#deps.memory.get(id)?.onHeartbeat(peer, runs, awaitsApproval) ?? runs
      for (const { index, attempt } of strays) this.#deps.requests.endRun(peer, `${id}.${index}#${attempt}`)
    }
    this.#deps.lifecycle.showApprovals()
  }

  /** A peer is gone: leases of its agents that others may get return at once. */
  onOffline(peer: NodeId): void {
    for (const run of this.#deps.memory.running()) run.lost(peer)
  }

  /** Removes expired swarms from the ledger. Returns the number of keys. */
  async purgeExpired(now: number): Promise<number> {
    for (const run of this.#deps.memory.runningReplicated()) if (run.head.expiresAt <= now) await run.expire()
    return await this.#deps.swarmStore.purgeExpired(now)
  }

  /** One swarm in memory. @throws NodeError SWARM_NOT_FOUND, AMBIGUOUS_NAME. */
  get(id: string): SwarmHere {
    return resolveId(id, this.#deps.memory.all, SWARM_IDS)
  }
}

/** Runs of swarm items in heartbeats, by swarm. */
function runsOf(keys: readonly string[]): Map<string, ItemRun[]> {
  const all = new Map<string, ItemRun[]>()
  for (const key of keys) {
    const [, id, index, attempt] = /^(swarm_[^.#]{1,40})\.(\d{1,9})#(\d{1,9})$/.exec(key) ?? []
    if (id === undefined) continue
    const runs = all.get(id) ?? []
    all.set(id, runs)
    runs.push({ index: Number(index), attempt: Number(attempt) })
  }
  return all
}
