import { z } from 'zod'
import { agentIdSchema } from '../card/schema.js'
import type { ErrorCode } from '../../kit/errors.js'
import { isKeyText, type NodeId } from '../../kit/ids.js'
import { ENVELOPE_LIMITS } from '../envelope/limits.js'
import { approvalIdSchema } from '../policy/approval-call.js'
import { MAX_TTL_MS } from '../task/payloads.js'
import { MAX_QUESTIONS } from '../task/question.js'
import { COORDINATION_SCHEMA } from '../swarm/coordination-message.js'
import { PARTICIPANT_SCHEMA } from '../swarm/participant-message.js'

const Id = z.string().min(1).max(64)
/** A run of a request: its id, `#` and the attempt. */
const RunKey = z.string().min(1).max(140)
const AgentId = z.string().min(1).max(64)
const NodeKey = z.custom<NodeId>(isKeyText)

/** Why a message is not carried on. */
const UNDELIVERED_CODES = [
  'PEER_OFFLINE',
  'OVERLOADED',
  'PAYLOAD_TOO_LARGE',
  'AGENT_NOT_FOUND',
  'FORBIDDEN',
  'TIER_VIOLATION',
  'SANDBOX_VIOLATION',
  'ESCALATION_REQUIRED',
  'POLICY_DENIED'
] as const satisfies readonly ErrorCode[]

/** May a node say with this code that it does not carry a message on? */
export function isUndeliveredCode(code: ErrorCode): code is (typeof UNDELIVERED_CODES)[number] {
  return (UNDELIVERED_CODES as readonly ErrorCode[]).includes(code)
}

/** Keys of requests in one heartbeat. */
export const MAX_HEARTBEAT_KEYS = 1000

/** Agents that one control message names: the limit of a node. */
export const MAX_NAMED_AGENTS = 1024

/** Linked nodes that one control message names. */
export const MAX_NAMED_LINKS = 256

/** Lanes that one control message names. */
export const MAX_NAMED_LANES = 500

const Sequence = z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER)

/** The control messages of a channel by name, with their bodies. Card rules check cards. */
export const CONTROL_SCHEMAS = {
  /**
   * Signed cards of the sender's agents. `all`: the ids of every agent it has now, others are gone; null when it does
   * not say.
   * `unable`: the ids of every agent of the sender that cannot work now; absent when it does not say.
   * `providers`: those of the agents of these cards, each `{id, revision, provider}`; invalid ones are left out.
   */
  cards: z.object({
    cards: z.array(z.unknown()).max(1000),
    all: z.array(AgentId).max(MAX_NAMED_AGENTS).nullable(),
    unable: z.array(AgentId).max(MAX_NAMED_AGENTS).optional(),
    providers: z.array(z.unknown()).max(1000).optional()
  }),
  /** Agents of the sender that are gone, each with the revision at which it went. */
  'cards-removed': z.object({
    agents: z.array(z.object({ id: AgentId, revision: z.number().int().nonnegative() })).max(MAX_NAMED_AGENTS)
  }),
  /** Requests of the receiver that the sender still works on. */
  heartbeat: z.object({
    requests: z.array(RunKey).max(MAX_HEARTBEAT_KEYS),
    /** The ones that wait for a free slot of their agent. */
    waiting: z.array(RunKey).max(MAX_HEARTBEAT_KEYS).default([])
  }),
  /**
   * Requests of the receiver that wait for a person of the sender to allow them. `approvals`: those of `requests`, in
   * the same order, each with the milliseconds that it still waits; absent from older builds.
   */
  approval: z.object({
    requests: z.array(RunKey).max(MAX_HEARTBEAT_KEYS),
    approvals: z
      .array(z.object({ id: approvalIdSchema, leftMs: z.int().min(0).max(MAX_TTL_MS) }))
      .max(MAX_HEARTBEAT_KEYS)
      .optional()
  }),
  /** Asks to stop the work on a request of the sender. */
  cancel: z.object({ requestId: RunKey }),
  /** The answer to a question of the receiver's work for a request of the sender. */
  answer: z.object({ requestId: RunKey, id: z.int().min(1).max(MAX_QUESTIONS), answer: z.unknown() }),
  /** Asks for cards by agent id or by capability. */
  lookup: z.object({ id: Id, agentId: AgentId.nullable(), capability: z.string().min(1).max(128).nullable() }),
  /** The signed cards found for a `lookup`. */
  found: z.object({ id: Id, cards: z.array(z.unknown()).max(1000) }),
  /** Asks for a way to a member; with `isFurther` the receiver asks its own neighbours when it knows none. */
  way: z.object({ id: Id, to: NodeKey, isFurther: z.boolean() }),
  /** How many nodes lie between the sender and that member; null: it knows no way, or carries nothing. */
  'way-found': z.object({
    id: Id,
    further: z
      .int()
      .min(0)
      .max(ENVELOPE_LIMITS.maxHops - 1)
      .nullable()
  }),
  /** Asks to whom the receiver has links. */
  linked: z.object({ id: Id }),
  /** To whom the sender has links. */
  'linked-to': z.object({ id: Id, nodes: z.array(NodeKey).max(MAX_NAMED_LINKS) }),
  /** A message of `origin` for the node `to` is not carried on. `left`: how many nodes may pass this word on. */
  undelivered: z.object({
    origin: NodeKey,
    to: NodeKey,
    id: Id,
    code: z.enum(UNDELIVERED_CODES),
    rule: z.string().max(256),
    left: z.int().min(0).max(ENVELOPE_LIMITS.maxHops)
  }),
  /** Presence in a document at the sender: a CRDTSyncMessage whose update is y-protocols' awareness in base64. */
  presence: z.object({ document: NodeKey, message: z.unknown() }),
  /** Asks for the document of a swarm in which the sender takes part, and which the receiver launched or joined. */
  'swarm-document': z.object({ swarm: Id }),
  /**
   * Asks for the positions of lanes of the sender's agents; `base`: the lowest number of each lane that may still
   * arrive.
   */
  greet: z.object({
    lanes: z.array(z.object({ source: agentIdSchema, target: agentIdSchema, base: Sequence })).max(MAX_NAMED_LANES)
  }),
  /**
   * Positions of lanes of the receiver's agents: the last durable number here, and its message. `ledger`: this node's
   * name of its ledger (another name: it lost its data), absent while a message of the lane is becoming durable.
   * `isAnswer`: false when no `greet` asked; absent: true.
   */
  ack: z.object({
    lanes: z
      .array(
        z.object({
          source: agentIdSchema,
          target: agentIdSchema,
          ack: Sequence,
          messageId: Id.nullable(),
          ledger: Id.optional(),
          isAnswer: z.boolean().optional()
        })
      )
      .max(MAX_NAMED_LANES)
  }),
  /** Coordination messages between participants of a swarm. Not bound by tiers. */
  coordination: COORDINATION_SCHEMA,
  /** Their other messages: plan, accepted results, contents. */
  swarm: PARTICIPANT_SCHEMA
} as const satisfies Record<string, z.ZodType>

/** Name of a control message. */
export type ControlName = keyof typeof CONTROL_SCHEMAS

/** The body of a control message by name. */
export type ControlBody<N extends ControlName> = z.infer<(typeof CONTROL_SCHEMAS)[N]>

/** An approval for which a request waits, as its node reports it. */
export type ReportedApproval = NonNullable<ControlBody<'approval'>['approvals']>[number]

/** A control message that was checked. */
export type ControlMessage = { [N in ControlName]: { readonly name: N; readonly body: ControlBody<N> } }[ControlName]

/** A control message, or why it is none. */
export type ControlReading = ({ readonly ok: true } & ControlMessage) | { readonly ok: false; readonly reason: string }

/** Is it a key of {@link CONTROL_SCHEMAS}? */
export function isControlName(name: string): name is ControlName {
  return Object.hasOwn(CONTROL_SCHEMAS, name)
}

/** Checks the body of a control message that a peer sent. Never throws. */
export function decodeControl(name: string, body: unknown): ControlReading {
  if (!isControlName(name)) return { ok: false, reason: 'no such control message' }
  const checked = CONTROL_SCHEMAS[name].safeParse(body)
  if (!checked.success)
    return { ok: false, reason: `${name}: ${checked.error.issues[0]?.path.join('.') || 'body'} does not fit` }
  return { ok: true, name, body: checked.data } as ControlReading
}
