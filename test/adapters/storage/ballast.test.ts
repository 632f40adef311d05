import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { BALLAST_BYTES, openBallast } from '../../../src/adapters/storage/ballast.js'
import { smallDisk } from '../../support/small-disk.js'
import { tempDir } from '../../support/tmp.js'

test('a ballast takes the room that it gives back, and is made once', async (t) => {
  const file = path.join(await tempDir(t), 'ballast')
  const ballast = openBallast(file)
  t.ok(await ballast.fill())
  const { size, blocks, ino } = await fs.stat(file)
  t.is(size, BALLAST_BYTES)
  t.ok(blocks * 512 >= BALLAST_BYTES, 'it is no hole')
  t.ok(await ballast.fill())
  t.is((await fs.stat(file)).ino, ino)
  await ballast.free()
  await ballast.free()
  t.absent(await fs.stat(file).catch(() => null))
})

test('a ballast is not made where it would fill the disk', async (t) => {
  const disk = await smallDisk(t, 32)
  if (typeof disk === 'string') return t.comment(`skipped: ${disk}`)
  const ballast = openBallast(path.join(disk.dir, 'ballast'))
  t.absent(await ballast.fill())
  t.alike(await fs.readdir(disk.dir), [])
})
