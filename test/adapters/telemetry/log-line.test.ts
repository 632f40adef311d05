import test from 'brittle'
import fc from 'fast-check'
import { logLine } from '../../../src/adapters/telemetry/log-line.js'
import { holds } from '../../support/holds.js'

const at = new Date(2026, 0, 2, 3, 4, 5).getTime()

test('a line for a terminal has time of day, level, message and fields', (t) => {
  const fields = { peer: 'k7f2...9d3a', tries: 3, late: true, none: null, name: 'my laptop', empty: '' }
  t.is(
    logLine({ at, level: 'warn', message: 'the peer is gone', fields }, 'text'),
    '03:04:05 warn  the peer is gone peer=k7f2...9d3a tries=3 late=true none=null name="my laptop" empty=""\n'
  )
})

test('a line for programs is one JSON object with the ISO time', (t) => {
  const line = logLine(
    { at: 0, level: 'info', message: 'm', fields: { level: 'mine', n: 1, list: [1, 2], error: new Error('why') } },
    'ndjson'
  )
  t.alike(JSON.parse(line), {
    at: '1970-01-01T00:00:00.000Z',
    level: 'info',
    message: 'm',
    fields: { level: 'mine', n: 1, list: '[1,2]', error: 'why' }
  })
})

test('whatever is logged stays on one line without control characters', async (t) => {
  const value = fc.oneof(fc.string({ unit: 'binary' }), fc.jsonValue(), fc.anything())
  const property = fc.property(
    fc.string({ unit: 'binary' }),
    fc.dictionary(fc.string(), value),
    fc.constantFrom('text' as const, 'ndjson' as const),
    (message, fields, format) => {
      const line = logLine({ at, level: 'error', message, fields }, format)
      return line.endsWith('\n') && !/[\p{Cc}\u2028\u2029]/u.test(line.slice(0, -1))
    }
  )
  await holds(t, property, 500)
})

test('a value of a peer cannot look like another field or like the end of its quotes', (t) => {
  const line = logLine({ at, level: 'info', message: 'said', fields: { name: 'x level=error', quote: '" tier=L0 "' } }, 'text')
  t.is(line, '03:04:05 info  said name="x level=error" quote="\\" tier=L0 \\""\n')
})

test('long texts are cut', (t) => {
  const line = logLine({ at, level: 'info', message: 'm'.repeat(1000), fields: { reason: 'r'.repeat(1000) } }, 'text')
  t.ok(line.length < 600)
})
