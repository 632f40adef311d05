import fs from 'node:fs/promises'
import path from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import test from 'brittle'
import { encodeCommit, NO_SEAL } from '../../../../src/adapters/storage/ledger/ledger-record.js'
import { utf8 } from '../../../../src/kit/ids.js'
import { ledgerContract } from '../../../contracts/ledger.js'
import { failsWith } from '../../../support/fails.js'
import { home, journals, keys, keysOf, numbered } from '../../../support/ledger-home.js'

for (const durability of ['process', 'power'] as const) {
  ledgerContract(`durable ledger (${durability})`, async (t) => {
    const { open } = await home(t, durability)
    return open()
  })
}

test('committed changes are there after the next start, and the count continues', async (t) => {
  const { open } = await home(t)
  const first = await open()
  for (let at = 1; at <= 50; at++) await first.commit([numbered(at)])
  await first.close()
  const second = await open()
  t.is((await second.size()).commits, 50)
  t.alike(await keysOf(second), keys(50))
  await second.commit([numbered(51)])
  t.is((await second.size()).commits, 51)
})

test('a commit with changes made at its write includes the changes of its turn; later ones are another commit', async (t) => {
  const { open } = await home(t)
  const ledger = await open()
  const made = [numbered(1)]
  const commit = ledger.commit(() => [...made])
  await Promise.resolve()
  made.push(numbered(2))
  await commit
  made.push(numbered(3))
  t.alike(await keysOf(ledger), keys(2))
  await Promise.all([ledger.commit(() => made.slice(2)), ledger.commit([numbered(4)])])
  t.alike(await keysOf(ledger), keys(4))
  t.is((await ledger.size()).commits, 3)
})

test('commits of successive turns share a write, one alone does not wait, and an endless series is not waited for', async (t) => {
  const { open } = await home(t)
  const ledger = await open()
  // Of each commit: how many there were when it was written.
  const written = async (turns: readonly number[]): Promise<number[]> => {
    const seen: number[] = []
    const commits: Promise<void>[] = []
    for (const count of turns) {
      for (let at = 0; at < count; at++) {
        const number = commits.length + 1
        commits.push(ledger.commit(() => (seen.push(commits.length), [numbered(number)])))
      }
      await nextTurn()
    }
    await Promise.all(commits)
    return seen
  }
  t.alike(await written([1, 0, 0, 1]), [1, 2])
  t.alike(await written([2, 1, 1, 0, 0, 1]), [4, 4, 4, 4, 5])
  const many = await written(Array.from({ length: 30 }, () => 2))
  t.is(many.length, 60)
  t.ok((many[0] ?? 0) <= 20, `the first of 60 was written when ${many[0]} had come`)
})

test('a commit that cannot be written is refused alone: the commits of the same write are there, and the count has no gap', async (t) => {
  const { open } = await home(t)
  const ledger = await open()
  const unwritable = (): never => {
    throw new TypeError('no form as bytes')
  }
  const commits = [
    ledger.commit(() => [numbered(1)]),
    ledger.commit(unwritable),
    ledger.commit([numbered(2)]),
    ledger.commit(unwritable)
  ]
  t.alike(
    (await Promise.allSettled(commits)).map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled', 'rejected']
  )
  await t.exception.all(() => ledger.commit(unwritable))
  await ledger.commit([numbered(3)])
  t.is((await ledger.size()).commits, 3)
  await ledger.close()
  t.alike(await keysOf(await open()), keys(3))
})

test('a last commit without changes, by which a ledger that failed is tried, damages nothing', async (t) => {
  const { open } = await home(t)
  const first = await open()
  await first.commit([numbered(1)])
  await first.close()
  const probed = await open()
  await probed.commit([])
  await probed.close()
  for (let starts = 0; starts < 3; starts++) {
    const ledger = await open()
    t.is((await ledger.size()).commits, 2)
    t.alike(await keysOf(ledger), keys(1))
    await ledger.close()
  }
})

test('bytes of a peer are not taken for a commit, though they look like one, where their record was cut short', async (t) => {
  const { dir, open } = await home(t)
  const ledger = await open()
  for (let at = 1; at <= 5; at++) await ledger.commit([numbered(at)])
  const [journal] = await journals(dir)
  const { byteLength } = await fs.readFile(path.join(dir, journal ?? ''))
  const next = encodeCommit({ number: 6, promised: 5, changes: [numbered(6)] }, NO_SEAL).record
  const lost = encodeCommit({ number: 900, promised: 899, changes: [] }, NO_SEAL).record
  await ledger.commit([{ key: 'received', value: Buffer.concat([next, lost, Buffer.alloc(5000)]) }])
  const bytes = await fs.readFile(path.join(dir, journal ?? ''))
  const crashed = await home(t)
  await fs.mkdir(crashed.dir, { recursive: true })
  await fs.writeFile(path.join(crashed.dir, journal ?? ''), bytes.subarray(0, byteLength + 2000))
  t.alike(await keysOf(await crashed.open()), keys(5))
})

test('a journal of an earlier version, which has no seal, is read', async (t) => {
  const { dir, open } = await home(t)
  await fs.mkdir(dir, { recursive: true })
  const records = [1, 2].map(
    (number) => encodeCommit({ number, promised: number - 1, changes: [numbered(number)] }, NO_SEAL).record
  )
  await fs.writeFile(path.join(dir, 'journal-000000000001'), Buffer.concat(records))
  const ledger = await open()
  t.alike(await keysOf(ledger), keys(2))
  t.alike((await journals(dir)).length, 1)
})

test('a ledger restored to an earlier state is found', async (t) => {
  const { dir, open } = await home(t)
  const before = await open()
  await before.commit([numbered(1)])
  await before.close()
  await fs.cp(dir, `${dir}-old`, { recursive: true })
  const after = await open()
  await after.commit([numbered(2)])
  await after.close()
  await fs.rm(dir, { recursive: true })
  await fs.rename(`${dir}-old`, dir)
  await failsWith(t, 'STORE_DAMAGED', open)
})

test('the journal is given back as it grows; nothing is lost by it', async (t) => {
  const { dir, open } = await home(t, 'process')
  const ledger = await open()
  const value = new Uint8Array(1024 * 1024)
  for (let at = 1; at <= 40; at++) await ledger.commit([{ key: `large/${at % 4}`, value }, numbered(at)])
  await ledger.close()
  const left = await journals(dir)
  t.ok(left.length <= 2, `${left.length} files`)
  t.alike(await keysOf(await open()), keys(40))
})

test('a commit that need only survive the process does not wait for the disk, and the next one that does takes it along', async (t) => {
  const { dir, open } = await home(t)
  const ledger = await open()
  const handle = await fs.open(dir)
  const files = Object.getPrototypeOf(handle) as { datasync(): Promise<void> }
  await handle.close()
  const { datasync } = files
  let synced = 0
  files.datasync = function count(): Promise<void> {
    synced++
    return datasync.call(this)
  }
  t.teardown(() => (files.datasync = datasync))
  await ledger.commit([numbered(1)], 'process')
  t.is(synced, 0)
  await ledger.commit([numbered(2)])
  t.is(synced, 1)
  await ledger.commit([numbered(3)], 'power')
  t.is(synced, 2)
  await ledger.commit([numbered(4)], 'process')
  t.is(synced, 2)
  await ledger.close()
  t.ok(synced > 2, 'the commits up to the mark are there after a close, also when the power fails')
  t.alike(await keysOf(await open()), keys(4))
})

test('a second opener gets the error that the ledger is in use', async (t) => {
  const { open } = await home(t)
  await open()
  await failsWith(t, 'STORE_LOCKED', open)
})

test('removed entries free their space', async (t) => {
  const { open } = await home(t, 'process')
  const ledger = await open()
  const value = crypto.getRandomValues(new Uint8Array(32 * 1024))
  for (let at = 0; at < 200; at++) await ledger.commit([{ key: `large/${at}`, value }])
  await ledger.compact()
  const { bytes: full } = await ledger.size()
  for (let at = 0; at < 200; at++) await ledger.commit([{ key: `large/${at}`, value: null }])
  await ledger.compact()
  await ledger.close()
  const again = await open()
  const { bytes: empty } = await again.size()
  t.ok(empty < full / 10, `${full} bytes, then ${empty}`)
})

test('the pages of a ledger are its content after one commit, for any commits while they are read', async (t) => {
  const { open } = await home(t)
  const ledger = await open()
  for (let at = 1; at <= 25; at++) await ledger.commit([numbered(at)])
  const pages: number[] = []
  const found: string[] = []
  for await (const page of ledger.pages(10)) {
    pages.push(page.length)
    found.push(...page.map((one) => one.key))
    await ledger.commit([numbered(99), { key: found[0] ?? '', value: null }, { key: 'zz/late', value: utf8('x') }])
  }
  t.alike(pages, [10, 10, 5])
  t.alike(found, keys(25))
})

test('a page of a ledger holds fewer entries where they are large, so that a backup never holds much of it at once', async (t) => {
  const { open } = await home(t, 'process')
  const ledger = await open()
  const value = new Uint8Array(1024 * 1024)
  for (let at = 0; at < 12; at++) await ledger.commit([{ key: `large/${at}`, value }, numbered(at)])
  const found: string[] = []
  for await (const page of ledger.pages(500)) {
    let bytes = 0
    for (const one of page) bytes += one.value.byteLength
    t.ok(bytes <= 5 * value.byteLength, `${bytes} bytes in one page`)
    found.push(...page.map(({ key }) => key))
  }
  t.is(found.length, 24)
  t.is(new Set(found).size, 24)
})
