import { z } from 'zod'
import { ERROR_CODES, isErrorCode } from '../../kit/errors.js'
import type { ErrorBody, ErrorCode } from '../../kit/errors.js'
import { type Conversation, unpackConversation } from '../gateway/conversation.js'
import { hasBytes } from '../../kit/json.js'
import { TaskAcceptPayloadSchema } from './negotiation.js'
import { MAX_QUESTIONS } from './question.js'

const id = z.string().min(1).max(128)
/** With its attempt it must fit the keys of heartbeats and cancellations. */
const requestIdText = z.string().regex(/^[!-~]{1,48}$/)
/** Longest time to live of a request, in milliseconds: 60 days. */
export const MAX_TTL_MS = 60 * 86_400_000
/** Default time of a request in milliseconds. */
const TTL_MS = 86_400_000
const text = z.string().max(16_384)

/**
 * An error in a payload: bounded, unknown codes become INTERNAL, and data with bytes is left out. Next steps come from
 * this node's table: no member puts commands before the person of another.
 */
export const errorBodySchema: z.ZodType<ErrorBody> = z
  .object({
    code: z.string().max(64),
    message: z.string().max(4096),
    retryable: z.boolean().default(false),
    isFinal: z.boolean().default(false),
    data: z.unknown().optional()
  })
  .transform(({ code, message, retryable: stated, isFinal, data }) => {
    const known: ErrorCode = isErrorCode(code) ? code : 'INTERNAL'
    // For an unknown code the meaning of "retryable" is unknown, too.
    const retryable = known === code ? stated : ERROR_CODES[known].retryable
    // Errors are stored and displayed as JSON, in which a byte takes many characters.
    const body = {
      code: known,
      message,
      retryable,
      ...(isFinal ? { isFinal: true as const } : {}),
      next: ERROR_CODES[known].next
    }
    return data === undefined || hasBytes(data) ? body : { ...body, data }
  })

/** Payload of a `request`, without its conversation. */
export const requestPayloadSchema = z.object({
  requestId: requestIdText,
  /** 1 for the first try. */
  attempt: z.number().int().min(1).max(1_000_000),
  /** null: the agent's default capability. */
  capability: z.string().min(1).max(128).nullable(),
  input: z.unknown(),
  /** The goal, for people and language models. */
  description: text.default(''),
  /** Set when it is the lease of an item: it ends when its launcher is gone for longer than a lease. */
  swarm: id.nullable().default(null),
  /**
   * Epoch of the coordinator that gave the lease, if several could: a node that knows a higher one does not begin it.
   */
  epoch: z.int().min(0).exactOptional(),
  /** Milliseconds from its arrival for which its outcome is waited for; it is not begun after that. */
  timeoutMs: z.number().int().min(1).max(MAX_TTL_MS).default(TTL_MS),
  /**
   * Milliseconds from its arrival for which its caller waits at least while a person must approve it; absent: no longer
   * than `timeoutMs`.
   */
  approvalMs: z.number().int().min(1).max(MAX_TTL_MS).exactOptional(),
  /** Milliseconds from its arrival after which its caller asks after it no more. */
  ttlMs: z.number().int().min(1).max(MAX_TTL_MS).default(TTL_MS),
  /** It may be run again after an unknown outcome, though the capability says that it may not. */
  allowRepeat: z.boolean().default(false),
  /** Only asks for its state: nothing is begun by it. */
  isQuery: z.boolean().default(false),
  /** Of a query after a lease of a swarm: the agent that asked for it, when another node coordinated. */
  askedBy: z.string().min(1).max(256).exactOptional(),
  /** Of a lease: the digest of the nodes that may coordinate its swarm and query it. */
  voters: z.string().min(1).max(64).exactOptional(),
  /** Of a query with `askedBy`: those whose digest the lease had, for a node that is no participant of the swarm. */
  amongVoters: z.array(z.string().max(64)).max(64).exactOptional(),
  /** It was sent before, and may have been begun: a node that knows nothing of it may have lost that with its disk. */
  isAgain: z.boolean().default(false),
  /** Its caller keeps no record of it; nor need its node, if it only reads and may be repeated. */
  isUnrecorded: z.boolean().default(false),
  /** Its caller takes the result in the form of MCP, where the agent has one. */
  wantsContent: z.boolean().exactOptional(),
  /** Kinds of questions that its caller answers during the request; unknown ones are ignored. */
  takes: z.array(z.string().max(32)).max(16).exactOptional(),
  /** Least level of the agent's log lines for its caller. */
  logLevel: z.string().max(16).exactOptional()
})

/** The payload of a `request`. */
export type RequestPayload = z.infer<typeof requestPayloadSchema> & {
  /** Of a client of the A2A gateway: the conversation of which it is one turn. */
  readonly conversation?: Conversation
}

/** Reads each payload once: it is looked at by several on its way, and not changed once it was read. */
function readerOf<T>(read: (payload: object) => T | null): (payload: unknown) => T | null {
  const known = new WeakMap<object, T | null>()
  return (payload) => {
    if (typeof payload !== 'object' || payload === null) return null
    const before = known.get(payload)
    if (before !== undefined) return before
    const value = read(payload)
    known.set(payload, value)
    return value
  }
}

/** Decodes the payload of a `request`; null for an invalid one. A decoded payload is not changed. */
export const readRequest = readerOf((payload): RequestPayload | null => {
  const read = requestPayloadSchema.safeParse(payload).data ?? null
  const { conversation: packed } = payload as { readonly conversation?: unknown }
  if (read === null || packed === undefined) return read
  const conversation = unpackConversation(packed, read.input)
  return conversation === null ? null : { ...read, conversation }
})

/** Payload of a `response` to a request. */
export const responsePayloadSchema = z.object({
  requestId: requestIdText,
  attempt: z.number().int().min(1),
  /** UNKNOWN: it may have been done, and it is not repeated. */
  outcome: z.enum(['COMPLETED', 'FAILED', 'UNKNOWN']),
  /** The attempt that its agent was given; absent for the one that was asked. */
  run: z.number().int().min(1).max(1_000_000).optional().catch(undefined),
  result: z.unknown().optional(),
  error: errorBodySchema.nullable().default(null)
})

/** Decodes the payload of a `response`; null for an invalid one. A decoded payload is not changed. */
export const readResponse = readerOf((payload) => responsePayloadSchema.safeParse(payload).data ?? null)

/** One run of one request, as heartbeats and cancellations name it: `requestId#attempt`. */
export function workKey(requestId: string, attempt: number): string {
  return `${requestId}#${attempt}`
}

/** Payload of `stream-data` on the thread of a request: progress, or a question or log line for its caller. */
export const progressPayloadSchema = z.object({
  requestId: requestIdText,
  attempt: z.number().int().min(1),
  progress: z.unknown().optional(),
  question: z.looseObject({ id: z.int().min(1).max(MAX_QUESTIONS) }).exactOptional(),
  log: z.unknown().optional()
})

/**
 * Payload of the `task-accept` that answers a swarm's offer: the spec's, and how many tasks the agent takes at once.
 */
export const offerAcceptSchema = TaskAcceptPayloadSchema.extend({ slots: z.number().int().min(1).max(1024) })
