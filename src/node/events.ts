import type { Clock } from '../kit/clock.js'
import { Emitter } from '../kit/events.js'
import type { Unsubscribe } from '../kit/events.js'
import type { EventInfo } from '../ports/node-api.js'
import type { Telemetry } from '../ports/telemetry.js'

/** How many events are kept for `events`. */
const KEPT = 1000

/** What happened on this node, newest last: a bounded list and those who listen. */
export class NodeEvents {
  readonly #clock: Clock
  readonly #recent: EventInfo[] = []
  readonly #live: Emitter<EventInfo>

  constructor(clock: Clock, telemetry: Telemetry) {
    this.#clock = clock
    this.#live = new Emitter((error) => telemetry.log('error', 'an event listener failed', { error: String(error) }))
  }

  /** Notes that something happened. `message` is the node's own words; text of others belongs into `data`. */
  add(type: string, message: string, data: Readonly<Record<string, unknown>> = {}): void {
    const event: EventInfo = { at: new Date(this.#clock.now()).toISOString(), type, message, data }
    this.#recent.push(event)
    if (this.#recent.length > KEPT) this.#recent.shift()
    this.#live.emit(event)
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
