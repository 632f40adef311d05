import path from 'node:path'
import test, { type Assert } from 'brittle'
import Corestore from 'corestore'
import { setBeginning } from '../../../../src/adapters/mesh/cores/core-beginning.js'
import { keyFromText, utf8 } from '../../../../src/kit/ids.js'
import { tempDir } from '../../../support/tmp.js'
import { everybody, link, numbered, Side, sides, storedBlocks } from '../cores-lab.js'

test('of a stream that begins later nothing before is left, also after a restart, and it never begins earlier again', async (t: Assert) => {
  const dir = await tempDir(t)
  const ann = new Side(t, path.join(dir, 'ann'))
  const { stream } = await ann.cores.own('doc')
  const blocks = numbered(10)
  await ann.cores.append(stream, blocks)
  await ann.cores.begin(stream, 9)
  ann.cores.follow([everybody(stream)])
  t.alike(await ann.cores.read(stream, 0, 99), blocks, 'it was not followed')
  t.alike(ann.cores.size(stream), { blocks: 10, from: 0, bytes: 100 })
  await ann.cores.begin(stream, 4)
  const later = async (side: Side): Promise<void> => {
    t.alike(await side.cores.read(stream, 4, 99), blocks.slice(4))
    for (const from of [0, 3]) t.alike(await side.cores.read(stream, from, 99), [], 'nothing from before on')
    t.alike(side.cores.size(stream), { blocks: 10, from: 4, bytes: 60 })
    t.is(await side.cores.length(stream), 10)
  }
  await later(ann)
  for (const earlier of [0, 3, 4]) await ann.cores.begin(stream, earlier)
  await later(ann)
  await ann.cores.close()
  t.alike(await storedBlocks(path.join(dir, 'ann'), stream), [4, 5, 6, 7, 8, 9])
  const again = new Side(t, path.join(dir, 'ann'))
  again.cores.follow([everybody(stream)])
  await later(again)
  await again.cores.begin(stream, 3)
  await later(again)
  await again.cores.begin(stream, 10)
  t.alike(again.cores.size(stream), { blocks: 10, from: 10, bytes: 0 })
  t.alike(await again.cores.read(stream, 10, 99), [])
})

test('a node killed while it cut a stream with a hole removes the rest at its next start', async (t: Assert) => {
  const dir = await tempDir(t)
  const ann = new Side(t, path.join(dir, 'ann'))
  const { stream } = await ann.cores.own('doc')
  await ann.cores.append(stream, numbered(10))
  await ann.cores.close()
  const store = new Corestore(path.join(dir, 'ann'))
  const core = store.get({ key: keyFromText(stream), writable: false })
  await core.ready()
  await core.clear(0, 1)
  // What is written first.
  await setBeginning(core, { blocks: 8, isShort: false })
  await store.close()
  const again = new Side(t, path.join(dir, 'ann'))
  again.cores.follow([everybody(stream)])
  t.is((await again.cores.read(stream, 8, 9)).length, 2)
  await again.cores.close()
  t.alike(await storedBlocks(path.join(dir, 'ann'), stream), [8, 9])
})

test('the size of a stream from its beginning on follows from its own tree, also at a node that never had the earlier blocks', async (t: Assert) => {
  const dir = await tempDir(t)
  const [ann, bob] = ['ann', 'bob'].map((name) => new Side(t, path.join(dir, name))) as [Side, Side]
  const { stream } = await ann.cores.own('doc')
  const blocks = Array.from({ length: 50 }, (_, at) => new Uint8Array(at * at))
  const bytesFrom = (from: number): number => blocks.slice(from).reduce((sum, { byteLength }) => sum + byteLength, 0)
  await ann.cores.append(stream, blocks)
  for (const side of [ann, bob]) side.cores.follow([everybody(stream)])
  for (const from of [7, 32, 49]) {
    await ann.cores.begin(stream, from)
    t.is(ann.cores.size(stream).bytes, bytesFrom(from))
  }
  await bob.cores.begin(stream, 49)
  await link(t, ['ann', ann], ['bob', bob])
  await bob.until(() => bob.cores.size(stream).blocks === 50)
  await ann.cores.append(stream, [utf8('more')])
  await bob.until(() => bob.cores.size(stream).blocks === 51)
  t.is(bob.cores.size(stream).bytes, bytesFrom(49) + 4)
  await bob.cores.close()
  const again = new Side(t, path.join(dir, 'bob'))
  again.cores.follow([everybody(stream)])
  t.alike(await again.cores.read(stream, 50, 9), [utf8('more')])
  t.is(again.cores.size(stream).bytes, bytesFrom(49) + 4)
})

test('of a stream whose first block behind its beginning nobody gives nothing is fetched: it could have any size', async (t: Assert) => {
  const dir = await tempDir(t)
  const [ann, bob] = ['ann', 'bob'].map((name) => new Side(t, path.join(dir, name))) as [Side, Side]
  const [stream, other] = [(await ann.cores.own('doc')).stream, (await ann.cores.own('other')).stream]
  await ann.cores.append(stream, numbered(10))
  for (const side of [ann, bob]) side.cores.follow([everybody(stream), everybody(other)])
  await ann.cores.begin(stream, 7)
  await bob.cores.begin(stream, 6)
  await link(t, ['ann', ann], ['bob', bob])
  for (let round = 1; round <= 5; round++) {
    await ann.cores.append(other, numbered(1))
    await bob.until(() => bob.cores.size(other).blocks === round)
  }
  t.alike(bob.cores.size(stream), { blocks: 6, from: 6, bytes: 0 })
  await bob.cores.close()
  t.alike(await storedBlocks(path.join(dir, 'bob'), stream), [])
})

test('an own stream that begins later is whole and goes on, but not if it begins behind what is here of it', async (t: Assert) => {
  const dir = await tempDir(t)
  const ann = new Side(t, path.join(dir, 'ann'))
  const { stream } = await ann.cores.own('doc')
  await ann.cores.append(stream, numbered(10))
  ann.cores.follow([everybody(stream)])
  await ann.cores.begin(stream, 10)
  t.alike(await ann.cores.own('doc'), { stream, blocks: 10, isWhole: true })
  t.is(await ann.cores.append(stream, [utf8('eleven')]), 11)
  await ann.cores.begin(stream, 10)
  t.alike(await ann.cores.read(stream, 10, 99), [utf8('eleven')])
  await ann.cores.close()
  const again = new Side(t, path.join(dir, 'ann'))
  t.alike(await again.cores.own('doc'), { stream, blocks: 11, isWhole: true })
  again.cores.follow([everybody(stream)])
  t.is(await again.cores.append(stream, [utf8('twelve')]), 12)
  t.alike(again.cores.size(stream), { blocks: 12, from: 10, bytes: 12 })
  await again.cores.begin(stream, 13)
  t.alike(await again.cores.own('doc'), { stream, blocks: 12, isWhole: false }, 'others have more of it')
  await t.exception(again.cores.append(stream, [utf8('once more')]), /newer blocks/)
  await again.cores.close()
  const last = new Side(t, path.join(dir, 'ann'))
  t.absent((await last.cores.own('doc')).isWhole)
})

test('a newcomer whose stream begins later fetches the later blocks, from nodes that have only these and from nodes that have all', async (t: Assert) => {
  const dir = await tempDir(t)
  const [ann, bob, cat] = ['ann', 'bob', 'cat'].map((name) => new Side(t, path.join(dir, name))) as [Side, Side, Side]
  const { stream } = await ann.cores.own('doc')
  const blocks = numbered(10)
  await ann.cores.append(stream, blocks)
  for (const side of [ann, bob, cat]) side.cores.follow([everybody(stream)])
  await bob.cores.begin(stream, 6)
  t.is(bob.cores.size(stream).from, 6)
  t.is(bob.cores.size(stream).bytes, 0, 'nothing is known of it yet')
  await link(t, ['ann', ann], ['bob', bob])
  await bob.until(() => bob.cores.size(stream).blocks === 10)
  t.alike(bob.cores.size(stream), { blocks: 10, from: 6, bytes: 40 })
  t.alike(await bob.cores.read(stream, 6, 99), blocks.slice(6))
  await ann.cores.close()
  // bob has no block before.
  await cat.cores.begin(stream, 7)
  await link(t, ['bob', bob], ['cat', cat])
  await cat.until(() => cat.cores.size(stream).blocks === 10)
  t.alike(await cat.cores.read(stream, 7, 99), blocks.slice(7))
  await Promise.all([bob, cat].map((side) => side.cores.close()))
  t.alike(await storedBlocks(path.join(dir, 'bob'), stream), [6, 7, 8, 9])
  t.alike(await storedBlocks(path.join(dir, 'cat'), stream), [7, 8, 9])
})

test('a node without blocks that others removed continues once the stream begins behind them there', async (t: Assert) => {
  const [ann, bob] = (await sides(t, 'ann', 'bob')) as [Side, Side]
  const { stream } = await ann.cores.own('doc')
  for (const side of [ann, bob]) side.cores.follow([everybody(stream)])
  await ann.cores.append(stream, numbered(10))
  await ann.cores.begin(stream, 6)
  await link(t, ['ann', ann], ['bob', bob])
  await bob.until(() => bob.fetched.has(stream))
  t.is(bob.cores.size(stream).blocks, 0, 'there is a hole')
  await bob.cores.begin(stream, 6)
  await bob.until(() => bob.cores.size(stream).blocks === 10)
  await ann.cores.append(stream, [utf8('more')])
  await bob.until(() => bob.cores.size(stream).blocks === 11)
  t.alike(await bob.cores.read(stream, 10, 9), [utf8('more')])
})

test('a node that removes the first blocks of a stream gets none of them again from nodes that have them', async (t: Assert) => {
  const [ann, bob] = (await sides(t, 'ann', 'bob')) as [Side, Side]
  const { stream } = await ann.cores.own('doc')
  for (const side of [ann, bob]) side.cores.follow([everybody(stream)])
  await ann.cores.append(stream, numbered(2000))
  await link(t, ['ann', ann], ['bob', bob])
  await bob.until(() => bob.cores.size(stream).blocks === 2000)
  for (const from of [500, 1000, 1500, 1999]) {
    await ann.cores.begin(stream, from)
    await ann.cores.append(stream, numbered(1))
    const { blocks } = ann.cores.size(stream)
    await bob.until(() => bob.cores.size(stream).blocks === blocks)
  }
  t.alike([...ann.fetched], [], 'an own stream that is fetched is left')
  t.ok((await ann.cores.own('doc')).isWhole)
})

test('an own stream is whole all the while that it begins later', async (t: Assert) => {
  const [ann] = (await sides(t, 'ann')) as [Side]
  const { stream } = await ann.cores.own('doc')
  ann.cores.follow([everybody(stream)])
  await ann.cores.append(stream, numbered(500))
  for (const from of [100, 200, 300, 400]) {
    let isDone = false
    const begun = ann.cores.begin(stream, from).then(() => (isDone = true))
    const asked: Promise<{ readonly isWhole: boolean }>[] = []
    while (!isDone) {
      asked.push(ann.cores.own('doc'))
      // Not after each other: one that takes long would pass over the moment.
      await new Promise((resolve) => setImmediate(resolve))
    }
    await begun
    t.alike(new Set((await Promise.all(asked)).map(({ isWhole }) => isWhole)), new Set([true]))
    await ann.cores.append(stream, numbered(1))
  }
})
