import { shown } from '../../kit/text.js'
import type { InvocationRecord, ToolCallQuery } from '../../ports/tool-calls.js'

/** The most stored records. */
export const MAX_TOOL_CALLS = 500
/**
 * The most characters of one stored record as JSON; of a longer one, arguments, result and details of the error are
 * omitted.
 */
export const MAX_TOOL_CALL_CHARS = 65_536
/** The most characters of the message of an error whose details are omitted. */
const MAX_MESSAGE = 1024
/** The most characters of all stored records as JSON. */
export const MAX_TOOL_CALLS_CHARS = 4_194_304

/**
 * The newest records of ended MCP tool calls (spec a2a-mcp-mesh, Property 34), stored as JSON in memory: what a handler
 * does to its arguments later changes nothing. Bounded; the oldest records go first.
 */
export class ToolCalls {
  readonly #texts: string[] = []
  #chars = 0

  /** Stores a record. `resultChars`: length of its result as JSON, so that a large one is not written out. */
  add(record: InvocationRecord, resultChars = 0): void {
    const text = resultChars > MAX_TOOL_CALL_CHARS ? withoutContent(record) : JSON.stringify(record)
    const bounded = text.length > MAX_TOOL_CALL_CHARS ? withoutContent(record) : text
    this.#texts.push(bounded)
    this.#chars += bounded.length
    while (this.#texts.length > MAX_TOOL_CALLS || this.#chars > MAX_TOOL_CALLS_CHARS)
      this.#chars -= this.#texts.shift()?.length ?? 0
  }

  /** The stored records that match, oldest first. */
  list({ tool, failed = false, since = 0, limit = MAX_TOOL_CALLS }: ToolCallQuery = {}): readonly InvocationRecord[] {
    const records = this.#texts.map((text) => JSON.parse(text) as InvocationRecord)
    return records
      .filter(
        (one) =>
          (tool === undefined || one.tool === tool || one.published === tool) &&
          (!failed || one.outcome !== 'success') &&
          one.at >= since
      )
      .slice(-limit)
  }
}

/**
 * Names each member: a result is parsed when it is read, and this one is too large. Code and message of an error stay.
 */
function withoutContent(record: InvocationRecord): string {
  const { tool, published, isUnknown, durationMs, outcome, runId, correlationId, at, error } = record
  const stored: InvocationRecord = {
    tool: shown(tool),
    ...(published === undefined ? {} : { published }),
    ...(isUnknown === undefined ? {} : { isUnknown }),
    ...(error === undefined ? {} : { error: { code: shown(error.code), message: shown(error.message, MAX_MESSAGE) } }),
    durationMs,
    outcome,
    ...(runId === undefined ? {} : { runId }),
    correlationId: shown(correlationId),
    at,
    omitted: error === undefined ? ['arguments', 'result'] : ['arguments', 'details']
  }
  return JSON.stringify(stored)
}
