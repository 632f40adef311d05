import path from 'node:path'
import test, { type Assert } from 'brittle'
import Corestore from 'corestore'
import { copyStreams } from '../../../src/adapters/mesh/document-copy.js'
import { utf8 } from '../../../src/kit/ids.js'
import { tempDir } from '../../support/tmp.js'

async function open(t: Assert, dir: string): Promise<Corestore> {
  const store = new Corestore(dir)
  t.teardown(() => store.close())
  await store.ready()
  return store
}

test('a copy of streams holds what is there of them, and in it none can be written', async (t: Assert) => {
  const dir = await tempDir(t)
  const from = await open(t, path.join(dir, 'from'))
  const [full, empty] = [from.get({ name: 'full' }), from.get({ name: 'empty' })]
  const blocks = Array.from({ length: 50 }, (_, at) => utf8(`block ${at}`))
  await full.append(blocks)
  await empty.ready()
  await copyStreams(from, path.join(dir, 'to'))
  await full.append([utf8('later')])
  const to = await open(t, path.join(dir, 'to'))
  const keys: string[] = []
  for await (const key of to.list()) keys.push(Buffer.from(key).toString('hex'))
  t.alike(keys, [Buffer.from(full.discoveryKey).toString('hex')], 'nothing is kept of empty ones')
  const copy = to.get({ key: full.key })
  await copy.ready()
  t.alike(await Promise.all(blocks.map((_, at) => copy.get(at, { wait: false }))), blocks)
  t.is(copy.length, 50)
  t.absent(copy.writable)
  const again = to.get({ name: 'full' })
  await again.ready()
  t.unlike(again.key, full.key, 'what is written there is another stream')
})

test('two copies write different streams', async (t: Assert) => {
  const dir = await tempDir(t)
  const from = await open(t, path.join(dir, 'from'))
  await from.get({ name: 'own' }).append([utf8('one')])
  const keys: Uint8Array[] = []
  for (const name of ['a', 'b']) {
    await copyStreams(from, path.join(dir, name))
    const own = (await open(t, path.join(dir, name))).get({ name: 'own' })
    await own.ready()
    keys.push(own.key)
  }
  t.unlike(keys[0], keys[1])
})
