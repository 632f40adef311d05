/** Types of events of single messages and tool calls. */
export const TRAFFIC_EVENTS = [
  'message-sent',
  'message-received',
  'routing-decision',
  'tool-invocation',
  'error'
] as const

/** Types of all other events of a node. */
export const NODE_EVENTS = [
  'approval',
  'delivery-failed',
  'document',
  'membership',
  'notification',
  'package-failed',
  'peer',
  'policy',
  'refusal',
  'swarm'
] as const

/** A type of {@link TRAFFIC_EVENTS}. */
export type TrafficEventType = (typeof TRAFFIC_EVENTS)[number]

/** A type of {@link NODE_EVENTS}. */
export type NodeEventType = (typeof NODE_EVENTS)[number]

/** Every type that `events --type` takes. */
export const EVENT_TYPES: readonly [NodeEventType, ...(NodeEventType | TrafficEventType)[]] = [
  ...NODE_EVENTS,
  ...TRAFFIC_EVENTS
]

/** Is it a type of an event? */
export function isEventType(text: string): text is NodeEventType | TrafficEventType {
  return EVENT_TYPES.some((type) => type === text)
}
