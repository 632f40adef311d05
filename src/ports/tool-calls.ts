/**
 * How a call ended (spec mcp-runtime, ToolCompletionOutcome). `timeout` is the answer at the deadline; when the handler ends after
 * that, `late_completed` follows. `aborted` and `disconnected_completed`: the client had cancelled or gone, and the handler threw,
 * or ended all the same. `protocol_error`: the request was refused as such, no tool was called.
 */
export type ToolOutcome = 'success' | 'tool_error' | 'timeout' | 'late_completed' | 'aborted' | 'disconnected_completed' | 'protocol_error'

/** Record of an ended call. Plain JSON, the same after `JSON.stringify` and parsing. */
export interface InvocationRecord {
  /** Canonical; as the client wrote it when there is no such tool. */
  readonly tool: string
  /** True when there is no such tool. */
  readonly isUnknown?: boolean
  readonly arguments: unknown
  /** Of a call whose handler returned. */
  readonly result?: unknown
  readonly error?: { readonly code: string; readonly message: string; readonly details?: unknown }
  readonly durationMs: number
  readonly outcome: ToolOutcome
  /** Absent for `protocol_error`: there was no run. */
  readonly runId?: string
  readonly correlationId: string
  /** Unix milliseconds. */
  readonly at: number
}

/** A stored record. Of a call beyond the limits, `omitted` names the members that were not stored. */
export interface StoredInvocation extends Omit<InvocationRecord, 'arguments'> {
  readonly arguments?: unknown
  readonly omitted?: readonly ('arguments' | 'result' | 'error')[]
}

/** Parameters of `tools.calls`. A record must match all of them. */
export interface ToolCallQuery {
  /** Canonical name of a tool. */
  readonly tool?: string
  /** Only calls that gave no result. */
  readonly failed?: boolean
  /** Unix milliseconds of the earliest end. */
  readonly since?: number
  /** The most recent records of these. */
  readonly limit?: number
}

/** Calls about the records of MCP tool calls. */
export interface ToolCallCalls {
  /** Stored records of ended tool calls, oldest first. */
  'tools.calls': { params: ToolCallQuery; result: { readonly calls: readonly StoredInvocation[] } }
}
