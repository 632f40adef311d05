import { isRecord, parseJson } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import type { AgentOutcome, FailureCode } from '../../../ports/agent-runtime.js'

/**
 * How a server failed: not reached, an answer that says no, an error within an answer, silence, an answer cut off, too much of it, or one
 * that makes no sense.
 */
export type LlmFaultKind = 'unreachable' | 'refused' | 'failed' | 'stalled' | 'dropped' | 'too-large' | 'unreadable'

/** A refusal of a server. */
export interface ServerRefusal {
  /** Of HTTP; null for an error within an answer. */
  readonly status: number | null
  /** Seconds that it asked to wait; null: it did not. */
  readonly retryAfter: number | null
  /** The whole error, as text. */
  readonly errorText: string
}

/** Characters of a server's own words that are passed on. */
const MAX_WORDS = 300
/** Characters of an error within an answer that decide about its meaning. */
const MAX_ERROR_TEXT = 65_536

/** Why a question to a model has no answer. */
export class LlmFault extends Error {
  readonly kind: LlmFaultKind
  /** Of HTTP, for `refused`; else null. */
  readonly status: number | null
  /** Seconds that the server asked to wait. */
  readonly retryAfter: number | null
  /** May the same question succeed later? */
  readonly isPassing: boolean

  /** `message`: the fault, after "the LLM provider x ..."; it is written to the log of the node. */
  constructor(kind: LlmFaultKind, message: string, refusal: ServerRefusal | null = null) {
    super(message)
    this.name = 'LlmFault'
    this.kind = kind
    this.status = refusal?.status ?? null
    this.retryAfter = refusal?.retryAfter ?? null
    this.isPassing = isPassing(kind, refusal)
  }
}

/** Texts of errors that the same question gets again: its length, or the account behind the key. */
const LASTING =
  /insufficient[ _-](?:quota|funds|balance|credit)|exceeded your current quota|quota[ _-]exceeded|billing|payment required|context[ _-]?(?:length|size|window)|exceed_context|maximum context|(?:prompt|input|request) (?:is )?too (?:long|large)|too many (?:input )?tokens/i
/** Texts of errors that pass with the load of the server. */
const BUSY = /overload|rate[ _-]?limit|too many requests|(?:try|retry) again later|at capacity|server is busy/i
/** Statuses that refuse the request in any form. */
const WRONG_PLACE: ReadonlySet<number> = new Set([401, 403, 404, 405, 407, 410])
/** Statuses after which the same may succeed. */
const LATER: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504, 529])

/** The meaning of an error counts, not its status alone: servers give 429 for a used quota, and 500 for a question that is too long. */
function isPassing(kind: LlmFaultKind, refusal: ServerRefusal | null): boolean {
  if (kind === 'unreachable' || kind === 'dropped') return true
  if (refusal === null || LASTING.test(refusal.errorText)) return false
  return refusal.status === null || LATER.has(refusal.status) || (!WRONG_PLACE.has(refusal.status) && BUSY.test(refusal.errorText))
}

/** An error that a server gave within an answer. */
export function failedWithin(error: unknown): LlmFault {
  const words = shown(messageIn(error) ?? '', MAX_WORDS)
  const errorText = (JSON.stringify(error) ?? '').slice(0, MAX_ERROR_TEXT)
  return new LlmFault('failed', `failed${words === '' ? ' without a reason' : `: ${words}`}`, { status: null, retryAfter: null, errorText })
}

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
  return {
    ok: false,
    code: code === 'LLM_INIT_FAILED' && isBegun ? 'TASK_FAILED' : code,
    message: `the LLM provider ${provider} ${faultText(fault)}`,
    ...(code === 'TIMEOUT' || code === 'PAYLOAD_TOO_LARGE' ? {} : { retryable: fault.isPassing && !hasActed }),
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
