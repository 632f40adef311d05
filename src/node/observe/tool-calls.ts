import type { InvocationRecord, StoredInvocation, ToolCallQuery } from '../../ports/tool-calls.js'

/** The most stored records. */
export const MAX_TOOL_CALLS = 500
/** The most characters of one stored record as JSON; of a longer one, arguments, result and error are omitted. */
export const MAX_TOOL_CALL_CHARS = 65_536
/** The most characters of all stored records as JSON. */
export const MAX_TOOL_CALLS_CHARS = 4_194_304

/**
 * The newest records of ended MCP tool calls (spec a2a-mcp-mesh, Property 34), stored as JSON in memory: what a handler does to its
 * arguments later changes nothing. Bounded; the oldest records go first.
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
    while (this.#texts.length > MAX_TOOL_CALLS || this.#chars > MAX_TOOL_CALLS_CHARS) this.#chars -= this.#texts.shift()?.length ?? 0
  }

  /** The stored records that match, oldest first. */
  list({ tool, failed = false, since = 0, limit = MAX_TOOL_CALLS }: ToolCallQuery = {}): readonly StoredInvocation[] {
    const records = this.#texts.map((text) => JSON.parse(text) as StoredInvocation)
    return records
      .filter((one) => (tool === undefined || one.tool === tool) && (!failed || one.outcome !== 'success') && one.at >= since)
      .slice(-limit)
  }
}

/** Names each member: a result is parsed when it is read, and this one is too large. */
function withoutContent(record: InvocationRecord): string {
  const { tool, isUnknown, durationMs, outcome, runId, correlationId, at } = record
  const omitted: StoredInvocation['omitted'] = record.error === undefined ? ['arguments', 'result'] : ['arguments', 'error']
  const stored: StoredInvocation = {
    tool: tool.slice(0, 256),
    ...(isUnknown === undefined ? {} : { isUnknown }),
    durationMs,
    outcome,
    ...(runId === undefined ? {} : { runId }),
    correlationId: correlationId.slice(0, 256),
    at,
    omitted
  }
  return JSON.stringify(stored)
}
