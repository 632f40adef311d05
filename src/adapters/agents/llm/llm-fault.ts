import { isRecord, parseJson } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import type { AgentOutcome, FailureCode } from '../../../ports/agent-runtime.js'

/** How a server failed: not reached, an answer that says no, silence, an answer cut off, too much of it, or one that makes no sense. */
export type LlmFaultKind = 'unreachable' | 'refused' | 'stalled' | 'dropped' | 'too-large' | 'unreadable'

/** Characters of a server's own words that are passed on. */
const MAX_WORDS = 300

/** Why a question to a model has no answer. */
export class LlmFault extends Error {
  readonly kind: LlmFaultKind
  /** Of HTTP, for `refused`; else null. */
  readonly status: number | null
  /** Seconds that the server asked to wait. */
  readonly retryAfter: number | null

  /** `message`: the fault, after "the LLM provider x ..."; it is written to the log of the node. */
  constructor(kind: LlmFaultKind, message: string, refusal: { readonly status: number; readonly retryAfter: number | null } | null = null) {
    super(message)
    this.name = 'LlmFault'
    this.kind = kind
    this.status = refusal?.status ?? null
    this.retryAfter = refusal?.retryAfter ?? null
  }
}

/** Statuses that refuse the request in any form. */
const WRONG_PLACE: ReadonlySet<number> = new Set([401, 403, 404, 405, 407, 410])
/** Statuses after which the same may succeed. */
const LATER: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504])

/** State of the run that a fault ends. */
export interface FaultPlace {
  /** Name of the provider in the config. */
  readonly provider: string
  /** The model has answered at least once. */
  readonly isBegun: boolean
  /** Tools were called: a repeated run is not the same. */
  readonly hasActed: boolean
}

/**
 * The outcome of a run that a fault ends: LLM_INIT_FAILED while the provider cannot be used at all, TIMEOUT of a stalled one,
 * PAYLOAD_TOO_LARGE, else TASK_FAILED. It tells callers neither addresses nor a server's words about keys.
 */
export function faultOutcome(fault: LlmFault, { provider, isBegun, hasActed }: FaultPlace): AgentOutcome {
  const code = codeOf(fault)
  const isLater = fault.kind === 'unreachable' || fault.kind === 'dropped' || (fault.status !== null && LATER.has(fault.status))
  return {
    ok: false,
    code: code === 'LLM_INIT_FAILED' && isBegun ? 'TASK_FAILED' : code,
    message: `the LLM provider ${provider} ${faultText(fault)}`,
    ...(code === 'TIMEOUT' || code === 'PAYLOAD_TOO_LARGE' ? {} : { retryable: isLater && !hasActed }),
    ...(fault.retryAfter === null ? {} : { data: { retryAfter: fault.retryAfter } })
  }
}

function codeOf({ kind, status, message }: LlmFault): FailureCode {
  if (kind === 'stalled') return 'TIMEOUT'
  if (kind === 'too-large') return 'PAYLOAD_TOO_LARGE'
  if (kind === 'unreachable') return 'LLM_INIT_FAILED'
  if (status === null) return 'TASK_FAILED'
  const isUnknownModel = status >= 400 && status < 500 && /\bmodel\b/i.test(message) && /not (?:found|exist)|unknown/i.test(message)
  // 503: llama.cpp is loading its model.
  return WRONG_PLACE.has(status) || status < 400 || status === 503 || isUnknownModel ? 'LLM_INIT_FAILED' : 'TASK_FAILED'
}

function faultText({ status, message }: LlmFault): string {
  return status === 401 || status === 403 ? `refuses this node (HTTP ${status}): see its key in the config` : message
}

/**
 * The message in an error body, in the forms of llama.cpp, Ollama and vLLM: `{error: {message}}`, `{error: text}`, `{message}`, `{detail}`.
 * For any other body, its beginning.
 */
export function wordsOf(body: string): string {
  const parsed = parseJson(body)
  return shown(parsed.ok ? (messageIn(parsed.value) ?? '') : body, MAX_WORDS)
}

/** The message in a server's error; null when there is none. */
export function messageIn(value: unknown): string | null {
  if (typeof value === 'string') return value
  if (!isRecord(value)) return null
  const { error, message, detail } = value
  return messageIn(message) ?? messageIn(error) ?? messageIn(detail)
}
