import { prometheusLines } from '../../kit/prometheus.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { isSet } from '../options.js'
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
  }
  return EXIT.ok
}
