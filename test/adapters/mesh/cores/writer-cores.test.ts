import { cp, rm } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import Corestore from 'corestore'
import type Hypercore from 'hypercore'
import { WriterCores } from '../../../../src/adapters/mesh/cores/writer-cores.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { keyFromText, keyToText, utf8 } from '../../../../src/kit/ids.js'
import { tempDir } from '../../../support/tmp.js'
import { streamPair } from '../stream-pair.js'

/** A store that is closed when the test ends. */
function storeIn(t: Assert, dir: string, name: string): Corestore {
  const store = new Corestore(path.join(dir, name))
  t.teardown(() => store.close(), { order: 1 })
  return store
}

/** One core with two tales behind the same first block: two stores of its writer, with so many blocks of their own. */
async function twoTales(
  t: Assert,
  dir: string,
  [left, right]: readonly [number, number]
): Promise<[Corestore, Corestore, string]> {
  const first = new Corestore(path.join(dir, 'left'))
  const core = first.get({ name: 'own' })
  await core.append(utf8('first'))
  const key = keyToText(core.key)
  await first.close()
  await cp(path.join(dir, 'left'), path.join(dir, 'right'), { recursive: true })
  await rm(path.join(dir, 'right', 'CORESTORE'))
  const tell = async (name: string, blocks: number): Promise<Corestore> => {
    const store = storeIn(t, dir, name)
    for (let block = 0; block < blocks; block++) await store.get({ name: 'own' }).append(utf8(`${name} ${block}`))
    return store
  }
  return [await tell('left', left), await tell('right', right), key]
}

/** Who follows the core of a store. */
interface Follower {
  readonly store: Corestore
  readonly core: Hypercore
  readonly forked: Promise<void>
}

function follower(t: Assert, store: Corestore, key: string): Follower {
  const open = (text: string): Hypercore => store.get({ key: keyFromText(text), writable: false })
  const forked = new Promise<void>((resolve) => {
    const cores = new WriterCores({ clock: systemClock(), open, onForked: () => resolve() })
    cores.follow([key])
    t.teardown(() => cores.close())
  })
  const core = open(key)
  core.download({ start: 0, end: -1 })
  return { store, core, forked }
}

/** Links two stores; the result cuts the link. */
async function link(t: Assert, one: Corestore, other: Corestore): Promise<() => void> {
  const [near, far] = await streamPair(t, 'near', 'far')
  one.replicate(near)
  other.replicate(far)
  return () => near.destroy()
}

function untilLength(core: Hypercore, length: number): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => void (core.contiguousLength >= length && resolve())
    core.on('append', look)
    core.on('download', look)
    look()
  })
}

test('a node with one of two equally long versions of a stream finds the fork at a node that knows both', (t) =>
  found(t, [1, 1]))

test('a node with the longer of two versions of a stream finds the fork at a node that knows both', (t) =>
  found(t, [1, 3]))

test('a node with the shorter of two versions of a stream finds the fork at a node that knows both', (t) =>
  found(t, [3, 1]))

async function found(t: Assert, tales: readonly [number, number]): Promise<void> {
  // Streams and clocks of this test keep no process alive.
  const alive = setInterval(() => {}, 60_000)
  t.teardown(() => clearInterval(alive))
  const dir = await tempDir(t)
  const [left, right, key] = await twoTales(t, dir, tales)
  const [ann, bob] = ['ann', 'bob'].map((name) => follower(t, storeIn(t, dir, name), key)) as [Follower, Follower]
  const cuts = [await link(t, ann.store, left), await link(t, bob.store, right)]
  await Promise.all([untilLength(ann.core, 1 + tales[0]), untilLength(bob.core, 1 + tales[1])])
  for (const cut of cuts) cut()
  const cut = await link(t, ann.store, right)
  await ann.forked
  cut()
  await link(t, ann.store, bob.store)
  await bob.forked
  t.pass('found')
}
