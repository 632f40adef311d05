import type { Clock } from '../../kit/clock.js'
import { Emitter } from '../../kit/events.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { EventInfo } from '../../ports/node-api.js'
import type { Telemetry } from '../../ports/telemetry.js'

/** How many events are kept for `events`. */
const KEPT = 1000

/**
 * What happened on this node, newest last: a bounded list and those who listen. Beyond the bound the oldest of the kind of
 * which there are most goes, so that what a peer causes again and again pushes nothing else out.
 */
export class NodeEvents {
  readonly #clock: Clock
  readonly #recent: EventInfo[] = []
  /** How many there are of each kind. */
  readonly #kinds = new Map<string, number>()
  readonly #live: Emitter<EventInfo>

  constructor(clock: Clock, telemetry: Telemetry) {
    this.#clock = clock
    this.#live = new Emitter((error) => telemetry.log('error', 'an event listener failed', { error: String(error) }))
  }

  /** Notes that something happened. `message` is the node's own words; text of others belongs into `data`. */
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

/** The words of an event are this node's own, so there are few kinds. */
function kindOf({ type, message }: EventInfo): string {
  return `${type} ${message}`
}
