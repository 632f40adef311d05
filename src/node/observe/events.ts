import type { Clock } from '../../kit/clock.js'
import { type NodeEventType, TRAFFIC_EVENTS } from '../../kit/names/event-types.js'
import { Emitter } from '../../kit/events.js'
import type { Unsubscribe } from '../../kit/events.js'
import { shown } from '../../kit/text.js'
import type { EventInfo, EventQuery } from '../../ports/node-api.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { A2ALogEvent, A2AObservability } from './observability.js'

/** The number of events kept for `events`. */
const KEPT = 1000

/** Dependencies of {@link NodeEvents.watch}. */
interface EventSources {
  readonly traffic: Pick<A2AObservability, 'getRecentEvents' | 'on'>
  readonly namer: () => (address: string) => string
  readonly push: (event: EventInfo) => void
}

/**
 * Events of this node, newest last: a bounded list with listeners. Beyond the bound the oldest event of the most
 * frequent kind is dropped, so that repeated events of one peer push out no others.
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
  add(type: NodeEventType, message: string, data: Readonly<Record<string, unknown>> = {}): void {
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

  /**
   * Pushes the recent events that match, by time, then each new one until the returned stop. `traffic` has the events
   * of messages and tool calls, `namer` makes a function that writes an address with the name of its node. A query
   * without such events costs a message nothing.
   */
  watch({ limit, ...query }: EventQuery, { traffic, namer, push }: EventSources): Unsubscribe {
    const filter = new EventFilter(query)
    const stops: Unsubscribe[] = []
    const past = filter.wantsOwn ? this.#recent.filter((event) => filter.isMatch(event)) : []
    if (filter.wantsTraffic) {
      const name = namer()
      for (const event of traffic.getRecentEvents()) past.push(...filter.ofTraffic(event, () => name))
      stops.push(traffic.on((event) => filter.ofTraffic(event, namer).forEach(push)))
    }
    past.sort((a, b) => (a.at === b.at ? 0 : a.at < b.at ? -1 : 1))
    for (const event of limit === undefined ? past : past.slice(-limit)) push(event)
    if (filter.wantsOwn) stops.push(this.on((event) => (filter.isMatch(event) ? push(event) : undefined)))
    return () => {
      for (const stop of stops) stop()
    }
  }

  /** Stands for events that a slow reader lost. */
  gap(lost: number): EventInfo {
    return {
      at: new Date(this.#clock.now()).toISOString(),
      type: 'gap',
      message: 'the reader was too slow and lost events',
      data: { lost }
    }
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

/** Texts of events of messages and tool calls, by type. */
const MESSAGES: Readonly<Record<A2ALogEvent['type'], string>> = {
  'message-sent': 'a message was sent',
  'message-received': 'a message came in',
  'routing-decision': 'a message passed the rules',
  'tool-invocation': 'a tool was called',
  error: 'a message was no envelope, or could not be sent'
}

/** An event of a message or a tool call as a line of `events`. `name` writes an address with the name of its node. */
function trafficEvent(
  { type, timestamp, duration, ...event }: A2ALogEvent,
  name: (address: string) => string
): EventInfo {
  const { sender, recipient, success, hops, ...rest } = event
  const isRefused = type === 'routing-decision' && success === false
  return {
    at: new Date(timestamp).toISOString(),
    type,
    message: isRefused ? 'a message was refused' : MESSAGES[type],
    data: {
      ...rest,
      ...(sender === undefined ? {} : { sender: shown(name(sender)) }),
      ...(recipient === undefined ? {} : { recipient: shown(name(recipient)) }),
      ...(hops === undefined || hops.length === 0 ? {} : { hops }),
      ...(success === undefined ? {} : { success }),
      ...(duration === undefined ? {} : { durationMs: duration })
    }
  }
}

/** The test of events against a query: every given member must match. */
class EventFilter {
  readonly #query: EventQuery
  readonly #types: ReadonlySet<string> | null

  constructor(query: EventQuery) {
    this.#query = query
    this.#types = query.types === undefined ? null : new Set(query.types)
  }

  /** May events of messages or tool calls match? */
  get wantsTraffic(): boolean {
    return this.#types === null
      ? this.#query.all === true
      : TRAFFIC_EVENTS.some((type) => this.#types?.has(type) === true)
  }

  /** May other events match? */
  get wantsOwn(): boolean {
    return this.#types === null || [...this.#types].some((type) => !TRAFFIC_EVENTS.some((one) => one === type))
  }

  /** Tests an event of the node. Refusals and failures have a type of their own. */
  isMatch(event: EventInfo): boolean {
    const { type, at } = event
    return (
      this.#isIn(type, () => Date.parse(at), type === 'refusal' || type.endsWith('-failed')) && this.#isAbout(event)
    )
  }

  /**
   * The line of an event of a message or a tool call; none when it does not match. Names are looked up last, since each
   * message has events.
   */
  ofTraffic(event: A2ALogEvent, namer: EventSources['namer']): readonly EventInfo[] {
    const { type, timestamp, success } = event
    if (!this.#isIn(type, () => timestamp, type === 'error' || success === false)) return []
    const line = trafficEvent(event, namer())
    return this.#isAbout(line) ? [line] : []
  }

  #isIn(type: string, atMs: () => number, isFailure: boolean): boolean {
    const { failed = false, since } = this.#query
    return (this.#types?.has(type) ?? true) && (!failed || isFailure) && (since === undefined || atMs() >= since)
  }

  #isAbout({ message, data }: EventInfo): boolean {
    const { about } = this.#query
    if (about === undefined || message.includes(about)) return true
    return Object.values(data).some((value) =>
      (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).includes(about)
    )
  }
}
