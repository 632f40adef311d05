import type { RestFault } from '../server/fault.js'
import { encodeProto } from './proto-writer.js'

/** Codes of gRPC by their names (google.rpc.Code). */
export const GRPC_CODES = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16
} as const

/** Most characters of the message of a status. */
const MAX_MESSAGE = 1024
/** Most bytes of the details: clients take 8 KiB of trailers. */
const MAX_DETAILS = 4096

/** The end of a call. */
export interface GrpcStatus {
  readonly code: number
  readonly message: string
  /** google.rpc.Status in base64; '' for none. */
  readonly details: string
}

/** The end of a call that succeeded. */
export const GRPC_OK: GrpcStatus = { code: GRPC_CODES.OK, message: '', details: '' }

/** A status without details. */
export function plainStatus(name: keyof typeof GRPC_CODES, message: string): GrpcStatus {
  return { code: GRPC_CODES[name], message, details: '' }
}

/** The status of a failed request, with the details of its REST answer (A2A 1.0, sections 5.4 and 10.6). */
export function grpcStatus({ error: { status, message: text, details } }: RestFault): GrpcStatus {
  const code = GRPC_CODES[status as keyof typeof GRPC_CODES] ?? GRPC_CODES.UNKNOWN
  const message = text.slice(0, MAX_MESSAGE)
  const whole = encodeProto('Status', { code, message, details })
  // The first of the details is the reason; the faults of single members are in the message, too.
  const bytes =
    whole.length <= MAX_DETAILS ? whole : encodeProto('Status', { code, message, details: details.slice(0, 1) })
  return { code, message, details: bytes.toString('base64') }
}

/** The headers of a status: `grpc-message` is percent-encoded, `grpc-status-details-bin` is base64. */
export function statusHeaders({ code, message, details }: GrpcStatus): Record<string, string | number> {
  // Half a surrogate pair has no percent-encoding.
  const text = encodeURI(Buffer.from(message).toString())
  return {
    'grpc-status': code,
    ...(text === '' ? {} : { 'grpc-message': text }),
    ...(details === '' ? {} : { 'grpc-status-details-bin': details })
  }
}
