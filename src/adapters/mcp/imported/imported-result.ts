import { isRecord, jsonFault, RESULT_LIMITS } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import type { AgentOutcome } from '../../../ports/agent-runtime.js'

/** Longest text of a failure that is passed on, in characters. */
const MAX_FAILURE_TEXT = 2000

/**
 * The outcome of a `tools/call` result: `structuredContent` when present; a single text as JSON when it parses, else as
 * text; several contents, images, audio and resources as `{content: [...]}`; no content as null. `isError` is
 * TASK_FAILED.
 */
export function outcomeOf(result: unknown, maxOutputBytes: number): AgentOutcome {
  if (!isRecord(result)) return { ok: false, code: 'INVALID_OUTPUT', message: "the server's answer is no tool result" }
  const content: readonly unknown[] = Array.isArray(result['content']) ? result['content'] : []
  if (result['isError'] === true) return failureOf(content, result['_meta'])
  const value = result['structuredContent'] === undefined ? valueOf(content) : result['structuredContent']
  const fault = jsonFault(value, RESULT_LIMITS)
  if (fault !== null) return { ok: false, code: 'INVALID_OUTPUT', message: `the tool's result: ${fault}` }
  if (Buffer.byteLength(JSON.stringify(value)) > maxOutputBytes)
    return {
      ok: false,
      code: 'PAYLOAD_TOO_LARGE',
      message: `the tool's result has more than ${maxOutputBytes} bytes (maxOutput of the server in mcp.servers)`
    }
  return { ok: true, result: value }
}

function valueOf(content: readonly unknown[]): unknown {
  const [only] = content
  if (only === undefined) return null
  const text = content.length === 1 ? textOf(only) : null
  if (text === null) return { content }
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

function failureOf(content: readonly unknown[], meta: unknown): AgentOutcome {
  const text = content.flatMap((one) => textOf(one) ?? []).join('\n')
  const message = text.trim() === '' ? 'the tool failed and does not say why' : shown(text, MAX_FAILURE_TEXT)
  const retryAfter = retryAfterOf(meta)
  return { ok: false, code: 'TASK_FAILED', message, ...(retryAfter === null ? {} : { data: { retryAfter } }) }
}

function textOf(block: unknown): string | null {
  return isRecord(block) && block['type'] === 'text' && typeof block['text'] === 'string' ? block['text'] : null
}

/** `retryAfter` (seconds) of the `_meta` of a result or of the data of an error; null when there is none. */
export function retryAfterOf(value: unknown): number | null {
  const seconds = isRecord(value) ? (value['retryAfter'] ?? value['retry-after']) : undefined
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds >= 0 && seconds <= 86_400 ? seconds : null
}
