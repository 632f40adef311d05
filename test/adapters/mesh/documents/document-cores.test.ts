import { cp, rm } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import Corestore from 'corestore'
import type Hypercore from 'hypercore'
import { DocumentCores } from '../../../../src/adapters/mesh/documents/document-cores.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { MAX_STORED_BLOCK_BYTES } from '../../../../src/adapters/mesh/documents/stream-fetch.js'
import { BLOCK_LIMITS } from '../../../../src/domain/document/block.js'
import { ENVELOPE_LIMITS } from '../../../../src/domain/envelope/limits.js'
import { sealBlock } from '../../../../src/node/documents/local-streams.js'
import { asNodeError } from '../../../../src/kit/errors.js'
import { fromUtf8, type IdSource, utf8 } from '../../../../src/kit/ids.js'
import type { FollowedStream } from '../../../../src/ports/documents.js'
import { actor } from '../../../support/membership.js'
import { tempDir } from '../../../support/tmp.js'
import { everybody, link, nobody, Side, sides, storedBlocks } from '../cores-lab.js'

test('nothing is opened before a stream is followed or written', async (t: Assert) => {
  const [ann] = (await sides(t, 'ann')) as [Side]
  ann.cores.follow([])
  t.alike(ann.cores.size('nothing'), { blocks: 0, from: 0, bytes: 0 })
  t.is(ann.opened, 0)
  await ann.cores.own('doc')
  await ann.cores.own('doc')
  t.is(ann.opened, 1)
})

test('written blocks go to the nodes with access, and from these on when the writer is gone', async (t: Assert) => {
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

test('a peer without access to a stream gets none of its blocks, for any channel that it opens by the key', async (t: Assert) => {
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

test('of a stream nothing more is asked for as long as it is to rest, while others go on, and all of it at once when it is used', async (t: Assert) => {
  const [ann, bob] = (await sides(t, 'ann', 'bob')) as [Side, Side]
  const [large, small] = [(await ann.cores.own('large')).stream, (await ann.cores.own('small')).stream]
  for (let at = 0; at < 5; at++) await ann.cores.append(large, [new Uint8Array(MAX_STORED_BLOCK_BYTES)])
  await ann.cores.append(small, [utf8('one'), utf8('two')])
  ann.cores.follow([everybody(large), everybody(small)])
  await link(t, ['ann', ann], ['bob', bob])
  const came: number[] = []
  const fetched = (bytes: number): number => {
    if (bytes > 0) came.push(bytes)
    return came.length * 3_600_000
  }
  const slow: FollowedStream = { ...everybody(large), fetched }
  bob.cores.follow([slow])
  await bob.until(() => came.length === 1)
  bob.cores.follow([slow, everybody(small)])
  await bob.until(() => bob.cores.size(small).blocks === 2)
  t.alike(came, [MAX_STORED_BLOCK_BYTES], 'one block alone fits into the window')
  bob.cores.follow([everybody(large), everybody(small)])
  await bob.until(() => bob.cores.size(large).blocks === 5)
  t.is(came.length, 1)
})

test('a writer with two versions of one stream is found by a node that has one of them, also when both are equally long', async (t: Assert) => {
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

test('a restored stream of this node is reported once others have more blocks of it', async (t: Assert) => {
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

test('the cached copy of a document survives a restart, and is replaced whole', async (t: Assert) => {
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
    toError: asNodeError,
    open: () => Promise.reject(new Error('the disk is gone'))
  })
  const { id } = actor('ann')
  cores.follow([everybody(id)])
  await t.exception(cores.read(id, 0, 9), /cannot be opened/)
  t.alike(cores.size(id).blocks, 0)
  await cores.close()
})

test('a writer that cuts its stream back takes no block from nodes that have it', async (t: Assert) => {
  const dir = await tempDir(t)
  const [ann, bob] = [new Side(t, path.join(dir, 'ann')), new Side(t, path.join(dir, 'bob'))]
  await link(t, ['ann', ann], ['bob', bob])
  const { stream } = await ann.cores.own('notes')
  const { stream: other } = await ann.cores.own('other')
  for (const side of [ann, bob]) side.cores.follow([everybody(stream), everybody(other)])
  await ann.cores.append(
    stream,
    ['1', '2', '3', '4', '5'].map((text) => utf8(text))
  )
  await bob.until(() => bob.cores.size(stream).blocks === 5)
  await ann.cores.close()
  const store = new Corestore(path.join(dir, 'ann'))
  const core = store.get({ name: 'own/notes' }) as Hypercore & { truncate(length: number, fork: number): Promise<void> }
  await core.ready()
  await core.truncate(2, 1)
  t.is(core.length, 2)
  await store.close()
  const again = new Side(t, path.join(dir, 'ann'))
  await again.cores.own('other')
  again.cores.follow([everybody(stream), everybody(other)])
  await link(t, ['ann', again], ['bob', bob])
  // What goes over the same link behind it takes as many turns as a proof of the cut.
  for (let blocks = 1; blocks <= 5; blocks++) {
    await again.cores.append(other, [utf8(`${blocks}`)])
    await bob.until(() => bob.cores.size(other).blocks === blocks)
  }
  t.is(bob.cores.size(stream).blocks, 5)
})

test('of a stream over the share only the requested blocks arrive, until the share has space', async (t: Assert) => {
  const [ann, bob] = (await sides(t, 'ann', 'bob')) as [Side, Side]
  await link(t, ['ann', ann], ['bob', bob])
  const { stream } = await ann.cores.own('doc')
  ann.cores.follow([everybody(stream)])
  await ann.cores.append(
    stream,
    Array.from({ length: 800 }, () => new Uint8Array(65_536))
  )
  const asked: number[] = []
  let room = 1_048_576
  let wake = (): void => {}
  const isAsked = new Promise<void>((resolve) => (wake = resolve))
  const mayHold = (bytes: number): boolean => {
    asked.push(bytes)
    if (bytes > room) wake()
    return bytes <= room
  }
  bob.cores.follow([{ ...everybody(stream), mayHold }])
  await isAsked
  // A round over the link: what was asked for before has come by then.
  const { stream: other } = await ann.cores.own('other')
  await ann.cores.append(other, [utf8('one')])
  ann.cores.follow([everybody(stream), everybody(other)])
  bob.cores.follow([{ ...everybody(stream), mayHold }, everybody(other)])
  await bob.until(() => bob.cores.size(other).blocks === 1)
  const { fetched } = bob.cores.extent(stream)
  t.ok(fetched <= 8, `${fetched} of 800 blocks`)
  t.ok(asked.includes(800 * 65_536), 'asked with the content that its writer signed')
  room = 800 * 65_536
  bob.cores.follow([{ ...everybody(stream), mayHold }, everybody(other)])
  await bob.until(() => bob.cores.size(stream).blocks === 800)
})

test('the largest block of a document fits into the largest block that is fetched, for every writer', (t: Assert) => {
  const ids = { next: () => `msg_${'x'.repeat(60)}` } as unknown as IdSource
  const head = {
    document: 'd'.repeat(ENVELOPE_LIMITS.maxNameLength),
    self: actor('ann').id,
    tier: 3,
    ids,
    at: Number.MAX_SAFE_INTEGER
  } as const
  t.ok(sealBlock(new Uint8Array(BLOCK_LIMITS.maxBytes), head).byteLength <= MAX_STORED_BLOCK_BYTES)
})

test('of a stream with a block larger than any of a document nothing more is fetched, and that block is not kept', async (t: Assert) => {
  const dir = await tempDir(t)
  const [ann, bob] = ['ann', 'bob'].map((name) => new Side(t, path.join(dir, name))) as [Side, Side]
  await link(t, ['ann', ann], ['bob', bob])
  const { stream } = await ann.cores.own('doc')
  await ann.cores.append(
    stream,
    Array.from({ length: 40 }, () => new Uint8Array(MAX_STORED_BLOCK_BYTES + 1))
  )
  for (const side of [ann, bob]) side.cores.follow([everybody(stream)])
  await bob.until(() => bob.warnings.some((line) => line.includes(`more than ${MAX_STORED_BLOCK_BYTES} bytes`)))
  t.alike([bob.cores.extent(stream).isMore, bob.cores.extent(stream).isOversized], [false, true])
  // A round over the link: requests made before are answered by then.
  const { stream: other } = await ann.cores.own('other')
  await ann.cores.append(other, [new Uint8Array(MAX_STORED_BLOCK_BYTES)])
  for (const side of [ann, bob]) side.cores.follow([everybody(stream), everybody(other)])
  await bob.until(() => bob.cores.size(other).blocks === 1)
  t.alike([bob.cores.size(stream).blocks, bob.cores.extent(stream).fetched, bob.warnings.length], [0, 0, 1])
  await bob.cores.close()
  t.alike(await storedBlocks(path.join(dir, 'bob'), stream), [])
})
