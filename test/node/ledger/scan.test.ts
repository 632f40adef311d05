import test from 'brittle'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import { utf8 } from '../../../src/kit/ids.js'
import { ledgerEntries } from '../../../src/node/ledger/scan.js'

test('a range is read to its end in the order of its keys, however many pages it takes', async (t) => {
  for (const count of [0, 1, 499, 500, 501, 1000, 1203]) {
    const ledger = createMemoryLedger()
    const keys = Array.from({ length: count }, (_, at) => `a/${String(at).padStart(5, '0')}`)
    await ledger.commit([...keys, '0', 'b/1'].map((key) => ({ key, value: utf8(key) })))
    const found: string[] = []
    for await (const { key } of ledgerEntries(ledger, { from: 'a/', to: 'a0' })) found.push(key)
    t.alike(found, keys, `${count} entries`)
  }
})

test('a page that is removed while it is read does not end the scan', async (t) => {
  const ledger = createMemoryLedger()
  const keys = Array.from({ length: 600 }, (_, at) => `a/${String(at).padStart(5, '0')}`)
  await ledger.commit(keys.map((key) => ({ key, value: utf8(key) })))
  let found = 0
  for await (const { key } of ledgerEntries(ledger, { from: 'a/', to: 'a0' })) {
    found++
    await ledger.commit([{ key, value: null }])
  }
  t.is(found, 600)
})
