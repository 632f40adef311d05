/** What a text in the format of Prometheus says. */
export interface Exposition {
  /** By name, with its labels as JSON strings. */
  readonly samples: ReadonlyMap<string, number>
  readonly types: ReadonlyMap<string, string>
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const LABEL = String.raw`${NAME}="(?:[^"\\\n]|\\["\\n])*"`
const SAMPLE = new RegExp(String.raw`^(${NAME})(?:\{(${LABEL}(?:,${LABEL})*)\})? (-?[0-9.e+-]+)$`, 's')

/**
 * Reads the text format of Prometheus, version 0.0.4, strictly: every sample belongs to a metric with HELP and TYPE
 * right before it.
 */
export function parsePrometheus(text: string): Exposition {
  const samples = new Map<string, number>()
  const types = new Map<string, string>()
  let current = ''
  let helped = ''
  for (const line of text === '' ? [] : text.split('\n')) {
    const head = new RegExp(`^# (HELP|TYPE) (${NAME}) (.+)$`, 's').exec(line)
    if (head !== null) {
      const [, kind, name = '', rest = ''] = head
      if (kind === 'HELP') helped = name
      else {
        if (helped !== name || types.has(name) || !/^(counter|gauge|summary|histogram)$/.test(rest))
          throw new Error(`a wrong TYPE: ${line}`)
        types.set(name, rest)
        current = name
      }
      continue
    }
    const sample = SAMPLE.exec(line)
    if (sample === null) throw new Error(`no sample: ${line}`)
    const [, name = '', labels, number = ''] = sample
    const type = types.get(current)
    const isOfSummary =
      ((type === 'summary' || type === 'histogram') && (name === `${current}_sum` || name === `${current}_count`)) ||
      (type === 'histogram' && name === `${current}_bucket`)
    if (name !== current && !isOfSummary) throw new Error(`a sample without its head: ${line}`)
    const key = labels === undefined ? name : `${name}{${plainLabels(labels)}}`
    if (samples.has(key) || !Number.isFinite(Number(number))) throw new Error(`twice, or no number: ${line}`)
    samples.set(key, Number(number))
  }
  return { samples, types }
}

function plainLabels(labels: string): string {
  const each = new RegExp(String.raw`(${NAME})="((?:[^"\\\n]|\\["\\n])*)"`, 'gs')
  return [...labels.matchAll(each)]
    .map(([, label = '', value = '']) => {
      const plain = value.replace(/\\(["\\n])/g, (_, char: string) => (char === 'n' ? '\n' : char))
      return `${label}=${JSON.stringify(plain)}`
    })
    .join(',')
}
