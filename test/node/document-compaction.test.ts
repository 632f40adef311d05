import test, { type Assert } from 'brittle'
import { idle, MANY, stop, streamsOf, TIDY_MS, writeMuch } from '../support/document-compaction.js'
import { documentScene, Program, textOn, write } from '../support/document-scene.js'
import { FakeStore } from '../support/fake-store.js'
import type { FakeNode } from '../support/fake-node.js'
import { keyText, MESH } from '../support/membership.js'

/** Streams of the document, as a node shows them, and their blocks. */
async function blocksOn(node: FakeNode): Promise<Record<string, number>> {
  const { streams } = await node.api().call('documents.show', { document: 'notes' })
  return Object.fromEntries(streams.map(({ stream, blocks }) => [stream, blocks]))
}

test('a long stream goes on as another one that begins with what it left, and then nobody keeps it any more', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await idle(world)
  const [first, second, ...others] = streamsOf(world)
  if (first === undefined || second === undefined) throw new Error('the stream was not continued')
  t.is(others.length, 0)
  t.is(second.nodeKey, bob.id)
  t.is(second.continues?.from, first.coreKey)
  t.ok((second.continues?.blocks ?? MANY) < 10, 'of more than a thousand blocks few are left')
  for (const node of [owner, ann, bob]) t.alike(Object.keys(await blocksOn(node)), [second.coreKey])
  await world.pass(TIDY_MS)
  await world.settle()
  for (const node of [owner, ann, bob]) t.is(world.streams.held(node.id, first.coreKey), 0)
  for (const node of [owner, ann, bob]) t.is(await textOn(node), 'of bob')
  await write(ann.api(), 'of bob and ann')
  await write(bob.api(), 'of bob and ann and bob')
  await world.settle()
  for (const node of [owner, ann, bob]) t.is(await textOn(node), 'of bob and ann and bob')
})

test('who was away with a part of the former stream, and who is new, get the one that took its place', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  for (let edit = 0; edit < 20; edit++) await write(bob.api(), `${edit}`)
  await world.settle()
  await stop(world, ann, [owner, bob])
  await writeMuch(bob, 'of bob')
  await idle(world)
  await world.pass(TIDY_MS)
  await world.settle()
  const former = streamsOf(world)[0]?.coreKey ?? ''
  t.is(world.streams.held(ann.id, former), 20)
  const again = await world.start(ann.actor, { store: ann.store })
  const dan = await world.member('dan')
  await world.link(owner, bob, again, dan)
  await world.settle()
  for (const node of [again, dan]) t.is(await textOn(node), 'of bob')
  await world.pass(TIDY_MS)
  await world.settle()
  t.is(world.streams.held(again.id, former), 0)
  await write(again.api(), 'of ann')
  await world.settle()
  for (const node of [bob, dan, owner]) t.is(await textOn(node), 'of ann')
})

test('programs that hold a document notice nothing when a stream of another takes the place of its former one', async (t: Assert) => {
  const { world, ann, bob } = await documentScene(t)
  const program = new Program(t, ann.api())
  await writeMuch(bob, 'of bob')
  await program.type(0, 'by a program ')
  await idle(world)
  t.is(streamsOf(world).length, 3)
  t.absent(program.events.some(({ type }) => type === 'reset'))
  await program.type(0, 'still ')
  await world.settle()
  t.is(program.text, 'still by a program of bob')
  t.is(await textOn(bob), 'still by a program of bob')
})

test('a stream whose place the log does not know to be taken yet is kept and given to others', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await world.settle()
  world.log.isWritable = false
  await idle(world)
  t.is(streamsOf(world).length, 1)
  await write(bob.api(), 'of bob, meanwhile')
  await world.settle()
  t.is(await textOn(bob), 'of bob, meanwhile')
  t.is(await textOn(ann), 'of bob', 'what nobody was told of')
  const dan = await world.member('dan')
  await world.link(bob, dan)
  await world.settle()
  t.is(await textOn(dan), 'of bob')
  world.log.isWritable = true
  await world.pass(TIDY_MS)
  await world.settle()
  t.is(streamsOf(world).length, 2)
  for (const node of [owner, ann, bob, dan]) t.is(await textOn(node), 'of bob, meanwhile')
})

test('what the log could still take back removes no block, also after a restart', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await world.settle()
  await idle(world)
  const former = streamsOf(world)[0]?.coreKey ?? ''
  t.is(streamsOf(world).length, 2)
  world.log.isSigned = false
  await world.pass(TIDY_MS)
  await stop(world, ann, [owner, bob])
  const again = await world.start(ann.actor, { store: ann.store })
  await world.link(owner, again, bob)
  await world.pass(2 * TIDY_MS)
  for (const node of [again, bob]) t.ok(world.streams.held(node.id, former) > MANY)
  world.log.isSigned = true
  await world.pass(2 * TIDY_MS)
  for (const node of [again, bob]) t.is(world.streams.held(node.id, former), 0)
  t.is(await textOn(again), 'of bob')
})

test('a stream is not continued while nobody else has all of it, nor one whose document holds most of what was written', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await write(bob.api(), 'begun')
  await world.settle()
  for (const one of [owner, ann]) await stop(world, one, [bob])
  await writeMuch(bob, 'of bob')
  await idle(world)
  t.is(streamsOf(world).length, 1)
  const long = 'text that stays. '.repeat(40)
  const second = await documentScene(t)
  for (let edit = 0; edit < MANY; edit++)
    await second.ann
      .api()
      .call('documents.edit', { document: 'notes', edit: { type: 'text', splice: { at: 0, remove: 0, insert: `${long}${edit}` } } })
  await idle(second.world)
  t.is(streamsOf(second.world).length, 1)
})

test('a node that was killed while it began another stream goes on with one of the two, and loses nothing', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await world.settle()
  const before = new FakeStore()
  await before.write('document-streams', await bob.store.read('document-streams'))
  world.log.isWritable = false
  await idle(world)
  await stop(world, bob, [owner, ann])
  world.log.isWritable = true
  // What it stored of the new stream is gone, its blocks are there.
  let again = await world.start(bob.actor, { store: before })
  await world.link(owner, ann, again)
  await write(again.api(), 'of bob again')
  await idle(world)
  t.is(streamsOf(world).length, 2, 'and the long one is continued now')
  for (const node of [owner, ann, again]) t.is(await textOn(node), 'of bob again')
  // An older state of its home knows the former stream only.
  await stop(world, again, [owner, ann])
  const older = new FakeStore()
  await older.write('document-streams', await before.read('document-streams'))
  again = await world.start(bob.actor, { store: older })
  await world.link(owner, ann, again)
  await write(again.api(), 'and again')
  await world.settle()
  for (const node of [owner, ann, again]) t.is(await textOn(node), 'and again')
})

test('a stream that begins with something else than its writer named never takes the place of another', async (t: Assert) => {
  const { world, ann, bob } = await documentScene(t)
  await write(bob.api(), 'of bob')
  await world.settle()
  const from = streamsOf(world)[0]?.coreKey ?? ''
  const streams = bob.core.parts.documents
  const { stream } = await streams.own('another')
  await streams.append(stream, [new Uint8Array([1])])
  const continues = { from, blocks: 1, hash: keyText('something else'), former: [{ stream: from, sessions: 1 }] }
  const said = world.log.model.write(bob.actor, { kind: 'document-stream', mesh: MESH, name: 'notes', coreKey: stream, continues })
  t.is(said.skipped, null)
  world.log.changed()
  // Bob is not the node that it was: it gives the stream to others all the same.
  streams.follow([from, stream].map((one) => ({ stream: one, mayHave: () => true })))
  await world.settle()
  t.is(world.streams.held(ann.id, stream), 1)
  t.is(await textOn(ann), 'of bob')
  await world.pass(TIDY_MS)
  t.is(world.streams.held(ann.id, from), 1)
})

test('a document that is forgotten and followed again has what took the place of a stream once that is here again', async (t: Assert) => {
  const { world, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await idle(world)
  await world.pass(TIDY_MS)
  const [former, second] = streamsOf(world).map(({ coreKey }) => coreKey)
  await ann.api().call('documents.forget', { document: 'notes' })
  await world.settle()
  t.is(world.streams.held(ann.id, second ?? ''), 0)
  // It is fetched from now on.
  await textOn(ann)
  await world.settle()
  t.is(await textOn(ann), 'of bob')
  t.is(world.streams.held(ann.id, former ?? ''), 0)
})

test('who brings the entry of another into the log cannot take the stream of it by naming it first', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await world.settle()
  world.log.isWritable = false
  await idle(world)
  await write(bob.api(), 'of bob, after')
  await world.pass(2000)
  const stored = await bob.store.read<Record<string, { stream: string }>>('document-streams')
  const coreKey = stored?.notes?.stream ?? ''
  world.log.model.write(ann.actor, { kind: 'document-stream', mesh: MESH, name: 'notes', coreKey })
  world.log.changed()
  world.log.isWritable = true
  await world.pass(2 * TIDY_MS)
  t.is(streamsOf(world).length, 3)
  for (const node of [owner, ann, bob]) t.is(await textOn(node), 'of bob, after')
})
