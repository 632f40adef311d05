import test from 'brittle'
import type { Ballast } from '../../../../src/adapters/storage/home/ballast.js'
import { GuardedLedger } from '../../../../src/adapters/storage/ledger/guarded-ledger.js'
import { createMemoryLedger } from '../../../support/memory-ledger.js'
import { NodeError } from '../../../../src/kit/errors.js'
import type { ErrorCode } from '../../../../src/kit/errors.js'
import { utf8 } from '../../../../src/kit/ids.js'
import type { Ledger, LedgerChange } from '../../../../src/ports/ledger.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { failsWith } from '../../../support/fails.js'
import { smallDisk } from '../../../support/small-disk.js'
import { ManualClock } from '../../../support/manual-clock.js'

const NEW: LedgerChange = { key: 'request-in/one', value: utf8('{}') }
const END: LedgerChange = { key: 'request/one', value: utf8('done') }

test('a ledger with a full disk refuses new work, records ends in the space of its ballast, and reports it', async (t) => {
  const { ledger, disk, clock } = scene()
  await ledger.commit([NEW])
  t.alike(ledger.problems(), [])
  disk.fault = 'DISK_FULL'
  await failsWith(t, 'DISK_FULL', () => ledger.commit([NEW]))
  t.ok(disk.isFreed)
  // The ballast made room.
  disk.fault = null
  disk.commits = 0
  const refused = await failsWith(t, 'DISK_FULL', () => ledger.commit([END, NEW]))
  t.is(refused.next[0], 'df -h /home')
  t.is(disk.commits, 0, 'the disk was not asked')
  await ledger.commit([END])
  t.alike(Buffer.from((await ledger.get(END.key)) ?? []), Buffer.from('done'))
  const [problem] = ledger.problems()
  t.is(problem?.code, 'DISK_FULL')
  t.is(problem?.next, 'df -h /home')
  t.ok(problem?.message.includes('20 MiB'), problem?.message)
  t.is(ledger.fault?.code, 'DISK_FULL')
  await pass(clock, 60_000)
  t.is(ledger.problems().length, 1, 'without space for a ballast nothing new is accepted')
  disk.hasCapacity = true
  await pass(clock, 10_000)
  t.alike(ledger.problems(), [])
  t.absent(disk.isFreed)
  t.is(ledger.fault, null)
  await ledger.commit([NEW])
})

test('a look notices a disk that is low, and one that is full, before anything fails by it', async (t) => {
  const small = await smallDisk(t, 32)
  if (typeof small === 'string') return t.comment(`skipped: ${small}`)
  const { ledger } = scene(small.dir)
  const codes = (): string[] => {
    ledger.look()
    return ledger.problems().map(({ code }) => code)
  }
  t.alike(codes(), [])
  await small.fill()
  await small.leave(15 * 1024 * 1024)
  t.alike(codes(), ['DISK_LOW'])
  t.alike(
    ledger.problems().map(({ message, next }) => [/^1[45] MiB are free on the disk of /.test(message), next]),
    [[true, `df -h ${small.dir}`]]
  )
  await small.fill()
  t.alike(codes(), ['DISK_FULL'])
  await failsWith(t, 'DISK_FULL', () => ledger.commit([NEW]))
})

test('a ledger of which something could not be read says so from then on, and goes on with the rest', async (t) => {
  const { ledger, disk } = scene()
  await ledger.commit([END])
  disk.isUnreadable = true
  await failsWith(t, 'STORE_DAMAGED', () => ledger.get(END.key))
  disk.isUnreadable = false
  t.alike(
    ledger.problems().map(({ code, next }) => [code, next]),
    [['STORE_DAMAGED', 'a2a-node stop && a2a-node doctor --repair']]
  )
  await ledger.commit([NEW])
  t.is(ledger.fault, null)
})

test('a disk that cannot be written refuses what is new until it takes a commit again', async (t) => {
  for (const code of ['STORE_DAMAGED', 'NO_PERMISSION'] as const) {
    const { ledger, disk, clock } = scene()
    disk.fault = code
    await failsWith(t, code, () => ledger.commit([END]))
    t.is(ledger.problems()[0]?.code, code)
    await pass(clock, 20_000)
    await failsWith(t, code, () => ledger.commit([NEW]))
    t.absent(disk.isFreed)
    disk.fault = null
    await pass(clock, 10_000)
    t.alike(ledger.problems(), [])
    await ledger.commit([NEW])
    await ledger.close()
    t.is(clock.pending, 0)
  }
})

test('a commit that no ledger takes is no fault of the disk', async (t) => {
  const { ledger } = scene()
  await failsWith(t, 'INTERNAL', () => ledger.commit([{ key: 'a b', value: null }]))
  t.alike(ledger.problems(), [])
})

/** A disk that fails as told. */
class FakeDisk implements Ballast {
  fault: ErrorCode | null = null
  hasCapacity = false
  isFreed = false
  isUnreadable = false
  commits = 0
  readonly neededBytes = 20 * 1024 * 1024

  free(): Promise<void> {
    this.isFreed = true
    return Promise.resolve()
  }

  fill(): Promise<boolean> {
    if (this.hasCapacity) this.isFreed = false
    return Promise.resolve(this.hasCapacity)
  }

  under(ledger: Ledger): Ledger {
    const commit = (changes: readonly LedgerChange[]): Promise<void> => {
      this.commits++
      const next = ['df -h /home']
      return this.fault === null
        ? ledger.commit(changes)
        : Promise.reject(new NodeError(this.fault, 'the disk', { next }))
    }
    return {
      get: (key) =>
        this.isUnreadable ? Promise.reject(new NodeError('STORE_DAMAGED', 'a table is damaged')) : ledger.get(key),
      list: (range) => ledger.list(range),
      compact: () => ledger.compact(),
      size: () => ledger.size(),
      close: () => ledger.close(),
      commit
    }
  }
}

function scene(dir = '/home'): {
  readonly ledger: GuardedLedger
  readonly disk: FakeDisk
  readonly clock: ManualClock
} {
  const clock = new ManualClock()
  const disk = new FakeDisk()
  const telemetry = new MemoryTelemetry({ clock, level: null, format: 'text', redactKeys: [], write: () => {} })
  const ledger = new GuardedLedger({
    clock,
    telemetry,
    ledger: disk.under(createMemoryLedger()),
    ballast: disk,
    dir
  })
  return { ledger, disk, clock }
}

/** Time passes in steps, each long enough for what it sets going. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 5000) {
    clock.advance(5000)
    await new Promise((resolve) => setImmediate(resolve))
  }
}
