import type { Clock, Timer } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { type IdKind, resolveId } from '../../kit/resolve-id.js'
import { shown } from '../../kit/text.js'
import type { CertifiedPower } from '../../domain/routing/effective.js'
import type { RunOutcome } from '../../domain/swarm/machine.js'
import type { SwarmInfo, SwarmPreview, SwarmRequest } from '../../ports/swarm-api.js'
import { endedSwarm, infoOf, type SwarmView } from './finished-swarm.js'
import type { NodeEvents } from '../observe/events.js'
import { recordedSwarmTask, swarmOutcome, type RecordedTask } from '../tasks/from-record.js'
import type { SwarmEnd, SwarmHead } from './store.js'
import { coordinatorOf, SwarmMemory, type SwarmHere } from './memory.js'
import { Launcher, type SwarmPlan } from './launcher.js'
import { previewOf } from './prepare.js'
import type { SwarmLaunch } from './create.js'
import { ReplicatedSwarm } from './consensus/replicated-swarm.js'
import { Coordinator, type CoordinatorDeps } from './coordinator.js'
import { Participants, type ParticipantsDeps } from './consensus/participants.js'
import type { SwarmSession } from './session.js'
import { Eligibility, type SurveyDeps } from './eligibility.js'
import type { TaskTable } from '../tasks/task-table.js'
import type { ItemRun } from './lease-requests.js'

/** How often leases and deadlines are checked, in milliseconds. */
const TICK_MS = 500

/** Dependencies of the swarm table. */
export interface SwarmTableDeps
  extends Omit<CoordinatorDeps, 'onEnd' | 'onStatus' | 'hasCapacity' | 'peers'>,
    Omit<ParticipantsDeps, keyof CoordinatorDeps | 'eligibility' | 'memory'>,
    SurveyDeps {
  readonly clock: Clock
  readonly tasks: TaskTable
  readonly events: NodeEvents
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

/** Callbacks of swarms to their table. */
interface SwarmHooks {
  onEnd(swarm: SwarmHere): void
  onStatus(swarm: SwarmHere, status: 'running' | 'stalled'): void
  hasCapacity(bytes: number): boolean
}

/** The swarms launched here, and swarms of other nodes in which this node votes. Running ones resume from the ledger after a restart. */
export class SwarmTable {
  /** This node as a participant of swarms. */
  readonly participants: Participants
  readonly #deps: SwarmTableDeps
  readonly #memory = new SwarmMemory()
  readonly #eligibility: Eligibility
  readonly #launcher: Launcher
  #timer: Timer | null = null
  #isStopped = false

  constructor(deps: SwarmTableDeps) {
    this.#deps = deps
    const eligibility = new Eligibility(deps)
    this.#eligibility = eligibility
    this.participants = new Participants({
      ...deps,
      ...this.#hooks(),
      eligibility,
      memory: this.#memory
    })
    this.#launcher = new Launcher({
      ...deps,
      eligibility,
      participants: this.participants,
      begin: (launch, refused) => this.#begin(launch, refused)
    })
  }

  /** Resumes the swarms that had not ended when this node stopped. @throws NodeError STORE_DAMAGED */
  async resume(): Promise<void> {
    const { swarmStore, tasks } = this.#deps
    for (const id of await swarmStore.open()) {
      const head = await swarmStore.get(id)
      if (head === null) continue
      const { items, leases } = await swarmStore.unfinished(id)
      const { task, events } = recordedSwarmTask(head)
      if (head.taskId !== '') tasks.restore(task, events)
      if (head.voters !== undefined) {
        await this.participants.resume(head, items)
        continue
      }
      const run = this.#run({ head, items, allowed: [], past: { leases, rows: await swarmStore.results(head) } }, new Set())
      // Its work since the copy was made would be repeated.
      if (head.isRestored === true) await run.cancel()
    }
  }

  /** Starts the checks of leases and deadlines. */
  start(): void {
    this.#timer = this.#deps.clock.every(TICK_MS, () => {
      for (const run of this.#memory.running()) run.tick(this.#eligibility.check(run.head))
      this.#showApprovals()
    })
  }

  /** A swarm in memory by its whole id: launched here, or one in which this node is a participant. */
  inMemory(id: string): SwarmHere | undefined {
    return this.#memory.get(id)
  }

  /** This node stops; running swarms resume at its next start. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#deps.clock.clear(this.#timer)
    await Promise.all([...this.#memory.all.values()].map((run) => run.stop()))
  }

  /** Launches a swarm, see {@link Launcher.launch}. */
  launch(plan: SwarmPlan, onBehalfOf?: CertifiedPower, onRun?: (run: SwarmHere) => void): Promise<string> {
    return this.#launcher.launch(plan, onBehalfOf, onRun)
  }

  /** The effects of a launch, and the agents that would be left out. Nothing is recorded. @throws NodeError USAGE */
  preview(request: SwarmRequest, onBehalfOf?: CertifiedPower): SwarmPreview {
    return previewOf({ eligibility: this.#eligibility, directory: this.#deps.directory }, { request, further: [], onBehalfOf })
  }

  /** null: this node stops. */
  #begin(launch: SwarmLaunch, refused: Set<string>): SwarmHere | null {
    if (this.#isStopped) return null
    if (launch.head.voters === undefined) return this.#run(launch, refused)
    this.#eligibility.begin(launch.head.id, refused)
    return this.participants.launched(launch.head, launch.items)
  }

  #run(launch: SwarmLaunch, refused: Set<string>): Coordinator {
    this.#eligibility.begin(launch.head.id, refused)
    const run = new Coordinator({ ...this.#deps, ...this.#hooks() }, launch)
    this.#memory.add(run)
    return run
  }

  #hooks(): SwarmHooks {
    return {
      onEnd: (swarm) => this.#ended(swarm),
      hasCapacity: (bytes) => this.#memory.hasCapacity(bytes),
      onStatus: ({ head: { id } }, status) => {
        const text = status === 'stalled' ? 'a swarm has nobody who could go on' : 'a swarm goes on'
        this.#deps.events.add('swarm', text, { swarm: id })
      }
    }
  }

  /** Cancels a swarm; resolves when that is durable. An ended one stays as it is. @throws NodeError SWARM_NOT_FOUND, AMBIGUOUS_NAME. */
  async cancel(id: string): Promise<SwarmInfo> {
    const swarm = await this.find(id)
    if (swarm instanceof Coordinator || swarm instanceof ReplicatedSwarm) await swarm.cancel()
    return swarm.info()
  }

  /** Cancels by the swarm's task; false when no running swarm has it. */
  async cancelTask(taskId: string): Promise<boolean> {
    const run = this.#memory.running().find((one) => one.head.taskId === taskId)
    await run?.cancel()
    return run !== undefined
  }

  /** Tasks of swarms that are no longer in memory, by the beginning of their ids, from the ledger. @throws NodeError STORE_DAMAGED */
  async recordedTasks(taskId: string): Promise<RecordedTask[]> {
    return (await this.#deps.swarmStore.ofTasks(taskId)).map(recordedSwarmTask)
  }

  /** Every swarm in memory, newest first. */
  list(): SwarmInfo[] {
    return [...this.#memory.all.values()].reverse().map((run) => run.info())
  }

  /** Every swarm in memory or in the ledger, newest first. @throws NodeError STORE_DAMAGED */
  async listAll(): Promise<SwarmInfo[]> {
    const all = this.list()
    for await (const head of this.#deps.swarmStore.heads()) {
      if (head.end !== null && !this.#memory.all.has(head.id)) all.push(infoOf(head, head.end))
    }
    return all.sort((a, b) => (a.createdAt < b.createdAt ? 1 : a.createdAt > b.createdAt ? -1 : 0))
  }

  /** A swarm by its id or the beginning of it, in memory or in the ledger. @throws NodeError SWARM_NOT_FOUND, AMBIGUOUS_NAME, STORE_DAMAGED. */
  async find(id: string): Promise<SwarmView> {
    const { swarmStore, telemetry } = this.#deps
    const known = new Map<string, { readonly run: SwarmHere } | { readonly head: SwarmHead; readonly end: SwarmEnd }>()
    for (const [one, run] of this.#memory.all) known.set(one, { run })
    if (!this.#memory.all.has(id))
      for await (const head of swarmStore.heads(id))
        if (head.end !== null && !known.has(head.id)) known.set(head.id, { head, end: head.end })
    const hit = resolveId(id, known, SWARM_IDS)
    return 'run' in hit ? hit.run : endedSwarm(hit.head, hit.end, { rows: await swarmStore.results(hit.head), telemetry })
  }

  /** Sessions of the running swarms, oldest first. */
  activeSessions(): SwarmSession[] {
    return this.#memory.running().map((run) => run.session())
  }

  /**
   * Offers a part in a running swarm to one more agent.
   * @throws NodeError SWARM_NOT_FOUND; CAPABILITY_NOT_FOUND when it may not or cannot take part.
   */
  invite(id: string, agent: string): void {
    const run = this.get(id)
    this.#eligibility.forget(run.head, agent)
    const found = this.#eligibility.check(run.head)
    if (found.some(({ allowed }) => allowed.includes(agent))) {
      return coordinatorOf(run)?.invite(found.map(({ allowed }) => allowed.filter((one) => one === agent)))
    }
    const rule = found.flatMap(({ leftOut }) => leftOut).find((one) => one.agent === agent)?.rule ?? 'it lacks a capability'
    throw new NodeError('CAPABILITY_NOT_FOUND', `${this.#deps.directory.shownAddress(agent)} cannot take part: ${rule}`)
  }

  /** Ends the live lease of an item in place of its agent. @throws NodeError SWARM_NOT_FOUND; TASK_NOT_FOUND without a lease. */
  settle(id: string, subTask: string, outcome: RunOutcome): void {
    if (coordinatorOf(this.get(id))?.settle(subTask, outcome) !== true)
      throw new NodeError('TASK_NOT_FOUND', `nobody works on "${shown(subTask)}" now`)
  }

  /**
   * A peer reports requests: in progress, or waiting for a person there (`awaitsApproval`). Their leases stay live. It is told to
   * stop a run without a live lease: its swarm has ended, or has given the item to another agent.
   */
  onHeartbeat(peer: NodeId, keys: readonly string[], awaitsApproval = false): void {
    for (const [id, runs] of runsOf(keys)) {
      const strays = this.#memory.get(id)?.onHeartbeat(peer, runs, awaitsApproval) ?? runs
      for (const { index, attempt } of strays) this.#deps.requests.endRun(peer, `${id}.${index}#${attempt}`)
    }
    this.#showApprovals()
  }

  #showApprovals(): void {
    const { tasks } = this.#deps
    for (const run of this.#memory.running()) {
      const { head } = run
      const awaitsApproval = coordinatorOf(run)?.awaitsApproval === true
      if (awaitsApproval) tasks.lost(head.taskId)
      else tasks.working(head.taskId)
      tasks.waitFor(head.taskId, awaitsApproval ? 'approval' : null)
    }
  }

  /** A peer is gone: leases of its agents that others may get return at once. */
  onOffline(peer: NodeId): void {
    for (const run of this.#memory.running()) run.lost(peer)
  }

  /** Removes expired swarms from the ledger. Returns the number of keys. */
  async purgeExpired(now: number): Promise<number> {
    for (const run of this.#memory.runningReplicated()) if (run.head.expiresAt <= now) await run.expire()
    return await this.#deps.swarmStore.purgeExpired(now)
  }

  #ended(run: SwarmHere): void {
    const { tasks, events } = this.#deps
    this.#eligibility.end(run.head.id)
    const { counts, status } = run.info()
    events.add('swarm', 'a swarm ended', { swarm: run.head.id, status, ...counts })
    const outcome = swarmOutcome({ status, counts, error: run.end?.error ?? null })
    if (outcome.type === 'result') tasks.complete(run.head.taskId, outcome.result)
    else tasks.fail(run.head.taskId, outcome.error)
    this.#memory.evict()
  }

  /** One swarm in memory. @throws NodeError SWARM_NOT_FOUND, AMBIGUOUS_NAME. */
  get(id: string): SwarmHere {
    return resolveId(id, this.#memory.all, SWARM_IDS)
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
