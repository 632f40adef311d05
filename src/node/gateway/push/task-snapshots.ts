import { addToTale, emptyTale, type TaskTale } from '../../../domain/gateway/push-tale.js'
import type { GatewayLog } from '../task-log.js'

/** Bytes, about, of the tales that are kept from one notification to the next. */
export const MAX_TALES_BYTES = 33_554_432

/** Which tale is wanted. */
export interface TaleName {
  readonly hook: string
  readonly task: string
  /** After which event. */
  readonly generation: number
}

/** The tasks that webhooks are told whole, each as its webhook heard of it last: so the next time only what is new is read. */
export class GatewayTales {
  readonly #log: Pick<GatewayLog, 'events'>
  /** By hook, the one that was used last at the end. */
  readonly #kept = new Map<string, TaskTale>()
  #bytes = 0

  constructor(log: Pick<GatewayLog, 'events'>) {
    this.#log = log
  }

  /** The task after an event; null: the log has no such event. It may change with the next call. @throws NodeError STORE_DAMAGED */
  async after({ hook, task, generation }: TaleName): Promise<TaskTale | null> {
    const kept = this.#kept.get(hook)
    // One that was given up is told again later: the tale goes on behind it.
    const isPast = kept !== undefined && kept.generation > generation
    const tale = kept === undefined || isPast ? emptyTale() : kept
    const events = await this.#log.events(task, tale.generation, generation)
    if (!isPast) this.forget(hook)
    addToTale(tale, events)
    if (!isPast) this.#keep(hook, tale)
    return tale.generation === generation ? tale : null
  }

  /** Nothing more is told to a webhook. */
  forget(hook: string): void {
    this.#bytes -= this.#kept.get(hook)?.bytes ?? 0
    this.#kept.delete(hook)
  }

  #keep(hook: string, tale: TaskTale): void {
    this.#kept.set(hook, tale)
    this.#bytes += tale.bytes
    for (const [oldest] of this.#kept) {
      if (this.#bytes <= MAX_TALES_BYTES) return
      this.forget(oldest)
    }
  }
}
