import { isToolContent, plainValue, type ToolContent, toolFailure } from '../../../domain/task/tool-content.js'
import { isRecord, jsonFault, RESULT_LIMITS } from '../../../kit/json.js'
import type { AgentOutcome } from '../../../ports/agent-runtime.js'

/** The prefix of the protocol's own names in `_meta`. */
const RESERVED = 'io.modelcontextprotocol/'

/**
 * The outcome of a `tools/call` result: its plain value, and the whole in the form of MCP unless it has more than
 * `maxOutputBytes` or unknown kinds of content. `isError` is TASK_FAILED.
 */
export function outcomeOf(result: unknown, maxOutputBytes: number): AgentOutcome {
  if (!isRecord(result)) return { ok: false, code: 'INVALID_OUTPUT', message: "the server's answer is no tool result" }
  const whole = wholeOf(result)
  if (result['isError'] === true) return toolFailure(whole)
  const value = plainValue(whole)
  const fault = jsonFault(value, RESULT_LIMITS)
  if (fault !== null) return { ok: false, code: 'INVALID_OUTPUT', message: `the tool's result: ${fault}` }
  if (bytesOf(value) > maxOutputBytes)
    return {
      ok: false,
      code: 'PAYLOAD_TOO_LARGE',
      message: `the tool's result has more than ${maxOutputBytes} bytes (maxOutput of the server in mcp.servers)`
    }
  const isFit = isToolContent(whole) && jsonFault(whole, RESULT_LIMITS) === null && bytesOf(whole) <= maxOutputBytes
  return isFit ? { ok: true, result: value, content: whole } : { ok: true, result: value }
}

/** The known members of a result, not checked. */
function wholeOf({ content, structuredContent, _meta: meta }: Readonly<Record<string, unknown>>): ToolContent {
  return {
    content: (Array.isArray(content) ? content : []) as ToolContent['content'],
    ...(structuredContent === undefined
      ? {}
      : { structuredContent: structuredContent as Readonly<Record<string, unknown>> }),
    ...metaOf(meta)
  }
}

/** `_meta` without the protocol's own members, which belong to one connection; nothing when it has no others. */
export function metaOf(meta: unknown): Pick<ToolContent, '_meta'> {
  const own = isRecord(meta) ? Object.entries(meta).filter(([key]) => !key.startsWith(RESERVED)) : []
  return own.length === 0 ? {} : { _meta: Object.fromEntries(own) }
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}
