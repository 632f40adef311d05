/** A count, split by at most one label. */
export interface CounterSample {
  readonly name: string
  readonly label: string | null
  readonly value: number
}

/** Durations of one kind. */
export interface TimingSample {
  readonly name: string
  readonly count: number
  readonly sumMs: number
  readonly maxMs: number
}

/** What is exposed. */
export interface MetricSamples {
  readonly counters: readonly CounterSample[]
  readonly timings: readonly TimingSample[]
}

/**
 * Metrics in the Prometheus text exposition format, version 0.0.4. Counters become `<prefix>_<name>_total` with the label
 * `kind`; timings become a summary `<prefix>_<name>` (`_sum` in milliseconds, `_count`) and a gauge `<prefix>_<name>_max`.
 */
export function prometheusText(samples: MetricSamples, prefix: string): string {
  const lines: string[] = []
  for (const [name, counters] of byName(samples.counters)) {
    const metric = metricName(`${prefix}_${name}_total`)
    lines.push(`# TYPE ${metric} counter`)
    for (const { label, value } of counters) lines.push(`${metric}${label === null ? '' : `{kind="${escaped(label)}"}`} ${value}`)
  }
  for (const { name, count, sumMs, maxMs } of samples.timings) {
    const metric = metricName(`${prefix}_${name}`)
    lines.push(`# TYPE ${metric} summary`, `${metric}_sum ${sumMs}`, `${metric}_count ${count}`)
    lines.push(`# TYPE ${metric}_max gauge`, `${metric}_max ${maxMs}`)
  }
  return lines.map((line) => `${line}\n`).join('')
}

function byName(counters: readonly CounterSample[]): Map<string, CounterSample[]> {
  const groups = new Map<string, CounterSample[]>()
  for (const one of counters) groups.set(one.name, [...(groups.get(one.name) ?? []), one])
  return groups
}

function metricName(name: string): string {
  return name.replace(/[^a-zA-Z0-9_:]/g, '_').replace(/^(?=\d)/, '_')
}

function escaped(label: string): string {
  return label.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
