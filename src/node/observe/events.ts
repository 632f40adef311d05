import type { Clock } from '../../kit/clock.js'
import { Emitter } from '../../kit/events.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { EventInfo } from '../../ports/node-api.js'
import type { Telemetry } from '../../ports/telemetry.js'

/** The number of events kept for `events`. */
const KEPT = 1000

/**
 * Events of this node, newest last: a bounded list with listeners. Beyond the bound the oldest event of the most frequent kind is dropped,
 * so that repeated events of one peer push out no others.
 */
export class NodeEvents {
  readonly #clock: Clock
  readonly #recent: EventInfo[] = []
  /** The number of events of each kind. */
  readonly #kinds = new Map<string, number>()
  readonly #live: Emitter<EventInfo>

  constructor(clock: Clock, telemetry: Telemetry) {
    this.#clock = clock
    this.#live = new Emitter((error) => telemetry.log('error', 'an event listener failed', { error: String(error) }))
  }

  /** Adds an event. `message` is the node's own text; text of others belongs into `data`. */
  add(type: string, message: string, data: Readonly<Record<string, unknown>> = {}): void {
    const event: EventInfo = { at: new Date(this.#clock.now()).toISOString(), type, message, data }
    this.#recent.push(event)
    this.#count(kindOf(event), 1)
    if (this.#recent.length > KEPT) this.#dropOne()
    this.#live.emit(event)
  }

  #dropOne(): void {
    const [oldest] = this.#recent
    if (oldest === undefined) return
    let most = kindOf(oldest)
    for (const [kind, count] of this.#kinds) if (count > (this.#kinds.get(most) ?? 0)) most = kind
    this.#recent.splice(
      this.#recent.findIndex((event) => kindOf(event) === most),
      1
    )
    this.#count(most, -1)
  }

  #count(kind: string, by: number): void {
    const count = (this.#kinds.get(kind) ?? 0) + by
    if (count > 0) this.#kinds.set(kind, count)
    else this.#kinds.delete(kind)
  }

  /** The kept events, oldest first. */
  recent(): readonly EventInfo[] {
    return [...this.#recent]
  }

  /** Calls back for each new event. */
  on(listener: (event: EventInfo) => void): Unsubscribe {
    return this.#live.on(listener)
  }
}

/** Kind of an event. Its words are this node's own, so there are few kinds. */
function kindOf({ type, message }: EventInfo): string {
  return `${type} ${message}`
}
