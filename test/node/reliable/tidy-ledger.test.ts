import test from 'brittle'
import fc from 'fast-check'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import { NodeError } from '../../../src/kit/errors.js'
import { utf8 } from '../../../src/kit/ids.js'
import { TidyLedger } from '../../../src/node/reliable/tidy-ledger.js'
import type { LedgerChange } from '../../../src/ports/ledger.js'
import { failsWith } from '../../support/fails.js'
import { holds } from '../../support/holds.js'
import { ManualClock } from '../../support/manual-clock.js'

/** A ledger that may be full, and counts the commits that it was asked for. */
class Disk {
  readonly ledger = createMemoryLedger()
  readonly clock = new ManualClock()
  isFull = false
  commits = 0
  readonly tidy = new TidyLedger({
    clock: this.clock,
    telemetry: new MemoryTelemetry({ clock: this.clock, level: 'error', format: 'text', write: () => {} }),
    ledger: {
      commit: (changes) => {
        this.commits++
        return this.isFull ? Promise.reject(new NodeError('DISK_FULL', 'no space left')) : this.ledger.commit(changes)
      }
    }
  })

  async keys(): Promise<string[]> {
    return (await this.ledger.list({ from: '', to: '~', limit: 1000 })).map(({ key }) => key)
  }
}

const put = (key: string): LedgerChange => ({ key, value: utf8(key) })
const remove = (key: string): LedgerChange => ({ key, value: null })
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('removals share the next commit, and wait for none longer than a tenth of a second', async (t) => {
  const disk = new Disk()
  await disk.tidy.commit([put('a'), put('b')])
  disk.tidy.tidy([remove('a')])
  await disk.tidy.commit([put('c')])
  t.alike(await disk.keys(), ['b', 'c'])
  t.is(disk.commits, 2)
  disk.tidy.tidy([remove('b')])
  disk.clock.advance(100)
  await turn()
  t.alike(await disk.keys(), ['c'])
  t.is(disk.clock.pending, 0)
})

test('512 removals are committed at once', async (t) => {
  const disk = new Disk()
  disk.tidy.tidy(Array.from({ length: 511 }, (_one, index) => remove(`${index}`)))
  t.is(disk.commits, 0)
  disk.tidy.tidy([remove('last')])
  t.is(disk.commits, 1)
  await disk.tidy.stop()
})

test('a stop commits the removals that wait, and never rejects', async (t) => {
  const disk = new Disk()
  await disk.tidy.commit([put('a'), put('b')])
  disk.tidy.tidy([remove('a')])
  await disk.tidy.stop()
  t.alike(await disk.keys(), ['b'])
  disk.tidy.tidy([remove('b')])
  disk.isFull = true
  await disk.tidy.stop()
  t.is(disk.clock.pending, 0)
})

test('the ledger ends with all changes in their order, after any refusals in between', async (t) => {
  const key = fc.constantFrom('a', 'b', 'c')
  const change = fc.record({ key, isRemoval: fc.boolean() })
  const step = fc.record({ changes: fc.array(change, { maxLength: 3 }), isFull: fc.boolean(), isTidy: fc.boolean() })
  await holds(
    t,
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const disk = new Disk()
      const expected = new Map<string, boolean>()
      for (const { changes, isFull, isTidy } of steps) {
        disk.isFull = isFull
        const made = changes.map((one) => (one.isRemoval ? remove(one.key) : put(one.key)))
        if (isTidy) disk.tidy.tidy(made)
        else await disk.tidy.commit(made).catch((error: unknown) => error)
        if (isTidy || !isFull) for (const one of changes) expected.set(one.key, !one.isRemoval)
        if (isTidy) disk.clock.advance(isFull ? 0 : 100)
        await turn()
      }
      disk.isFull = false
      await disk.tidy.stop()
      const kept = [...expected].flatMap(([name, isThere]) => (isThere ? [name] : [])).sort()
      return JSON.stringify(await disk.keys()) === JSON.stringify(kept)
    }),
    100
  )
})

test('a refused commit says why, and nothing of it is there', async (t) => {
  const disk = new Disk()
  disk.isFull = true
  await failsWith(t, 'DISK_FULL', () => disk.tidy.commit([put('a')]))
  disk.isFull = false
  await disk.tidy.stop()
  t.alike(await disk.keys(), [])
})
