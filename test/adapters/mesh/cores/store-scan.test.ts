import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import Corestore from 'corestore'
import { closeStore } from '../../../../src/adapters/mesh/cores/core-store.js'
import { readEntries } from '../../../../src/adapters/mesh/cores/store-scan.js'
import { tempDir } from '../../../support/tmp.js'

test('reading all entries of a store fails for any damaged entry', async (t) => {
  const dir = await tempDir(t)
  const store = new Corestore(dir)
  const core = store.get({ name: 'one' })
  await core.append(Array.from({ length: 200 }, (_, at) => Buffer.alloc(100, at)))
  await closeStore(store)
  const tables = (await fs.readdir(path.join(dir, 'db'))).filter((name) => /\.(sst|blob)$/.test(name))
  t.ok(tables.length > 0)
  for (const name of tables) {
    const file = path.join(dir, 'db', name)
    const whole = await fs.readFile(file)
    for (const place of [0.2, 0.5, 0.8]) {
      await damage(file, whole, Math.floor(whole.length * place))
      t.ok(await isDamaged(dir), `${name} at ${place}`)
      await damage(file, whole, null)
    }
  }
  t.absent(await isDamaged(dir), 'and does not where none is')
})

/** In place: a store knows its files by their numbers in the file system. null: as it was. */
async function damage(file: string, whole: Buffer, at: number | null): Promise<void> {
  const bytes = Buffer.from(whole)
  if (at !== null) bytes[at] = (bytes[at] ?? 0) ^ 0x10
  const handle = await fs.open(file, 'r+')
  await handle.write(bytes, 0, bytes.length, 0)
  await handle.close()
}

async function isDamaged(dir: string): Promise<boolean> {
  const store = new Corestore(dir)
  try {
    await readEntries(store)
    return false
  } catch {
    return true
  } finally {
    await closeStore(store).catch(() => {})
  }
}
