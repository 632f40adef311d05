import type { Clock } from '../../kit/clock.js'
import { messageOf, NodeError } from '../../kit/errors.js'
import { letGo } from '../../domain/gateway/shares.js'
import { type GatewayTask, RESTING_STATES } from '../../domain/gateway/task.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { TaskIndex } from './task-index.js'
import type { TaskLog } from './task-log.js'
import type { PushService } from './push/push-service.js'
import type { TurnRunner } from './turn-runner.js'

/** How long a task that rests is kept, in milliseconds. */
export const RETENTION_MS = 604_800_000
/** Tasks that are kept; beyond it those that rest go, the oldest of whoever has the most first, and new ones are refused when none does. */
export const MAX_TASKS = 100_000

/** What letting go of tasks needs. */
export interface RetentionDeps {
  readonly node: {
    readonly clock: Clock
    readonly telemetry: Telemetry
    readonly settings: { readonly defaultTtlMs: number }
  }
  readonly index: TaskIndex
  readonly log: TaskLog
  readonly runs: Pick<TurnRunner, 'giveUp'>
  readonly push: PushService | null
}

/** The room that a node has for tasks of A2A clients: what is past its time goes, and what rests where there is no room for more. */
export class Retention {
  readonly #deps: RetentionDeps
  #sweeping: Promise<number> | null = null

  constructor(deps: RetentionDeps) {
    this.#deps = deps
  }

  /** Is there room for no further task? */
  get isFull(): boolean {
    return this.#deps.index.size >= MAX_TASKS
  }

  /** Makes some for an owner's new task. @throws NodeError OVERLOADED where nothing rests that may be let go of */
  async make(newcomer: string): Promise<void> {
    // Each looks at every task: who finds one under way waits for the room that it makes.
    while (this.#sweeping !== null && this.isFull) await this.#sweeping
    if (this.isFull && (await this.sweep(newcomer)) === 0)
      throw new NodeError('OVERLOADED', `this node has ${MAX_TASKS} tasks under way`, { retryable: true })
  }

  /** Lets go of what is past its time, and of what makes room for `newcomer`; says how many. Never rejects. */
  sweep(newcomer: string | null = null): Promise<number> {
    const sweeping = this.#letGo(newcomer).finally(() => {
      if (this.#sweeping === sweeping) this.#sweeping = null
    })
    this.#sweeping = sweeping
    return sweeping
  }

  async #letGo(newcomer: string | null): Promise<number> {
    const { node, index, push, runs } = this.#deps
    const { clock, settings, telemetry } = node
    const over = Math.max(0, index.size - MAX_TASKS + (this.isFull ? MAX_TASKS / 100 : 0))
    const old = [...index.all()].filter(({ state, updatedAt }) => RESTING_STATES.has(state) && updatedAt < clock.now() - RETENTION_MS)
    const past = new Set([...old, ...letGo(index.all(), over - old.length, newcomer)])
    try {
      for (const task of past) await this.#remove(task)
      await push?.sweep()
      for (const task of index.all())
        if (!RESTING_STATES.has(task.state) && task.updatedAt < clock.now() - 2 * settings.defaultTtlMs) runs.giveUp(task)
    } catch (error) {
      telemetry.log('warn', 'old tasks could not be removed', { reason: messageOf(error) })
    }
    return past.size
  }

  async #remove(task: GatewayTask): Promise<void> {
    const { index, log, push } = this.#deps
    // Its client may have answered it since it was looked at.
    if (index.get(task.id) !== task || log.current(task) !== task) return
    // Who answers it from here on finds none.
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
