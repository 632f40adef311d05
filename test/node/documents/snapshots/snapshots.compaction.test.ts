import test, { type Assert } from 'brittle'
import type { EntryBody } from '../../../../src/domain/membership/types.js'
import { NodeError } from '../../../../src/kit/errors.js'
import { begunOn, forge, idle, lie, MANY, snapshotOf, stop, writeMuch } from '../../../support/document-compaction.js'
import type { FakeNode } from '../../../support/fake-node.js'
import { failsWith } from '../../../support/fails.js'
import { documentScene, Program, textOn, write } from '../../../support/document-scene.js'

/** Longer than a node waits before it makes another snapshot. */
const PAUSE_MS = 660_000

/** Three members of whom ann went away with the first block, before the others went on behind a snapshot. */
async function withOneBehind(t: Assert): ReturnType<typeof documentScene> {
  const scene = await documentScene(t)
  const { world, owner, ann, bob } = scene
  await write(bob.api(), 'begun')
  await world.settle()
  await textOn(ann)
  for (const other of [owner, bob]) world.net.disconnect(ann.id, other.id)
  await writeMuch(bob, 'begun and ended')
  await idle(world)
  return scene
}

const ONLY_ANN = { members: ['ann'], tier: null, unsandboxed: false }

test('a snapshot takes the place of the first blocks of a long document, on every node', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await idle(world)
  const snapshot = snapshotOf(world)
  t.is(Object.values(snapshot?.lengths ?? {}).join(), `${MANY + 1}`)
  for (const node of [owner, ann, bob]) t.is(await begunOn(node), MANY + 1)
  for (const node of [owner, ann, bob]) t.is(await textOn(node), 'of bob')
  await write(ann.api(), 'of bob and ann')
  await write(bob.api(), 'of bob and ann and bob')
  await world.settle()
  for (const node of [owner, ann, bob]) t.is(await textOn(node), 'of bob and ann and bob')
})

test('the next snapshot takes the place of the one before, and the core of the one before that is removed', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'once')
  await idle(world)
  const first = snapshotOf(world)
  await writeMuch(ann, 'twice')
  await world.pass(PAUSE_MS, 5000)
  const second = snapshotOf(world)
  t.is(second?.before?.coreKey, first?.coreKey)
  for (const node of [owner, ann, bob]) t.is(await begunOn(node), 2 * (MANY + 1))
  await writeMuch(bob, 'thrice')
  await world.pass(2 * PAUSE_MS, 5000)
  t.is(snapshotOf(world)?.before?.coreKey, second?.coreKey)
  for (const node of [owner, ann, bob]) {
    t.is(await begunOn(node), 3 * (MANY + 1))
    t.is(world.streams.blocksOn(node.id, first?.coreKey ?? ''), 0)
    const stored = await node.store.read<Record<string, { cores: string[] }>>('document-snapshots')
    t.alike(new Set(stored?.['notes']?.cores), new Set([snapshotOf(world)?.coreKey, second?.coreKey]))
    t.is(await textOn(node), 'thrice')
  }
})

test('a node that was away with a part of it and with own edits, and a new one, continue behind the snapshot', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await write(bob.api(), 'begun')
  await world.settle()
  for (const other of [owner, bob]) world.net.disconnect(ann.id, other.id)
  const program = new Program(t, ann.api())
  await world.settle()
  await program.type(0, 'ann: ')
  await write(ann.api(), 'ann: begun!')
  await writeMuch(bob, 'begun and ended')
  await idle(world)
  t.is(await begunOn(bob), MANY + 2)
  const dan = await world.member('dan')
  await world.link(owner, bob, dan)
  await world.settle()
  const reading = textOn(dan)
  await world.pass(4000)
  t.is(await reading, 'begun and ended', 'the present nodes have nothing that ann wrote')
  t.is(await begunOn(dan), MANY + 2)
  await world.link(ann, owner, bob, dan)
  await world.pass(120_000, 1000)
  const text = await textOn(ann)
  t.ok(
    String(text).includes('ann: ') && String(text).includes('!') && String(text).includes(' and ended'),
    String(text)
  )
  for (const node of [owner, bob, dan]) t.is(await textOn(node), text)
  t.is(program.text, text)
  await program.type(0, 'again ')
  await world.settle()
  for (const node of [owner, ann, bob, dan]) t.is(await textOn(node), `again ${String(text)}`)
})

test('programs that hold a document notice nothing of it', async (t: Assert) => {
  const { world, ann, bob } = await documentScene(t)
  const [one, other] = [new Program(t, ann.api()), new Program(t, bob.api())]
  await world.settle()
  await writeMuch(bob, 'of bob')
  await one.type(0, 'by a program ')
  await idle(world)
  t.ok((await begunOn(ann)) > MANY)
  await other.type(0, 'still ')
  await world.settle()
  for (const program of [one, other]) {
    t.absent(program.events.some(({ type }) => type === 'reset'))
    t.is(program.text, 'still by a program of bob')
  }
  t.is(await textOn(ann), 'still by a program of bob')
})

test('a snapshot that the owner has not signed removes no block, also after a restart', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await world.settle()
  world.log.isSigned = false
  await idle(world)
  t.ok(snapshotOf(world))
  await stop(world, ann, [owner, bob])
  const again = await world.start(ann.actor, { store: ann.store })
  await world.link(owner, again, bob)
  await idle(world)
  for (const node of [again, bob]) t.is(await begunOn(node), 0)
  const dan = await world.member('dan')
  await world.link(owner, again, bob, dan)
  await world.settle()
  t.is(await textOn(dan), 'of bob')
  world.log.isSigned = true
  await idle(world)
  for (const node of [again, bob, dan]) t.is(await begunOn(node), MANY + 1)
  t.is(await textOn(again), 'of bob')
})

test('a node continues behind the snapshot that it uses after a restart, with later or earlier cached content', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await textOn(ann)
  await idle(world)
  await write(bob.api(), 'of bob again')
  await world.settle()
  for (const node of [ann, bob]) await stop(world, node, [owner, ann, bob])
  const [a, b] = [
    await world.start(ann.actor, { store: ann.store }),
    await world.start(bob.actor, { store: bob.store })
  ]
  await world.link(a, b)
  await world.settle()
  for (const node of [a, b]) {
    t.is(await begunOn(node), MANY + 1)
    t.is(await textOn(node), 'of bob again')
  }
  await write(b.api(), 'of bob, and again')
  await world.settle()
  t.is(await textOn(a), 'of bob, and again')
})

test('of two members that make a snapshot at once one counts, and nothing is left of the other', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  const programs = [ann, bob].map((node) => new Program(t, node.api()))
  await writeMuch(bob, 'of bob')
  await idle(world)
  t.is(world.log.submitted.filter(({ kind }) => kind === 'document-snapshot').length, programs.length)
  for (const node of [owner, ann, bob]) {
    t.ok((await begunOn(node)) > MANY)
    t.is(await textOn(node), 'of bob')
    const stored = await node.store.read<Record<string, { cores: string[] }>>('document-snapshots')
    t.alike(stored?.['notes']?.cores, [snapshotOf(world)?.coreKey])
  }
})

test('the content of a snapshot counts for good: without the right of its writer, and when its stream is forked', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await idle(world)
  await write(bob.api(), 'of bob, behind it')
  await world.settle()
  await ann.api().call('documents.restrict', { document: 'notes', see: {}, write: ONLY_ANN })
  await world.settle()
  for (const node of [owner, ann, bob]) t.is(await textOn(node), 'of bob, behind it')
  world.streams.fork(Object.keys(snapshotOf(world)?.lengths ?? {})[0] ?? '')
  await world.settle()
  const dan = await world.member('dan')
  await world.link(owner, ann, bob, dan)
  await world.settle()
  for (const node of [owner, ann]) t.is(await textOn(node), 'of bob')
  t.ok(String(await textOn(dan)).startsWith('of bob'))
})

test('a document that is removed here takes its snapshot along, and both come again from others', async (t: Assert) => {
  const { world, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await idle(world)
  const core = snapshotOf(world)?.coreKey ?? ''
  await ann.api().call('documents.forget', { document: 'notes' })
  await world.settle()
  t.is(world.streams.blocksOn(ann.id, core), 0)
  t.is(await textOn(ann), 'of bob')
  await idle(world)
  t.is(await begunOn(ann), MANY + 1)
  await write(ann.api(), 'of ann')
  await world.settle()
  t.is(await textOn(bob), 'of ann')
})

test('a snapshot that differs from the document of its streams is refused by nodes with the streams, and they keep their blocks', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await world.settle()
  await lie(bob, { isCut: true })
  await idle(world)
  t.ok(snapshotOf(world))
  for (const node of [owner, ann]) {
    t.is(await begunOn(node), 0)
    t.is(await textOn(node), 'of bob')
    const { problems } = await node.api().call('node.status', {})
    t.ok(problems.some(({ code, message }) => code === 'CONFLICT' && message.includes('notes')))
  }
  await write(ann.api(), 'of bob and ann')
  await world.settle()
  t.is(await textOn(owner), 'of bob and ann')
})

test('a node with a part of the blocks of a snapshot waits a while for the rest, to compare', async (t: Assert) => {
  const { world, owner, ann, bob } = await withOneBehind(t)
  await stop(world, bob, [owner])
  await world.link(ann, owner)
  await world.pass(5000)
  t.is(await begunOn(ann), 0)
  t.is(await textOn(ann), 'begun')
  await idle(world)
  t.is(await begunOn(ann), MANY + 2)
  t.is(await textOn(ann), 'begun and ended')
})

test('a snapshot that says more of a stream than there is lets go of no block, and a list ends it', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await world.settle()
  await lie(bob, { more: 1_000_000 })
  await idle(world)
  t.ok(snapshotOf(world))
  for (const node of [owner, ann, bob]) t.is(await begunOn(node), 0)
  await ann.api().call('documents.restrict', { document: 'notes', see: {}, write: ONLY_ANN })
  await world.settle()
  t.is(snapshotOf(world), undefined)
  await write(ann.api(), 'of bob and ann')
  await world.settle()
  for (const node of [owner, bob]) t.is(await textOn(node), 'of bob and ann')
})

test('of snapshots that nobody can use there is one timer at most, and only the newest two stay on disk', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await world.settle()
  const first = await lie(bob, { more: 1_000_000 })
  await idle(world)
  t.is(ann.core.deps.documents.size(first).blocks, 1)
  const timers = world.clock.pending
  for (let change = 0; change < 50; change++) {
    await ann.api().call('documents.create', { name: `other ${change}` })
    await world.pass(100)
  }
  await idle(world)
  t.ok(world.clock.pending <= timers + 3, `${world.clock.pending} timers, ${timers} before`)
  for (const more of [1_100_000, 1_200_000]) {
    await lie(bob, { more })
    await idle(world)
  }
  for (const node of [owner, ann]) t.is(world.streams.blocksOn(node.id, first), 0)
  t.is(await textOn(ann), 'of bob')
})

test('a member that makes no snapshots itself removes the unusable ones', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  const reader = await world.member('reader')
  await world.link(owner, reader)
  await world.link(ann, reader)
  await world.link(bob, reader)
  await ann.api().call('documents.restrict', {
    document: 'notes',
    see: { members: ['reader', 'bob'], tier: null, unsandboxed: false },
    write: { members: ['bob'], tier: null, unsandboxed: false }
  })
  await world.settle()
  await writeMuch(bob, 'of bob')
  await world.settle()
  const first = await lie(bob, { more: 1_000_000 })
  await idle(world)
  t.is(world.streams.blocksOn(reader.id, first), 1)
  for (const more of [1_100_000, 1_200_000]) {
    await lie(bob, { more })
    await idle(world)
  }
  t.is(world.streams.blocksOn(reader.id, first), 0)
  t.is(await textOn(reader), 'of bob')
})

test('a node that loses access to a document drops it without errors, also at its next start', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await idle(world)
  t.is(await begunOn(bob), MANY + 1)
  await ann.api().call('documents.restrict', { document: 'notes', see: ONLY_ANN, write: {} })
  await idle(world)
  await stop(world, bob, [owner, ann])
  const again = await world.start(bob.actor, { store: bob.store })
  await world.link(owner, ann, again)
  await idle(world)
  await failsWith(t, 'DOCUMENT_NOT_FOUND', () => textOn(again))
  t.is(await textOn(ann), 'of bob')
})

test('a list of somebody who is behind ends no snapshot that others use', async (t: Assert) => {
  const { world, owner, ann, bob } = await withOneBehind(t)
  t.is(await begunOn(owner), MANY + 2)
  await ann.api().call('documents.restrict', { document: 'notes', see: {}, write: ONLY_ANN })
  await world.settle()
  t.ok(snapshotOf(world))
  await world.link(ann, owner, bob)
  await idle(world)
  for (const node of [owner, ann, bob]) t.is(await textOn(node), 'begun and ended')
  await write(ann.api(), 'of ann')
  await world.settle()
  for (const node of [owner, ann, bob]) t.is(await textOn(node), 'of ann')
})

test('a new node continues with the snapshot before the one in force, as long as no present node has that', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'once')
  await idle(world)
  const first = snapshotOf(world)
  for (const other of [owner, bob]) world.net.disconnect(ann.id, other.id)
  await writeMuch(ann, 'twice')
  await idle(world)
  t.is(snapshotOf(world)?.before?.coreKey, first?.coreKey)
  const dan = await world.member('dan')
  await world.link(owner, bob, dan)
  await idle(world)
  const readings = [owner, bob, dan].map(async (node) => await textOn(node))
  await world.pass(4000)
  t.alike(await Promise.all(readings), ['once', 'once', 'once'])
  await write(dan.api(), 'once, and of dan')
  await world.settle()
  await world.link(ann, owner, bob, dan)
  await idle(world)
  const text = await textOn(ann)
  for (const node of [owner, bob, dan]) t.is(await textOn(node), text)
  t.ok(String(text).includes('of dan'))
})

/** What a node brings into the log of this kind waits until it is let go, or is never taken. */
function held(node: FakeNode, isTaken: boolean): { letGo(): void } {
  const { log } = node.core.deps
  const submit = log.submit.bind(log)
  let letGo = (): void => {}
  const gate = new Promise<void>((resolve) => (letGo = resolve))
  const late = async (body: EntryBody): Promise<void> => {
    if (body.kind === 'document-snapshot') await gate
    if (body.kind === 'document-snapshot' && !isTaken) throw new NodeError('TIMEOUT', 'no writer took the entry')
    await submit(body)
  }
  Object.assign(log, { submit: late })
  return { letGo }
}

test('a snapshot on its way into the log stays while another one comes into force, and is there once it follows', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await writeMuch(bob, 'of bob')
  await world.settle()
  const of =
    world.log
      .view()
      .documents.get('notes')
      ?.streams.map(({ coreKey }) => coreKey) ?? []
  await writeMuch(ann, 'of ann')
  await world.settle()
  held(bob, false).letGo()
  const { letGo } = held(ann, true)
  await world.pass(40_000)
  t.is(snapshotOf(world), undefined)
  await forge(owner, { of })
  await idle(world)
  t.is(await begunOn(ann), MANY + 1)
  letGo()
  await idle(world)
  for (const node of [owner, ann, bob]) {
    t.is(await begunOn(node), 2 * (MANY + 1))
    t.is(await textOn(node), 'of ann')
  }
})

test('a snapshot that the log did not take goes after a while', async (t: Assert) => {
  const { world, ann, bob } = await documentScene(t)
  held(bob, false).letGo()
  held(ann, false).letGo()
  await writeMuch(bob, 'of bob')
  await idle(world)
  const coresOf = async (): Promise<readonly string[]> =>
    (await bob.store.read<Record<string, { cores: string[] }>>('document-snapshots'))?.['notes']?.cores ?? []
  const [core = ''] = await coresOf()
  t.ok(core.length > 0)
  await world.pass(200_000, 5000)
  t.alike(await coresOf(), [core], 'it may come into force late')
  await world.pass(200_000, 5000)
  t.alike(await coresOf(), [])
})
