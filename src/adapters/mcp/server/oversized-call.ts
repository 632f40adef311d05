import type { CallToolResult } from '@modelcontextprotocol/server'
import type { LongLine } from '../../../kit/lines.js'
import { shown } from '../../../kit/text.js'
import { publishedAs } from '../tools/published-names.js'
import type { PipelineDeps } from './tool-pipeline.js'
import { errorFor } from './remote-client.js'
import { refusalOf, type StructuredError } from './structured-error.js'
import { recordOf, tellRecord } from './tool-record.js'
import { wrapError } from './tool-result.js'

/** Dependencies of {@link refuseOversized}. */
export type OversizedDeps = Pick<
  PipelineDeps,
  'clock' | 'ids' | 'log' | 'limits' | 'onCompleted' | 'tools' | 'isRemote'
>

const SIMPLE = String.raw`(?:"jsonrpc"\s*:\s*"2\.0"|"id"\s*:\s*(?:-?\d{1,15}|"[^"\\]{0,256}"))`
const METHOD = String.raw`"method"\s*:\s*"tools/call"`
const FIRST_METHOD = new RegExp(String.raw`^\s*\{\s*(?:${SIMPLE}\s*,\s*){0,2}${METHOD}\s*,`)
const LAST_METHOD = new RegExp(String.raw`,\s*(?:${SIMPLE}\s*,\s*){0,2}${METHOD}\s*(?:,\s*${SIMPLE}\s*){0,2}\}\s*$`)
const NAME = /"params"\s*:\s*\{\s*(?:"_meta"\s*:\s*\{[^{}]*\}\s*,\s*)?"name"\s*:\s*"([^"\\]{1,256})"/

/**
 * The tool that a message calls of which only the edges are known: '' when they do not show it, null when they show no
 * call of a tool.
 */
export function toolOfEdges({ head, tail }: Pick<LongLine, 'head' | 'tail'>): string | null {
  const [first, last] = [head, tail].map((bytes) => Buffer.from(bytes).toString('utf8')) as [string, string]
  if (!FIRST_METHOD.test(first) && !LAST_METHOD.test(last)) return null
  return NAME.exec(first)?.[1] ?? ''
}

/**
 * Refuses a call whose message was too large to be read: RESOURCE_EXHAUSTED with a run id, counted for health and
 * recorded like each other call that is refused. `name`: as far as the client shows it. `maxBytes`: of a message.
 */
export async function refuseOversized(deps: OversizedDeps, name: string, maxBytes: number): Promise<StructuredError> {
  const { clock, ids, log, limits, onCompleted, tools } = deps
  const [runId, correlationId] = [ids.runId(), ids.correlationId()]
  const refused = refusalOf(
    'PAYLOAD_TOO_LARGE',
    `the message of the call has more than ${maxBytes} bytes (tools.maxPayloadBytes of the node and 64 KiB)`
  )
  const error: StructuredError = { ...errorFor(refused, deps), runId, correlationId }
  limits.answered(error.code)
  const known = await foundTool(tools, name)
  const about = { tool: known ?? shown(name), runId, correlationId, outcome: 'tool_error', durationMs: 0 } as const
  log('info', 'tool call ended', { ...about, error: { code: error.code, message: error.message } })
  const base = {
    ...about,
    ...(known === null ? { isUnknown: true } : publishedAs(known, name)),
    at: clock.now(),
    omitted: ['arguments']
  } as const
  tellRecord({ onCompleted, log }, recordOf(base, { error, json: null }))
  return error
}

/** The refusal as the result of a tool, with the `resultType` that clients require since 2026-07-28. */
export function oversizedResult(error: StructuredError): CallToolResult {
  return { ...wrapError(error), resultType: 'complete' }
}

/** The canonical name of a tool; null for none, also while the list of tools cannot be read. */
async function foundTool(tools: OversizedDeps['tools'], name: string): Promise<string | null> {
  try {
    return (await tools.find(name))?.definition.name ?? null
  } catch {
    return null
  }
}
