import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { LedgerStore } from '../../../../src/adapters/storage/ledger/ledger-store.js'
import { utf8 } from '../../../../src/kit/ids.js'
import type { RecordedChange } from '../../../../src/adapters/storage/ledger/ledger-record.js'
import { tempDir } from '../../../support/tmp.js'

async function opened(t: Assert): Promise<LedgerStore> {
  const dir = await tempDir(t)
  await fs.mkdir(path.join(dir, 'store'))
  const store = await LedgerStore.open(dir)
  t.teardown(() => store.close())
  return store
}

function take(store: LedgerStore, changes: readonly RecordedChange[]): void {
  store.take([{ number: store.last + 1, promised: store.last, changes }])
}

test('requests that are looked up in vain by the thousand are found all the same once they are there, written or not, removed or not', async (t) => {
  const store = await opened(t)
  const name = (at: number): string => `request/${at}`
  const has = async (at: number): Promise<boolean> => (await store.get(name(at))) !== null
  // Two of three are there before it learns which ones are, some on disk, some being written, some waiting; others come
  // later.
  for (let at = 0; at < 6000; at++) {
    if (at % 3 !== 0) take(store, [{ key: name(at), value: utf8('v') }])
    if (at === 2000) await store.write()
  }
  const writing = store.write()
  for (let at = 6000; at < 9000; at++) if (at % 3 !== 0) take(store, [{ key: name(at), value: utf8('v') }])
  for (let round = 0; round < 3; round++) {
    const found = await Promise.all(Array.from({ length: 9000 }, (_, at) => has(at)))
    const wrong = found.findIndex((is, at) => is !== (at % 3 !== 0))
    t.is(wrong, -1, `round ${round}`)
    await writing
    await store.write()
  }
  take(store, [
    { key: name(0), value: utf8('v') },
    { key: name(1), value: null }
  ])
  for (const step of ['waiting', 'written']) {
    t.alike([await has(0), await has(1), await has(2), await has(3)], [true, false, true, false], step)
    await store.write()
  }
})

test('a key known to be new may be added and removed any number of times, before, while and after it is written', async (t) => {
  const key = fc.constantFrom('k/1', 'k/2', 'k/3')
  const change = fc.record({
    key,
    value: fc.option(fc.uint8Array({ maxLength: 4 }), { nil: null }),
    isSaid: fc.boolean()
  })
  const step = fc.oneof({ weight: 6, arbitrary: change }, fc.constantFrom('write' as const, 'written' as const))
  let fresh = 0
  const property = fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
    const store = await opened(t)
    const expected = new Map<string, Uint8Array>()
    const isSame = async (): Promise<boolean> => {
      const entries = await store.list({ from: 'k/', to: 'k0', limit: 10 })
      const read = await Promise.all(['k/1', 'k/2', 'k/3'].map((one) => store.get(one)))
      const known = ['k/1', 'k/2', 'k/3'].map((one) => expected.get(one) ?? null)
      return (
        textOf(read) === textOf(known) &&
        textOf(entries.map(({ value }) => value)) === textOf(known.filter((one) => one !== null))
      )
    }
    let writing = Promise.resolve()
    for (const one of steps) {
      if (one === 'write') writing = store.write()
      else if (one === 'written') await writing
      else {
        const isNew = one.isSaid && !expected.has(one.key)
        take(store, [{ key: one.key, value: one.value, isNew }])
        if (one.value === null) expected.delete(one.key)
        else expected.set(one.key, one.value)
        fresh += isNew ? 1 : 0
      }
      if (!(await isSame())) return false
    }
    await writing
    await store.write()
    const isWell = await isSame()
    await store.close()
    return isWell
  })
  await fc.assert(property, { numRuns: 150 })
  t.ok(fresh > 100, 'some were new')
})

test('a written key that is removed, added as new and removed again before the next write stays removed', async (t) => {
  const store = await opened(t)
  take(store, [{ key: 'k/1', value: utf8('old') }])
  await store.write()
  for (const value of [null, utf8('new'), null]) take(store, [{ key: 'k/1', value, isNew: value !== null }])
  t.is(await store.get('k/1'), null)
  await store.write()
  t.is(await store.get('k/1'), null)
  t.alike(await store.list({ from: 'k/', to: 'k0', limit: 10 }), [])
})

function textOf(values: readonly (Uint8Array | null)[]): string {
  return JSON.stringify(values.map((value) => (value === null ? null : [...value])))
}
