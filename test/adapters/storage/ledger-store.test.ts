import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { LedgerStore } from '../../../src/adapters/storage/ledger-store.js'
import { utf8 } from '../../../src/kit/ids.js'
import type { LedgerChange } from '../../../src/ports/ledger.js'
import { tempDir } from '../../support/tmp.js'

async function opened(t: Assert): Promise<LedgerStore> {
  const dir = await tempDir(t)
  await fs.mkdir(path.join(dir, 'store'))
  const store = await LedgerStore.open(dir)
  t.teardown(() => store.close())
  return store
}

function take(store: LedgerStore, changes: readonly LedgerChange[]): void {
  store.take([{ number: store.last + 1, promised: store.last, changes }])
}

test('requests that are looked up in vain by the thousand are found all the same once they are there, written or not, removed or not', async (t) => {
  const store = await opened(t)
  const name = (at: number): string => `request/${at}`
  const has = async (at: number): Promise<boolean> => (await store.get(name(at))) !== null
  // Two of three are there before it learns which ones are, some on disk, some being written, some waiting; others come later.
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
