import type { GatewayTask } from '../domain/gateway/task.js'
import { RESTING_STATES } from '../domain/gateway/task.js'
import { type PageCursor, type TaskFilter, TaskOrder, type TaskPage } from '../domain/gateway/task-order.js'

/** Texts that are known to be shared. */
const MAX_SHARED_TEXTS = 4096

/** Gateway tasks without their contents, as they are durable: by id, and in the order of lists by owner. */
export class GatewayIndex {
  readonly #orders = new Map<string, TaskOrder>()
  readonly #byId = new Map<string, GatewayTask>()
  /** How many of an owner do not rest. */
  readonly #underWay = new Map<string, number>()
  /** Texts that many tasks share: each is there once. */
  readonly #texts = new Map<string, string>()

  /** How many there are. */
  get size(): number {
    return this.#byId.size
  }

  /** A task by its id; undefined for none. */
  get(id: string): GatewayTask | undefined {
    return this.#byId.get(id)
  }

  /** A task as it is durable now. */
  put(task: GatewayTask): void {
    const { id, owner } = task
    this.#count(owner, weightOf(task) - weightOf(this.#byId.get(id)))
    this.#byId.set(id, task)
    this.#orderOf(owner).put(task)
  }

  #orderOf(owner: string): TaskOrder {
    const known = this.#orders.get(owner)
    if (known !== undefined) return known
    const order = new TaskOrder()
    this.#orders.set(owner, order)
    return order
  }

  /** Forgets a task. */
  remove({ id, owner }: GatewayTask): void {
    this.#count(owner, -weightOf(this.#byId.get(id)))
    this.#byId.delete(id)
    const order = this.#orders.get(owner)
    order?.remove(id)
    if (order?.size === 0) this.#orders.delete(owner)
  }

  /** How many tasks of an owner do not rest. */
  underWay(owner: string): number {
    return this.#underWay.get(owner) ?? 0
  }

  /** One page of an owner's tasks. */
  page(owner: string, filter: TaskFilter, page: { readonly after: PageCursor | null; readonly limit: number }): TaskPage {
    return (this.#orders.get(owner) ?? new TaskOrder()).page(filter, page)
  }

  /** All of them, in no order. */
  all(): IterableIterator<GatewayTask> {
    return this.#byId.values()
  }

  #count(owner: string, change: number): void {
    const count = this.underWay(owner) + change
    if (count === 0) this.#underWay.delete(owner)
    else if (change !== 0) this.#underWay.set(this.shared(owner), count)
  }

  /** A task that was read, with the texts that it shares with others. */
  sharing(task: GatewayTask): GatewayTask {
    const { owner, agent, capability } = task
    return { ...task, owner: this.shared(owner), agent: this.shared(agent), capability: this.shared(capability) }
  }

  /** The same text, as those have it that are kept: for what many tasks have in common. */
  shared(text: string): string {
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    // Owners, agents and capabilities come and go: what is shared afterwards is merely there once more.
    if (this.#texts.size >= MAX_SHARED_TEXTS) this.#texts.clear()
    this.#texts.set(text, text)
    return text
  }
}

function weightOf(task: GatewayTask | undefined): 0 | 1 {
  return task === undefined || RESTING_STATES.has(task.state) ? 0 : 1
}
