import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import Corestore from 'corestore'
import { healStore } from '../../../../src/adapters/storage/home/store-heal.js'
import { tempDir } from '../../../support/tmp.js'

test('a store whose very first opening was killed opens again after healing', async (t) => {
  const dir = await tempDir(t)
  await fs.writeFile(path.join(dir, 'CORESTORE'), '')
  t.is(await healStore(dir), true)
  const store = new Corestore(dir)
  t.teardown(() => store.close())
  await t.execution(store.ready())
})

test('without healing such a store does not open: the cure is still needed', async (t) => {
  const dir = await tempDir(t)
  await fs.writeFile(path.join(dir, 'CORESTORE'), '')
  const store = new Corestore(dir)
  await t.exception(store.ready())
  await store.close().catch(() => {})
})

test('a store that was used is left alone', async (t) => {
  const dir = await tempDir(t)
  const store = new Corestore(dir)
  await store.ready()
  const key = (await store.createKeyPair('node')).publicKey
  await store.close()
  t.is(await healStore(dir), false)
  const again = new Corestore(dir)
  t.teardown(() => again.close())
  await again.ready()
  t.alike((await again.createKeyPair('node')).publicKey, key)
})

test('an empty marker beside a database is not touched: that is damage of another kind', async (t) => {
  const dir = await tempDir(t)
  await fs.writeFile(path.join(dir, 'CORESTORE'), '')
  await fs.mkdir(path.join(dir, 'db'))
  t.is(await healStore(dir), false)
  t.ok((await fs.readdir(dir)).includes('CORESTORE'))
})

test('a new directory, or none yet, needs no healing', async (t) => {
  const dir = await tempDir(t)
  t.is(await healStore(dir), false)
  t.is(await healStore(path.join(dir, 'none')), false)
})
