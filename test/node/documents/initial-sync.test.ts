import test, { type Assert } from 'brittle'
import { Program, documentScene as scene, textOn, write } from '../../support/document-scene.js'
import { failsWith } from '../../support/fails.js'

test('a node that never had the whole document reads no part of it and edits none; one that had it continues with its copy', async (t: Assert) => {
  const { world, owner, ann, bob } = await scene(t)
  await write(owner.api(), 'of the owner')
  await world.settle()
  await textOn(ann)
  for (const other of [owner, bob]) world.net.disconnect(ann.id, other.id)
  await write(ann.api(), 'of the owner and ann')
  const late = await world.member('late')
  await world.link(bob, late)
  await world.settle()
  world.net.disconnect(bob.id, late.id)
  const program = new Program(t, late.api())
  const calls = [() => textOn(late), () => write(late.api(), 'of late')].map(
    async (call) => await failsWith(t, 'PEER_OFFLINE', call)
  )
  await world.pass(4000)
  await Promise.all(calls)
  t.alike([program.events, program.fault?.code], [[], 'PEER_OFFLINE'], 'nor does a program')
  await world.link(bob, late)
  const reading = textOn(late)
  await world.pass(4000)
  t.is(await reading, 'of the owner', 'the present nodes have nothing of ann')
  await world.link(ann, owner, bob, late)
  await world.settle()
  t.is(await textOn(late), 'of the owner and ann')
  for (const other of [ann, owner, bob]) world.net.disconnect(late.id, other.id)
  await write(bob.api(), 'of all')
  await world.settle()
  const again = await world.start(late.actor, { store: late.store })
  t.is(await textOn(again), 'of the owner and ann', 'also after a restart')
})

test('missing blocks are awaited in any order, and never taken for lost though all members are there', async (t: Assert) => {
  const { world, owner, ann, bob } = await scene(t)
  await write(owner.api(), 'of the owner')
  await world.settle()
  const late = await world.member('late')
  const heard = new Set([owner.id, ann.id, bob.id])
  let fetched = 0
  // The first block comes last.
  Object.assign(late.core.deps.documents, {
    size: () => ({ blocks: 0, from: 0, bytes: 0 }),
    extent: () => ({ blocks: 1000, isMore: false, heard, fetched: fetched++ })
  })
  await world.link(owner, ann, bob, late)
  await world.settle()
  const reading = failsWith(t, 'TIMEOUT', () => textOn(late))
  await world.pass(10_000, 500)
  await reading
})
