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

/** Does one task stand before another one in lists, i.e. did it come to its state later? Of the same moment the larger id is first. */
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

/**
 * Tasks of one owner in the order of lists. A task that changes moves to the front, so a place of it that is old is left empty
 * and taken away with the others when there are many: a page costs its own size, not that of the table.
 */
export class TaskOrder {
  /** The oldest change first. */
  #places: (GatewayTask | null)[] = []
  readonly #at = new Map<string, number>()

  /** How many there are. */
  get size(): number {
    return this.#at.size
  }

  /** A task by its id; undefined for none. */
  get(id: string): GatewayTask | undefined {
    const place = this.#at.get(id)
    return place === undefined ? undefined : (this.#places[place] ?? undefined)
  }

  /** Puts a task where its time says; it comes into the place of what it was. */
  put(task: GatewayTask): void {
    this.remove(task.id)
    let at = this.#places.length
    // Only what changed in the same moment, or before a clock was put back, stands behind it.
    for (; at > 0; at--) {
      const before = this.#places[at - 1]
      if (before !== null && before !== undefined && !isBefore(placeOf(before), placeOf(task))) break
    }
    this.#places.splice(at, 0, task)
    this.#number(at)
    if (this.#places.length > 64 && this.#places.length > 2 * this.#at.size) this.#close()
  }

  /** Forgets a task. */
  remove(id: string): void {
    const place = this.#at.get(id)
    if (place === undefined) return
    this.#places[place] = null
    this.#at.delete(id)
    while (this.#places.length > 0 && this.#places.at(-1) === null) this.#places.pop()
  }

  /** One page of the tasks that fit. */
  page(filter: TaskFilter, { after, limit }: { readonly after: PageCursor | null; readonly limit: number }): TaskPage {
    const tasks: GatewayTask[] = []
    const isAll = Object.values(filter).every((one) => one === undefined)
    let total = isAll ? this.#at.size : 0
    let isMore = false
    for (let i = this.#places.length - 1; i >= 0; i--) {
      const task = this.#places[i]
      if (task === null || task === undefined || !fits(task, filter)) continue
      if (!isAll) total++
      if (after !== null && !isBefore(after, placeOf(task))) continue
      if (tasks.length < limit) tasks.push(task)
      else {
        isMore = true
        if (isAll) break
      }
    }
    const last = tasks.at(-1)
    return { tasks, next: isMore && last !== undefined ? placeOf(last) : null, total }
  }

  /** The tasks, the oldest change first. */
  *[Symbol.iterator](): Iterator<GatewayTask> {
    for (const task of this.#places) if (task !== null) yield task
  }

  #close(): void {
    this.#places = this.#places.filter((one) => one !== null)
    this.#number(0)
  }

  #number(from: number): void {
    for (let at = from; at < this.#places.length; at++) {
      const task = this.#places[at]
      if (task !== null && task !== undefined) this.#at.set(task.id, at)
    }
  }
}

function placeOf({ since, id }: GatewayTask): PageCursor {
  return { since, id }
}
