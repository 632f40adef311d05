import test from 'brittle'
import { jsonLines } from '../../../src/adapters/telemetry/json-lines.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import type { LogLevel } from '../../../src/ports/telemetry.js'
import { telemetryContract } from '../../contracts/telemetry.js'
import { ManualClock } from '../../support/manual-clock.js'

function make(level: LogLevel | null, lines: string[] = []): MemoryTelemetry {
  return new MemoryTelemetry({ clock: new ManualClock(), level, format: jsonLines, write: (line) => lines.push(line) })
}

telemetryContract('memory telemetry', () => make('debug'))

test('only lines of the level or above are written', (t) => {
  const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']
  for (const [index, level] of levels.entries()) {
    const lines: string[] = []
    const telemetry = make(level, lines)
    for (const one of levels) telemetry.log(one, one)
    t.alike(
      lines.map((line) => (JSON.parse(line) as { message: string }).message),
      levels.slice(index)
    )
  }
  const none: string[] = []
  make(null, none).log('error', 'unheard')
  t.alike(none, [])
})

test('a writer that throws does not reach the caller and is counted', async (t) => {
  const telemetry = new MemoryTelemetry({
    clock: new ManualClock(),
    level: 'info',
    format: 'text',
    write: () => {
      throw new Error('EPIPE')
    }
  })
  await t.execution(() => telemetry.log('info', 'to nobody'))
  t.alike(telemetry.snapshot().counters, [{ name: 'errors', label: 'log', value: 1 }])
})

test('labels of one metric are bounded: further ones count as other', (t) => {
  const telemetry = make(null)
  for (let i = 0; i < 1000; i++) telemetry.count('messages_refused', `label-${i}`)
  const { counters } = telemetry.snapshot()
  t.is(counters.length, 65)
  t.is(counters.find(({ label }) => label === 'other')?.value, 1000 - 64)
})

test('a label that is no word of this node counts as other', (t) => {
  const telemetry = make(null)
  for (const label of ['a b', 'evil"} 1', 'x'.repeat(41), '', '1']) telemetry.count('messages_refused', label)
  telemetry.count('messages_refused', 'TIER_VIOLATION')
  t.alike(
    telemetry.snapshot().counters.map(({ label, value }) => [label, value]),
    [
      ['other', 5],
      ['TIER_VIOLATION', 1]
    ]
  )
})
