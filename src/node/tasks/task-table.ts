import type { Clock } from '../../kit/clock.js'
import type { ErrorBody } from '../../kit/errors.js'
import { Emitter } from '../../kit/events.js'
import type { Unsubscribe } from '../../kit/events.js'
import { TransientMap } from '../../kit/transient.js'
import type { IdSource } from '../../kit/ids.js'
import { applyTask, createTask } from '../../domain/task/machine.js'
import type { TaskInput } from '../../domain/task/machine.js'
import { endStateOf } from '../../domain/task/stated.js'
import { FINAL_STATES } from '../../domain/task/task.js'
import type { Task, TaskEvent, WaitingFor } from '../../domain/task/task.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { sizeOf } from '../../kit/size.js'

/** Tasks kept; the oldest ended ones are evicted first. */
const KEPT = 5000
/** Evicted at once when the table is full. Each eviction iterates over the free slots of earlier ones. */
const AT_ONCE = { tasks: 100, bytes: 1024 * 1024 }
/**
 * Bytes kept of descriptions, results, errors and progress. Ended tasks are evicted first, then progress of the other
 * tasks.
 */
const KEPT_BYTES = 32 * 1024 * 1024
/** Part of these bytes that tasks for other nodes may fill, so that no member displaces the node's own tasks. */
const CALLEE_BYTES = 16 * 1024 * 1024
/** Events kept of one task: the first and the newest. */
const KEPT_EVENTS = 200
/** Largest report of progress, in bytes; larger ones are dropped. */
const PROGRESS_BYTES = 64 * 1024
/** Bytes of one task's progress: the newest reports stay. */
const KEPT_PROGRESS_BYTES = 256 * 1024

/** The fields of a new task. */
export interface TaskOpening {
  readonly kind: Task['kind']
  readonly role: Task['role']
  readonly agent: string
  readonly capability: string
  readonly description: string
  readonly state?: 'submitted' | 'working'
}

interface StoredTask {
  task: Task
  /** null: the task began at once and came to its result, with no other event. */
  events: TaskEvent[] | null
  /** Bytes of the description and of the events' contents. */
  bytes: number
}

/** All tasks that this node requested or works on: one table, one state machine, an event log each. */
export class TaskTable {
  readonly #clock: Clock
  readonly #ids: IdSource
  readonly #telemetry: Telemetry
  readonly #tasks = new Map<string, StoredTask>()
  readonly #changes: Emitter<Task>
  /** Listeners of single tasks, by task. */
  readonly #followers = new TransientMap<string, Emitter<Task>>()
  readonly #onFault: (error: unknown) => void
  #bytes = 0
  /** Bytes of the tasks for other nodes. */
  #calleeBytes = 0

  constructor(deps: { readonly clock: Clock; readonly ids: IdSource; readonly telemetry: Telemetry }) {
    this.#clock = deps.clock
    this.#ids = deps.ids
    this.#telemetry = deps.telemetry
    this.#onFault = (error) => deps.telemetry.log('error', 'a task listener failed', { error: String(error) })
    this.#changes = new Emitter(this.#onFault)
  }

  /**
   * Opens a task in state `submitted` under the id, by default a fresh one, and returns the id. A known task stays as
   * it is.
   */
  open(opening: TaskOpening, id = this.#ids.next('task')): string {
    if (this.#tasks.has(id)) return id
    const { task, event } = createTask({ id, ...opening }, this.#clock.now())
    const stored: StoredTask = { task, events: [event], bytes: 0 }
    this.#tasks.set(id, stored)
    this.#weigh(stored, sizeOf(opening.description))
    this.#trim(id)
    this.#emit(task)
    return id
  }

  /** Adds a task in its recorded state; a known task stays as it is. `isChange`: listeners are notified. */
  restore(task: Task, events: readonly TaskEvent[], isChange = false): void {
    if (this.#tasks.has(task.id)) return
    const stored: StoredTask = { task, events: [...events], bytes: 0 }
    this.#tasks.set(task.id, stored)
    this.#weigh(stored, sizeOf(task.description) + events.reduce((sum, one) => sum + bytesOf(one), 0))
    this.#trim(task.id)
    if (isChange) this.#emit(task)
  }

  /** Sets the reason why the task waits; null: it does not wait. */
  waitFor(id: string, waitingFor: WaitingFor | null): void {
    const task = this.get(id)
    if (task === undefined || FINAL_STATES.has(task.state) || task.waitingFor === waitingFor) return
    this.#apply(id, { type: 'state', state: task.state, ...(waitingFor === null ? {} : { waitingFor }) })
  }

  /** An agent works on the task: it has begun here, or its node sends heartbeats. */
  working(id: string): void {
    if (this.get(id)?.state === 'submitted') this.#apply(id, { type: 'state', state: 'working' })
  }

  /** No agent is known to work on the task any more. */
  lost(id: string): void {
    const task = this.get(id)
    if (task?.state !== 'working') return
    const waiting = task.waitingFor === null ? {} : { waitingFor: task.waitingFor }
    this.#apply(id, { type: 'state', state: 'submitted', ...waiting })
  }

  /** A further attempt at the same request; ignored unless the number is higher. */
  attempt(id: string, attempt: number): void {
    if (attempt > (this.get(id)?.attempt ?? attempt)) this.#apply(id, { type: 'attempt', attempt })
  }

  /** The agent reports progress. A report of more than 64 KiB only counts as a sign of work. */
  progress(id: string, data: unknown): void {
    this.working(id)
    if (sizeOf(data) > PROGRESS_BYTES) return
    this.#apply(id, { type: 'progress', data })
  }

  /** The task completed with this result. */
  complete(id: string, result: unknown): void {
    this.working(id)
    this.#apply(id, { type: 'result', result })
  }

  /** The task ended without a result: canceled by the code CANCELED, rejected when its agent said so. */
  fail(id: string, error: ErrorBody): void {
    const isLate = this.get(id)?.state === 'unknown'
    this.#apply(id, { type: 'error', error, state: isLate ? 'failed' : endStateOf(error) })
  }

  /** The outcome is unknown, for this reason; a late outcome still counts. */
  unknown(id: string, error: ErrorBody): void {
    this.#apply(id, { type: 'error', error, state: 'unknown' })
  }

  /** Calls a listener with each change of one task. */
  follow(id: string, listener: (task: Task) => void): Unsubscribe {
    const followers = this.#followers.get(id) ?? new Emitter<Task>(this.#onFault)
    this.#followers.set(id, followers)
    const stop = followers.on(listener)
    return () => {
      stop()
      if (followers.size === 0 && this.#followers.get(id) === followers) this.#followers.delete(id)
    }
  }

  /** A task by its id; undefined when it is unknown or was evicted. */
  get(id: string): Task | undefined {
    return this.#tasks.get(id)?.task
  }

  /** A task's events, oldest first. */
  events(id: string): readonly TaskEvent[] {
    const stored = this.#tasks.get(id)
    return stored === undefined ? [] : (stored.events ?? straightEvents(stored.task))
  }

  /** Every kept task, newest first. */
  list(): Task[] {
    return [...this.#tasks.values()].map((stored) => stored.task).reverse()
  }

  /** Calls back with each changed task. */
  onChange(listener: (task: Task) => void): Unsubscribe {
    return this.#changes.on(listener)
  }

  #emit(task: Task): void {
    this.#changes.emit(task)
    this.#followers.get(task.id)?.emit(task)
  }

  #apply(id: string, input: TaskInput): void {
    const stored = this.#tasks.get(id)
    if (stored === undefined) return
    const step = applyTask(stored.task, input, this.#clock.now())
    if (!step.ok) {
      this.#telemetry.log('debug', 'a task ignored an input', { task: id, input: input.type, reason: step.reason })
      return
    }
    const events = (stored.events ??= straightEvents(stored.task))
    stored.task = step.task
    events.push(step.event)
    this.#weigh(stored, bytesOf(step.event))
    const isOver = (): boolean =>
      events.length > KEPT_EVENTS || (input.type === 'progress' && stored.bytes > KEPT_PROGRESS_BYTES)
    while (events.length > 2 && isOver()) this.#thin(stored, 1)
    this.#trim(id)
    this.#emit(step.task)
    // Thousands of ended tasks would otherwise mostly hold event objects.
    if (isStraight(events)) stored.events = null
  }

  #weigh(stored: StoredTask, bytes: number): void {
    stored.bytes += bytes
    this.#bytes += bytes
    if (stored.task.role === 'callee') this.#calleeBytes += bytes
  }

  /** Drops `count` events after the first one. */
  #thin(stored: StoredTask, count: number): void {
    for (const old of stored.events?.splice(1, count) ?? []) this.#weigh(stored, -bytesOf(old))
  }

  /** Evicts ended tasks, oldest first, but never the changing one: a caller is about to read it. */
  #trim(changing: string): void {
    // Return early: iteration would step over the free slots of all evicted tasks.
    if (this.#tasks.size <= KEPT && this.#bytes <= KEPT_BYTES && this.#calleeBytes <= CALLEE_BYTES) return
    const most = lowered(this.#tasks.size, KEPT, AT_ONCE.tasks)
    const mostBytes = lowered(this.#bytes, KEPT_BYTES, AT_ONCE.bytes)
    const mostOfCallee = lowered(this.#calleeBytes, CALLEE_BYTES, AT_ONCE.bytes)
    const isOver = ({ task: { role } }: StoredTask): boolean =>
      this.#bytes > mostBytes || (role === 'callee' && this.#calleeBytes > mostOfCallee)
    for (const [id, stored] of this.#tasks) {
      if (id === changing || !hasEnded(stored.task)) continue
      if (this.#tasks.size <= most && !isOver(stored)) continue
      this.#tasks.delete(id)
      this.#weigh(stored, -stored.bytes)
    }
    for (const [id, stored] of this.#tasks) {
      // Listeners are about to read the last event of the changing one.
      const left = id === changing ? 2 : 1
      if (isOver(stored)) this.#thin(stored, Math.max(0, (stored.events?.length ?? 0) - left))
    }
  }
}

/** The bound to trim to: lower than the exceeded one. */
function lowered(now: number, most: number, atOnce: number): number {
  return now > most ? most - atOnce : most
}

/** A late answer to an unknown task goes to its caller; the task need not stay for it. */
function hasEnded({ state }: Task): boolean {
  return FINAL_STATES.has(state) || state === 'unknown'
}

function isStraight(events: readonly TaskEvent[]): boolean {
  const [began, end] = events
  if (events.length !== 2 || began?.type !== 'state' || end?.type !== 'result') return false
  return began.state === 'working' && began.waitingFor === undefined && end.generation === 2
}

function straightEvents({ createdAt, updatedAt, result }: Task): TaskEvent[] {
  return [
    { generation: 1, at: createdAt, type: 'state', state: 'working' },
    { generation: 2, at: updatedAt, type: 'result', result }
  ]
}

function bytesOf(event: TaskEvent): number {
  if (event.type === 'result') return sizeOf(event.result)
  if (event.type === 'error') return sizeOf(event.error)
  return event.type === 'progress' ? sizeOf(event.data) : 0
}
