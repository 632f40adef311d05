import type { NodeId } from '../../kit/ids.js'
import type { CallerAuthority } from '../../domain/routing/effective.js'
import { type GatewayTask, RESTING_STATES } from '../../domain/gateway/task.js'
import { type PageCursor, type TaskFilter, TaskOrder, type TaskPage } from '../../domain/gateway/task-order.js'
import { memberOf } from './caller.js'
import type { Clock } from '../../kit/clock.js'
import { messageOf, NodeError } from '../../kit/errors.js'
import { letGo } from '../../domain/gateway/shares.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { TaskLog } from './task-log.js'
import type { AnswerLog } from './answer-log.js'
import type { PushService } from './push/push-service.js'
import type { TurnRunner } from './turn-runner.js'

/** The most shared texts. */
const MAX_SHARED_TEXTS = 4096

/** The owner, state and run of a task. */
type RunOf = Pick<GatewayTask, 'owner' | 'state' | 'run'>

/** The tasks of one owner. */
interface OwnedTask {
  readonly order: TaskOrder
  /** Task ids by the message that began each, including tasks that are not durable yet. */
  readonly begun: Map<string, string>
  /** Task ids by context, in the order in which they became durable; most contexts have one. */
  readonly contexts: Map<string, string | string[]>
  /** The rights of the task that began last. */
  power: CallerAuthority | null
  /** The number of tasks that do not rest, including beginning ones. */
  active: number
}

/** Gateway tasks without their contents, in their durable state: by id, and by owner in list order. */
export class TaskIndex {
  readonly #byId = new Map<string, GatewayTask>()
  readonly #owners = new Map<string, OwnedTask>()
  /** Texts that many tasks share, each stored once. */
  readonly #texts = new Map<string, string>()
  /** Members by their running requests. */
  readonly #members = new Map<string, NodeId>()
  /** Beginning tasks by id: not durable yet. */
  readonly #beginning = new Map<string, RunOf>()

  /** The number of tasks, including beginning ones. */
  get size(): number {
    return this.#byId.size + this.#beginning.size
  }

  /** A task of an owner; tasks of other owners count as unknown. @throws NodeError TASK_NOT_FOUND */
  find(owner: string, id: string): GatewayTask {
    const task = this.get(id)
    if (task?.owner !== owner) throw new NodeError('TASK_NOT_FOUND', 'there is no such task')
    return task
  }

  /** A task by its id; undefined for none. */
  get(id: string): GatewayTask | undefined {
    return this.#byId.get(id)
  }

  /** Stores the durable state of a task. */
  put(task: GatewayTask): void {
    const before = this.#byId.get(task.id)
    if (before === undefined) {
      const owned = this.#of(task.owner)
      owned.power = task.by
      // While this task was removed, its message may have begun another one.
      if (!owned.begun.has(task.messageId)) owned.begun.set(task.messageId, task.id)
      return this.#enter(owned, task)
    }
    const owned = this.#of(task.owner)
    owned.active += weightOf(task) - weightOf(before)
    this.#byId.set(task.id, task)
    owned.order.put(task, before)
    this.#run(before, task)
  }

  /** A beginning task ({@link begin}) is durable for the first time. */
  add(task: GatewayTask): void {
    const owned = this.#of(task.owner)
    owned.active--
    this.#run(this.#beginning.get(task.id), undefined)
    this.#beginning.delete(task.id)
    this.#enter(owned, task)
  }

  #enter(owned: OwnedTask, task: GatewayTask): void {
    owned.active += weightOf(task)
    this.#byId.set(task.id, task)
    owned.order.put(task)
    const others = owned.contexts.get(task.contextId)
    if (Array.isArray(others)) others.push(task.id)
    else owned.contexts.set(task.contextId, others === undefined ? task.id : [others, task.id])
    this.#run(undefined, task)
  }

  /** The newest tasks of an owner in a context, the newest first; `isCut`: there are more than `most`. */
  inContext(
    owner: string,
    contextId: string,
    most: number
  ): { readonly tasks: GatewayTask[]; readonly isCut: boolean } {
    const ids = [this.#owners.get(owner)?.contexts.get(contextId) ?? []].flat()
    const tasks = ids.slice(-most).flatMap((id) => this.#byId.get(id) ?? [])
    return { tasks: tasks.reverse(), isCut: ids.length > most }
  }

  /** The owners of tasks. */
  owners(): IterableIterator<string> {
    return this.#owners.keys()
  }

  /** Forgets a task. */
  remove(task: GatewayTask): void {
    const known = this.#byId.get(task.id)
    if (known === undefined) return
    const owned = this.#of(known.owner)
    owned.active -= weightOf(known)
    this.#byId.delete(known.id)
    owned.order.remove(known)
    const others = owned.contexts.get(known.contextId)
    if (Array.isArray(others) && others.length > 1) others.splice(others.indexOf(known.id), 1)
    else owned.contexts.delete(known.contextId)
    this.#run(known, undefined)
    this.#forget(owned, known)
  }

  /** The id of the task that a message of an owner began or is beginning; undefined for none. */
  begunBy(owner: string, messageId: string): string | undefined {
    return this.#owners.get(owner)?.begun.get(messageId)
  }

  /** Adds a beginning task with its message. */
  begin(task: GatewayTask): void {
    const { id, owner, messageId, by } = task
    const owned = this.#of(owner)
    this.#run(undefined, task)
    owned.begun.set(messageId, id)
    owned.power = by
    owned.active++
    this.#beginning.set(id, task)
  }

  /** The task did not begin. A second call does nothing. */
  notBegun(task: Pick<GatewayTask, 'id' | 'owner' | 'messageId'>): void {
    const owned = this.#owners.get(task.owner)
    if (owned === undefined || owned.begun.get(task.messageId) !== task.id) return
    owned.active--
    this.#run(this.#beginning.get(task.id), undefined)
    this.#beginning.delete(task.id)
    this.#forget(owned, task)
  }

  #forget(
    { begun, order }: OwnedTask,
    { id, owner, messageId }: Pick<GatewayTask, 'id' | 'owner' | 'messageId'>
  ): void {
    if (begun.get(messageId) === id) begun.delete(messageId)
    if (begun.size === 0 && order.size === 0) this.#owners.delete(owner)
  }

  #of(owner: string): OwnedTask {
    const known = this.#owners.get(owner)
    if (known !== undefined) return known
    const owned = {
      order: new TaskOrder(),
      begun: new Map<string, string>(),
      contexts: new Map(),
      power: null,
      active: 0
    }
    this.#owners.set(this.shared(owner), owned)
    return owned
  }

  /** The member behind a running request; null for none. */
  memberBehind(requestId: string): NodeId | null {
    return this.#members.get(requestId) ?? null
  }

  /**
   * Adds a request for an owner. The request of a task is known by the task, and needs neither this nor
   * {@link requestEnded}.
   */
  requestMade(requestId: string, owner: string): void {
    const member = memberOf(owner)
    if (member !== null) this.#members.set(requestId, member)
  }

  /** Removes a request that ended. */
  requestEnded(requestId: string): void {
    this.#members.delete(requestId)
  }

  /** Updates the running request of a task; undefined: the task does not exist. */
  #run(before: RunOf | undefined, after: RunOf | undefined): void {
    if (before?.run) this.requestEnded(before.run.requestId)
    if (after?.run && !RESTING_STATES.has(after.state)) this.requestMade(after.run.requestId, after.owner)
  }

  /** The number of an owner's tasks that do not rest. */
  active(owner: string): number {
    return this.#owners.get(owner)?.active ?? 0
  }

  /** One page of an owner's tasks. */
  page(
    owner: string,
    filter: TaskFilter,
    page: { readonly after: PageCursor | null; readonly limit: number }
  ): TaskPage {
    return (this.#owners.get(owner)?.order ?? new TaskOrder()).page(filter, page)
  }

  /** All tasks, in no order. */
  all(): IterableIterator<GatewayTask> {
    return this.#byId.values()
  }

  /** A task read from the ledger, with the texts and rights that it shares with others. */
  sharing(task: GatewayTask): GatewayTask {
    const { owner, agent, capability, by } = task
    const shared = { owner: this.shared(owner), agent: this.shared(agent), capability: this.shared(capability) }
    return { ...task, ...shared, by: this.sharedPower(owner, by) }
  }

  /** Equal rights, as the object of the owner's last begun task if it has the same: most tasks of an owner do. */
  sharedPower(owner: string, power: CallerAuthority): CallerAuthority {
    const known = this.#owners.get(owner)?.power ?? null
    return known !== null && isSamePower(known, power) ? known : power
  }

  /** The stored copy of a text that many tasks have in common. */
  shared(text: string): string {
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    // Owners, agents and capabilities come and go: after the clearing, old texts are merely stored once more.
    if (this.#texts.size >= MAX_SHARED_TEXTS) this.#texts.clear()
    this.#texts.set(text, text)
    return text
  }
}

function isSamePower(one: CallerAuthority, other: CallerAuthority): boolean {
  if (one.maxTier !== other.maxTier || one.sandboxId !== other.sandboxId) return false
  const [some, others] = [one.capabilities, other.capabilities]
  return (
    some === others || (some?.length === others?.length && some?.every((text, at) => text === others?.[at]) === true)
  )
}

function weightOf(task: GatewayTask | undefined): 0 | 1 {
  return task === undefined || RESTING_STATES.has(task.state) ? 0 : 1
}

/** How long a resting task is kept, in milliseconds. */
export const RETENTION_MS = 604_800_000
/**
 * The most tasks. Beyond it, resting ones of the owner with the most are removed, oldest first; without any, new ones
 * are refused.
 */
const MAX_TASKS = 100_000

/** Dependencies of {@link Retention}. */
interface RetentionDeps {
  readonly node: {
    readonly clock: Clock
    readonly telemetry: Telemetry
    readonly settings: { readonly defaultTtlMs: number }
  }
  readonly index: TaskIndex
  readonly log: TaskLog
  readonly runs: Pick<TurnRunner, 'giveUp'>
  readonly push: PushService | null
  readonly answers: Pick<AnswerLog, 'sweep'>
}

/** Removes A2A tasks that are expired, and resting ones when the node has no room for more. */
export class Retention {
  readonly #deps: RetentionDeps
  #sweeping: Promise<number> | null = null

  constructor(deps: RetentionDeps) {
    this.#deps = deps
  }

  /** True when no further task has room. */
  get isFull(): boolean {
    return this.#deps.index.size >= MAX_TASKS
  }

  /** Makes room for a new task of an owner. @throws NodeError OVERLOADED when no resting task may be removed */
  async make(newcomer: string): Promise<void> {
    // A sweep looks at every task: while one runs, wait for the room that it makes.
    while (this.#sweeping !== null && this.isFull) await this.#sweeping
    if (this.isFull && (await this.sweep(newcomer)) === 0)
      throw new NodeError('OVERLOADED', `this node has ${MAX_TASKS} tasks under way`, { retryable: true })
  }

  /** Removes expired tasks, and others to make room for `newcomer`. Resolves with their number. Never rejects. */
  sweep(newcomer: string | null = null): Promise<number> {
    const sweeping = this.#letGo(newcomer).finally(() => {
      if (this.#sweeping === sweeping) this.#sweeping = null
    })
    this.#sweeping = sweeping
    return sweeping
  }

  async #letGo(newcomer: string | null): Promise<number> {
    const { node, index, push, runs, answers } = this.#deps
    const { clock, settings, telemetry } = node
    const over = Math.max(0, index.size - MAX_TASKS + (this.isFull ? MAX_TASKS / 100 : 0))
    const old = [...index.all()].filter(
      ({ state, updatedAt }) => RESTING_STATES.has(state) && updatedAt < clock.now() - RETENTION_MS
    )
    const past = new Set([...old, ...letGo(index.all(), over - old.length, newcomer)])
    try {
      for (const task of past) await this.#remove(task)
      await push?.sweep()
      await answers.sweep(clock.now() - RETENTION_MS)
      for (const task of index.all())
        if (!RESTING_STATES.has(task.state) && task.updatedAt < clock.now() - 2 * settings.defaultTtlMs)
          runs.giveUp(task)
    } catch (error) {
      telemetry.log('warn', 'old tasks could not be removed', { reason: messageOf(error) })
    }
    return past.size
  }

  async #remove(task: GatewayTask): Promise<void> {
    const { index, log, push } = this.#deps
    // Its client may have answered the task meanwhile.
    if (index.get(task.id) !== task || log.current(task) !== task) return
    // From here on, an answer finds no task.
    index.remove(task)
    try {
      await push?.forget(task)
      await log.remove(task)
    } catch (error) {
      index.put(task)
      throw error
    }
  }
}
