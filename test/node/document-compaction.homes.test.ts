import test, { type Assert } from 'brittle'
import { idle, stop, streamsOf, TIDY_MS, writeMuch } from '../support/document-compaction.js'
import { documentScene, Program, textOn, write } from '../support/document-scene.js'
import { FakeStore } from '../support/fake-store.js'
import type { FakeNode, World } from '../support/fake-node.js'

/** Keeps what a node has, to put it back to later. */
async function keep(world: World, node: FakeNode): Promise<{ store: FakeStore; putBack(): void }> {
  await world.pass(2000)
  const store = new FakeStore()
  await store.write('document-streams', await node.store.read('document-streams'))
  return { store, putBack: world.streams.copyOf(node.id) }
}

test('a home that was put back to before its compaction never writes the stream that it began then a second time', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await world.settle()
  const { store, putBack } = await keep(world, bob)
  await idle(world)
  const second = streamsOf(world)[1]?.coreKey ?? ''
  t.is(streamsOf(world).length, 2)
  await world.pass(TIDY_MS)
  await stop(world, bob, [owner, ann])
  putBack()
  t.is(world.streams.held(bob.id, second), 0)
  const again = await world.start(bob.actor, { store })
  // The log knows that stream; nobody who has it is there.
  await write(again.api(), 'of the one put back')
  t.is(world.streams.held(again.id, second), 0)
  await world.link(owner, ann, again)
  await world.settle()
  t.is(await textOn(ann), await textOn(again))
})

test('a home that was put back leaves its stream as soon as it hears that another goes on in its place, also in an open document', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await world.settle()
  const { store, putBack } = await keep(world, bob)
  const before = world.log.view()
  await idle(world)
  await world.pass(TIDY_MS)
  t.is(streamsOf(world).length, 2)
  await stop(world, bob, [owner, ann])
  putBack()
  // Its log was put back as well.
  let isBehind = true
  const of = world.log.of.bind(world.log)
  world.log.of = (node) => ({ ...of(node), view: () => (isBehind ? before : world.log.view()) })
  const again = await world.start(bob.actor, { store })
  const program = new Program(t, again.api())
  await world.settle()
  t.is(program.text, 'of bob')
  isBehind = false
  world.log.changed()
  await world.link(owner, ann, again)
  await world.pass(2000)
  await program.type(0, 'still ')
  await world.pass(2000)
  for (const node of [owner, ann, again]) t.is(await textOn(node), 'still of bob')
})

test('a home that was put back compacts nothing before it wrote or met somebody who has what it lost', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await world.settle()
  const { store, putBack } = await keep(world, bob)
  world.net.disconnect(owner.id, bob.id)
  world.net.disconnect(owner.id, ann.id)
  await write(bob.api(), 'of bob, later')
  await world.settle()
  await stop(world, bob, [ann])
  putBack()
  const again = await world.start(bob.actor, { store })
  await world.link(owner, again)
  t.is(await textOn(again), 'of bob')
  await idle(world)
  await world.link(ann, again, owner)
  await world.settle()
  await world.pass(TIDY_MS)
  for (const node of [owner, ann, again]) t.is(await textOn(node), 'of bob, later')
})
