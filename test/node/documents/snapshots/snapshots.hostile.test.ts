import test, { type Assert } from 'brittle'
import * as Y from 'yjs'
import {
  begunOn,
  forge,
  idle,
  lie,
  MANY,
  snapshotOf,
  stop,
  type Told,
  writeMuch
} from '../../../support/document-compaction.js'
import { documentScene, Program, textOn, write } from '../../../support/document-scene.js'

test('a snapshot that says something of a stream of which it holds nothing is refused, and that stream goes on', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  const streams = (): string[] =>
    world.log
      .view()
      .documents.get('notes')
      ?.streams.map(({ coreKey }) => coreKey) ?? []
  await writeMuch(bob, 'of bob')
  await world.settle()
  const of = streams()
  await write(ann.api(), 'of bob and ann')
  await world.settle()
  const key = streams().find((stream) => !of.includes(stream)) ?? ''
  const victim = { key, length: 0, opened: [0, 0, 0], clients: [], end: null }
  const isOther = (one: { readonly key: string }): boolean => one.key !== key
  const change = ({ head, doc }: Told) => ({
    head: { ...head, streams: [...head.streams.filter(isOther), victim] },
    doc
  })
  await forge(bob, { of, change })
  await idle(world)
  t.ok(snapshotOf(world))
  for (const node of [owner, ann]) t.is(await begunOn(node), 0)
  await write(ann.api(), 'of bob, and again of ann')
  await world.settle()
  for (const node of [owner, ann, bob]) t.is(await textOn(node), 'of bob, and again of ann')
})

/** Forgets whole what is deleted; what lives stands on nothing of it. */
function forgetful({ head, doc }: Told): Told {
  for (const structs of doc.store.clients.values()) {
    for (const [at, struct] of structs.entries()) {
      if (!(struct instanceof Y.Item)) continue
      let { left } = struct
      while (left !== null && left.deleted) left = left.left
      const forgotten = struct.deleted ? new Y.GC(struct.id, struct.length) : null
      structs[at] = (forgotten ?? Object.assign(struct, { origin: left?.lastId ?? null, rightOrigin: null })) as Y.Item
    }
  }
  return { head, doc }
}

test('a snapshot without the positions of deleted text is refused by nodes with its blocks, and later edits come out the same', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await world.settle()
  await forge(bob, { change: forgetful })
  await idle(world)
  t.ok(snapshotOf(world))
  for (const node of [owner, ann]) t.is(await begunOn(node), 0)
  await write(ann.api(), 'ann of bob and ann')
  await world.settle()
  for (const node of [owner, ann, bob]) t.is(await textOn(node), 'ann of bob and ann')
})

test('of snapshots that come faster than one is looked at nothing stays on disk but of the newest two', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await world.settle()
  const { log, clock, documents } = ann.core.deps
  // The log takes a second to say whether the owner has signed an entry.
  const isCoreSigned = log.isCoreSigned.bind(log)
  const late = (core: string): Promise<boolean> =>
    new Promise((resolve) => void clock.after(1000, () => void isCoreSigned(core).then(resolve)))
  Object.assign(log, { isCoreSigned: late })
  const cores: string[] = []
  for (let lies = 1; lies <= 12; lies++) {
    cores.push(await lie(bob, { more: lies * 100_000 }))
    await world.pass(50, 50)
  }
  await idle(world)
  for (const other of [owner, bob]) world.net.disconnect(ann.id, other.id)
  // What is not followed any more has no size.
  documents.follow(cores.map((stream) => ({ stream, mayHave: () => false })))
  t.alike(
    cores.filter((core) => documents.size(core).blocks > 0),
    cores.slice(-2)
  )
})

test('a node that used a snapshot which a list ended since bases none on it, and continues with the next valid one', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await world.settle()
  const [stream = ''] =
    world.log
      .view()
      .documents.get('notes')
      ?.streams.map(({ coreKey }) => coreKey) ?? []
  await lie(bob, { isCut: true })
  await idle(world)
  // Of its blocks it gives none.
  for (const other of [owner, ann]) world.net.disconnect(bob.id, other.id)
  await bob.core.deps.documents.begin(stream, MANY + 1)
  const dan = await world.member('dan')
  await world.link(bob, dan)
  await idle(world)
  const program = new Program(t, dan.api())
  await world.settle()
  t.is(program.text, ' bob', 'a node without blocks uses it')
  const writers = { members: ['ann', 'dan'], tier: null, unsandboxed: false }
  await ann.api().call('documents.restrict', { document: 'notes', see: {}, write: writers })
  await world.pass(1_400_000, 5000)
  t.is(snapshotOf(world), undefined, 'and makes no other one of it')
  await world.link(owner, ann, dan)
  await write(ann.api(), 'of bob and ann')
  await idle(world)
  await idle(world)
  t.ok(snapshotOf(world), 'made by a node with all blocks')
  for (const node of [owner, ann, dan]) t.is(await textOn(node), 'of bob and ann')
  t.is(program.text, 'of bob and ann')
  await stop(world, dan, [owner, ann])
  const again = await world.start(dan.actor, { store: dan.store })
  t.is(await textOn(again), 'of bob and ann')
})

test('a snapshot with a wrong session is refused, and the member with that session continues', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  const program = new Program(t, ann.api())
  await world.settle()
  await writeMuch(bob, 'of bob')
  await world.settle()
  const client = program.clientId ?? 0
  const key =
    world.log
      .view()
      .documents.get('notes')
      ?.streams.find(({ nodeKey }) => nodeKey === ann.id)?.coreKey ?? ''
  const change = ({ head, doc }: Told) => ({
    head: {
      ...head,
      streams: head.streams.map((one) =>
        one.key === key ? { ...one, clients: [...one.clients, { client, clock: 9, runs: [] }] } : one
      )
    },
    doc
  })
  await forge(bob, { change })
  await idle(world)
  t.ok(snapshotOf(world))
  for (const node of [owner, ann]) t.is(await begunOn(node), 0)
  await program.type(0, 'ann ')
  await world.settle()
  for (const node of [owner, ann, bob]) t.is(await textOn(node), 'ann of bob')
})
