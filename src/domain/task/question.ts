import { z } from 'zod'
import { isRecord, jsonFault, RESULT_LIMITS } from '../../kit/json.js'
import { usableCheck } from '../../kit/schema/usable-check.js'
import { faultText } from '../../kit/schema/text.js'
import type { CompileSchema } from '../../kit/sign.js'

/**
 * Kinds of questions that a caller may answer during its request: a form or a URL for its person, a message for its
 * model (`tools`: one that may call tools), and its folders.
 */
export const QUESTION_KINDS = ['form', 'url', 'sampling', 'tools', 'roots'] as const
/** One of {@link QUESTION_KINDS}. */
export type QuestionKind = (typeof QUESTION_KINDS)[number]

/** The kinds that a failure names in `data.missing`: the work needs a client that takes them. [] for other failures. */
export function missingKinds(data: unknown): readonly QuestionKind[] {
  const missing: unknown = isRecord(data) ? data['missing'] : undefined
  return Array.isArray(missing) ? QUESTION_KINDS.filter((kind) => missing.includes(kind)) : []
}

/** Levels of log lines, the least first. */
export const LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
/** One of {@link LOG_LEVELS}. */
export type Severity = (typeof LOG_LEVELS)[number]

/** Largest question or answer, in characters of its JSON. */
export const MAX_QUESTION = 65_536
/** Questions of one request in all. */
export const MAX_QUESTIONS = 64
/** Unanswered questions of one request at once. */
export const MAX_OPEN_QUESTIONS = 8
/** Largest log line, in characters of its JSON. */
export const MAX_LOG_LINE = 8192

const METHODS = ['elicitation/create', 'sampling/createMessage', 'roots/list'] as const

/** A question of an agent to its caller, in the form of MCP. */
export interface Question {
  /** The agent's name of it, for clients that get questions by name. */
  readonly name?: string
  readonly method: (typeof METHODS)[number]
  readonly params: Readonly<Record<string, unknown>>
}

/** The answer to a question: a result in the form of MCP, or why there is none. */
export type QuestionAnswer =
  | { readonly ok: true; readonly result: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly message: string }

/** A line of an agent's log for its caller. `data`: JSON. */
export interface AgentLogLine {
  readonly level: Severity
  readonly data: unknown
  readonly logger?: string
}

const text = z.string().min(1).max(4096)
const record = z.record(z.string(), z.unknown())
/** Printable ASCII without a name of a user, as of "https://bank.example@other.example": a person reads it. */
const webUrl = z
  .string()
  .max(2048)
  .regex(/^https?:\/\/[\w.:[\]-]+(?:[/?#][!-~]*)?$/i)

const PARAMS = {
  form: z.object({
    message: text,
    requestedSchema: z.looseObject({
      type: z.literal('object'),
      properties: z.record(z.string().max(256), record).refine((fields) => Object.keys(fields).length <= 128)
    })
  }),
  url: z.object({ message: text, url: webUrl, elicitationId: z.string().max(256).exactOptional() }),
  sampling: z.looseObject({ messages: z.array(record).min(1).max(256), maxTokens: z.number() }),
  tools: z.looseObject({ messages: z.array(record).min(1).max(256), maxTokens: z.number() }),
  roots: z.object({})
} as const satisfies Record<QuestionKind, z.ZodType>

const ANSWERS = {
  form: z.object({ action: z.enum(['accept', 'decline', 'cancel']), content: record.exactOptional() }),
  url: z.object({ action: z.enum(['accept', 'decline', 'cancel']) }),
  sampling: z.looseObject({ role: z.string().max(32), model: z.string().max(256), content: z.unknown() }),
  tools: z.looseObject({ role: z.string().max(32), model: z.string().max(256), content: z.unknown() }),
  roots: z.object({
    roots: z.array(z.object({ uri: z.string().max(2048), name: z.string().max(256).exactOptional() })).max(256)
  })
} as const satisfies Record<QuestionKind, z.ZodType>

/** The ability that a question needs of its caller. */
export function kindOf({ method, params }: Question): QuestionKind {
  if (method === 'roots/list') return 'roots'
  if (method === 'elicitation/create') return params['mode'] === 'url' ? 'url' : 'form'
  return params['tools'] !== undefined || params['toolChoice'] !== undefined ? 'tools' : 'sampling'
}

/** Reads a question of an agent or a peer: bounded, and with the known members of its kind; null for another value. */
export function readQuestion(value: unknown): Question | null {
  if (!isRecord(value) || !isSmall(value, MAX_QUESTION)) return null
  const method = METHODS.find((one) => one === value['method'])
  const params = value['params'] ?? {}
  if (method === undefined || !isRecord(params)) return null
  const kind = kindOf({ method, params })
  const read = PARAMS[kind].safeParse(params)
  if (!read.success) return null
  // Context of other servers is no matter of an agent.
  const { _meta, includeContext: _context, ...known } = read.data as Record<string, unknown>
  const mode = kind === 'form' || kind === 'url' ? { mode: kind } : {}
  const { name } = value
  const isNamed = typeof name === 'string' && /^[\w.-]{1,64}$/.test(name)
  return { method, params: { ...mode, ...known }, ...(isNamed ? { name } : {}) }
}

/** Reads the answer of a caller to a question of that kind; one of another form is none. */
export function readAnswer(value: unknown, kind: QuestionKind): QuestionAnswer {
  if (isRecord(value) && value['ok'] === false && typeof value['message'] === 'string')
    return { ok: false, message: value['message'].slice(0, 1024) }
  const result = isRecord(value) && value['ok'] === true && isSmall(value, MAX_QUESTION) ? value['result'] : undefined
  const read = ANSWERS[kind].safeParse(result)
  if (!read.success) return { ok: false, message: 'the answer of the caller has another form, or is too large' }
  return { ok: true, result: read.data }
}

const logSchema = z.object({
  level: z.enum(LOG_LEVELS),
  data: z.unknown(),
  logger: z.string().max(128).optional().catch(undefined)
})

/** Reads a log line of an agent or a peer; null for a malformed or too large one. */
export function readLogLine(value: unknown): AgentLogLine | null {
  if (!isRecord(value) || !isSmall(value, MAX_LOG_LINE)) return null
  const read = logSchema.safeParse(value)
  if (!read.success || read.data.data === undefined) return null
  const { level, data, logger } = read.data
  return { level, data, ...(logger === undefined ? {} : { logger }) }
}

/** Is a line of this level wanted, by the least level that a caller named? null: it wants none. */
export function isWanted(level: Severity, least: Severity | null): boolean {
  return least !== null && LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(least)
}

/** The faults of an answer's content by its form, as text; null: it fits. Bounded in time; never throws. */
export function formFault(compileSchema: CompileSchema, form: unknown, content: unknown): string | null {
  if (!isRecord(form)) return null
  const check = usableCheck(compileSchema, form)
  if (typeof check === 'string') return `the form is no usable schema: ${check}`
  const faults = check(content)
  return faults.length === 0 ? null : `the content does not fit the form: ${faultText(faults)}`
}

function isSmall(value: unknown, max: number): boolean {
  return jsonFault(value, RESULT_LIMITS) === null && JSON.stringify(value).length <= max
}
