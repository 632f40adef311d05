import { asNodeError } from '../../../kit/errors.js'
import { failureIn, JUSTIFICATION_PLACE } from '../../../domain/gateway/content.js'
import type { Part } from '../../../domain/gateway/message.js'
import type { GatewayTask } from '../../../domain/gateway/task.js'
import { writtenJson } from '../../../kit/json.js'
import { A2AFault } from '../server/fault.js'
import { type Violation, violationText } from '../server/guardrails.js'

/** Public kinds of failure with their HTTP status. */
const STATUS = {
  agent_not_found: 404,
  guardrail_violation: 400,
  llm_init_failed: 500,
  internal_error: 500,
  invalid_request: 400,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  task_rejected: 422,
  payload_too_large: 413,
  unsupported_media_type: 415,
  rate_limited: 429,
  unavailable: 503,
  timeout: 504
} as const

/** One of the kinds. */
export type FacadeFaultKind = keyof typeof STATUS

/** Kinds of the facade by error code of the node; all other codes are `internal_error`. */
const OF_NODE: Readonly<Record<string, FacadeFaultKind>> = {
  AGENT_NOT_FOUND: 'agent_not_found',
  LLM_INIT_FAILED: 'llm_init_failed',
  AMBIGUOUS_NAME: 'invalid_request',
  CAPABILITY_NOT_FOUND: 'invalid_request',
  INVALID_INPUT: 'invalid_request',
  USAGE: 'invalid_request',
  PAYLOAD_TOO_LARGE: 'payload_too_large',
  CONFLICT: 'conflict',
  CANCELED: 'conflict',
  FORBIDDEN: 'forbidden',
  TIER_VIOLATION: 'forbidden',
  ESCALATION_REQUIRED: 'forbidden',
  POLICY_DENIED: 'forbidden',
  APPROVAL_TIMEOUT: 'forbidden',
  SANDBOX_VIOLATION: 'forbidden',
  OVERLOADED: 'unavailable',
  PEER_OFFLINE: 'unavailable',
  DISK_FULL: 'unavailable',
  TIMEOUT: 'timeout'
}

const UNEXPECTED = 'Unexpected failure'
/** `Retry-After` of `unavailable`, in seconds. */
const RETRY_SECONDS = 5

interface FacadeFaultDetails {
  readonly code?: string
  readonly details?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly cause?: unknown
}

/** A failed request to the facade: `{"error", "message", "code"?, "details"?}`. */
export class FacadeFault extends Error {
  readonly kind: FacadeFaultKind
  /** Of the node's error, when one is the cause. */
  readonly code: string | undefined
  readonly details: unknown
  readonly headers: Readonly<Record<string, string>>

  constructor(kind: FacadeFaultKind, message: string, { code, details, headers, cause }: FacadeFaultDetails = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'FacadeFault'
    this.kind = kind
    this.code = code
    this.details = details
    this.headers = headers ?? (kind === 'unavailable' ? { 'retry-after': String(RETRY_SECONDS) } : {})
  }

  get status(): number {
    return STATUS[this.kind]
  }

  /** The body of its answer. Internal errors have a fixed message and no code. */
  toBody(): {
    readonly error: FacadeFaultKind
    readonly message: string
    readonly code?: string
    readonly details?: unknown
  } {
    const isInternal = this.kind === 'internal_error'
    const message = isInternal ? UNEXPECTED : this.message.replace(JUSTIFICATION_PLACE, 'in justification')
    const code = isInternal ? undefined : this.code
    return {
      error: this.kind,
      message,
      ...(code === undefined ? {} : { code }),
      ...(this.details === undefined ? {} : { details: this.details })
    }
  }
}

/** A malformed request. */
export function invalidRequest(message: string): FacadeFault {
  return new FacadeFault('invalid_request', message)
}

/** A content that breaks a guardrail. */
export function guardrailFault(broken: Violation): FacadeFault {
  return new FacadeFault('guardrail_violation', violationText(broken), { details: broken })
}

/** Converts a thrown value to a fault of the facade. */
export function facadeFaultOf(thrown: unknown): FacadeFault {
  if (thrown instanceof FacadeFault) return thrown
  if (thrown instanceof A2AFault) {
    const kind =
      thrown.status === 415 ? 'unsupported_media_type' : thrown.status === 400 ? 'invalid_request' : 'internal_error'
    return new FacadeFault(kind, thrown.message, { cause: thrown })
  }
  const { code, message } = asNodeError(thrown)
  return new FacadeFault(OF_NODE[code] ?? 'internal_error', message, { code, cause: thrown })
}

/** Faults by states that an agent gives its task; a failure stays internal. */
const OF_STATE: Readonly<Record<string, FacadeFaultKind>> = { rejected: 'task_rejected', canceled: 'conflict' }

/** The fault of a failed task. A message of the node has its code beside it; other messages are of the agent. */
export function taskFault({ state, message }: Pick<GatewayTask, 'state' | 'message'>): FacadeFault {
  const part: Part = message?.parts[0] ?? { text: state }
  const words = part.text ?? writtenJson(part.data)
  const details = part.metadata?.['guardrail']
  if (details !== undefined) return new FacadeFault('guardrail_violation', words, { details })
  const failure = failureIn(part)
  if (failure === null) return new FacadeFault(OF_STATE[state] ?? 'internal_error', words, { cause: words })
  const { code } = failure
  // Too large output of an agent is no fault of the request.
  const isKnown = Object.hasOwn(OF_NODE, code) && code !== 'PAYLOAD_TOO_LARGE'
  return new FacadeFault((isKnown ? OF_NODE[code] : undefined) ?? 'internal_error', failure.message, {
    code,
    cause: words
  })
}
