import type { Clock } from '../../kit/clock.js'
import type { ErrorBody } from '../../kit/errors.js'
import { Emitter } from '../../kit/events.js'
import type { Unsubscribe } from '../../kit/events.js'
import { TransientMap } from '../../kit/transient.js'
import type { IdSource } from '../../kit/ids.js'
import { applyTask, createTask } from '../../domain/task/machine.js'
import type { TaskInput } from '../../domain/task/machine.js'
import { FINAL_STATES } from '../../domain/task/task.js'
import type { Task, TaskEvent, WaitingFor } from '../../domain/task/task.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { sizeOf } from '../../kit/size.js'

/** Tasks that are kept; the oldest that have ended go first. */
const KEPT = 5000
/** So many are forgotten at once when there are more: each time steps over the room of those before. */
const FORGOTTEN_AT_ONCE = 100
/** Bytes of them: descriptions, results, errors, progress. Tasks that have ended go first, then reports of those that have not. */
const KEPT_BYTES = 128 * 1024 * 1024
/** Events kept of one task: the first and the newest. */
const KEPT_EVENTS = 200
/** Largest report of progress, in bytes; larger ones are dropped. */
const PROGRESS_BYTES = 64 * 1024
/** Bytes of one task's progress: the newest reports stay. */
const KEPT_PROGRESS_BYTES = 256 * 1024

/** What a new task is. */
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
  /** null: it began at once, and came to its result. */
  events: TaskEvent[] | null
  /** Of its description and its events' contents. */
  bytes: number
}

/** Every task this node asked for or works on: one table, one machine, an event log each. */
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

  constructor(deps: { readonly clock: Clock; readonly ids: IdSource; readonly telemetry: Telemetry }) {
    this.#clock = deps.clock
    this.#ids = deps.ids
    this.#telemetry = deps.telemetry
    this.#onFault = (error) => deps.telemetry.log('error', 'a task listener failed', { error: String(error) })
    this.#changes = new Emitter(this.#onFault)
  }

  /** Opens a task in state `submitted`; returns its id: a fresh one, unless it has one. One that is kept already stays as it is. */
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

  /** Adds a task in the state that is on record. Nothing for one that is there already. `isNews`: listeners are told of it. */
  restore(task: Task, events: readonly TaskEvent[], isChange = false): void {
    if (this.#tasks.has(task.id)) return
    const stored: StoredTask = { task, events: [...events], bytes: 0 }
    this.#tasks.set(task.id, stored)
    this.#weigh(stored, sizeOf(task.description) + events.reduce((sum, one) => sum + bytesOf(one), 0))
    this.#trim(task.id)
    if (isChange) this.#emit(task)
  }

  /** Something holds the task up; null: nothing does. */
  waitFor(id: string, waitingFor: WaitingFor | null): void {
    const task = this.get(id)
    if (task === undefined || FINAL_STATES.has(task.state) || task.waitingFor === waitingFor) return
    this.#apply(id, { type: 'state', state: task.state, ...(waitingFor === null ? {} : { waitingFor }) })
  }

  /** An agent works on it: it has begun here, or its node heartbeats it. */
  working(id: string): void {
    if (this.get(id)?.state === 'submitted') this.#apply(id, { type: 'state', state: 'working' })
  }

  /** Nobody is known to work on it any more. */
  lost(id: string): void {
    const task = this.get(id)
    if (task?.state !== 'working') return
    const waiting = task.waitingFor === null ? {} : { waitingFor: task.waitingFor }
    this.#apply(id, { type: 'state', state: 'submitted', ...waiting })
  }

  /** A further try of the same request; nothing for one that is no further one. */
  attempt(id: string, attempt: number): void {
    if (attempt > (this.get(id)?.attempt ?? attempt)) this.#apply(id, { type: 'attempt', attempt })
  }

  /** The agent reports how far it is. A report of more than 64 KiB says no more than that it works. */
  progress(id: string, data: unknown): void {
    this.working(id)
    if (sizeOf(data) > PROGRESS_BYTES) return
    this.#apply(id, { type: 'progress', data })
  }

  /** Done, with this result. */
  complete(id: string, result: unknown): void {
    this.working(id)
    this.#apply(id, { type: 'result', result })
  }

  /** Ended without a result; CANCELED ends as canceled. */
  fail(id: string, error: ErrorBody): void {
    const isLate = this.get(id)?.state === 'unknown'
    this.#apply(id, { type: 'error', error, state: error.code === 'CANCELED' && !isLate ? 'canceled' : 'failed' })
  }

  /** No outcome was learned, for this reason; a late one still counts. */
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

  /** A task by its id; undefined for an unknown or forgotten one. */
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
    const isOver = (): boolean => events.length > KEPT_EVENTS || (input.type === 'progress' && stored.bytes > KEPT_PROGRESS_BYTES)
    while (events.length > 2 && isOver()) this.#thin(stored, 1)
    this.#trim(id)
    this.#emit(step.task)
    // Of thousands of tasks that ended objects of their own for each step would be most of what is kept.
    if (isStraight(events)) stored.events = null
  }

  #weigh(stored: StoredTask, bytes: number): void {
    stored.bytes += bytes
    this.#bytes += bytes
  }

  /** Drops so many events behind the first one. */
  #thin(stored: StoredTask, count: number): void {
    for (const old of stored.events?.splice(1, count) ?? []) this.#weigh(stored, -bytesOf(old))
  }

  #isFull(): boolean {
    return this.#tasks.size > KEPT || this.#bytes > KEPT_BYTES
  }

  /** Forgets tasks that have ended, oldest first, but never the one that changes now: somebody is about to read it. */
  #trim(changing: string): void {
    // Not even a look at the oldest: it would step over the room of all that were forgotten.
    if (!this.#isFull()) return
    const most = this.#tasks.size > KEPT ? KEPT - FORGOTTEN_AT_ONCE : KEPT
    for (const [id, stored] of this.#tasks) {
      if (this.#tasks.size <= most && this.#bytes <= KEPT_BYTES) return
      if (id === changing || !hasEnded(stored.task)) continue
      this.#tasks.delete(id)
      this.#bytes -= stored.bytes
    }
    for (const stored of this.#tasks.values()) {
      if (this.#bytes <= KEPT_BYTES) return
      this.#thin(stored, Math.max(0, (stored.events?.length ?? 0) - 2))
    }
  }
}

/** A late answer to an unknown one is for its caller; its task need not wait for it. */
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
