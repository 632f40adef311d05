import test, { type Assert } from 'brittle'
import Corestore from 'corestore'
import type { StoreDatabase } from 'corestore'
import { joinReads } from '../../../../src/adapters/mesh/cores/joint-reads.js'
import { utf8 } from '../../../../src/kit/ids.js'
import { tempDir } from '../../../support/tmp.js'

async function open(t: Assert): Promise<{ store: Corestore; counts: { questions: number } }> {
  const store = new Corestore(await tempDir(t))
  t.teardown(() => store.close())
  await store.ready()
  const counts = { questions: 0 }
  const { db } = store.storage
  const read = db.read.bind(db)
  db.read = (options) => {
    counts.questions++
    return read(options)
  }
  return { store, counts }
}

test('all that is read of several cores in one turn is one question to the database', async (t: Assert) => {
  const { store, counts } = await open(t)
  joinReads(store)
  const cores = [store.get({ name: 'a' }), store.get({ name: 'b' })] as const
  const blocks = Array.from({ length: 40 }, (_, at) => utf8(`block ${at}`))
  for (const core of cores) await core.append(blocks)
  counts.questions = 0
  const read = await Promise.all(cores.flatMap((core) => blocks.map((_, at) => core.get(at))))
  t.alike(read, [...blocks, ...blocks])
  t.is(counts.questions, 1)
})

test('a snapshot of the database is asked for itself', async (t: Assert) => {
  const { store } = await open(t)
  joinReads(store)
  const { db } = store.storage
  const plain = db.session()
  const snapshot = db.session({ snapshot: true }) as StoreDatabase & { close(): Promise<void> }
  t.is(plain.read(), db.read(), 'sessions ask together')
  const reading = snapshot.read({ autoDestroy: true })
  t.not(reading, db.read())
  reading.destroy()
  await snapshot.close()
})

test('a store is closed whole though it is being read', async (t: Assert) => {
  const { store } = await open(t)
  joinReads(store)
  const core = store.get({ name: 'a' })
  await core.append([utf8('one')])
  const reading = core.get(0)
  await store.close()
  t.alike(await reading, utf8('one'))
})
