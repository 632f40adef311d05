import path from 'node:path'
import test from 'brittle'
import type { Assert } from 'brittle'
import Corestore from 'corestore'
import { copyLog } from '../../../../src/adapters/mesh/log/log-copy.js'
import { tempDir } from '../../../support/tmp.js'

const MESH = new Uint8Array(32).fill(7)

async function world(t: Assert) {
  const dir = await tempDir(t)
  const from = new Corestore(path.join(dir, 'from'))
  await from.ready()
  t.teardown(() => from.close())
  const core = async (name: string, blocks: number, mesh: Uint8Array = MESH) => {
    const one = from.get({ name })
    await one.ready()
    await one.setUserData('referrer', mesh)
    if (blocks > 0) await one.append(Array.from({ length: blocks }, (_, i) => Buffer.from(`${name} ${i}`)))
    return one
  }
  return { dir: path.join(dir, 'to'), from, core }
}

test('the writer cores of a mesh are copied whole, and in the copy nobody can append to them', async (t) => {
  const { dir, from, core } = await world(t)
  const cores = [await core('first', 300), await core('second', 1)]
  const others = [await core('empty', 0), await core('of another mesh', 2, new Uint8Array(32))]
  await copyLog(from, MESH, dir)
  const copy = new Corestore(dir)
  t.teardown(() => copy.close())
  await copy.ready()
  t.alike(copy.primaryKey, from.primaryKey, 'it is the store of the same node')
  for (const one of cores) {
    const same = copy.get({ key: one.key })
    await same.ready()
    t.alike([same.contiguousLength, same.writable], [one.length, false])
    t.alike(await same.get(0), await one.get(0))
    await t.exception(() => same.append(Buffer.from('more')))
  }
  for (const one of others) {
    const none = copy.get({ key: one.key })
    await none.ready()
    t.is(none.length, 0)
  }
})

test('entries appended during a copy are copied as well', async (t) => {
  const { dir, from, core } = await world(t)
  const one = await core('first', 2000)
  const copying = copyLog(from, MESH, dir)
  await one.append(Buffer.from('late'))
  await copying
  const copy = new Corestore(dir)
  t.teardown(() => copy.close())
  const same = copy.get({ key: one.key })
  await same.ready()
  t.is(same.contiguousLength, same.length)
})
