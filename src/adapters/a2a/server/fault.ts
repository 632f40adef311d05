import { isRecord } from '../../../kit/json.js'
import { asNodeError, type ErrorCode, type NodeError } from '../../../kit/errors.js'

/** How the published protocol numbers what fails, on each wire. */
interface Number {
  readonly rpc: number
  readonly http: number
  /** Name of the HTTP status in the JSON of REST answers. */
  readonly status: string
  /** Its reason in error details, where that is not its name. */
  readonly reason?: string
}

const PRECONDITION = { http: 400, status: 'FAILED_PRECONDITION' } as const
const ARGUMENT = { http: 400, status: 'INVALID_ARGUMENT' } as const

/** Kinds of failure: those of the protocol by their published reasons, the others by JSON-RPC. */
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
  /** The body itself is of a wrong type, which HTTP has a status for. */
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

/** What the node calls a failure, and what the protocol does; anything else is INTERNAL. */
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
  /** Of what its client still waits for: the node stops, or its operator stopped it. */
  CANCELED: 'UNAVAILABLE',
  PEER_OFFLINE: 'UNAVAILABLE',
  DISK_FULL: 'UNAVAILABLE'
}

/** Names that the gateway's specification has for failures, as far as the published protocol has another number for them. */
const SPEC_NAMES: Readonly<Partial<Record<ErrorCode | FaultKind, string>>> = {
  TASK_NOT_FOUND: 'TASK_NOT_FOUND',
  CAPABILITY_NOT_FOUND: 'SKILL_NOT_FOUND',
  AGENT_NOT_FOUND: 'SKILL_NOT_FOUND',
  FORBIDDEN: 'INSUFFICIENT_PERMISSIONS',
  OVERLOADED: 'RATE_LIMIT_EXCEEDED',
  INVALID_PARAMS: 'INVALID_MESSAGE'
}

const INFO_TYPE = 'type.googleapis.com/google.rpc.ErrorInfo'
const BAD_REQUEST_TYPE = 'type.googleapis.com/google.rpc.BadRequest'
const DOMAIN = 'a2a-protocol.org'
const TITLES = { INTERNAL: 'the node failed at this request' } as const

/** What is wrong with one member of a request. */
export interface FieldViolation {
  /** `message.parts[0].text`. */
  readonly field: string
  readonly description: string
}

/** What is told of a failure beside its kind and message. */
export interface FaultDetails {
  readonly metadata?: Readonly<Record<string, string>>
  readonly violations?: readonly FieldViolation[]
}

/** A request that fails, in the words of the protocol. */
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

  /** The `error` of a JSON-RPC answer. */
  toRpc(): { readonly code: number; readonly message: string; readonly data: readonly object[] } {
    return { code: KINDS[this.kind].rpc, message: this.message, data: this.#any() }
  }

  /** The body of a REST answer. */
  toRest(): { readonly error: object } {
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

/** What tells the kind of a failure in all error details. */
export function errorInfo(reason: string, metadata: Readonly<Record<string, string>> = {}): object {
  return { '@type': INFO_TYPE, reason, domain: DOMAIN, ...(Object.keys(metadata).length > 0 ? { metadata } : {}) }
}

/** What was thrown as a failure of the protocol. Nothing of what the node did not mean to say gets out. */
export function faultOf(
  thrown: unknown,
  { skill, isCancel = false }: { readonly skill?: string | null; readonly isCancel?: boolean } = {}
): A2AFault {
  if (thrown instanceof A2AFault) return thrown
  const error = asNodeError(thrown)
  const kind = kindOf(error, isCancel)
  if (kind === undefined) return new A2AFault('INTERNAL', isMeant(error) ? error.message : TITLES.INTERNAL, { metadata: metadataOf(error) })
  const isNobody = skill !== undefined && skill !== null && (error.code === 'CAPABILITY_NOT_FOUND' || error.code === 'PEER_OFFLINE')
  return new A2AFault(kind, isNobody ? `No agents available for skill: ${skill}` : error.message, { metadata: metadataOf(error) })
}

function kindOf({ code, data }: NodeError, isCancel: boolean): FaultKind | undefined {
  if (isCancel && code === 'CONFLICT') return 'TASK_NOT_CANCELABLE'
  return code === 'INVALID_INPUT' && isRecord(data) && data['reason'] === 'CONTENT_TYPE' ? 'CONTENT_TYPE_NOT_SUPPORTED' : OF_NODE[code]
}

/** Errors of agents and of the mesh say what their caller is to know; INTERNAL ones do not. */
function isMeant({ code }: NodeError): boolean {
  return code !== 'INTERNAL'
}

function metadataOf({ code }: NodeError): Record<string, string> {
  const name = SPEC_NAMES[code] ?? SPEC_NAMES[OF_NODE[code] ?? 'INTERNAL']
  return { code, ...(name === undefined ? {} : { name }) }
}
