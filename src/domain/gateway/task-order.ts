import type { GatewayState, GatewayTask } from './task.js'

/** Which tasks a list is of. */
export interface TaskFilter {
  readonly contextId?: string
  readonly state?: GatewayState
  /** Only tasks that came to their state then or later, unix milliseconds. */
  readonly since?: number
  /** Only tasks of this agent, `agentId@nodeId`. */
  readonly agent?: string
}

/** Where a page begins: behind the task that came to its state at that time, and of that id. */
export interface PageCursor {
  readonly since: number
  readonly id: string
}

/** One page, the newest change of state first (A2A 1.0, section 3.1.4). */
export interface TaskPage {
  readonly tasks: readonly GatewayTask[]
  readonly next: PageCursor | null
  /** Tasks that fit the filter, on all pages. */
  readonly total: number
}

/** A cursor as clients carry it. */
export function cursorText({ since, id }: PageCursor): string {
  return `${since.toString(36)}.${id}`
}

/** Reads a cursor; null for a text that is none. */
export function readCursor(text: string): PageCursor | null {
  const parts = /^([0-9a-z]{1,10})\.([A-Za-z0-9_-]{1,64})$/.exec(text)
  return parts === null ? null : { since: Number.parseInt(parts[1] ?? '', 36), id: parts[2] ?? '' }
}

/**
 * Does one task stand before another one in lists, i.e. did it come to its state later? Of the same moment the larger
 * id is first.
 */
export function isBefore(one: PageCursor, other: PageCursor): boolean {
  return one.since !== other.since ? one.since > other.since : one.id > other.id
}

/** Does a task fit a filter? */
export function fits(task: GatewayTask, { contextId, state, since, agent }: TaskFilter): boolean {
  return (
    (contextId === undefined || task.contextId === contextId) &&
    (state === undefined || task.state === state) &&
    (since === undefined || task.since >= since) &&
    (agent === undefined || task.agent === agent)
  )
}

/** Places that may be out of date before they are looked at for being closed. */
const FEW_OLD = 64
/** One entry in this many may be stale. */
const OLD_SHARE = 8

/**
 * Tasks of one owner in the order of lists. A changed task moves to the front and leaves a stale entry; stale entries
 * are removed in batches. A page costs its own size, not that of the table.
 */
export class TaskOrder {
  /** The oldest change first. */
  #places: GatewayTask[] = []
  #old = new Set<GatewayTask>()

  /** How many there are. */
  get size(): number {
    return this.#places.length - this.#old.size
  }

  /** Inserts a task by its time, and replaces its former version. */
  put(task: GatewayTask, before?: GatewayTask): void {
    // A removed task put back unchanged: its place is still there.
    if (before === task || this.#old.delete(task)) return
    if (before !== undefined) this.remove(before)
    let at = this.#places.length
    // Only tasks changed in the same moment, or before a clock was put back, lie behind it.
    for (let last = this.#places[at - 1]; last !== undefined && isBefore(last, task); last = this.#places[at - 1]) at--
    if (at === this.#places.length) this.#places.push(task)
    else this.#places.splice(at, 0, task)
  }

  /** Removes a task, given in its present version. */
  remove(task: GatewayTask): void {
    if (this.#places.at(-1) === task) {
      this.#places.pop()
      return
    }
    this.#old.add(task)
    if (this.#old.size > FEW_OLD && this.#old.size * OLD_SHARE > this.#places.length) this.#close()
  }

  /** One page of the tasks that fit. */
  page(filter: TaskFilter, { after, limit }: { readonly after: PageCursor | null; readonly limit: number }): TaskPage {
    const tasks: GatewayTask[] = []
    const isAll = Object.values(filter).every((one) => one === undefined)
    let total = isAll ? this.size : 0
    let isMore = false
    for (let i = this.#places.length - 1; i >= 0; i--) {
      const task = this.#places[i]
      if (task === undefined || !fits(task, filter) || this.#old.has(task)) continue
      if (!isAll) total++
      if (after !== null && !isBefore(after, task)) continue
      if (tasks.length < limit) tasks.push(task)
      else {
        isMore = true
        if (isAll) break
      }
    }
    const last = tasks.at(-1)
    return { tasks, next: isMore && last !== undefined ? placeOf(last) : null, total }
  }

  #close(): void {
    this.#places = this.#places.filter((task) => !this.#old.has(task))
    this.#old = new Set()
  }
}

function placeOf({ since, id }: GatewayTask): PageCursor {
  return { since, id }
}
