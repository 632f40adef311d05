import { isRecord, parseJson } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import type { AgentOutcome, FailureCode } from '../../../ports/agent-runtime.js'

/**
 * How a server failed: not reached, an answer that says no, an error within an answer, silence, an answer cut off, too
 * much of it, or one that makes no sense.
 */
export type LlmFaultKind = 'unreachable' | 'refused' | 'failed' | 'stalled' | 'dropped' | 'too-large' | 'unreadable'

/** A refusal of a server. */
export interface ServerRefusal {
  /** Of HTTP, or the one that an error within an answer gives; null: it gives none. */
  readonly status: number | null
  /** Seconds that it asked to wait; null: it did not. */
  readonly retryAfter: number | null
  /** The whole error, as text. */
  readonly errorText: string
}

/** Characters of a server's own words that are passed on. */
const MAX_WORDS = 300
/** Characters of the beginning of a secret that are hidden where words end. */
const MIN_PART = 4
/** Characters of an error within an answer that decide about its meaning. */
const MAX_ERROR_TEXT = 65_536

/**
 * `key`: the server refuses the key of this node. `lasting`: the same question fails again. `passing`: it may succeed
 * later.
 */
type Meaning = 'key' | 'lasting' | 'passing'

/** Why a question to a model has no answer. */
export class LlmFault extends Error {
  readonly kind: LlmFaultKind
  /** See {@link ServerRefusal}; null for other kinds. */
  readonly status: number | null
  /** Seconds that the server asked to wait. */
  readonly retryAfter: number | null
  readonly meaning: Meaning
  /** May its words name a key of this node? */
  readonly isAboutKey: boolean
  /** The server's words, without anything that may be a key; empty: it gave none. */
  readonly publicWords: string
  readonly #refusal: ServerRefusal | null

  /** `message`: the fault, after "the LLM provider x ..."; it is written to the log of the node. */
  constructor(kind: LlmFaultKind, message: string, refusal: ServerRefusal | null = null) {
    super(message)
    this.name = 'LlmFault'
    this.kind = kind
    this.#refusal = refusal
    this.status = refusal?.status ?? null
    this.retryAfter = refusal?.retryAfter ?? null
    this.meaning = meaningOf(kind, refusal)
    this.isAboutKey = refusal !== null && (this.meaning === 'key' || ABOUT_KEY.test(refusal.errorText))
    const words = refusal === null ? '' : wordsOf(refusal.errorText)
    this.publicWords = this.isAboutKey ? withoutKeys(words) : words
  }

  /** The same fault with `***` in the place of secrets that the server repeats. */
  withoutSecrets(secrets: readonly string[]): LlmFault {
    const hide = (text: string): string => secrets.reduce(withoutSecret, text)
    const refusal = this.#refusal
    const hidden = refusal === null ? null : { ...refusal, errorText: hide(refusal.errorText) }
    return new LlmFault(this.kind, hide(this.message), hidden)
  }
}

function withoutSecret(text: string, secret: string): string {
  const whole = text.replaceAll(secret, '***')
  // Words that were cut may end within it.
  for (let length = secret.length - 1; length >= MIN_PART; length--) {
    const part = `${secret.slice(0, length)}…`
    if (whole.endsWith(part)) return `${whole.slice(0, -part.length)}***`
  }
  return whole
}

/** A word of a sentence, which no key looks like. */
const PLAIN_WORD = /^(?:[A-Z]{1,5}|[A-Za-z][a-z'’]{0,19})[.,;:]?$/
/** Texts of errors about the key of this node. */
const ABOUT_KEY = /api[ _-]?key\b|authenticat|unauthori[sz]ed|permission[ _-]?(?:denied|error)/i
/** Texts of errors that the same question gets again: its length, or a used account. */
const LASTING =
  /insufficient[ _-](?:quota|funds|balance|credit)|quota (?:is |has been )?(?:exhausted|used up)|spend(?:ing)?[ _-](?:limit|cap)|billing[ _-](?:hard[ _-])?limit|monthly[ _-](?:\w{1,24}[ _-])?(?:limit|quota|budget)|budget (?:has been |is )?exceeded|credit balance|balance (?:is )?too low|out of credits?|exceeded your current quota|quota[ _-]exceeded|payment required|billing details|context[ _-]?(?:length|size|window)|exceed_context|maximum context|(?:prompt|input|request) (?:is )?too (?:long|large)|too many (?:input )?tokens/i
/** Texts of errors that pass with the load of the server. */
const BUSY = /overload|rate[ _-]?limit|too many requests|(?:try|retry) again later|at capacity|server is busy/i
/** Statuses that refuse the request in any form. */
const WRONG_PLACE: ReadonlySet<number> = new Set([401, 403, 404, 405, 407, 410])
/** Statuses after which the same may succeed. */
const LATER: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504, 529])

/**
 * The text of an error goes before its status: servers give 429 for a used quota, and 500 for a question that is too
 * long.
 */
function meaningOf(kind: LlmFaultKind, refusal: ServerRefusal | null): Meaning {
  if (kind === 'unreachable' || kind === 'dropped') return 'passing'
  if (refusal === null) return 'lasting'
  const { status, errorText } = refusal
  // A refusal without a reason is mostly about the key.
  if (status === 401 || (status === 403 && wordsOf(errorText) === '')) return 'key'
  // Many servers count requests by key, and say so when there are too many.
  if (ABOUT_KEY.test(errorText) && !BUSY.test(errorText)) return 'key'
  if (LASTING.test(errorText)) return 'lasting'
  if (status === null || LATER.has(status)) return 'passing'
  return !WRONG_PLACE.has(status) && BUSY.test(errorText) ? 'passing' : 'lasting'
}

/** An error that a server gave within an answer: bounded JSON. */
export function failedWithin(error: unknown): LlmFault {
  const words = shown(messageIn(error) ?? '', MAX_WORDS)
  const errorText = (JSON.stringify(error) ?? '').slice(0, MAX_ERROR_TEXT)
  const message = `failed${words === '' ? ' without a reason' : `: ${words}`}`
  return new LlmFault('failed', message, { status: statusIn(error), retryAfter: null, errorText })
}

function statusIn(error: unknown): number | null {
  if (!isRecord(error)) return null
  const status = [error['status'], error['code']].find(
    (one) => Number.isInteger(one) && Number(one) >= 400 && Number(one) < 600
  )
  return status === undefined ? null : Number(status)
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
 * The outcome of a run that a fault ends: LLM_INIT_FAILED while the provider cannot be used at all, TIMEOUT of a
 * stalled one, PAYLOAD_TOO_LARGE, else TASK_FAILED. It tells callers neither addresses nor a server's words about keys.
 */
export function faultOutcome(fault: LlmFault, { provider, isBegun, hasActed }: FaultPlace): AgentOutcome {
  const code = codeOf(fault)
  return {
    ok: false,
    code: code === 'LLM_INIT_FAILED' && isBegun ? 'TASK_FAILED' : code,
    message: `the LLM provider ${provider} ${faultText(fault)}`,
    ...(code === 'TIMEOUT' || code === 'PAYLOAD_TOO_LARGE'
      ? {}
      : { retryable: fault.meaning === 'passing' && !hasActed }),
    ...(fault.retryAfter === null ? {} : { data: { retryAfter: fault.retryAfter } })
  }
}

function codeOf({ kind, status, meaning, message }: LlmFault): FailureCode {
  if (kind === 'stalled') return 'TIMEOUT'
  if (kind === 'too-large') return 'PAYLOAD_TOO_LARGE'
  if (kind === 'unreachable' || meaning === 'key') return 'LLM_INIT_FAILED'
  if (status === null) return 'TASK_FAILED'
  const isUnknownModel =
    status >= 400 && status < 500 && /\bmodel\b/i.test(message) && /not (?:found|exist)|unknown/i.test(message)
  // 503: llama.cpp is loading its model.
  return WRONG_PLACE.has(status) || status < 400 || status === 503 || isUnknownModel ? 'LLM_INIT_FAILED' : 'TASK_FAILED'
}

function faultText({ status, meaning, isAboutKey, publicWords, message }: LlmFault): string {
  if (!isAboutKey) return message
  const http = status === null ? '' : ` (HTTP ${status})`
  const words = publicWords === '' ? '' : `: ${publicWords}`
  if (meaning === 'key') return `refuses this node${http}${words}${words === '' ? ':' : ';'} see its key in the config`
  const takes = meaning === 'passing' ? 'takes no request of this node now' : 'takes no such request of this node'
  return `${takes}${http}${words}`
}

/** The beginning of a text about a key, up to its first colon, or the first word that may be a part of a key. */
function withoutKeys(text: string): string {
  const words = text.split(' ')
  const odd = words.findIndex((word) => !PLAIN_WORD.test(word))
  const plain = words.slice(0, odd === -1 ? words.length : odd).join(' ')
  return plain.split(':', 1)[0]?.replace(/[.,;]$/, '') ?? ''
}

/** The message in an error body, as {@link messageIn} finds it. For a body that is no JSON, its beginning. */
export function wordsOf(body: string): string {
  const parsed = parseJson(body)
  return shown(parsed.ok ? (messageIn(parsed.value) ?? '') : body, MAX_WORDS)
}

/** Members with the message of an error, the best first: of llama.cpp, Ollama, vLLM, OAuth, FastAPI and GraphQL. */
const MESSAGES = ['message', 'error_description', 'error', 'errors', 'detail', 'msg'] as const

/**
 * The message in a server's error, or in the first of a list that has one; null when there is none. A gateway such as
 * OpenRouter adds the error of the server behind it as `metadata.raw`.
 */
export function messageIn(value: unknown): string | null {
  const message = ownMessageIn(value)
  const metadata = isRecord(value) ? value['metadata'] : null
  const raw = isRecord(metadata) ? metadata['raw'] : null
  const behind = typeof raw === 'string' ? wordsOf(raw) : (ownMessageIn(raw) ?? '')
  return behind === '' ? message : message === null ? behind : `${message}: ${behind}`
}

function ownMessageIn(value: unknown): string | null {
  if (typeof value === 'string') return value.trim() === '' ? null : value
  const members = Array.isArray(value) ? value : isRecord(value) ? MESSAGES.map((name) => value[name]) : []
  for (const member of members) {
    const message = messageIn(member)
    if (message !== null) return message
  }
  return null
}
