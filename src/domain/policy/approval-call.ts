import { z } from 'zod'
import { fromUtf8, isKeyText, type NodeId, utf8 } from '../../kit/ids.js'
import { isRecord, parseJson, RESULT_LIMITS } from '../../kit/json.js'
import { shown, SHOWN_MAX } from '../../kit/text.js'
import { SIDE_EFFECTS } from '../card/card.js'
import { sandboxIdSchema, tierSchema } from '../card/schema.js'
import { MESSAGE_TYPES } from '../envelope/envelope.js'
import type { ErrorBody } from '../../kit/errors.js'
import { errorBodySchema } from '../task/payloads.js'

/** Path of the calls of a machine about the approvals at another machine of the same person. */
export const APPROVALS_PATH = '/approvals'
/** The most approvals of one list. */
export const MAX_LISTED_APPROVALS = 64
/** Largest request in bytes, and one that carries the answer to a question. */
const MAX_REQUEST_BYTES = 4096
const MAX_ANSWER_BYTES = 69_632
/** Longest input of a listed approval, in characters. */
const MAX_INPUT = 1025

/** An id of an approval. People copy it into commands. */
export const approvalIdSchema = z.string().regex(/^app_[a-z0-9_-]{1,60}$/)

/** The kinds of callers that decide at another machine: a person, or a program with an admin's token. */
const DECIDER_KINDS = ['operator', 'page', 'token'] as const

/** The id of an approval, or of a question of an agent, which earlier builds neither list nor ask for. */
const pendingIdSchema = z.string().regex(/^(?:app|ask)_[a-z0-9_-]{1,60}$/)

/** Claims about the caller. Strict: an older build must not pass over a further limit. */
const bySchema = z.strictObject({
  kind: z.enum(DECIDER_KINDS),
  name: z.string().min(1).max(128),
  tier: tierSchema,
  sandboxId: sandboxIdSchema.nullable(),
  isAdmin: z.boolean(),
  isLimited: z.boolean()
})

const idOrPrefix = z.string().min(1).max(64)

const requestSchema = z.discriminatedUnion('do', [
  // `questions`: the list may have questions; a caller of an earlier build would refuse it whole.
  z.object({ do: z.literal('list'), questions: z.literal(true).exactOptional(), by: bySchema }),
  z.object({ do: z.literal('find'), id: idOrPrefix, by: bySchema }),
  z.object({ do: z.literal('show'), id: pendingIdSchema, by: bySchema }),
  // `content`: of the form that a question asks for.
  z.object({ do: z.literal('allow'), id: pendingIdSchema, content: z.unknown().optional(), by: bySchema }),
  z.object({ do: z.literal('deny'), id: pendingIdSchema, by: bySchema })
])

/** The deciding caller, as its node describes it. `isLimited`: it may use some agents or capabilities only. */
export type ApprovalDecider = z.infer<typeof bySchema>

/** A request about the approvals at another machine. `find`: the id of a prefix. */
export type ApprovalCall = z.infer<typeof requestSchema>

/** Describes a caller; null for kinds of callers that decide nowhere else. */
export function approvalDecider(caller: {
  readonly kind: string
  readonly name: string
  readonly tier: ApprovalDecider['tier']
  readonly sandboxId: string | null
  readonly scopes: readonly string[]
  readonly agentId?: string | undefined
  readonly agents?: readonly string[]
  readonly capabilities?: readonly string[]
}): ApprovalDecider | null {
  const { kind, name, tier, sandboxId, scopes, agentId, agents, capabilities } = caller
  const decider = bySchema.safeParse({
    kind,
    name: shown(name, 128),
    tier,
    sandboxId,
    isAdmin: scopes.includes('admin'),
    isLimited: agents !== undefined || capabilities !== undefined
  })
  return agentId === undefined && decider.success ? decider.data : null
}

/** A request as bytes; null for one that is too large to be read. */
export function encodeApprovalCall(call: ApprovalCall): Uint8Array | null {
  const bytes = utf8(JSON.stringify(call))
  return bytes.byteLength > maxBytes(call) ? null : bytes
}

/** Reads a request; null for an invalid one. */
export function decodeApprovalCall(bytes: Uint8Array): ApprovalCall | null {
  if (bytes.byteLength > MAX_ANSWER_BYTES) return null
  const call = requestSchema.safeParse(jsonOf(bytes))
  return call.success && bytes.byteLength <= maxBytes(call.data) ? call.data : null
}

function maxBytes(call: ApprovalCall): number {
  return call.do === 'allow' && call.content !== undefined ? MAX_ANSWER_BYTES : MAX_REQUEST_BYTES
}

const line = (max = SHOWN_MAX): z.ZodType<string> =>
  z
    .string()
    .max(4 * MAX_INPUT)
    .transform((text) => shown(text, max))
const node = z.object({ id: z.custom<NodeId>(isKeyText), name: line() })
const time = z.iso.datetime().max(40)

const infoSchema = z.object({
  id: pendingIdSchema,
  from: line(),
  fromNode: node,
  to: line(),
  toNode: node,
  fromTier: z.enum(['L0', 'L1', 'L2', 'L3']),
  type: z.enum(MESSAGE_TYPES),
  capability: line(128).nullable(),
  sideEffect: z.enum(SIDE_EFFECTS).nullable(),
  description: line(),
  justification: line().nullable(),
  input: line(MAX_INPUT),
  cut: z.array(z.enum(['input', 'description', 'justification'])).max(3),
  rule: line(),
  askedAt: time,
  expiresAt: time,
  endsBy: z.enum(['node', 'caller']),
  question: z.enum(['form', 'url']).exactOptional()
})

const count = z.int().min(0).max(1_000_000)

/** The answer to each request. */
const answerSchemas = {
  list: z.object({ approvals: z.array(infoSchema).max(MAX_LISTED_APPROVALS), more: count }),
  find: z.object({ id: pendingIdSchema }),
  show: infoSchema.extend({
    requestId: line(64).nullable(),
    attempt: count.nullable(),
    copies: count,
    whole: z.object({ description: z.string(), justification: z.string().nullable(), input: z.unknown() })
  }),
  allow: infoSchema,
  deny: infoSchema
} as const

/** The answer of the asked machine, by request. */
export type ApprovalAnswers = { readonly [N in ApprovalCall['do']]: z.infer<(typeof answerSchemas)[N]> }

/** An answer, or an error of the asked machine, as bytes. */
export function encodeApprovalAnswer(answer: { readonly answer: unknown } | { readonly error: ErrorBody }): Uint8Array {
  return utf8(JSON.stringify(answer))
}

/**
 * Reads an answer or an error of the asked machine; null for anything else, as from older builds. Its texts are safe to
 * show, except in `whole`.
 */
export function decodeApprovalAnswer<N extends ApprovalCall['do']>(
  name: N,
  bytes: Uint8Array
): { readonly answer: ApprovalAnswers[N] } | { readonly error: ErrorBody } | null {
  const value = jsonOf(bytes)
  if (!isRecord(value)) return null
  const schema: z.ZodType<ApprovalAnswers[N]> = answerSchemas[name] as unknown as z.ZodType<ApprovalAnswers[N]>
  const answer = schema.safeParse(value['answer'])
  if (answer.success) return { answer: answer.data }
  const error = errorBodySchema.safeParse(value['error'])
  return error.success ? { error: { ...error.data, message: shown(error.data.message, 1000) } } : null
}

function jsonOf(bytes: Uint8Array): unknown {
  const parsed = parseJson(fromUtf8(bytes), RESULT_LIMITS)
  return parsed.ok ? parsed.value : null
}
