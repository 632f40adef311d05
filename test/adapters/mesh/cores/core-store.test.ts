import test, { type Assert } from 'brittle'
import Hyperbee from 'hyperbee'
import { closeStore, coreStore } from '../../../../src/adapters/mesh/cores/core-store.js'
import { tempDir } from '../../../support/tmp.js'

test('all trees of a store together hold 512 blocks in memory, however many a member made them have', async (t: Assert) => {
  const store = coreStore(await tempDir(t))
  await store.ready()
  t.teardown(() => closeStore(store), { order: -1 })
  const trees = ['one', 'two'].map(
    (name) => new Hyperbee(store.get({ name }), { keyEncoding: 'utf-8', valueEncoding: 'binary' })
  )
  for (const tree of trees) {
    const batch = tree.batch()
    for (let at = 0; at < 500; at++) await batch.put(`key ${at}`, Buffer.alloc(1024))
    await batch.flush()
    let read = 0
    for await (const { value } of tree.createReadStream()) read += (value as Uint8Array).length
    t.is(read, 500 * 1024)
  }
  t.is(store.globalCache?.globalSize, 512)
})
