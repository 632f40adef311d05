/** One row of the table: may the same call succeed later, and the next steps. */
interface CodeRow {
  readonly retryable: boolean
  /** Commands that help, as people would type them; at least one. */
  readonly next: readonly [string, ...string[]]
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
  DOCUMENT_NOT_FOUND: { retryable: true, next: ['a2a-node doc ls'] },
  TOOL_SERVER_NOT_FOUND: { retryable: false, next: ['a2a-node tools ls', 'a2a-node config path'] },
  APPROVAL_NOT_FOUND: { retryable: false, next: ['a2a-node approvals ls'] },
  CLIENT_NOT_FOUND: { retryable: false, next: ['a2a-node connect'] },
  INVITE_NOT_FOUND: { retryable: false, next: ['a2a-node invite ls'] },
  TOKEN_NOT_FOUND: { retryable: false, next: ['a2a-node a2a token ls'] },
  NOTIFICATION_NOT_FOUND: { retryable: false, next: ['a2a-node a2a push ls'] },
  AMBIGUOUS_NAME: { retryable: false, next: ['a2a-node agents', 'a2a-node peers --all'] },
  TIER_VIOLATION: { retryable: false, next: ['a2a-node agents'] },
  SANDBOX_VIOLATION: { retryable: false, next: ['a2a-node agents'] },
  ESCALATION_REQUIRED: {
    retryable: false,
    next: ["a2a-node call <agent> <capability> <json> --justification '<why>'"]
  },
  POLICY_DENIED: { retryable: false, next: ['a2a-node agents'] },
  APPROVAL_TIMEOUT: { retryable: true, next: ['a2a-node tasks'] },
  INVITE_USED: { retryable: false, next: ['a2a-node invite   # on a machine of an admin'] },
  INVITE_EXPIRED: { retryable: false, next: ['a2a-node invite   # on a machine of an admin'] },
  INVITE_REVOKED: { retryable: false, next: ['a2a-node invite   # on a machine of an admin'] },
  INVITE_INVALID: { retryable: false, next: ['a2a-node invite   # on a machine of an admin'] },
  REVOKED: { retryable: false, next: ['a2a-node start --home <new directory> --join -'] },
  NOT_ADMIN: { retryable: false, next: ['a2a-node id'] },
  TIMEOUT: { retryable: true, next: ['a2a-node tasks'] },
  PROPOSAL_TIMEOUT: { retryable: true, next: ['a2a-node tasks'] },
  NO_ADMIN_ONLINE: { retryable: true, next: ['a2a-node start --join -'] },
  NETWORK_OFFLINE: { retryable: true, next: ['a2a-node status'] },
  BOOTSTRAP_OFFLINE: { retryable: true, next: ['a2a-node status'] },
  WEBSOCKET_OFFLINE: { retryable: true, next: ['a2a-node status'] },
  BOOTSTRAP_MISSING: { retryable: true, next: ['a2a-node status'] },
  LAN_OFFLINE: { retryable: true, next: ['a2a-node status'] },
  UDP_BLOCKED: { retryable: true, next: ['a2a-node status'] },
  NAT_RANDOM: { retryable: true, next: ['a2a-node status'] },
  PUNCH_FAILED: { retryable: true, next: ['a2a-node status'] },
  PEER_OFFLINE: { retryable: true, next: ['a2a-node peers'] },
  DELIVERY_FAILED: { retryable: true, next: ['a2a-node peers'] },
  CHANNEL_CLOSED: { retryable: true, next: ['a2a-node peers'] },
  ALREADY_RUNNING: { retryable: false, next: ['a2a-node status', 'a2a-node stop'] },
  ALREADY_IN_MESH: { retryable: false, next: ['a2a-node start --home <new directory> --join -'] },
  STORE_LOCKED: { retryable: true, next: ['a2a-node status'] },
  PORT_IN_USE: { retryable: true, next: ['a2a-node config show'] },
  NO_PERMISSION: { retryable: false, next: ['a2a-node config path'] },
  DISK_FULL: { retryable: true, next: ['df -h', 'a2a-node config path'] },
  STORE_DAMAGED: {
    retryable: false,
    next: ['a2a-node doctor', 'a2a-node doctor --repair', 'a2a-node restore <backup> --home <new directory>']
  },
  CONFIG_INVALID: { retryable: false, next: ['a2a-node config check'] },
  PATH_TOO_LONG: { retryable: false, next: ['a2a-node start --home <shorter directory>'] },
  CONFLICT: { retryable: false, next: ['a2a-node status'] },
  FILE_EXISTS: { retryable: false, next: ['a2a-node agents check <file>'] },
  AGENT_FILE_INVALID: { retryable: false, next: ['a2a-node agents check <file>'] },
  USAGE: { retryable: false, next: ['a2a-node --help'] },
  INVALID_INPUT: { retryable: false, next: ['a2a-node agents show <agent>'] },
  INVALID_OUTPUT: { retryable: false, next: ['a2a-node agents check <file>'] },
  INVALID_CARD: { retryable: false, next: ['a2a-node agents check <file>'] },
  INVALID_ENVELOPE: { retryable: false, next: ['a2a-node peers'] },
  SCHEMA_VERSION_MISMATCH: { retryable: false, next: ['a2a-node peers show <peer>', 'a2a-node --version'] },
  PAYLOAD_TOO_LARGE: { retryable: false, next: ['a2a-node config show'] },
  CRDT_DESERIALIZATION_FAILED: { retryable: false, next: ['a2a-node doc show <document>'] },
  OVERLOADED: { retryable: true, next: ['a2a-node tasks'] },
  LLM_INIT_FAILED: {
    retryable: false,
    next: ['a2a-node config path   # on the machine of the agent', 'a2a-node agents show <agent>']
  },
  TASK_FAILED: { retryable: false, next: ['a2a-node tasks'] },
  CANCELED: { retryable: false, next: ['a2a-node tasks'] },
  FORBIDDEN: { retryable: false, next: ['a2a-node id'] },
  INTERNAL: { retryable: false, next: ['a2a-node status'] }
} as const satisfies Record<string, CodeRow>

/** A key of {@link ERROR_CODES}. */
export type ErrorCode = keyof typeof ERROR_CODES

/** The shape of an error on every wire (control API, envelopes, `--json`). */
export interface ErrorBody {
  readonly code: ErrorCode
  readonly message: string
  readonly retryable: boolean
  /** The agent itself said `retryable: false`; else `retryable` is the default of the code. */
  readonly isFinal?: true
  /** Next steps: commands to type. */
  readonly next: readonly string[]
  /** Typed details, e.g. the candidates of an ambiguous name. JSON. */
  readonly data?: unknown
}

/** Optional fields of an error. */
export interface NodeErrorDetails {
  readonly data?: unknown
  /** Instead of the commands of the table; an empty list leaves those. */
  readonly next?: readonly string[]
  /** Overrides the table: for work that must not be repeated. */
  readonly retryable?: boolean
  readonly cause?: unknown
}

/** The one error class: a code of {@link ERROR_CODES}, a message for people, and the next step. */
export class NodeError extends Error {
  readonly code: ErrorCode
  readonly data: unknown
  readonly next: readonly string[]
  /** May the same call succeed later? Default: from the table. */
  readonly retryable: boolean

  constructor(code: ErrorCode, message: string, details: NodeErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'NodeError'
    this.code = code
    this.data = details.data
    this.next = details.next !== undefined && details.next.length > 0 ? details.next : ERROR_CODES[code].next
    this.retryable = details.retryable ?? ERROR_CODES[code].retryable
  }

  /** The error as plain data for a wire. Never holds the cause or the stack. */
  toBody(): ErrorBody {
    const body = { code: this.code, message: this.message, retryable: this.retryable, next: this.next }
    return this.data === undefined ? body : { ...body, data: this.data }
  }

  /**
   * Rebuilds an error from a wire with its own `retryable`; an unknown code becomes INTERNAL with the values of its
   * table row.
   */
  static fromBody(body: Pick<ErrorBody, 'code' | 'message'> & Partial<ErrorBody>): NodeError {
    const code = isErrorCode(body.code) ? body.code : 'INTERNAL'
    return new NodeError(code, body.message, {
      ...(body.data === undefined ? {} : { data: body.data }),
      ...(body.next === undefined ? {} : { next: body.next }),
      ...(code === body.code && typeof body.retryable === 'boolean' ? { retryable: body.retryable } : {})
    })
  }
}

/**
 * A CONFLICT with a change that is under way: the same call succeeds once it is done. `next` as of {@link NodeError}.
 */
export function passingConflict(reason: string, next: readonly string[] = []): NodeError {
  return new NodeError('CONFLICT', `${reason}: try again`, { next, retryable: true })
}

/** Is it a key of {@link ERROR_CODES}? */
export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERROR_CODES, code)
}

/** Any thrown value as a NodeError; other values become INTERNAL with the value as cause. */
export function asNodeError(error: unknown): NodeError {
  if (error instanceof NodeError) return error
  return new NodeError('INTERNAL', messageOf(error), { cause: error })
}

/** The message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Commands that mend a store that a node found to be damaged while it runs. */
export const REPAIR_STEPS: readonly string[] = ['a2a-node stop', 'a2a-node doctor --repair']
/** The same as one line of a shell, for a problem, which has one next step. */
export const STOP_AND_REPAIR = REPAIR_STEPS.join(' && ')

/** Both remedies of a copied home, for a person whose other home of the node may still run. */
export const COPY_STEPS: readonly string[] = ['a2a-node doctor --new-identity', 'a2a-node doctor --repair']
/** Explains {@link COPY_STEPS} in an error or a problem. */
export const CHOICE_OF_COPY =
  'If another home of this node stays in use, doctor --new-identity makes this one a node of its own; doctor --repair makes it replace the other'
