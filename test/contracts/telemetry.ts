import test from 'brittle'
import type { Telemetry } from '../../src/ports/telemetry.js'

/** What every Telemetry keeps. */
export function telemetryContract(name: string, make: () => Telemetry): void {
  test(`${name}: a fresh one has counted nothing`, (t) => {
    t.alike(make().snapshot(), { counters: [], timings: [] })
  })

  test(`${name}: counts add up by name and label`, (t) => {
    const telemetry = make()
    telemetry.count('messages_sent')
    telemetry.count('messages_sent', undefined, 4)
    telemetry.count('messages_refused', 'TIER_VIOLATION')
    telemetry.count('messages_refused', 'SANDBOX_VIOLATION', 2)
    t.alike(telemetry.snapshot().counters, [
      { name: 'messages_sent', label: null, value: 5 },
      { name: 'messages_refused', label: 'TIER_VIOLATION', value: 1 },
      { name: 'messages_refused', label: 'SANDBOX_VIOLATION', value: 2 }
    ])
  })

  test(`${name}: timings keep count, sum and the longest`, (t) => {
    const telemetry = make()
    for (const ms of [3, 10, 2]) telemetry.time('routing_ms', ms)
    t.alike(telemetry.snapshot().timings, [{ name: 'routing_ms', count: 3, sumMs: 15, maxMs: 10 }])
  })

  test(`${name}: a snapshot does not change with later events`, (t) => {
    const telemetry = make()
    telemetry.count('errors')
    telemetry.time('task_ms', 1)
    const snapshot = telemetry.snapshot()
    telemetry.count('errors')
    telemetry.time('task_ms', 5)
    t.is(snapshot.counters[0]?.value, 1)
    t.is(snapshot.timings[0]?.maxMs, 1)
  })

  test(`${name}: logging never throws, for any fields`, async (t) => {
    const telemetry = make()
    const loop: Record<string, unknown> = {}
    loop['self'] = loop
    const fields = {
      loop,
      bytes: new Uint8Array(3),
      big: 10n,
      nothing: undefined,
      fn: () => 1,
      symbol: Symbol('s'),
      error: new Error('e')
    }
    await t.execution(() => telemetry.log('error', 'odd fields', fields))
  })
}
