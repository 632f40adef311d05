/** What the table says of one code: may the same call succeed later, and what to do about it. */
interface CodeRow {
  readonly retryable: boolean
  /** Commands or steps that help, as people would type them. */
  readonly next?: readonly string[]
}

/**
 * Every error code of the system. One table: exit codes (cli), HTTP status (control) and
 * wire codes are maps over these keys, kept in a file of their own room.
 */
export const ERROR_CODES = {
  NODE_NOT_RUNNING: { retryable: true, next: ['a2a-node start'] },
  PEER_NOT_FOUND: { retryable: false, next: ['a2a-node peers --all'] },
  AGENT_NOT_FOUND: { retryable: true, next: ['a2a-node agents'] },
  CAPABILITY_NOT_FOUND: { retryable: true, next: ['a2a-node agents'] },
  NO_CAPABLE_AGENT: { retryable: true, next: ['a2a-node agents'] },
  TASK_NOT_FOUND: { retryable: false, next: ['a2a-node tasks'] },
  SWARM_NOT_FOUND: { retryable: false, next: ['a2a-node swarm ls'] },
  INVITE_NOT_FOUND: { retryable: false, next: ['a2a-node invite ls'] },
  AMBIGUOUS_NAME: { retryable: false },
  TIER_VIOLATION: { retryable: false, next: ['a2a-node agents'] },
  SANDBOX_VIOLATION: { retryable: false, next: ['a2a-node agents'] },
  ESCALATION_REQUIRED: { retryable: false },
  POLICY_DENIED: { retryable: false },
  APPROVAL_TIMEOUT: { retryable: true },
  INVITE_USED: { retryable: false, next: ['a2a-node invite   (on an admin node: a fresh code)'] },
  INVITE_EXPIRED: { retryable: false, next: ['a2a-node invite   (on an admin node: a fresh code)'] },
  INVITE_REVOKED: { retryable: false, next: ['a2a-node invite   (on an admin node: a fresh code)'] },
  INVITE_INVALID: { retryable: false, next: ['a2a-node invite   (on an admin node: a fresh code)'] },
  REVOKED: { retryable: false, next: ['a2a-node start --home <new directory> --join <code>'] },
  NOT_ADMIN: { retryable: false, next: ['a2a-node id'] },
  TIMEOUT: { retryable: true, next: ['a2a-node tasks'] },
  PROPOSAL_TIMEOUT: { retryable: true, next: ['a2a-node tasks'] },
  NO_ADMIN_ONLINE: { retryable: true, next: ['a2a-node start   (on an admin node)'] },
  PEER_OFFLINE: { retryable: true, next: ['a2a-node peers'] },
  DELIVERY_FAILED: { retryable: true, next: ['a2a-node peers'] },
  CHANNEL_CLOSED: { retryable: true, next: ['a2a-node peers'] },
  ALREADY_RUNNING: { retryable: false, next: ['a2a-node status', 'a2a-node stop'] },
  ALREADY_IN_MESH: { retryable: false, next: ['a2a-node start --home <new directory> --join <code>'] },
  STORE_LOCKED: { retryable: true, next: ['a2a-node status'] },
  PORT_IN_USE: { retryable: true },
  NO_PERMISSION: { retryable: false },
  DISK_FULL: { retryable: true },
  STORE_DAMAGED: { retryable: false },
  CONFIG_INVALID: { retryable: false, next: ['a2a-node config check'] },
  PATH_TOO_LONG: { retryable: false, next: ['a2a-node start --home <shorter directory>'] },
  AGENT_FILE_INVALID: { retryable: false, next: ['a2a-node agents check <file>'] },
  USAGE: { retryable: false, next: ['a2a-node --help'] },
  INVALID_INPUT: { retryable: false, next: ['a2a-node agents show <agent>'] },
  INVALID_OUTPUT: { retryable: false },
  INVALID_CARD: { retryable: false },
  INVALID_ENVELOPE: { retryable: false },
  SCHEMA_VERSION_MISMATCH: { retryable: false },
  PAYLOAD_TOO_LARGE: { retryable: false },
  OVERLOADED: { retryable: true },
  TASK_FAILED: { retryable: false },
  CANCELED: { retryable: false },
  FORBIDDEN: { retryable: false },
  INTERNAL: { retryable: false }
} as const satisfies Record<string, CodeRow>

/** A key of {@link ERROR_CODES}. */
export type ErrorCode = keyof typeof ERROR_CODES

/** The shape of an error on every wire (control API, envelopes, `--json`). */
export interface ErrorBody {
  readonly code: ErrorCode
  readonly message: string
  readonly retryable: boolean
  /** What to do next: commands, ready to type. */
  readonly next: readonly string[]
  /** Typed details, e.g. the candidates of an ambiguous name. JSON. */
  readonly data?: unknown
}

/** What may be given beside code and message. */
export interface NodeErrorDetails {
  readonly data?: unknown
  readonly next?: readonly string[]
  readonly cause?: unknown
}

/** The one error class: a code of {@link ERROR_CODES}, a message for people, what to do next. */
export class NodeError extends Error {
  readonly code: ErrorCode
  readonly data: unknown
  readonly next: readonly string[]

  constructor(code: ErrorCode, message: string, details: NodeErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'NodeError'
    this.code = code
    this.data = details.data
    const row: CodeRow = ERROR_CODES[code]
    this.next = details.next ?? row.next ?? []
  }

  /** May the same call succeed later? From the table. */
  get retryable(): boolean {
    return ERROR_CODES[this.code].retryable
  }

  /** The error as plain data for a wire. Never holds the cause or the stack. */
  toBody(): ErrorBody {
    const body = { code: this.code, message: this.message, retryable: this.retryable, next: this.next }
    return this.data === undefined ? body : { ...body, data: this.data }
  }

  /** Rebuilds an error from a wire; unknown codes become INTERNAL. */
  static fromBody(body: Pick<ErrorBody, 'code' | 'message'> & Partial<ErrorBody>): NodeError {
    const code = isErrorCode(body.code) ? body.code : 'INTERNAL'
    return new NodeError(code, body.message, {
      ...(body.data === undefined ? {} : { data: body.data }),
      ...(body.next === undefined ? {} : { next: body.next })
    })
  }
}

/** Is it a key of {@link ERROR_CODES}? */
export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERROR_CODES, code)
}

/** Any thrown value as a NodeError; what is not one already becomes INTERNAL with it as cause. */
export function asNodeError(error: unknown): NodeError {
  if (error instanceof NodeError) return error
  return new NodeError('INTERNAL', messageOf(error), { cause: error })
}

/** The message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
