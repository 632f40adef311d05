import { cp, rm } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import Corestore from 'corestore'
import { setBeginning } from '../../../src/adapters/mesh/core-beginning.js'
import { DocumentCores } from '../../../src/adapters/mesh/document-cores.js'
import { systemClock } from '../../../src/adapters/system/system-clock.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { fromUtf8, keyFromText, utf8 } from '../../../src/kit/ids.js'
import type { FollowedStream } from '../../../src/ports/documents.js'
import { actor } from '../../support/membership.js'
import { tempDir } from '../../support/tmp.js'
import { streamPair } from './stream-pair.js'

const everybody = (stream: string): FollowedStream => ({ stream, mayHave: () => true })
const nobody = (stream: string): FollowedStream => ({ stream, mayHave: () => false })

/** The cores of one node, with what it was told. */
class Side {
  readonly cores: DocumentCores
  readonly forked: string[] = []
  /** Streams of which blocks came from others. */
  readonly fetched = new Set<string>()
  /** How often its store was opened. */
  opened = 0
  #waiting: (() => void)[] = []

  constructor(t: Assert, dir: string) {
    const clock = systemClock()
    this.cores = new DocumentCores({
      clock,
      telemetry: new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} }),
      open: async () => {
        this.opened++
        const store = new Corestore(dir)
        await store.ready()
        return store
      }
    })
    this.cores.start({
      onBlocks: () => this.#wake(),
      onFetched: (stream) => {
        this.fetched.add(stream)
        this.#wake()
      },
      onForked: (stream) => {
        this.forked.push(stream)
        this.#wake()
      }
    })
    t.teardown(() => this.cores.close())
    // Streams and clocks of these tests keep no process alive.
    const alive = setInterval(() => {}, 60_000)
    t.teardown(() => clearInterval(alive))
  }

  /** Resolves when something is so; looked at whenever the cores tell something. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  #wake(): void {
    for (const go of this.#waiting.splice(0)) go()
  }
}

async function sides(t: Assert, ...names: readonly string[]): Promise<Side[]> {
  const dir = await tempDir(t)
  return names.map((name) => new Side(t, path.join(dir, name)))
}

/** Ten bytes each. */
function numbered(count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, at) => utf8(`block ${String(at).padStart(4, '0')}`))
}

/** The blocks of a stream that are in the store of a closed side. */
async function storedBlocks(dir: string, stream: string): Promise<number[]> {
  const store = new Corestore(dir)
  const core = store.get({ key: keyFromText(stream), writable: false })
  await core.ready()
  const blocks = await Promise.all(Array.from({ length: core.length }, (_, at) => core.get(at, { wait: false })))
  await store.close()
  return blocks.flatMap((block, at) => (block === null ? [] : [at]))
}

async function link(t: Assert, a: readonly [string, Side], b: readonly [string, Side]): Promise<void> {
  const [one, other] = await streamPair(t, a[0], b[0])
  a[1].cores.link(actor(b[0]).id, one)
  b[1].cores.link(actor(a[0]).id, other)
}

test('nothing is opened before a stream is followed or written', async (t: Assert) => {
  const [ann] = (await sides(t, 'ann')) as [Side]
  ann.cores.follow([])
  t.alike(ann.cores.size('nothing'), { blocks: 0, from: 0, bytes: 0 })
  t.is(ann.opened, 0)
  await ann.cores.own('doc')
  await ann.cores.own('doc')
  t.is(ann.opened, 1)
})

test('what is written goes to those who may have it, and from them on when its writer is gone', async (t: Assert) => {
  const [ann, bob, cat] = (await sides(t, 'ann', 'bob', 'cat')) as [Side, Side, Side]
  await link(t, ['ann', ann], ['bob', bob])
  const { stream } = await ann.cores.own('doc')
  for (const side of [ann, bob, cat]) side.cores.follow([everybody(stream)])
  await ann.cores.append(stream, [utf8('one'), utf8('two')])
  await bob.until(() => bob.cores.size(stream).blocks === 2)
  await ann.cores.close()
  await link(t, ['bob', bob], ['cat', cat])
  await cat.until(() => cat.cores.size(stream).blocks === 2)
  t.alike(await cat.cores.read(stream, 0, 9), [utf8('one'), utf8('two')])
  t.alike(await cat.cores.read(stream, 1, 9), [utf8('two')])
})

test('how long a stream is, is known though it is just being opened, was removed or is not followed', async (t: Assert) => {
  const dir = await tempDir(t)
  const ann = new Side(t, path.join(dir, 'ann'))
  const { stream } = await ann.cores.own('doc')
  t.is(await ann.cores.length(stream), 0)
  await ann.cores.append(stream, [utf8('one'), utf8('two')])
  ann.cores.follow([everybody(stream)])
  t.is(await ann.cores.length(stream), 2)
  ann.cores.follow([])
  await ann.cores.remove([stream])
  t.is(await ann.cores.length(stream), 2)
  await ann.cores.close()
  const again = new Side(t, path.join(dir, 'ann'))
  again.cores.follow([everybody(stream)])
  t.is(again.cores.size(stream).blocks, 0)
  t.is(await again.cores.length(stream), 2)
  await again.cores.close()
  await t.exception(again.cores.length(actor('nobody').id), /cannot be opened/)
})

test('a peer that may not have a stream gets nothing of it, whatever it opens by its key', async (t: Assert) => {
  const [ann, bob] = (await sides(t, 'ann', 'bob')) as [Side, Side]
  const [hidden, open] = [(await ann.cores.own('hidden')).stream, (await ann.cores.own('open')).stream]
  ann.cores.follow([nobody(hidden), everybody(open)])
  await ann.cores.append(hidden, [utf8('secret')])
  await ann.cores.append(open, [utf8('known')])
  await link(t, ['ann', ann], ['bob', bob])
  bob.cores.follow([everybody(hidden), everybody(open)])
  await bob.until(() => bob.cores.size(open).blocks === 1)
  // What it opened first was refused by then.
  t.alike(bob.cores.size(hidden), { blocks: 0, from: 0, bytes: 0 })
  ann.cores.follow([everybody(hidden), everybody(open)])
  await bob.until(() => bob.cores.size(hidden).blocks === 1)
  ann.cores.follow([nobody(hidden), everybody(open)])
  await ann.cores.append(hidden, [utf8('later')])
  await ann.cores.append(open, [utf8('later')])
  await bob.until(() => bob.cores.size(open).blocks === 2)
  t.is(bob.cores.size(hidden).blocks, 1, 'and nothing more once it may not any more')
})

test('a writer with two tales of one stream is found by who has one of them, though both are as long', async (t: Assert) => {
  const dir = await tempDir(t)
  const writer = new Side(t, path.join(dir, 'ann'))
  const { stream } = await writer.cores.own('doc')
  await writer.cores.append(stream, [utf8('first')])
  await writer.cores.close()
  await cp(path.join(dir, 'ann'), path.join(dir, 'twin'), { recursive: true })
  await rm(path.join(dir, 'twin', 'CORESTORE'))
  const [left, right] = [new Side(t, path.join(dir, 'ann')), new Side(t, path.join(dir, 'twin'))]
  for (const [side, tale] of [
    [left, 'left'],
    [right, 'right']
  ] as const) {
    await side.cores.own('doc')
    side.cores.follow([everybody(stream)])
    await side.cores.append(stream, [utf8(tale)])
  }
  const [bob, cat] = (await sides(t, 'bob', 'cat')) as [Side, Side]
  for (const side of [bob, cat]) side.cores.follow([everybody(stream)])
  await link(t, ['bob', bob], ['ann', left])
  await link(t, ['cat', cat], ['ann', right])
  await bob.until(() => bob.cores.size(stream).blocks === 2)
  await cat.until(() => cat.cores.size(stream).blocks === 2)
  t.alike(bob.forked, [])
  await link(t, ['bob', bob], ['ann', right])
  await bob.until(() => bob.forked.length > 0)
  t.alike(bob.forked, [stream])
  t.alike(await bob.cores.read(stream, 0, 9), [])
  // Who has the other tale hears of it from who knows already that there are two.
  await link(t, ['cat', cat], ['bob', bob])
  await cat.until(() => cat.forked.length > 0)
  t.alike(cat.forked, [stream])
})

test('a stream of this node that was put back is told of once others have more of it', async (t: Assert) => {
  const dir = await tempDir(t)
  const before = new Side(t, path.join(dir, 'ann'))
  const { stream } = await before.cores.own('doc')
  await before.cores.append(stream, [utf8('one')])
  await before.cores.close()
  await cp(path.join(dir, 'ann'), path.join(dir, 'older'), { recursive: true })
  await rm(path.join(dir, 'older', 'CORESTORE'))
  const [ann, bob] = [new Side(t, path.join(dir, 'ann')), new Side(t, path.join(dir, 'bob'))]
  t.alike(await ann.cores.own('doc'), { stream, blocks: 1, isWhole: true })
  for (const side of [ann, bob]) side.cores.follow([everybody(stream)])
  t.is(await ann.cores.append(stream, [utf8('two'), utf8('three')]), 3)
  await link(t, ['ann', ann], ['bob', bob])
  await bob.until(() => bob.cores.size(stream).blocks === 3)
  t.alike([...ann.fetched], [])
  await ann.cores.close()
  const older = new Side(t, path.join(dir, 'older'))
  t.alike(await older.cores.own('doc'), { stream, blocks: 1, isWhole: true })
  older.cores.follow([everybody(stream)])
  await link(t, ['ann', older], ['bob', bob])
  await older.until(() => older.cores.size(stream).blocks === 3)
  t.alike([...older.fetched], [stream])
})

test('what is kept of a document is there after a restart, and is replaced whole', async (t: Assert) => {
  const dir = await tempDir(t)
  const ann = new Side(t, path.join(dir, 'ann'))
  t.is(await ann.cores.kept('doc'), null)
  const large = new Uint8Array(3_000_000).fill(7)
  await ann.cores.keep('doc', utf8('first'))
  await ann.cores.keep('doc', large)
  await ann.cores.keep('other', utf8('other'))
  await ann.cores.close()
  const again = new Side(t, path.join(dir, 'ann'))
  const kept = await again.cores.kept('doc')
  t.is(kept?.byteLength, large.byteLength)
  t.ok(kept?.every((byte) => byte === 7))
  await again.cores.keep('doc', null)
  t.is(await again.cores.kept('doc'), null)
  t.is(fromUtf8((await again.cores.kept('other')) ?? new Uint8Array()), 'other')
})

test('a stream that cannot be opened is not taken for an empty one', async (t: Assert) => {
  const clock = systemClock()
  const cores = new DocumentCores({
    clock,
    telemetry: new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} }),
    open: () => Promise.reject(new Error('the disk is gone'))
  })
  const { id } = actor('ann')
  cores.follow([everybody(id)])
  await t.exception(cores.read(id, 0, 9), /cannot be opened/)
  t.alike(cores.size(id).blocks, 0)
  await cores.close()
})

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

test('who was killed while a stream with a hole was to begin later removes the rest at its next start', async (t: Assert) => {
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

test('how many bytes a stream has from its beginning on is told by its own tree, also to who never had what is before', async (t: Assert) => {
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
  await t.exception(again.cores.append(stream, [utf8('once more')]), /others have more/)
  await again.cores.close()
  const last = new Side(t, path.join(dir, 'ann'))
  t.absent((await last.cores.own('doc')).isWhole)
})

test('a newcomer whose stream begins later fetches what is behind, from who has no more and from who has all', async (t: Assert) => {
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

test('who lacks what others no longer have of a stream goes on once it begins there', async (t: Assert) => {
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
