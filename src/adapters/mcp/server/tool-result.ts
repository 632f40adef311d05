import type { CallToolResult } from '@modelcontextprotocol/server'
import { isRecord } from '../../../kit/json.js'
import { ClientAsk } from '../tools/client-ask.js'
import { McpContent } from '../tools/mcp-content.js'
import { createError, type StructuredError, structuredErrorOf } from './structured-error.js'
import type { ToolDefinition } from './tool.js'

/** The end of a call, in the form of the protocol. */
export interface WrappedResult {
  readonly result: CallToolResult | ClientAsk
  /** null when it succeeded. */
  readonly error: StructuredError | null
  /** JSON text of the result, for the record. */
  readonly json: string
}

const NOT_SERIALIZABLE = createError('INTERNAL', 'Result not serializable', { reason: 'result_not_serializable' })

/**
 * A handler's result in the form of the protocol: a text as it is, all else as its JSON, `undefined` as null; also
 * structured when the tool has an output schema and the result is an object; content of the protocol, and questions to
 * the client, as they are.
 */
export function wrapResult(result: unknown, definition: ToolDefinition): WrappedResult | StructuredError {
  if (result instanceof ClientAsk)
    return { result, error: null, json: JSON.stringify({ inputRequests: result.requests }) }
  const value = result instanceof McpContent ? result.result : result === undefined ? null : result
  const json = jsonOf(value)
  if (json === null) return NOT_SERIALIZABLE
  if (result instanceof McpContent) return { result: result.result, error: errorOf(result), json }
  const text = typeof value === 'string' ? value : json
  const wrapped: CallToolResult = { content: [{ type: 'text', text }], isError: false }
  if (definition.outputSchema !== undefined && isRecord(value))
    wrapped.structuredContent = JSON.parse(json) as Record<string, unknown>
  return { result: wrapped, error: null, json }
}

/** A failed call in the form of the protocol: the structured error as JSON text. */
export function wrapError(error: StructuredError): CallToolResult {
  const text = jsonOf(error) ?? JSON.stringify({ ...error, details: undefined })
  return { content: [{ type: 'text', text }], isError: true }
}

function errorOf({ result, failure }: McpContent): StructuredError | null {
  if (failure !== null) return structuredErrorOf(failure)
  return result.isError === true ? createError('INTERNAL', 'the tool answered with an error') : null
}

function jsonOf(value: unknown): string | null {
  try {
    // Functions and symbols give undefined, which the types do not say.
    const text: string | undefined = JSON.stringify(value)
    return text ?? null
  } catch {
    return null
  }
}
