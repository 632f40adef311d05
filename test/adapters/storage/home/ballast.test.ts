import fs from 'node:fs/promises'
import path from 'node:path'
import { deflateSync } from 'node:zlib'
import test from 'brittle'
import { BALLAST_BYTES, openBallast } from '../../../../src/adapters/storage/home/ballast.js'
import { smallDisk } from '../../../support/small-disk.js'
import { tempDir } from '../../../support/tmp.js'

test('a ballast takes the space that it gives back, and is made once', async (t) => {
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

test('a ballast takes its space also where the file system compresses', async (t) => {
  const file = path.join(await tempDir(t), 'ballast')
  t.ok(await openBallast(file).fill())
  // ZFS and btrfs compress records of 128 KiB.
  const record = (await fs.readFile(file)).subarray(0, 128 * 1024)
  t.ok(deflateSync(record).length >= record.length)
})

test('a disk with little space has a smaller ballast; once freed it needs the same space again and some more', async (t) => {
  const disk = await smallDisk(t, 32)
  if (typeof disk === 'string') return t.comment(`skipped: ${disk}`)
  const file = path.join(disk.dir, 'ballast')
  const ballast = openBallast(file)
  t.ok(await ballast.fill())
  t.is((await fs.stat(file)).size, 8 * 1024 * 1024)
  await disk.fill()
  await ballast.free()
  t.is(ballast.neededBytes, 12 * 1024 * 1024)
  t.absent(await ballast.fill(), 'its own space alone is not enough')
  t.alike(await fs.readdir(disk.dir), ['pad'])
  await fs.truncate(path.join(disk.dir, 'pad'), 19 * 1024 * 1024)
  t.ok(await ballast.fill())
  t.is((await fs.stat(file)).size, 8 * 1024 * 1024)
})

test('a ballast is not made where it would fill the disk', async (t) => {
  const disk = await smallDisk(t, 5)
  if (typeof disk === 'string') return t.comment(`skipped: ${disk}`)
  const ballast = openBallast(path.join(disk.dir, 'ballast'))
  t.absent(await ballast.fill())
  t.is(ballast.neededBytes, 6 * 1024 * 1024)
  t.alike(await fs.readdir(disk.dir), [])
})
