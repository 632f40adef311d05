import { MAX_LISTED_TOOL_CALLS } from '../../../adapters/control/terms.js'
import { shown } from '../../../kit/text.js'
import type { InvocationRecord } from '../../../ports/tool-calls.js'
import type { Action } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import { countOption, given, isSet, sinceOption, textOption } from '../../options.js'
import { jsonLine } from '../../terminal/output.js'
import { type Cell, printTable } from '../../terminal/render.js'
import { rttText, timeText } from '../../words.js'

const TEXT_MAX = 200

/** `tools calls`: the stored records of MCP tool calls, oldest first. */
export const listCalls: Action = async ({ output, api }, _args, options) => {
  const query = given({
    tool: textOption(options, 'tool'),
    failed: isSet(options, 'failed') ? true : undefined,
    since: sinceOption(options, 'since'),
    limit: countOption(options, 'limit', [1, MAX_LISTED_TOOL_CALLS])
  })
  const { calls } = await api().call('tools.calls', query)
  if (output.json) for (const call of calls) output.object('tool-call@1', call)
  else if (calls.length === 0)
    output.note(Object.keys(query).length === 0 ? 'no MCP client has called a tool yet' : 'no call matches')
  else await printTable(output, ['TIME', 'TOOL', 'OUTCOME', 'TOOK', 'ARGUMENTS', 'RESULT'], calls.map(rowOf))
  return EXIT.ok
}

function rowOf(call: InvocationRecord): Cell[] {
  const { at, tool, outcome, durationMs } = call
  return [
    timeText(new Date(at).toISOString()),
    { text: tool, style: 'bold' },
    { text: outcome, style: outcome === 'success' ? 'green' : 'red' },
    rttText(durationMs),
    textOf(call, 'arguments'),
    call.error === undefined ? textOf(call, 'result') : shown(`${call.error.code}: ${call.error.message}`, TEXT_MAX)
  ]
}

function textOf({ omitted = [], ...call }: InvocationRecord, member: 'arguments' | 'result'): string {
  if (omitted.includes(member)) return '(too large)'
  return call[member] === undefined ? '-' : shown(jsonLine(call[member]), TEXT_MAX)
}
