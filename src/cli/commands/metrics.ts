import type { MetricsSnapshot } from '../../ports/telemetry.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { isSet } from '../options.js'
import { printTable } from '../render.js'
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
  }
  return EXIT.ok
}

/** The text format of Prometheus, version 0.0.4: counters with an optional `label`, timings as summaries in seconds. */
export function prometheusLines(snapshot: MetricsSnapshot): string[] {
  const lines: string[] = []
  const typed = new Set<string>()
  for (const { name, label, value } of snapshot.counters) {
    const metric = `a2a_node_${name}_total`
    if (!typed.has(metric)) lines.push(`# TYPE ${metric} counter`)
    typed.add(metric)
    lines.push(`${metric}${label === null ? '' : `{label="${escapeLabel(label)}"}`} ${value}`)
  }
  for (const { name, count, sumMs, maxMs } of snapshot.timings) {
    const metric = `a2a_node_${name.replace(/_ms$/, '')}_seconds`
    lines.push(`# TYPE ${metric} summary`, `${metric}_sum ${sumMs / 1000}`, `${metric}_count ${count}`)
    lines.push(`# TYPE ${metric}_max gauge`, `${metric}_max ${maxMs / 1000}`)
  }
  return lines
}

function escapeLabel(label: string): string {
  return label.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
