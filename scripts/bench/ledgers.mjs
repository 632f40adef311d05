import path from 'node:path'
import Corestore from 'corestore'
import Hyperbee from 'hyperbee'
import RocksDB from 'rocksdb-native'
import { openDurableLedger } from '../../build/src/adapters/storage/ledger/durable-ledger.js'

/** A ledger of the product, in a directory. */
export function openJournaled(dir, durability) {
  return openDurableLedger({
    dir: path.join(dir, 'ledger'),
    durability,
    mark: { read: async () => 0, write: async () => {} }
  })
}

/** The key-value store alone: to survive a power cut it has to write its tables out before each promise. */
export async function openStoreAlone(dir) {
  const store = new RocksDB(path.join(dir, 'store'))
  await store.ready()
  const write = async (groups) => {
    const batch = store.write({ autoDestroy: true })
    for (const changes of groups) {
      for (const { key, value } of changes) {
        if (value === null) batch.tryDelete(Buffer.from(key))
        else batch.tryPut(Buffer.from(key), value)
      }
    }
    await batch.flush()
    await store.flush()
  }
  return { commit: inGroups(write), close: () => store.close() }
}

/** A sorted map over an append-only log. It has no fsync of its own, so it promises less than the others do. */
export async function openBee(dir) {
  const store = new Corestore(path.join(dir, 'bee'))
  const bee = new Hyperbee(store.get({ name: 'ledger' }), { keyEncoding: 'utf-8', valueEncoding: 'binary' })
  await bee.ready()
  const write = async (groups) => {
    const batch = bee.batch()
    for (const changes of groups) {
      for (const { key, value } of changes) {
        if (value === null) await batch.del(key)
        else await batch.put(key, value)
      }
    }
    await batch.flush()
  }
  return { commit: inGroups(write), close: () => store.close() }
}

/** Commits that wait while one group is written share the next, as those of the product do. */
function inGroups(write) {
  let waiting = []
  let isWriting = false
  const writeAll = async () => {
    isWriting = true
    await Promise.resolve()
    while (waiting.length > 0) {
      const group = waiting
      waiting = []
      await write(group.map(({ changes }) => changes))
      for (const { done } of group) done()
    }
    isWriting = false
  }
  return (changes) =>
    new Promise((done) => {
      waiting.push({ changes, done })
      if (!isWriting) void writeAll()
    })
}
