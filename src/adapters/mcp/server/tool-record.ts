import { messageOf } from '../../../kit/errors.js'
import type { InvocationRecord } from '../../../ports/tool-calls.js'
import type { StructuredError } from './structured-error.js'
import type { ToolLog } from './tool.js'

/** Makes a record. Its result is parsed only when it is read. */
export function recordOf(
  base: Omit<InvocationRecord, 'result' | 'error'>,
  { error, json }: { readonly error: StructuredError | null; readonly json: string | null }
): InvocationRecord {
  const failed =
    error === null
      ? {}
      : {
          error: {
            code: error.code,
            message: error.message,
            ...(error.details === undefined ? {} : { details: error.details })
          }
        }
  if (json === null) return { ...base, ...failed }
  return {
    ...base,
    ...failed,
    get result() {
      return JSON.parse(json) as unknown
    }
  }
}

/** A call in the form that the node counts (A2AObservability). */
export interface InvocationEvent {
  readonly type: 'tool-invocation'
  /** Absent for a tool that does not exist: its name is the client's own text. */
  readonly toolName?: string
  /** The name for MCP clients, where it is another. */
  readonly publishedName?: string
  readonly duration: number
  readonly success: boolean
  readonly code?: string
  readonly timestamp: number
}

/** The event of a call; null for a refused request and for a second record of a call. */
export function invocationEvent({
  tool,
  published,
  isUnknown,
  durationMs,
  outcome,
  error,
  at
}: InvocationRecord): InvocationEvent | null {
  if (outcome === 'late_completed' || outcome === 'protocol_error') return null
  return {
    type: 'tool-invocation',
    ...(isUnknown === true ? {} : { toolName: tool }),
    ...(published === undefined ? {} : { publishedName: published }),
    duration: durationMs,
    success: outcome === 'success',
    ...(error === undefined ? {} : { code: error.code }),
    timestamp: at
  }
}

/** Called with each record, and the length of its result as JSON: the result is parsed only when it is read. */
export type OnCompleted = (record: InvocationRecord, resultChars: number) => void

/** Passes a record to its consumer, whose failure must not stop an answer. */
export function tellRecord(
  { onCompleted, log }: { readonly onCompleted?: OnCompleted | undefined; readonly log: ToolLog },
  record: InvocationRecord,
  resultChars = 0
): void {
  try {
    onCompleted?.(record, resultChars)
  } catch (error) {
    log('error', 'a record of a tool call was not taken', {
      correlationId: record.correlationId,
      reason: messageOf(error)
    })
  }
}
