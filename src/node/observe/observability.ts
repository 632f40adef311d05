import type { NodeId } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import { Emitter, type Unsubscribe } from '../../kit/events.js'
import type { A2AMeasured } from '../../kit/prometheus.js'
import { MESSAGE_TYPES } from '../../domain/envelope/envelope.js'
import type { MessageType } from '../../domain/envelope/envelope.js'
import type { TrafficEventType } from '../../kit/names/event-types.js'

/** The most events for `getRecentEvents`. */
const KEPT_EVENTS = 1000
/** The most tools counted by name; calls of further ones count as `other`, calls of unknown ones as `unknown`. */
const MAX_TOOLS = 1000

/** The path of a message: within this node, to or from another, or as one of a broadcast. */
export type RoutingPath = 'local' | 'remote' | 'broadcast'

/** One event of a message or a tool (spec a2a-mcp-mesh, A2ALogEvent). */
export interface A2ALogEvent {
  readonly type: TrafficEventType
  readonly envelopeId?: string
  /** `agentId@nodeId`. */
  readonly sender?: string
  readonly recipient?: string
  readonly messageType?: MessageType
  readonly routingPath?: RoutingPath
  /** Keys of the relaying nodes, in order; only for a relayed message. */
  readonly hops?: readonly NodeId[]
  readonly toolName?: string
  /** The tool's name for MCP clients, where it is another. */
  readonly publishedName?: string
  /** Milliseconds: the way through the node, or the tool's run. */
  readonly duration?: number
  /** false: refused or failed. */
  readonly success?: boolean
  /** The error code of a refused or failed one, where known. */
  readonly code?: string
  /** Unix milliseconds. */
  readonly timestamp: number
}

/** An event as given: absent or undefined members do not apply. */
type GivenEvent = { readonly [K in keyof A2ALogEvent]: A2ALogEvent[K] | undefined } & Pick<
  A2ALogEvent,
  'type' | 'timestamp'
>

/** Sums of the events since the start or the last reset (spec a2a-mcp-mesh, A2AMetrics). */
export interface A2AMetrics extends A2AMeasured {
  readonly messagesByType: Readonly<Record<MessageType, number>>
}

/** A mean as its sum and count. */
interface Mean {
  sum: number
  count: number
}

/** The numbers of one tool. */
interface ToolCount extends Mean {
  invocations: number
  errors: number
}

/** A kept event as given, and its safe form after the first read. */
type KeptEvent = { -readonly [K in keyof GivenEvent]: GivenEvent[K] } & { event: A2ALogEvent | null }

/**
 * Counts events of messages and tools, and keeps the newest events (spec a2a-mcp-mesh, A2AObservability). Every number
 * follows from the given events. Bounded: 1,000 events, 1,000 tool names.
 */
export class A2AObservability {
  readonly #recent: KeptEvent[] = []
  #next = 0
  #sent = 0
  #received = 0
  #errors = 0
  #toolErrors = 0
  #byType = new Map<MessageType, number>()
  #byTool = new Map<string, ToolCount>()
  #routing: Mean = { sum: 0, count: 0 }
  #tools: Mean = { sum: 0, count: 0 }
  #invocations = 0
  readonly #live = new Emitter<A2ALogEvent>(() => {})

  /** Takes an event. Never throws; an invalid duration does not count. */
  emit(event: GivenEvent): void {
    this.#keep(event)
    this.#count(event)
  }

  #keep(event: GivenEvent): void {
    const oldest = this.#recent[this.#next]
    const place = oldest ?? kept(event)
    if (oldest === undefined) this.#recent[this.#next] = place
    else keepIn(oldest, event)
    this.#next = (this.#next + 1) % KEPT_EVENTS
    if (this.#live.size > 0) this.#live.emit((place.event = eventOf(place)))
  }

  #count(event: GivenEvent): void {
    if (event.type === 'tool-invocation') return this.#tool(event)
    if (event.type === 'error' || event.success === false) this.#errors++
    if (event.type === 'routing-decision') add(this.#routing, event.duration)
    if (event.type === 'message-sent') this.#sent++
    if (event.type === 'message-received') this.#received++
    const { messageType } = event
    // A message within the node was sent here, too: it is one message.
    const isMessage =
      event.type === 'message-sent' || (event.type === 'message-received' && event.routingPath !== 'local')
    if (isMessage && messageType !== undefined) this.#byType.set(messageType, (this.#byType.get(messageType) ?? 0) + 1)
  }

  /** The sums now. */
  getMetrics(): A2AMetrics {
    const byType = MESSAGE_TYPES.map((type) => [type, this.#byType.get(type) ?? 0] as const)
    return {
      totalMessagesSent: this.#sent,
      totalMessagesReceived: this.#received,
      messagesByType: Object.fromEntries(byType) as Record<MessageType, number>,
      averageRoutingLatencyMs: meanOf(this.#routing),
      timedRoutings: this.#routing.count,
      totalRoutingMs: this.#routing.sum,
      errorCount: this.#errors,
      totalToolInvocations: this.#invocations,
      toolInvocationsByTool: Object.fromEntries(
        [...this.#byTool].map(([tool, { invocations }]) => [tool, invocations])
      ),
      averageToolDurationMs: meanOf(this.#tools),
      toolErrorCount: this.#toolErrors,
      tools: [...this.#byTool].map(([tool, one]) => ({
        tool,
        invocations: one.invocations,
        errors: one.errors,
        timed: one.count,
        totalDurationMs: one.sum,
        averageDurationMs: meanOf(one)
      }))
    }
  }

  /** Calls back with each later event, safe to show. Returns the stop. */
  on(listener: (event: A2ALogEvent) => void): Unsubscribe {
    return this.#live.on(listener)
  }

  /** The newest events, oldest first, safe to show: at most `limit`, by default all that are kept (1,000). */
  getRecentEvents(limit: number = KEPT_EVENTS): A2ALogEvent[] {
    const inOrder = [...this.#recent.slice(this.#next), ...this.#recent.slice(0, this.#next)]
    return limit >= 1 ? inOrder.slice(-Math.floor(limit)).map((one) => (one.event = eventOf(one))) : []
  }

  /** Resets every sum; the events stay. */
  resetMetrics(): void {
    this.#sent = 0
    this.#received = 0
    this.#errors = 0
    this.#toolErrors = 0
    this.#invocations = 0
    this.#byType = new Map()
    this.#byTool = new Map()
    this.#routing = { sum: 0, count: 0 }
    this.#tools = { sum: 0, count: 0 }
  }

  #tool({ toolName = 'unknown', duration, success }: GivenEvent): void {
    const name = this.#byTool.has(toolName) || this.#byTool.size < MAX_TOOLS ? toolName : 'other'
    const tool = this.#byTool.get(name) ?? { invocations: 0, errors: 0, sum: 0, count: 0 }
    this.#byTool.set(name, tool)
    this.#invocations++
    tool.invocations++
    if (success === false) {
      this.#toolErrors++
      tool.errors++
    }
    add(this.#tools, duration)
    add(tool, duration)
  }
}

/** Names each member: faster than a generic copy, and every message makes some events. */
function kept(event: GivenEvent): KeptEvent {
  const { type, envelopeId, sender, recipient, messageType, routingPath, hops } = event
  const { toolName, publishedName, duration, success, code, timestamp } = event
  const ofMessage = { type, envelopeId, sender, recipient, messageType, routingPath, hops }
  return { ...ofMessage, toolName, publishedName, duration, success, code, timestamp, event: null }
}

/** Reuses the object of the dropped event: new objects that live for a while cost extra at garbage collection. */
function keepIn(place: KeptEvent, event: GivenEvent): void {
  place.type = event.type
  place.envelopeId = event.envelopeId
  place.sender = event.sender
  place.recipient = event.recipient
  place.messageType = event.messageType
  place.routingPath = event.routingPath
  place.hops = event.hops
  place.toolName = event.toolName
  place.publishedName = event.publishedName
  place.duration = event.duration
  place.success = event.success
  place.code = event.code
  place.timestamp = event.timestamp
  place.event = null
}

/** Makes texts safe only when they are read: every message has some, and few are ever read. */
function eventOf({ event, ...given }: KeptEvent): A2ALogEvent {
  if (event !== null) return event
  const members = Object.entries(given).filter(([, value]) => value !== undefined)
  return Object.fromEntries(
    members.map(([name, value]) => [name, typeof value === 'string' ? shown(value) : value])
  ) as unknown as A2ALogEvent
}

function add(mean: Mean, duration: number | undefined): void {
  if (duration === undefined || !Number.isFinite(duration) || duration < 0) return
  mean.sum += duration
  mean.count++
}

function meanOf({ sum, count }: Mean): number {
  return count === 0 ? 0 : sum / count
}
