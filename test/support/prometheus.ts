/** What a text in the format of Prometheus says. */
export interface Exposition {
  /** By name, with its labels as JSON strings. */
  readonly samples: ReadonlyMap<string, number>
  readonly types: ReadonlyMap<string, string>
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const SAMPLE = new RegExp(String.raw`^(${NAME})(?:\{(${NAME})="((?:[^"\\\n]|\\["\\n])*)"\})? (-?[0-9.e+-]+)$`, 's')

/** Reads the text format of Prometheus, version 0.0.4, strictly: every sample belongs to a metric with HELP and TYPE right before it. */
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
        if (helped !== name || types.has(name) || !/^(counter|gauge|summary)$/.test(rest)) throw new Error(`a wrong TYPE: ${line}`)
        types.set(name, rest)
        current = name
      }
      continue
    }
    const sample = SAMPLE.exec(line)
    if (sample === null) throw new Error(`no sample: ${line}`)
    const [, name = '', label, value = '', number = ''] = sample
    const isOfSummary = types.get(current) === 'summary' && (name === `${current}_sum` || name === `${current}_count`)
    if (name !== current && !isOfSummary) throw new Error(`a sample without its head: ${line}`)
    const plain = value.replace(/\\(["\\n])/g, (_, char: string) => (char === 'n' ? '\n' : char))
    const key = label === undefined ? name : `${name}{${label}=${JSON.stringify(plain)}}`
    if (samples.has(key) || !Number.isFinite(Number(number))) throw new Error(`twice, or no number: ${line}`)
    samples.set(key, Number(number))
  }
  return { samples, types }
}
