import path from 'node:path'
import test, { type Assert } from 'brittle'
import Corestore from 'corestore'
import type Hypercore from 'hypercore'
import { beginningOf, setBeginning } from '../../../../src/adapters/mesh/cores/core-beginning.js'
import { copyStreams } from '../../../../src/adapters/mesh/documents/document-copy.js'
import { readKept, writeKept } from '../../../../src/adapters/mesh/documents/kept-bytes.js'
import { utf8 } from '../../../../src/kit/ids.js'
import { tempDir } from '../../../support/tmp.js'

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
  t.unlike(again.key, full.key, 'the written blocks are of another stream')
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

/** Puts parts of the only stream of a store into another one. */
async function fetchParts(
  from: Hypercore,
  to: Hypercore,
  parts: readonly { readonly start: number; readonly end: number }[]
): Promise<void> {
  const streams = [from.replicate(true), to.replicate(false)] as const
  for (const stream of streams) stream.on('error', () => {})
  streams[0].pipe(streams[1]).pipe(streams[0])
  for (const part of parts) await to.download(part).done()
  for (const stream of streams) stream.destroy()
}

test('a copy of a stream that begins later begins there too, and holds what is behind up to the first hole', async (t: Assert) => {
  const dir = await tempDir(t)
  const [writers, from] = [await open(t, path.join(dir, 'writers')), await open(t, path.join(dir, 'from'))]
  const blocks = Array.from({ length: 20 }, (_, at) => utf8(`block ${at + 10}`))
  const beginnings = {
    later: { blocks: 8, isShort: false },
    holey: { blocks: 8, isShort: false },
    ended: { blocks: 20, isShort: false }
  }
  const keys = new Map<string, Uint8Array>()
  for (const [name, beginning] of Object.entries(beginnings)) {
    const written = writers.get({ name })
    await written.append(blocks)
    keys.set(name, written.key)
    const here = from.get({ key: written.key, writable: false })
    await here.ready()
    const gap = name === 'holey' ? 15 : 20
    await fetchParts(written, here, [
      { start: 0, end: gap },
      { start: gap + 1, end: 20 }
    ])
    await setBeginning(here, beginning)
    await here.clear(0, beginning.blocks)
  }
  await copyStreams(from, path.join(dir, 'to'))
  const to = await open(t, path.join(dir, 'to'))
  const held = async (name: string): Promise<unknown> => {
    const copy = to.get({ key: keys.get(name) ?? new Uint8Array() })
    await copy.ready()
    const there = await Promise.all(blocks.map((_, at) => copy.get(at, { wait: false })))
    return { beginning: await beginningOf(copy), there: there.flatMap((block, at) => (block === null ? [] : [at])) }
  }
  const places = (start: number, end: number): number[] => Array.from({ length: end - start }, (_, at) => start + at)
  t.alike(await held('later'), { beginning: beginnings.later, there: places(8, 20) })
  t.alike(await held('holey'), { beginning: beginnings.holey, there: places(8, 15) })
  t.alike(
    await held('ended'),
    { beginning: { blocks: 0, isShort: false }, there: [] },
    'nothing is kept of one that has nothing behind'
  )
})

test('the cached documents are in a copy, and in a copy of that, under the same names', async (t: Assert) => {
  const dir = await tempDir(t)
  const from = await open(t, path.join(dir, 'from'))
  await from.get({ name: 'own' }).append([utf8('one')])
  for (const [name, bytes] of Object.entries({ 'doc/base': utf8('the snapshot'), gone: null }))
    await writeKept(from, name, bytes)
  await copyStreams(from, path.join(dir, 'to'))
  const to = await open(t, path.join(dir, 'to'))
  await copyStreams(to, path.join(dir, 'again'))
  const again = await open(t, path.join(dir, 'again'))
  for (const store of [from, to, again]) {
    t.alike(await readKept(store, 'doc/base'), utf8('the snapshot'))
    t.is(await readKept(store, 'gone'), null)
  }
})
