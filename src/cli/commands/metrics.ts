import { type A2AMeasured, prometheusLines } from '../../kit/prometheus.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { isSet } from '../options.js'
import type { Output } from '../terminal/output.js'
import { printTable } from '../terminal/render.js'
import { rttText } from '../words.js'

/** `metrics`: counts and times; with `--prometheus` in that text format. */
export const metrics: Action = async ({ output, api }, _args, options) => {
  const snapshot = await api().call('node.metrics', {})
  if (output.json) output.object('metrics@1', snapshot)
  else if (isSet(options, 'prometheus')) for (const line of prometheusLines(snapshot)) output.print(line)
  else {
    const counters = snapshot.counters.map((one) => [one.name, one.label ?? '-', String(one.value)])
    await printTable(output, ['COUNT', 'LABEL', 'VALUE'], counters)
    output.print()
    const timings = snapshot.timings.map((one) => [
      one.name,
      String(one.count),
      rttText(one.count === 0 ? null : one.sumMs / one.count),
      rttText(one.maxMs)
    ])
    await printTable(output, ['TIME', 'COUNT', 'MEAN', 'MAX'], timings)
    if (snapshot.a2a !== undefined) await printA2A(output, snapshot.a2a)
  }
  return EXIT.ok
}

async function printA2A(output: Output, a2a: A2AMeasured): Promise<void> {
  output.print()
  await printTable(
    output,
    ['MESSAGES', 'VALUE'],
    [
      ['sent', String(a2a.totalMessagesSent)],
      ['received', String(a2a.totalMessagesReceived)],
      ['errors', String(a2a.errorCount)],
      ['mean routing time', rttText(a2a.timedRoutings === 0 ? null : a2a.averageRoutingLatencyMs)],
      ...Object.entries(a2a.messagesByType).map(([type, count]) => [type, String(count)])
    ]
  )
  output.print()
  const total = ['all tools', a2a.totalToolInvocations, a2a.toolErrorCount, a2a.averageToolDurationMs] as const
  const tools = a2a.tools.map((one) => [one.tool, one.invocations, one.errors, one.averageDurationMs] as const)
  const rows = [...tools, total].map(([tool, calls, errors, mean]) => [
    tool,
    String(calls),
    String(errors),
    rttText(calls === 0 ? null : mean)
  ])
  await printTable(output, ['MCP TOOL', 'CALLS', 'ERRORS', 'MEAN'], rows)
}
