/**
 * How a call ended (spec mcp-runtime, ToolCompletionOutcome). `timeout` is the answer at the deadline; when the handler
 * ends after that, `late_completed` follows. `aborted` and `disconnected_completed`: the client had cancelled or gone,
 * and the handler threw, or ended all the same. `protocol_error`: the request was refused as such, no tool was called.
 */
export type ToolOutcome =
  | 'success'
  | 'tool_error'
  | 'timeout'
  | 'late_completed'
  | 'aborted'
  | 'disconnected_completed'
  | 'protocol_error'

/** Record of an ended call. Plain JSON, the same after `JSON.stringify` and parsing. */
export interface InvocationRecord {
  /** Canonical; when there is no such tool, as the client wrote it, safe to show and at most 256 characters. */
  readonly tool: string
  /** The name under which MCP clients see the tool; absent when it is the canonical one. */
  readonly published?: string
  /** True when there is no such tool. */
  readonly isUnknown?: boolean
  /** Absent when omitted. */
  readonly arguments?: unknown
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
  /** Members that were too large to be read or stored; `details`: of the error, whose message may be cut. */
  readonly omitted?: readonly ('arguments' | 'result' | 'details')[]
}

/** Parameters of `tools.calls`. A record must match all of them. */
export interface ToolCallQuery {
  /** Canonical name of a tool, or its name for MCP clients. */
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
  'tools.calls': { params: ToolCallQuery; result: { readonly calls: readonly InvocationRecord[] } }
}
