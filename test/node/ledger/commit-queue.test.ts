import { setImmediate as endOfTurn } from 'node:timers/promises'
import test from 'brittle'
import { NodeError } from '../../../src/kit/errors.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { CommitQueue } from '../../../src/node/ledger/commit-queue.js'
import { ManualClock } from '../../support/manual-clock.js'

/** Tales over a ledger that takes nothing until it is told to. */
function scene(): {
  readonly clock: ManualClock
  readonly tales: CommitQueue
  readonly told: string[]
  readonly ledger: { isFull: boolean; tries: number }
  add(name: string): void
  pass(ms: number): Promise<void>
} {
  const clock = new ManualClock()
  const ledger = { isFull: true, tries: 0 }
  const told: string[] = []
  const commit = async (): Promise<void> => {
    ledger.tries++
    if (ledger.isFull) throw new NodeError('DISK_FULL', 'no room')
  }
  const tales = new CommitQueue({
    clock,
    telemetry: new MemoryTelemetry({ clock, level: null, format: 'text', write: () => {} }),
    commit
  })
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 100) {
      clock.advance(Math.min(100, left))
      await endOfTurn()
    }
  }
  return { clock, tales, told, ledger, add: (name) => tales.add({ changes: [], notify: () => told.push(name) }), pass }
}

test('changes that a ledger refused for an hour are reported, in order, within 5 s after it accepts some again', async (t) => {
  const { add, pass, ledger, told, tales } = scene()
  add('first')
  await pass(3_600_000)
  add('second')
  add('third')
  await pass(60_000)
  t.alike(told, [])
  ledger.isFull = false
  await pass(5000)
  t.alike(told, ['first', 'second', 'third'])
  await tales.stop()
})

test('however many wait for a ledger, they wait together: one timer, and it goes with the end', async (t) => {
  const { add, pass, clock, tales, told, ledger } = scene()
  for (let number = 0; number < 100; number++) add(String(number))
  await pass(20_000)
  t.is(clock.pending, 1)
  t.ok(ledger.tries < 1000, 'it is tried every 5 s at most')
  await tales.stop()
  t.is(clock.pending, 0)
  t.alike(told, [])
})
