import { addToFold, emptyFold, type TaskFold } from '../../../domain/gateway/task-fold.js'
import type { TaskLog } from '../task-log.js'

/** Bytes, about, of the tales that are kept from one notification to the next. */
export const MAX_SNAPSHOTS_BYTES = 33_554_432

/** Which tale is wanted. */
export interface SnapshotName {
  readonly hook: string
  readonly task: string
  /** After which event. */
  readonly generation: number
}

/** The tasks that webhooks are told whole, each as its webhook heard of it last: so the next time only what is new is read. */
export class TaskSnapshots {
  readonly #log: Pick<TaskLog, 'events'>
  /** By hook, the one that was used last at the end. */
  readonly #kept = new Map<string, TaskFold>()
  #bytes = 0

  constructor(log: Pick<TaskLog, 'events'>) {
    this.#log = log
  }

  /** The task after an event; null: the log has no such event. It may change with the next call. @throws NodeError STORE_DAMAGED */
  async after({ hook, task, generation }: SnapshotName): Promise<TaskFold | null> {
    const kept = this.#kept.get(hook)
    // One that was given up is told again later: the tale goes on behind it.
    const isPast = kept !== undefined && kept.generation > generation
    const fold = kept === undefined || isPast ? emptyFold() : kept
    const events = await this.#log.events(task, fold.generation, generation)
    if (!isPast) this.forget(hook)
    addToFold(fold, events)
    if (!isPast) this.#keep(hook, fold)
    return fold.generation === generation ? fold : null
  }

  /** Nothing more is told to a webhook. */
  forget(hook: string): void {
    this.#bytes -= this.#kept.get(hook)?.bytes ?? 0
    this.#kept.delete(hook)
  }

  #keep(hook: string, fold: TaskFold): void {
    this.#kept.set(hook, fold)
    this.#bytes += fold.bytes
    for (const [oldest] of this.#kept) {
      if (this.#bytes <= MAX_SNAPSHOTS_BYTES) return
      this.forget(oldest)
    }
  }
}
