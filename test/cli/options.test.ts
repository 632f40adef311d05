import test from 'brittle'
import { sinceOption } from '../../src/cli/options.js'
import { NodeError } from '../../src/kit/errors.js'

const DAY_MS = 86_400_000

test('--since takes a duration before now, and each form of a time that is printed', (t) => {
  const before = Date.now()
  for (const [text, ms] of [
    ['10m', 600_000],
    ['1.5h', 5_400_000],
    ['1ms', 1],
    ['30d', 30 * DAY_MS]
  ] as const) {
    const since = sinceOption({ since: text }, 'since') ?? 0
    t.ok(since >= before - ms && since <= Date.now() - ms, text)
  }
  const at = Date.UTC(2026, 10, 29, 10, 0, 0, 123)
  for (const text of [new Date(at).toISOString(), '2026-11-29T11:00:00.123+01:00', ' 2026-11-29T10:00:00.123Z '])
    t.is(sinceOption({ since: text }, 'since'), at, text)
  t.is(sinceOption({ since: '2026-11-29T10:00:00Z' }, 'since'), at - 123)
  t.is(sinceOption({}, 'since'), undefined)
})

test('--since refuses each other text, and names both forms', (t) => {
  const durations = ['0', '0s', '10', '-5m', '31d', '10min', '9'.repeat(13), 'm', '']
  const times = [
    '2026-11-29',
    '2026-11-29T10:00',
    '2026-11-29T10:00:00',
    '2026-13-01T00:00:00Z',
    '2026-02-30T25:00:00Z',
    '1969-12-31T00:00:00Z'
  ]
  for (const text of [...durations, ...times, 'yesterday', '\u001b[31m', '+010000-01-01T00:00:00Z']) {
    let message = ''
    try {
      t.fail(`${text}: ${String(sinceOption({ since: text }, 'since'))}`)
    } catch (error) {
      message = error instanceof NodeError && error.code === 'USAGE' ? error.message : ''
    }
    t.ok(
      text === '' ? message !== '' : message.includes('such as 10m') && message.includes('2026-11-29T10:00:00Z'),
      JSON.stringify(text)
    )
  }
})
