import { messageOf } from '../../../kit/errors.js'
import type { StructuredError } from './structured-error.js'
import type { ToolLog } from './tool.js'

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

/** Makes a record. Its result is parsed only when it is read. */
export function recordOf(
  base: Omit<InvocationRecord, 'result' | 'error'>,
  { error, json }: { readonly error: StructuredError | null; readonly json: string | null }
): InvocationRecord {
  const failed =
    error === null
      ? {}
      : { error: { code: error.code, message: error.message, ...(error.details === undefined ? {} : { details: error.details }) } }
  if (json === null) return { ...base, ...failed }
  return {
    ...base,
    ...failed,
    get result() {
      return JSON.parse(json) as unknown
    }
  }
}

/** A call in the form that the node counts (A2AObservability); null for a refused request and for a second record of a call. */
export function invocationEvent({ tool, durationMs, outcome, at }: InvocationRecord): {
  readonly type: 'tool-invocation'
  readonly toolName: string
  readonly duration: number
  readonly success: boolean
  readonly timestamp: number
} | null {
  if (outcome === 'late_completed' || outcome === 'protocol_error') return null
  return { type: 'tool-invocation', toolName: tool, duration: durationMs, success: outcome === 'success', timestamp: at }
}

/** Passes a record to its consumer, whose failure must not stop an answer. */
export function tellRecord(
  { onCompleted, log }: { readonly onCompleted?: ((record: InvocationRecord) => void) | undefined; readonly log: ToolLog },
  record: InvocationRecord
): void {
  try {
    onCompleted?.(record)
  } catch (error) {
    log('error', 'a record of a tool call was not taken', { correlationId: record.correlationId, reason: messageOf(error) })
  }
}
