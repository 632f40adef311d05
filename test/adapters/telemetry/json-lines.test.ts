import { spawn } from 'node:child_process'
import { once } from 'node:events'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { jsonLines } from '../../../src/adapters/telemetry/json-lines.js'
import { redactor } from '../../../src/adapters/telemetry/redact.js'
import { holds } from '../../support/holds.js'

function linesOf(fields: Readonly<Record<string, unknown>>, message = 'm'): string[] {
  const lines: string[] = []
  jsonLines((line) => lines.push(line), redactor())({ at: 0, level: 'warn', message, fields })
  return lines
}

test('a structured line has level, time, the thread it is about, message and fields apart', (t: Assert) => {
  const [line = ''] = linesOf({
    correlationId: 'req_1',
    level: 'mine',
    message: 'other',
    list: [1, { token: 't' }],
    error: new Error('why')
  })
  t.alike(JSON.parse(line), {
    level: 'warn',
    at: '1970-01-01T00:00:00.000Z',
    correlationId: 'req_1',
    fields: { level: 'mine', message: 'other', list: [1, { token: '[REDACTED]' }], error: 'why' },
    message: 'm'
  })
})

test('any log entry is one line of JSON without control characters and of bounded size', async (t: Assert) => {
  const property = fc.property(
    fc.string({ unit: 'binary' }),
    fc.dictionary(fc.string({ unit: 'binary' }), fc.anything({ withBigInt: true })),
    (message, fields) => {
      const lines = linesOf(fields, message)
      const text = lines.join('')
      JSON.parse(text)
      return (
        lines.length === 1 &&
        text.endsWith('\n') &&
        text.length < 200_000 &&
        !/[\p{Cc}\u2028\u2029]/u.test(text.slice(0, -1))
      )
    }
  )
  await holds(t, property, 300)
})

test('pino is loaded only for structured lines', async (t: Assert) => {
  const loads = async (module: string): Promise<string> => {
    const file = new URL(`../../../src/adapters/telemetry/${module}.js`, import.meta.url).href
    const script = `import ${JSON.stringify(file)}; import { createRequire } from 'node:module'
      console.log(Object.keys(createRequire(import.meta.url).cache).some((one) => one.includes('/pino/')))`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit']
    })
    let out = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
    await once(child, 'close')
    return out.trim()
  }
  t.is(await loads('json-lines'), 'true')
  t.is(await loads('memory-telemetry'), 'false')
})
