import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import fc from 'fast-check'
import { openDurableLedger } from '../../../../src/adapters/storage/ledger/durable-ledger.js'
import { utf8 } from '../../../../src/kit/ids.js'
import { failsWith } from '../../../support/fails.js'
import { holds } from '../../../support/holds.js'
import { home, journals, keys, keysOf, numbered } from '../../../support/ledger-home.js'

test('a crash at any moment leaves every commit that was promised, whole, and none behind a gap', async (t) => {
  const { dir, open } = await home(t)
  const ledger = await open()
  for (let at = 1; at <= 20; at++) await ledger.commit([numbered(at), { key: `twin/${at}`, value: utf8('x') }])
  const [journal] = await journals(dir)
  const bytes = await fs.readFile(path.join(dir, journal ?? ''))
  const property = fc.asyncProperty(
    fc.nat(bytes.byteLength),
    fc.uint8Array({ maxLength: 40 }),
    async (length, torn) => {
      // The store has nothing yet: all comes from the journal, of which the end did not get to the disk as it was
      // written.
      const crashed = await home(t)
      await fs.mkdir(crashed.dir, { recursive: true })
      await fs.writeFile(path.join(crashed.dir, journal ?? ''), Buffer.concat([bytes.subarray(0, length), torn]))
      const after = await crashed.open()
      const found = await keysOf(after)
      const twins = await after.list({ from: 'twin/', to: 'twin0', limit: 100 })
      await after.close()
      return found.join() === keys(found.length).join() && twins.length === found.length && found.length <= 20
    }
  )
  await holds(t, property, 100)
})

test('any change of a byte before the last commits is found, unless the store has them already', async (t) => {
  const { dir, open } = await home(t)
  const ledger = await open()
  for (let at = 1; at <= 10; at++) await ledger.commit([numbered(at)])
  const [journal] = await journals(dir)
  const good = await fs.readFile(path.join(dir, journal ?? ''))
  const promised = Math.floor((good.byteLength / 10) * 8)
  const property = fc.asyncProperty(fc.nat(promised), fc.integer({ min: 1, max: 255 }), async (at, change) => {
    const damaged = await home(t)
    await fs.mkdir(damaged.dir, { recursive: true })
    const bad = Buffer.from(good)
    bad[at] = (bad[at] ?? 0) ^ change
    await fs.writeFile(path.join(damaged.dir, journal ?? ''), bad)
    const code = await damaged.open().then(
      (opened) => opened.close().then(() => 'opened'),
      (error: { code: string }) => error.code
    )
    return code === 'STORE_DAMAGED'
  })
  await holds(t, property, 100)
  await fs.writeFile(path.join(dir, journal ?? ''), good.fill(0, 0, promised))
  await ledger.close()
  t.alike(await keysOf(await open()), keys(10))
})

test('a ledger that lost what was committed before its process was killed is found, however it was lost', async (t) => {
  for (const durability of ['power', 'process'] as const) {
    const { dir, open, marked } = await home(t, durability)
    const ledger = await open()
    for (let at = 1; at <= 20; at++) await ledger.commit([numbered(at)])
    await marked(20)
    // As the kill leaves it.
    const [journal] = await journals(dir)
    const place = path.join(`${dir}-killed`, journal ?? '')
    const found = async (): Promise<string[] | null> => {
      const again = await openDurableLedger({
        dir: `${dir}-killed`,
        durability,
        mark: { read: async () => 20, write: async () => {} }
      })
      const held = await keysOf(again)
      await again.close()
      return held
    }
    const killed = async (): Promise<void> => {
      await fs.rm(`${dir}-killed`, { recursive: true, force: true })
      await fs.cp(dir, `${dir}-killed`, { recursive: true, filter: (name) => path.basename(name) !== 'LOCK' })
    }
    await killed()
    t.alike(await found(), keys(20), 'a kill alone loses nothing')
    await killed()
    await fs.truncate(place, Math.floor((await fs.stat(place)).size / 2))
    await failsWith(t, 'STORE_DAMAGED', found)
    await killed()
    await fs.rm(place)
    await failsWith(t, 'STORE_DAMAGED', found)
    await fs.rm(`${dir}-killed`, { recursive: true })
    await failsWith(t, 'STORE_DAMAGED', found)
  }
})
