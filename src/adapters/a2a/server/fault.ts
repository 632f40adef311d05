import { isRecord } from '../../../kit/json.js'
import { asNodeError, type ErrorCode, type NodeError } from '../../../kit/errors.js'

/** Numbers of a failure in the published protocol, by wire. */
interface Number {
  readonly rpc: number
  readonly http: number
  /** Name of the HTTP status in the JSON of REST answers. */
  readonly status: string
  /** Its reason in error details; default: the name of the kind. */
  readonly reason?: string
}

const PRECONDITION = { http: 400, status: 'FAILED_PRECONDITION' } as const
const ARGUMENT = { http: 400, status: 'INVALID_ARGUMENT' } as const

/** Kinds of failure, named by the published reasons of the protocol or by JSON-RPC. */
const KINDS = {
  PARSE_ERROR: { rpc: -32_700, ...ARGUMENT },
  INVALID_REQUEST: { rpc: -32_600, ...ARGUMENT },
  METHOD_NOT_FOUND: { rpc: -32_601, http: 404, status: 'NOT_FOUND' },
  INVALID_PARAMS: { rpc: -32_602, ...ARGUMENT },
  INTERNAL: { rpc: -32_603, http: 500, status: 'INTERNAL' },
  TASK_NOT_FOUND: { rpc: -32_001, http: 404, status: 'NOT_FOUND' },
  TASK_NOT_CANCELABLE: { rpc: -32_002, ...PRECONDITION },
  PUSH_NOTIFICATION_NOT_SUPPORTED: { rpc: -32_003, ...PRECONDITION },
  UNSUPPORTED_OPERATION: { rpc: -32_004, ...PRECONDITION },
  CONTENT_TYPE_NOT_SUPPORTED: { rpc: -32_005, ...ARGUMENT },
  /** Wrong media type of the body; HTTP has a status for it. */
  MEDIA_TYPE: { rpc: -32_005, http: 415, status: 'INVALID_ARGUMENT', reason: 'CONTENT_TYPE_NOT_SUPPORTED' },
  INVALID_AGENT_RESPONSE: { rpc: -32_006, http: 500, status: 'INTERNAL' },
  EXTENSION_SUPPORT_REQUIRED: { rpc: -32_008, ...PRECONDITION },
  VERSION_NOT_SUPPORTED: { rpc: -32_009, ...PRECONDITION },
  FORBIDDEN: { rpc: -32_603, http: 403, status: 'PERMISSION_DENIED' },
  OVERLOADED: { rpc: -32_603, http: 429, status: 'RESOURCE_EXHAUSTED' },
  UNAVAILABLE: { rpc: -32_603, http: 503, status: 'UNAVAILABLE' }
} as const satisfies Readonly<Record<string, Number>>

/** One of the kinds of failure. */
export type FaultKind = keyof typeof KINDS

/** Kinds by error code of the node; all other codes are INTERNAL. */
const OF_NODE: Readonly<Partial<Record<ErrorCode, FaultKind>>> = {
  TASK_NOT_FOUND: 'TASK_NOT_FOUND',
  AGENT_NOT_FOUND: 'INVALID_PARAMS',
  CAPABILITY_NOT_FOUND: 'INVALID_PARAMS',
  AMBIGUOUS_NAME: 'INVALID_PARAMS',
  INVALID_INPUT: 'INVALID_PARAMS',
  USAGE: 'INVALID_PARAMS',
  PAYLOAD_TOO_LARGE: 'INVALID_PARAMS',
  CONFLICT: 'UNSUPPORTED_OPERATION',
  FORBIDDEN: 'FORBIDDEN',
  TIER_VIOLATION: 'FORBIDDEN',
  ESCALATION_REQUIRED: 'FORBIDDEN',
  POLICY_DENIED: 'FORBIDDEN',
  INVALID_OUTPUT: 'INVALID_AGENT_RESPONSE',
  SANDBOX_VIOLATION: 'FORBIDDEN',
  OVERLOADED: 'OVERLOADED',
  /** A client still waits: the node stops, or its operator canceled the task. */
  CANCELED: 'UNAVAILABLE',
  PEER_OFFLINE: 'UNAVAILABLE',
  DISK_FULL: 'UNAVAILABLE'
}

/** Names of failures in the gateway's specification, for which the published protocol has other numbers. */
const SPEC_NAMES: Readonly<Partial<Record<ErrorCode | FaultKind, string>>> = {
  TASK_NOT_FOUND: 'TASK_NOT_FOUND',
  CAPABILITY_NOT_FOUND: 'SKILL_NOT_FOUND',
  AGENT_NOT_FOUND: 'SKILL_NOT_FOUND',
  FORBIDDEN: 'INSUFFICIENT_PERMISSIONS',
  OVERLOADED: 'RATE_LIMIT_EXCEEDED',
  INVALID_PARAMS: 'INVALID_MESSAGE'
}

/** Reason of a node for a message whose id another message had. */
const MESSAGE_ID_REUSED = 'MESSAGE_ID_REUSED'

const INFO_TYPE = 'type.googleapis.com/google.rpc.ErrorInfo'
const BAD_REQUEST_TYPE = 'type.googleapis.com/google.rpc.BadRequest'
const DOMAIN = 'a2a-protocol.org'
const TITLES = { INTERNAL: 'the node failed at this request' } as const

/** A fault of one member of a request. */
export interface FieldViolation {
  /** Path of the member, e.g. `message.parts[0].text`. */
  readonly field: string
  readonly description: string
}

/** Details of a failure beside its kind and message. */
export interface FaultDetails {
  readonly metadata?: Readonly<Record<string, string>>
  readonly violations?: readonly FieldViolation[]
}

/** The body of a REST answer to a failed request (A2A 1.0, section 11.6). */
export interface RestFault {
  readonly error: {
    /** HTTP status. */
    readonly code: number
    /** Name of a code of google.rpc. */
    readonly status: string
    readonly message: string
    readonly details: readonly object[]
  }
}

/** A failed request in terms of the protocol. */
export class A2AFault extends Error {
  readonly kind: FaultKind
  readonly #details: FaultDetails

  constructor(kind: FaultKind, message: string, details: FaultDetails = {}) {
    super(message)
    this.name = 'A2AFault'
    this.kind = kind
    this.#details = details
  }

  /** HTTP status of REST answers. */
  get status(): number {
    return KINDS[this.kind].http
  }

  /** The `error` of a JSON-RPC answer in 1.0. */
  toRpc(): { readonly code: number; readonly message: string; readonly data: readonly object[] } {
    return { code: KINDS[this.kind].rpc, message: this.message, data: this.#any() }
  }

  /** The same in 0.3, whose clients may read `data` as an object only: the ErrorInfo, with `details` of other types. */
  toOldRpc(): { readonly code: number; readonly message: string; readonly data: object } {
    const { data, ...error } = this.toRpc()
    const [info, ...details] = data
    return { ...error, data: details.length === 0 ? { ...info } : { ...info, details } }
  }

  /** The body of a REST answer. */
  toRest(): RestFault {
    const { http: code, status } = KINDS[this.kind]
    return { error: { code, status, message: this.message, details: this.#any() } }
  }

  #any(): readonly object[] {
    const { metadata = {}, violations = [] } = this.#details
    const { reason = this.kind }: Number = KINDS[this.kind]
    const info = errorInfo(reason, metadata)
    return violations.length === 0 ? [info] : [info, { '@type': BAD_REQUEST_TYPE, fieldViolations: violations }]
  }
}

/**
 * The fault of too many requests; they may go on after `retryAfter` seconds. The number is from the gateway's
 * specification; the published protocol has none.
 */
export function rateLimited(message: string, retryAfter: string): A2AFault {
  const metadata = { code: 'RATE_LIMITED', name: 'RATE_LIMIT_EXCEEDED', number: '-32030', retryAfter }
  return new A2AFault('OVERLOADED', message, { metadata })
}

/** The ErrorInfo of all error details, with the kind of the failure. */
export function errorInfo(reason: string, metadata: Readonly<Record<string, string>> = {}): object {
  return { '@type': INFO_TYPE, reason, domain: DOMAIN, ...(Object.keys(metadata).length > 0 ? { metadata } : {}) }
}

/** Converts a thrown value to a fault of the protocol. Messages of INTERNAL errors are hidden. */
export function faultOf(
  thrown: unknown,
  { skill, isCancel = false }: { readonly skill?: string | null; readonly isCancel?: boolean } = {}
): A2AFault {
  if (thrown instanceof A2AFault) return thrown
  const error = asNodeError(thrown)
  const kind = kindOf(error, isCancel)
  if (kind === undefined)
    return new A2AFault('INTERNAL', isMeant(error) ? error.message : TITLES.INTERNAL, { metadata: metadataOf(error) })
  const isNobody =
    skill !== undefined && skill !== null && (error.code === 'CAPABILITY_NOT_FOUND' || error.code === 'PEER_OFFLINE')
  return new A2AFault(kind, isNobody ? `No agents available for skill: ${skill}` : error.message, {
    metadata: metadataOf(error)
  })
}

function kindOf({ code, data }: NodeError, isCancel: boolean): FaultKind | undefined {
  if (isCancel && code === 'CONFLICT') return 'TASK_NOT_CANCELABLE'
  return code === 'INVALID_INPUT' && isRecord(data) && data['reason'] === 'CONTENT_TYPE'
    ? 'CONTENT_TYPE_NOT_SUPPORTED'
    : OF_NODE[code]
}

/** Is the message meant for callers? Messages of INTERNAL errors are not. */
function isMeant({ code }: NodeError): boolean {
  return code !== 'INTERNAL'
}

function metadataOf({ code, data }: NodeError): Record<string, string> {
  const isContext = isRecord(data) && data['reason'] === 'CONTEXT'
  const name = isContext ? 'CONTEXT_NOT_FOUND' : (SPEC_NAMES[code] ?? SPEC_NAMES[OF_NODE[code] ?? 'INTERNAL'])
  const reason = isRecord(data) && data['reason'] === MESSAGE_ID_REUSED ? { reason: MESSAGE_ID_REUSED } : {}
  return { code, ...(name === undefined ? {} : { name }), ...reason }
}
