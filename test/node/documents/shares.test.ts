import test, { type Assert } from 'brittle'
import { asNodeError } from '../../../src/kit/errors.js'
import { shortId } from '../../../src/kit/ids.js'
import { documentScene, write } from '../../support/document-scene.js'
import { announceMany, firstNames, rowOn, writeBlocks } from '../../support/document-shares.js'
import type { FakeNode, World } from '../../support/fake-node.js'

const SHARE_BYTES = 268_435_456

interface Scene {
  readonly world: World
  readonly owner: FakeNode
  readonly ann: FakeNode
  readonly bob: FakeNode
  readonly mallory: FakeNode
}

/** The scene of documents with one more member, linked to all. */
async function withMallory(t: Assert): Promise<Scene> {
  const scene = await documentScene(t)
  const mallory = await scene.world.member('mallory')
  await scene.world.link(scene.owner, scene.ann, scene.bob, mallory)
  return { ...scene, mallory }
}

/** Puts a member out of the mesh. */
async function revoke({ world, owner }: Scene, peer: string): Promise<void> {
  await owner.api().call('peers.revoke', { peer })
  await world.settle()
}

/** The text of a document on a node, or the code of the error, after all waits. */
async function readOn(world: World, node: FakeNode, document: string): Promise<unknown> {
  const read = node.api().call('documents.read', { document, type: 'text' })
  const settled = read.then(
    ({ value }) => value,
    (error: unknown) => asNodeError(error).code
  )
  await world.pass(12_000, 1000)
  return await settled
}

/** Creates a document of ann with this text. */
async function ofAnn({ world, ann }: Scene, name: string, text = 'of ann'): Promise<void> {
  await ann.api().call('documents.create', { name })
  await ann.api().call('documents.edit', { document: name, edit: { type: 'text', text } })
  await world.settle()
}

/** Ends all links of ann. */
async function annLeaves({ world, owner, ann, bob, mallory }: Scene): Promise<void> {
  for (const other of [owner, bob, mallory]) world.net.disconnect(ann.id, other.id)
  await world.settle()
}

/** Bytes that a node has of these documents. */
async function bytesOn(node: FakeNode, names: readonly string[]): Promise<number> {
  const rows = await Promise.all(names.map((name) => rowOn(node, name)))
  return rows.reduce((sum, row) => sum + (row?.bytes ?? 0), 0)
}

test('a member that announces 952 documents, with names that sort first, takes no place from the documents of others', async (t: Assert) => {
  const scene = await withMallory(t)
  const { world, bob, mallory } = scene
  const names = announceMany(world, mallory, firstNames(952))
  await ofAnn(scene, 'plan')
  await annLeaves(scene)
  t.is((await rowOn(bob, 'plan'))?.following, true)
  t.is(await readOn(world, bob, 'plan'), 'of ann')
  const rows = (await bob.api().call('documents.list', {})).documents.filter(({ name }) => names.includes(name))
  t.is(rows.filter(({ following }) => following).length, 256, 'the share of documents')
  t.alike(
    rows.find(({ following }) => !following)?.left?.map(({ node, streams, reason }) => [node.name, streams, reason]),
    [['mallory', 1, 'its member is over its share: 256 documents that nobody uses here']]
  )
})

test('a member over its share is named in status and in peers show, once, with the omitted streams', async (t: Assert) => {
  const scene = await withMallory(t)
  const { world, bob, mallory } = scene
  t.alike((await bob.api().call('node.status', {})).problems, [])
  announceMany(world, mallory, firstNames(300))
  const { problems } = await bob.api().call('node.status', {})
  t.alike(
    problems.map(({ code, next }) => [code, next]),
    [['OVERLOADED', `a2a-node peers show ${mallory.id}`]]
  )
  t.ok(problems[0]?.message.includes(`44 streams of mallory (${shortId(mallory.id)}) left out`), problems[0]?.message)
  t.is((await bob.api().call('peers.show', { peer: 'mallory' })).documents.leftOut, 44)
  t.is((await bob.api().call('peers.show', { peer: 'ann' })).documents.leftOut, 0)
  t.alike((await mallory.api().call('node.status', {})).problems, [], 'its own documents are kept by its node')
})

test('a member makes another node keep 256 MiB of its documents, in however many streams, also after a restart', async (t: Assert) => {
  const scene = await withMallory(t)
  const { world, ann, bob, mallory } = scene
  const names = ['f', 'e', 'd', 'c', 'b', 'a']
  for (const name of names) await writeBlocks(world, mallory, { name, mebibytes: 50 })
  t.is(await bytesOn(bob, names), 5 * 50 * 1_048_576)
  const { documents } = await bob.api().call('peers.show', { peer: 'mallory' })
  t.alike([documents.bytes <= SHARE_BYTES, documents.leftOut], [true, 1])
  t.is(
    (await rowOn(bob, 'a'))?.left?.[0]?.reason,
    'its member is over its share: 256 MiB of documents that nobody uses here'
  )
  await ofAnn(scene, 'plan')
  t.is((await rowOn(bob, 'plan'))?.following, true)
  await bob.core.close()
  const again = await world.start(bob.actor, { store: bob.store, ledger: bob.ledger })
  await world.link(again, ann, mallory)
  t.is(await bytesOn(again, names), 5 * 50 * 1_048_576, 'stored streams take the share first')
  await annLeaves({ ...scene, bob: again })
  t.is(await readOn(world, again, 'plan'), 'of ann')
})

test('a document opened here is stored whole, for any shares of its members, also after a restart', async (t: Assert) => {
  const scene = await withMallory(t)
  const { world, bob, mallory } = scene
  for (const name of ['a', 'b', 'c', 'd', 'e']) await writeBlocks(world, mallory, { name, mebibytes: 50 })
  await writeBlocks(world, mallory, { name: 'used', mebibytes: 50 })
  t.is((await rowOn(bob, 'used'))?.following, false)
  await readOn(world, bob, 'used')
  t.is(await bytesOn(bob, ['used']), 50 * 1_048_576)
  await world.pass(60_000, 10_000)
  await bob.core.close()
  const again = await world.start(bob.actor, { store: bob.store, ledger: bob.ledger })
  await world.link(again, mallory)
  const row = await rowOn(again, 'used')
  t.alike([row?.bytes, row?.following], [50 * 1_048_576, true])
})

test('a document that was removed here uses nothing of a share, and streams left out before arrive', async (t: Assert) => {
  const { world, bob, mallory } = await withMallory(t)
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  for (const name of names) await writeBlocks(world, mallory, { name, mebibytes: 50 })
  t.is((await rowOn(bob, 'f'))?.bytes, 0)
  await bob.api().call('documents.forget', { document: 'a' })
  await world.settle()
  t.is(await bytesOn(bob, names), 5 * 50 * 1_048_576)
  t.is((await rowOn(bob, 'f'))?.following, true)
})

test('documents that a revoked member alone wrote, and that nobody uses here, are removed; others stay', async (t: Assert) => {
  const scene = await withMallory(t)
  const { world, ann, bob, mallory } = scene
  const alone = await writeBlocks(world, mallory, { name: 'alone', mebibytes: 3 })
  const read = await writeBlocks(world, mallory, { name: 'read', mebibytes: 3 })
  const shared = await writeBlocks(world, mallory, { name: 'shared', mebibytes: 3 })
  await ann.api().call('documents.read', { document: 'shared', type: 'text' })
  await ann.api().call('documents.edit', { document: 'shared', edit: { type: 'map', set: { of: 'ann' } } })
  await readOn(world, bob, 'read')
  await world.pass(60_000, 10_000)
  await revoke(scene, 'mallory')
  const row = await rowOn(bob, 'alone')
  t.alike([row?.following, row?.left?.[0]?.reason], [false, 'all its writers were revoked, and nobody uses it here'])
  await world.pass(660_000, 60_000)
  const held = (stream: string): boolean => world.streams.blocksOn(bob.id, stream) > 0
  t.alike([held(alone), held(read), held(shared)], [false, true, true])
  t.is(
    (await bob.api().call('peers.show', { peer: mallory.id })).documents.bytes,
    3 * 1_048_576,
    'of the document of two'
  )
})

test('a document of a revoked member that is opened before its blocks are removed stays', async (t: Assert) => {
  const scene = await withMallory(t)
  const { world, bob, mallory } = scene
  const stream = await writeBlocks(world, mallory, { name: 'alone', mebibytes: 3 })
  await revoke(scene, 'mallory')
  await readOn(world, bob, 'alone')
  await world.pass(660_000, 60_000)
  t.is(world.streams.blocksOn(bob.id, stream), 3)
  await write(bob.api(), 'goes on')
})
