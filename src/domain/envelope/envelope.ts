import type { NodeId } from '../../kit/ids.js'
import type { Tier } from '../routing/tier.js'

/** The types of messages (spec a2a-mcp-mesh, A2AMessageType), in the order of their wire numbers. */
export const MESSAGE_TYPES = [
  'request',
  'response',
  'notification',
  'task-proposal',
  'task-accept',
  'task-reject',
  'stream-start',
  'stream-data',
  'stream-end',
  'error'
] as const

/** One of {@link MESSAGE_TYPES}. */
export type MessageType = (typeof MESSAGE_TYPES)[number]

/** Types that open an exchange; tier rules bind these. */
export const OPENING_TYPES: ReadonlySet<MessageType> = new Set([
  'request',
  'notification',
  'task-proposal',
  'stream-start'
])

/** Current version of the envelope's schema. */
export const SCHEMA_VERSION = 1

/** Claims of a sender beside the message. They are compared with certificates, never trusted. */
export interface EnvelopeMetadata {
  readonly tier: Tier
  readonly sandboxId?: string
  /** Set when `recipient` is a capability id. */
  readonly routingHint?: 'capability'
  /** Reason for an escalation, at most 1 KiB. */
  readonly justification?: string
  /** Keys of the nodes that relayed it, at most 8: noted by the node that it came to, never sent. */
  readonly hops?: readonly NodeId[]
}

/** One A2A message (spec a2a-mcp-mesh, A2AEnvelope). */
export interface A2AEnvelope {
  /** Unique, at most 64 characters. */
  readonly id: string
  readonly schemaVersion: number
  /** `agentId@nodeId`. */
  readonly sender: string
  /** `agentId@nodeId`, `*`, or a capability id with `routingHint`. */
  readonly recipient: string
  readonly correlationId?: string
  readonly type: MessageType
  /** Unix milliseconds. */
  readonly timestamp: number
  /** JSON; members of it may be Uint8Array (they travel as bytes). */
  readonly payload: unknown
  readonly metadata?: EnvelopeMetadata
}
