import test from 'brittle'
import { CatchUp } from '../../../../src/adapters/mesh/log/catch-up.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { ManualClock } from '../../../support/manual-clock.js'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a log that stands still behind what its owner signed, or differs from it, takes the signed view; one that goes on does not', async (t) => {
  const clock = new ManualClock()
  const log = { own: 5, signed: 5, isAstray: false }
  let jumps = 0
  const catchUp = new CatchUp({
    clock,
    telemetry: new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} }),
    view: { lengths: () => log, isAstray: () => Promise.resolve(log.isAstray) },
    repair: async () => {
      jumps++
      log.own = log.signed
      log.isAstray = false
    }
  })
  const look = async (): Promise<void> => {
    clock.advance(3000)
    await turn()
  }
  await look()
  log.signed = 9
  for (const own of [6, 7, 8]) {
    log.own = own
    await look()
  }
  t.is(jumps, 0, 'it goes on by itself')
  await look()
  t.alike([jumps, log.own], [1, 9])
  for (let i = 0; i < 5; i++) await look()
  t.is(jumps, 1, 'and is there')
  log.isAstray = true
  for (let i = 0; i < 5; i++) await look()
  t.is(jumps, 2, 'one that reports something else accepts it, too')
  catchUp.close()
  t.is(clock.pending, 0)
})

test('a signed view that is not to be had is asked for ever less often, never twice at once, and not after the end', async (t) => {
  const clock = new ManualClock()
  let jumps = 0
  let end: () => void = () => {}
  const repair = (): Promise<void> => {
    jumps++
    // Every second attempt fails: that is logged, and nothing else.
    const isFailing = jumps % 2 === 0
    return new Promise((resolve, reject) => (end = isFailing ? () => reject(new Error('not here')) : resolve))
  }
  const lines: string[] = []
  const telemetry = new MemoryTelemetry({ clock, level: 'warn', format: 'text', write: (line) => lines.push(line) })
  const view = { lengths: () => ({ own: 1, signed: 2 }), isAstray: () => Promise.resolve(false) }
  const catchUp = new CatchUp({ clock, telemetry, view, repair })
  clock.advance(600_000)
  t.is(jumps, 1, 'the first one has not ended')
  const gaps: number[] = []
  for (let i = 0; i < 7; i++) {
    end()
    await turn()
    const before = jumps
    const from = clock.monotonic()
    while (jumps === before) clock.advance(1000)
    gaps.push(clock.monotonic() - from)
  }
  t.alike(gaps, [6000, 12_000, 24_000, 48_000, 60_000, 60_000, 60_000])
  t.is(lines.filter((line) => line.includes('not here')).length, 3)
  catchUp.close()
  end()
  await turn()
  t.is(clock.pending, 0)
})
