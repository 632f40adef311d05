import test from 'brittle'
import fc from 'fast-check'
import { type LogRecord, textLine } from '../../../src/adapters/telemetry/log-line.js'
import { redactor } from '../../../src/adapters/telemetry/redact.js'
import { holds } from '../../support/holds.js'

function line(record: LogRecord): string {
  return textLine(record, redactor())
}

const at = new Date(2026, 0, 2, 3, 4, 5).getTime()

test('a line for a terminal has time of day, level, message and fields', (t) => {
  const fields = { peer: 'k7f2...9d3a', tries: 3, late: true, none: null, name: 'my laptop', empty: '' }
  t.is(
    line({ at, level: 'warn', message: 'the peer is gone', fields }),
    '03:04:05 warn  the peer is gone peer=k7f2...9d3a tries=3 late=true none=null name="my laptop" empty=""\n'
  )
})

test('a line about a message begins its fields with the thread, and hides what nobody may read', (t) => {
  const fields = { peer: 'p', password: 'p', list: [1, { Token: 't' }], correlationId: 'req_1' }
  t.is(
    line({ at, level: 'info', message: 'm', fields }),
    '03:04:05 info  m correlationId=req_1 peer=p password=[REDACTED] list="[1,{\\"Token\\":\\"[REDACTED]\\"}]"\n'
  )
})

test('any log entry stays on one line without control characters', async (t) => {
  const value = fc.oneof(fc.string({ unit: 'binary' }), fc.jsonValue(), fc.anything())
  const property = fc.property(fc.string({ unit: 'binary' }), fc.dictionary(fc.string(), value), (message, fields) => {
    const text = line({ at, level: 'error', message, fields })
    return text.endsWith('\n') && !/[\p{Cc}\u2028\u2029]/u.test(text.slice(0, -1))
  })
  await holds(t, property, 500)
})

test('a value of a peer cannot look like another field or like the end of its quotes', (t) => {
  const said = line({ at, level: 'info', message: 'said', fields: { name: 'x level=error', quote: '" tier=L0 "' } })
  t.is(said, '03:04:05 info  said name="x level=error" quote="\\" tier=L0 \\""\n')
})

test('long texts are cut', (t) => {
  const long = line({ at, level: 'info', message: 'm'.repeat(1000), fields: { reason: 'r'.repeat(1000) } })
  t.ok(long.length < 600)
})
