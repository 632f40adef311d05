import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import fc from 'fast-check'
import {
  damagedDocuments,
  documentTexts,
  mendDocuments,
  openNodeStore
} from '../../../../src/adapters/storage/home/node-store.js'
import { serverName } from '../../../../src/config/mcp-servers.js'
import { nodeStoreContract } from '../../../contracts/node-store.js'
import { failsWith } from '../../../support/fails.js'
import { holds } from '../../../support/holds.js'
import { tempDir } from '../../../support/tmp.js'

nodeStoreContract('node store', async (t) => {
  const dir = await tempDir(t)
  return { store: openNodeStore(dir), reopen: () => Promise.resolve(openNodeStore(dir)) }
})

test('documents are for this user alone and leave nothing beside them', async (t) => {
  const dir = await tempDir(t)
  await openNodeStore(dir).write('identity', { name: 'laptop' })
  t.is(((await fs.stat(path.join(dir, 'identity.json'))).mode & 0o777).toString(8), '600')
  t.is(((await fs.stat(path.join(dir, 'identity.json.copy'))).mode & 0o777).toString(8), '600')
  t.alike(await fs.readdir(dir), ['identity.json', 'identity.json.copy'])
})

test('a write syncs each of its files and then their directory once, before it resolves', async (t) => {
  const dir = await tempDir(t)
  const store = openNodeStore(dir)
  const { open } = fs
  t.teardown(() => void (fs.open = open))
  const synced: string[] = []
  fs.open = async (...args) => {
    const handle = await open(...args)
    const { sync } = handle
    handle.sync = async () => {
      await sync.call(handle)
      synced.push(path.relative(dir, String(args[0])))
    }
    return handle
  }
  await store.write('mesh', { epoch: 1 })
  t.alike(synced, ['mesh.json.tmp', 'mesh.json.copy.tmp', ''])
})

test('a document of which one file is damaged, cut or gone is read of the other one, and both are whole after mending', async (t) => {
  const dir = await tempDir(t)
  const value = { name: 'laptop', epoch: 2 }
  const [first, copy] = ['mesh.json', 'mesh.json.copy'].map((name) => path.join(dir, name)) as [string, string]
  await openNodeStore(dir).write('mesh', value)
  const whole = await fs.readFile(first)
  const damages: Readonly<Record<string, (file: string) => Promise<void>>> = {
    zeroed: (file) => fs.writeFile(file, Buffer.alloc(whole.length)),
    cut: (file) => fs.truncate(file, whole.length >> 1),
    empty: (file) => fs.truncate(file),
    gone: (file) => fs.rm(file)
  }
  for (const [how, damage] of Object.entries(damages)) {
    for (const file of [first, copy]) {
      await damage(file)
      t.alike(await openNodeStore(dir).read('mesh'), value, `${how}: ${path.basename(file)}`)
      // Homes of earlier versions have no copies.
      const expected = how === 'gone' && file === copy ? [] : [{ name: 'mesh', file, isMendable: true }]
      t.alike(await damagedDocuments(dir), expected)
      t.alike(await mendDocuments(dir), expected)
      t.alike(await damagedDocuments(dir), [])
      t.alike([await fs.readFile(first), await fs.readFile(copy)], [whole, whole])
    }
  }
})

test('a document of which both files are damaged is STORE_DAMAGED, and mending leaves it as it is', async (t) => {
  const dir = await tempDir(t)
  await openNodeStore(dir).write('mesh', 1)
  for (const name of ['mesh.json', 'mesh.json.copy']) await fs.writeFile(path.join(dir, name), '{}')
  await failsWith(t, 'STORE_DAMAGED', () => openNodeStore(dir).read('mesh'))
  t.alike(await mendDocuments(dir), [])
  t.alike(
    (await damagedDocuments(dir)).map(({ isMendable }) => isMendable),
    [false]
  )
  t.is(await fs.readFile(path.join(dir, 'mesh.json'), 'utf8'), '{}')
})

test('a document that could not be read is not written over, until it was moved aside or is whole again', async (t) => {
  const dir = await tempDir(t)
  const files = ['marks.json', 'marks.json.copy'].map((name) => path.join(dir, name))
  await openNodeStore(dir).write('marks', { notes: 7 })
  for (const file of files) await fs.truncate(file, 20)
  const store = openNodeStore(dir)
  await failsWith(t, 'STORE_DAMAGED', () => store.read('marks'))
  await failsWith(t, 'STORE_DAMAGED', () => store.write('marks', {}))
  t.alike(await Promise.all(files.map(async (file) => (await fs.stat(file)).size)), [20, 20])
  for (const file of files) await fs.rm(file)
  await store.write('marks', { notes: 8 })
  t.alike(await store.read('marks'), { notes: 8 })
})

test('a copy that the disk refuses is gone, so that nothing of before can come back', async (t) => {
  const dir = await tempDir(t)
  const store = openNodeStore(dir)
  await store.write('tokens', ['revoked', 'valid'])
  // In its way: the copy cannot be written.
  await fs.mkdir(path.join(dir, 'tokens.json.copy.tmp'))
  await store.write('tokens', ['valid'])
  t.alike(await openNodeStore(dir).read('tokens'), ['valid'])
  await fs.writeFile(path.join(dir, 'tokens.json'), 'damaged')
  await failsWith(t, 'STORE_DAMAGED', () => openNodeStore(dir).read('tokens'))
})

test('a backup takes the file of a document that is whole, and none where both are damaged', async (t) => {
  const dir = await tempDir(t)
  const [store, none] = [openNodeStore(dir), new Set<string>()]
  await store.write('mesh', 'whole')
  await store.write('tokens', 'left out')
  const [mesh] = await documentTexts(dir, new Set(['tokens']))
  t.is(mesh?.name, 'mesh')
  await fs.writeFile(path.join(dir, 'mesh.json'), 'damaged')
  t.is((await documentTexts(dir, none))[0]?.text, mesh?.text)
  await fs.rm(path.join(dir, 'mesh.json'))
  t.alike(
    (await documentTexts(dir, none)).map(({ name }) => name),
    ['mesh', 'tokens']
  )
  await fs.writeFile(path.join(dir, 'mesh.json.copy'), 'damaged')
  await failsWith(t, 'STORE_DAMAGED', () => documentTexts(dir, none))
})

test('files and directories of others beside documents are taken as they are, or not looked at', async (t) => {
  const dir = await tempDir(t)
  await openNodeStore(dir).write('mesh', 'whole')
  await fs.writeFile(path.join(dir, 'items.json'), '["mine"]')
  await fs.mkdir(path.join(dir, 'folder.json'))
  t.alike(await mendDocuments(dir), [])
  t.alike(
    (await documentTexts(dir, new Set(['mesh']))).map(({ name, text }) => [name, text]),
    [['items', '["mine"]']]
  )
  await fs.truncate(path.join(dir, 'mesh.json'), 40)
  await fs.rm(path.join(dir, 'mesh.json.copy'))
  await failsWith(t, 'STORE_DAMAGED', () => documentTexts(dir, new Set(['items'])))
})

test('an older copy never replaces a written file, and does not bring back a removed one', async (t) => {
  const dir = await tempDir(t)
  const store = openNodeStore(dir)
  const copy = path.join(dir, 'mesh.json.copy')
  await store.write('mesh', 'old')
  const old = await fs.readFile(copy)
  await store.write('mesh', 'new')
  // Killed between the two files.
  await fs.writeFile(copy, old)
  t.is(await openNodeStore(dir).read('mesh'), 'new')
  t.alike(await mendDocuments(dir), [])
  await fs.writeFile(path.join(dir, 'mesh.json'), '{}')
  t.is(await openNodeStore(dir).read('mesh'), 'new', 'the copy was renewed')
  await store.remove('mesh')
  t.alike([await openNodeStore(dir).read('mesh'), await mendDocuments(dir), await fs.readdir(dir)], [null, [], []])
})

test('any change of a byte is found, never served', async (t) => {
  const dir = await tempDir(t)
  const store = openNodeStore(dir)
  const file = path.join(dir, 'identity.json')
  await store.write('identity', { name: 'laptop', ids: [1, 2, 3], nested: { on: true } })
  await fs.rm(`${file}.copy`)
  const good = await fs.readFile(file)
  const property = fc.asyncProperty(
    fc.nat(good.byteLength - 2),
    fc.integer({ min: 1, max: 255 }),
    async (at, change) => {
      const bad = Buffer.from(good)
      bad[at] = (bad[at] ?? 0) ^ change
      await fs.writeFile(file, bad)
      try {
        // Only a change that means nothing (white space for white space) may be read, and then as it was.
        return JSON.stringify(await store.read('identity')) === '{"ids":[1,2,3],"name":"laptop","nested":{"on":true}}'
      } catch (error) {
        return error instanceof Error && 'code' in error && error.code === 'STORE_DAMAGED'
      }
    }
  )
  await holds(t, property)
})

test('an empty, cut or foreign file is STORE_DAMAGED and says what helps', async (t) => {
  const dir = await tempDir(t)
  for (const text of ['', '{', '{"sha256":"00"', 'null', '{"value":1}', '{"sha256":"00","value":1}']) {
    await fs.writeFile(path.join(dir, 'mesh.json'), text)
    const error = await failsWith(t, 'STORE_DAMAGED', () => openNodeStore(dir).read('mesh'))
    t.ok(error.message.includes('mesh.json'))
    t.alike(error.next.slice(0, 2), ['a2a-node doctor', 'a2a-node doctor --repair'])
  }
})

test('half-written files of a crash beside the document are ignored and replaced', async (t) => {
  const dir = await tempDir(t)
  const store = openNodeStore(dir)
  await store.write('mesh', { key: 'old' })
  await fs.writeFile(path.join(dir, 'mesh.json.tmp'), '{"sha')
  t.alike(await store.read('mesh'), { key: 'old' })
  await store.write('mesh', { key: 'new' })
  t.alike(await store.read('mesh'), { key: 'new' })
  t.alike(await fs.readdir(dir), ['mesh.json', 'mesh.json.copy'])
})

test('a write that fails leaves the old document, no litter, and does not stop the next', async (t) => {
  const dir = await tempDir(t)
  const store = openNodeStore(dir)
  await store.write('mesh', 1)
  await fs.mkdir(path.join(dir, 'mesh.json.tmp'))
  await t.exception(store.write('mesh', 2))
  t.is(await store.read('mesh'), 1)
  await fs.rm(path.join(dir, 'mesh.json.tmp'), { recursive: true, force: true })
  await store.write('mesh', 3)
  t.is(await store.read('mesh'), 3)
})

test('a name can never leave the directory', async (t) => {
  const store = openNodeStore(await tempDir(t))
  for (const name of ['../up', 'a/b', '', '.', 'A', 'a b', 'a.json'])
    await failsWith(t, 'INTERNAL', () => store.read(name))
})

test('each name that the config allows for an import is the name of a stored document, and no other path is', async (t) => {
  const dir = await tempDir(t)
  const store = openNodeStore(dir)
  const names = fc.stringMatching(/^[a-zA-Z0-9_.-]{1,6}$/).filter((name) => serverName.safeParse(name).success)
  const property = fc.asyncProperty(names, async (name) => {
    await store.write(`mcp-${name}`, { name })
    return JSON.stringify(await openNodeStore(dir).read(`mcp-${name}`)) === JSON.stringify({ name })
  })
  await holds(t, property, 100)
  for (const name of ['my_server', 'a-b_c', '1_2']) await t.execution(store.write(`a2a-${name}`, 1), name)
  for (const name of ['../mesh', 'a/b', '_a', 'a_', 'a__b', 'a-_b', 'A', 'a.json', ''])
    await failsWith(t, 'INTERNAL', () => store.read(name))
})
