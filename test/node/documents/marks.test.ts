import test, { type Assert } from 'brittle'
import {
  DOCUMENT_MARKS,
  DocumentMarks,
  type DocumentMarksDeps,
  type StoredMarks
} from '../../../src/node/documents/marks.js'
import { documentKey } from '../../../src/domain/membership/keys.js'
import type { DocumentRecord } from '../../../src/domain/membership/types.js'
import { documentScene as scene, textOn, write } from '../../support/document-scene.js'
import { FakeStore } from '../../support/fake-store.js'
import { ManualClock } from '../../support/manual-clock.js'
import { failsWith } from '../../support/fails.js'
import type { FollowedStream, StreamSize } from '../../../src/ports/documents.js'
import type { FakeNode, World } from '../../support/fake-node.js'

async function problemsOf(node: FakeNode): Promise<readonly string[]> {
  const { problems } = await node.api().call('node.status', {})
  return problems.filter(({ code }) => code === 'STORE_DAMAGED').map(({ message, next }) => `${message} -> ${next}`)
}

/**
 * A node that wrote, was then cut off from others, and whose store of documents was then put back to what it was
 * before.
 */
async function putBack(
  world: World,
  node: FakeNode,
  { text, others }: { readonly text: string; readonly others: readonly FakeNode[] }
): Promise<FakeNode> {
  const back = world.streams.copyOf(node.id)
  await write(node.api(), text)
  await world.settle()
  for (const { id } of others) world.net.disconnect(node.id, id)
  await node.core.close()
  back()
  const again = await world.start(node.actor, { store: node.store })
  await world.settle()
  return again
}

test('a document of which this disk lost blocks is reported in status, and neither read, edited nor restricted until a member gives them', async (t: Assert) => {
  const { world, owner, ann, bob } = await scene(t)
  await write(ann.api(), 'one')
  await world.settle()
  await textOn(bob)
  const before = await putBack(world, ann, { text: 'one two', others: [owner, bob] })
  t.alike(await problemsOf(before), [
    'the document notes lost 1 block on this disk; it is read and edited again once a member has given them -> a2a-node stop && a2a-node doctor --repair'
  ])
  const restrict = (): Promise<unknown> =>
    before.api().call('documents.restrict', { document: 'notes', see: {}, write: { members: [] } })
  const edits = [() => textOn(before), () => write(before.api(), 'other'), restrict].map((call) =>
    failsWith(t, 'STORE_DAMAGED', call)
  )
  await world.pass(12_000)
  for (const error of await Promise.all(edits))
    t.alike(error.next.slice(-2), ['a2a-node stop', 'a2a-node doctor --repair'])
  await world.link(owner, before)
  await world.settle()
  t.alike(await problemsOf(before), [])
  const healed = textOn(before)
  await world.pass(4000)
  t.is(await healed, 'one two')
  await write(before.api(), 'one two three')
  await world.settle()
  t.is(await textOn(owner), 'one two three', 'in another stream: the former one is not forked')
})

test('a document that a node with nobody else lost is refused, never shown as empty', async (t: Assert) => {
  const { world, owner, ann, bob } = await scene(t)
  for (const one of [ann, bob]) await one.core.close()
  const again = await putBack(world, owner, { text: 'of the owner', others: [] })
  const reading = failsWith(t, 'STORE_DAMAGED', () => textOn(again))
  await world.pass(4000)
  await reading
  t.is((await problemsOf(again)).length, 1)
})

test('marks follow what is here, go with a document that is forgotten, and are stored once for many blocks', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  const marks = async (): Promise<number[]> =>
    Object.values((await bob.store.read<StoredMarks>(DOCUMENT_MARKS))?.['notes'] ?? {}).sort((a, b) => a - b)
  await write(ann.api(), 'one')
  await write(bob.api(), 'one two')
  await world.settle()
  t.alike(await marks(), [])
  await world.pass(2000)
  t.alike(await marks(), [1, 1])
  await write(ann.api(), 'one two three')
  await world.pass(2000)
  t.alike(await marks(), [1, 2])
  await bob.api().call('documents.forget', { document: 'notes' })
  t.alike(await marks(), [])
  t.alike(await problemsOf(bob), [])
})

test('a stream that the log does not name any more is not lost, though it has a mark', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  await write(ann.api(), 'one')
  await world.settle()
  t.is(await textOn(bob), 'one')
  await world.pass(2000)
  await ann.core.close()
  const { model } = world.log
  const record = model.records.get(documentKey('notes')) as DocumentRecord
  model.records.set(documentKey('notes'), { ...record, streams: [] })
  world.log.changed()
  await world.settle()
  t.alike(await problemsOf(bob), [])
  await write(bob.api(), 'of bob')
  t.is(await textOn(bob), 'of bob')
})

const everybody = (stream: string): FollowedStream => ({ stream, mayHave: () => true })

/** The marks of documents with one stream each, `s`, of which so much is here. */
function marksOf(
  store: FakeStore,
  { names, size }: { readonly names: readonly string[]; readonly size: StreamSize }
): DocumentMarks {
  const documents = new Map(names.map((name) => [name, { name, streams: [{ coreKey: 's' }] }]))
  return new DocumentMarks({
    clock: new ManualClock(),
    store,
    log: { view: () => ({ documents }) } as unknown as DocumentMarksDeps['log'],
    documents: { size: () => size, read: () => Promise.resolve([]), flush: () => Promise.resolve() },
    own: { names: () => [], streamOf: () => null, blocksOf: () => 0 },
    isForked: () => false,
    onChange: () => {},
    onError: () => {}
  })
}

test('blocks behind a snapshot that were here are lost also when all that is left is the snapshot', async (t: Assert) => {
  const store = new FakeStore()
  await store.write(DOCUMENT_MARKS, { notes: { s: 150 }, older: { s: 90 } })
  const marks = marksOf(store, { names: ['notes', 'older'], size: { blocks: 100, from: 100, bytes: 0 } })
  await marks.start()
  marks.follow([everybody('s')])
  await marks.close()
  t.is(marks.lost('notes'), 50)
  t.alike(await store.read(DOCUMENT_MARKS), { notes: { s: 150 } }, 'the content of the snapshot needs no mark')
})

test('a document of any name has marks', async (t: Assert) => {
  const store = new FakeStore()
  const marks = marksOf(store, { names: ['__proto__'], size: { blocks: 3, from: 0, bytes: 3 } })
  await marks.start()
  marks.follow([everybody('s')])
  await marks.close()
  const again = marksOf(store, { names: ['__proto__'], size: { blocks: 1, from: 0, bytes: 1 } })
  await again.start()
  again.follow([everybody('s')])
  t.is(again.lost('__proto__'), 2)
})

test('marks that the disk did not take are stored by the next try', async (t: Assert) => {
  const store = new FakeStore()
  const marks = marksOf(store, { names: ['notes'], size: { blocks: 3, from: 0, bytes: 3 } })
  await marks.start()
  marks.follow([everybody('s')])
  store.fault = new Error('no room')
  await marks.close()
  t.is(await store.read(DOCUMENT_MARKS), null)
  store.fault = null
  await marks.close()
  t.alike(await store.read(DOCUMENT_MARKS), { notes: { s: 3 } })
  marks.follow([])
  store.fault = new Error('no room')
  await t.exception(() => marks.forget('notes'))
  store.fault = null
  await marks.forget('notes')
  t.alike(await store.read(DOCUMENT_MARKS), {})
})
