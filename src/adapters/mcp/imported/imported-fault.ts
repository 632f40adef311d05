import { messageOf } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import { kindsOf } from './client-kinds.js'
import type { AgentOutcome } from '../../../ports/agent-runtime.js'
import type { QuestionKind } from '../../../domain/task/question.js'
import { retryAfterOf } from '../../../domain/task/tool-content.js'

/** Code of MCP 2026-07-28: the client has not declared a capability that the answer needs. */
const MISSING_CAPABILITY = -32_021
/** Longest text of a server that is passed on. */
const MAX_TEXT = 1000
/** Of a connection that was never made. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT'
])

/**
 * Effect of a failure on the call: `unsent` it did not reach the server; `refused` the server did not begin it; `busy`
 * the same, since the server is overloaded; `answered` the server gave an error; `session` the server does not know the
 * session and did nothing; `unknown` it may have run.
 */
export type ImportedFaultKind = 'unsent' | 'refused' | 'busy' | 'answered' | 'session' | 'unknown'

/** Why a request to an imported server has no result. */
export class ImportedFault extends Error {
  readonly kind: ImportedFaultKind
  /** Seconds after which the server asks to be asked again; null: it does not say. */
  readonly retryAfter: number | null
  /** Kinds of questions that the caller's client would have to take. */
  readonly missing: readonly QuestionKind[]

  constructor(
    kind: ImportedFaultKind,
    message: string,
    { retryAfter = null, missing = [] }: Partial<Pick<ImportedFault, 'retryAfter' | 'missing'>> = {}
  ) {
    super(shown(message, MAX_TEXT))
    this.name = 'ImportedFault'
    this.kind = kind
    this.retryAfter = retryAfter
    this.missing = missing
  }
}

/** Context of an error. */
export interface FaultScene {
  /** There is a session that the server may have forgotten. */
  readonly hasSession: boolean
}

const RETRY_AFTER = /^retry after (\d{1,5}) s$/

/**
 * Status text of a refusal that asks for a retry after that many seconds. The client library passes on only status,
 * status text and body of a refusal, and only these surely belong to the refused request.
 */
export function retryAfterText(seconds: number): string {
  return `retry after ${seconds} s`
}

/** Reads an error of the client library. Where it leaves open whether the request ran, it may have. */
export function faultOf(error: unknown, { hasSession }: FaultScene): ImportedFault {
  if (error instanceof ImportedFault) return error
  const { code, data } = error as { readonly code?: unknown; readonly data?: unknown }
  const message = messageOf(error)
  const status = isRecord(data) && typeof data['status'] === 'number' ? data['status'] : null
  if (status !== null)
    return httpFault({
      status,
      hasSession,
      retryAfter: isRecord(data) ? reportedBy(data['statusText']) : null,
      message
    })
  // Numbers are codes of JSON-RPC: the server itself answered.
  if (code === MISSING_CAPABILITY) return new ImportedFault('answered', message, { missing: missingOf(data) })
  if (typeof code === 'number') return new ImportedFault('answered', message, { retryAfter: retryAfterOf(data) })
  if (code === 'NOT_CONNECTED' || isNeverSent(error)) return new ImportedFault('unsent', causeText(error) ?? message)
  // It answered, though with no valid result.
  if (code === 'INVALID_RESULT' || code === 'UNSUPPORTED_RESULT_TYPE') return new ImportedFault('answered', message)
  return new ImportedFault('unknown', causeText(error) ?? message)
}

function missingOf(data: unknown): readonly QuestionKind[] {
  const required: unknown = isRecord(data) ? data['requiredCapabilities'] : undefined
  return isRecord(required) ? kindsOf(required) : []
}

function reportedBy(statusText: unknown): number | null {
  const seconds = typeof statusText === 'string' ? RETRY_AFTER.exec(statusText)?.[1] : undefined
  return seconds === undefined ? null : Number(seconds)
}

/** A refusal by status is one before the work, except for failures of the server itself. */
function httpFault({
  status,
  hasSession,
  retryAfter,
  message
}: FaultScene & {
  readonly status: number
  readonly retryAfter: number | null
  readonly message: string
}): ImportedFault {
  if (status === 404 && hasSession) return new ImportedFault('session', 'the server has forgotten the session')
  const text = `the server answered with HTTP ${status}${status === 429 ? ' (too many requests)' : ''}: ${message}`
  if (status === 429 || (status === 503 && retryAfter !== null)) return new ImportedFault('busy', text, { retryAfter })
  return new ImportedFault(status >= 300 && status < 500 ? 'refused' : 'unknown', text, { retryAfter })
}

function isNeverSent(error: unknown): boolean {
  for (let one: unknown = error, depth = 0; isObject(one) && depth < 5; one = one['cause'], depth++)
    if (typeof one['code'] === 'string' && NEVER_SENT.has(one['code'])) return true
  return false
}

function causeText(error: unknown): string | null {
  const cause = isObject(error) ? error['cause'] : undefined
  return cause instanceof Error ? `${messageOf(error)}: ${cause.message}` : null
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** Faults after which the same call may succeed, and does nothing twice. */
const RETRYABLE = new Set<ImportedFaultKind>(['unsent', 'session', 'busy'])

/** How a call ends that failed so. */
export function failedCall(server: string, { kind, message, retryAfter, missing }: ImportedFault): AgentOutcome {
  const nothingDone = `the MCP server ${server} was not reached, and nothing was done: ${message}`
  const refused = `the MCP server ${server} refused the call, and nothing was done: ${message}`
  const reported = {
    unsent: nothingDone,
    session: nothingDone,
    refused,
    busy: refused,
    answered: `the MCP server ${server} answered with an error: ${message}`,
    unknown: `the MCP server ${server} was lost while it had the call: it may have run, and is not repeated. ${message}`
  }[kind]
  const known = kind === 'unknown' ? { isUnknown: true } : RETRYABLE.has(kind) ? { retryable: true } : {}
  const data = { ...(retryAfter === null ? {} : { retryAfter }), ...(missing.length === 0 ? {} : { missing }) }
  return {
    ok: false,
    code: 'TASK_FAILED',
    message: reported,
    ...known,
    ...(Object.keys(data).length === 0 ? {} : { data })
  }
}
