import test, { type Assert } from 'brittle'
import { MAX_STREAMS_OF_MEMBER } from '../../../src/domain/membership/fold/document.js'
import { documentKey } from '../../../src/domain/membership/keys.js'
import type { DocumentRecord } from '../../../src/domain/membership/types.js'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import { fromUtf8 } from '../../../src/kit/ids.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import type { LocalStream } from '../../../src/node/documents/local-streams.js'
import { documentScene as scene, textOn, write } from '../../support/document-scene.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { FakeStore } from '../../support/fake-store.js'
import { failsWith } from '../../support/fails.js'

test('the last edits before a kill reach the others once the node starts again, though nobody opens the document there', async (t: Assert) => {
  const { world, owner, ann, bob } = await scene(t)
  world.log.isWritable = false
  await write(bob.api(), 'of bob')
  // As it stands at this moment, whatever is stored when it is closed.
  const store = new FakeStore()
  await store.write('document-streams', await bob.store.read('document-streams'))
  const ledger = await copyOf(bob.ledger)
  await bob.core.close()
  world.log.isWritable = true
  const again = await world.start(bob.actor, { store, ledger })
  await world.link(owner, ann, again)
  t.is(await textOn(ann), 'of bob')
})

test('edits made before the mesh knew of them are there, and sent to the others, though the list of own streams is lost', (t: Assert) =>
  unheardIsKept(t, () => null))

test('edits made before the mesh knew of them are there, and sent to the others, though the home was restored and has other streams', (t: Assert) =>
  unheardIsKept(t, (own) => ({ ...own, times: own.times + 7 })))

/** bob writes what the mesh does not hear of, and starts again with what `stored` makes of its list of own streams. */
async function unheardIsKept(t: Assert, stored: (own: LocalStream) => LocalStream | null): Promise<void> {
  const { world, owner, ann, bob } = await scene(t)
  world.log.isWritable = false
  await write(bob.api(), 'of bob')
  const before = (await bob.store.read<Record<string, LocalStream>>('document-streams'))?.['notes'] as LocalStream
  await bob.core.close()
  const store = new FakeStore()
  const own = stored(before)
  if (own !== null) await store.write('document-streams', { notes: own })
  const again = await world.start(bob.actor, { store, ledger: await copyOf(bob.ledger) })
  t.is(await textOn(again), 'of bob')
  await write(again.api(), 'of bob, and more')
  t.is(await textOn(again), 'of bob, and more')
  await again.core.close()
  world.log.isWritable = true
  const last = await world.start(bob.actor, { store, ledger: await copyOf(again.ledger) })
  await world.link(owner, ann, last)
  await world.settle()
  t.is(await textOn(ann), 'of bob, and more')
}

test('a stream that the log no longer names is announced to the others again', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  await write(bob.api(), 'of bob')
  await world.settle()
  const { model } = world.log
  const record = model.records.get(documentKey('notes')) as DocumentRecord
  t.is(record.streams.length, 1)
  model.records.set(documentKey('notes'), { ...record, streams: [] })
  world.log.changed()
  await world.settle()
  t.is(world.log.view().documents.get('notes')?.streams.length, 1)
  t.is(await textOn(ann), 'of bob')
})

test('an edit that nobody else would ever see is refused: the log takes a bounded number of streams of one node', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  for (let stream = 0; stream < MAX_STREAMS_OF_MEMBER; stream++) {
    await write(bob.api(), `${stream}`)
    await world.settle()
    await bob.api().call('documents.forget', { document: 'notes' })
  }
  t.is(await textOn(bob), '15')
  const error = await failsWith(t, 'CONFLICT', () => write(bob.api(), 'to nobody'))
  t.is(error.next[0], 'a2a-node doc export notes')
  await world.settle()
  t.is(await textOn(bob), '15')
  await write(ann.api(), 'of ann')
  await world.settle()
  t.is(await textOn(bob), 'of ann')
})

test('an edit that is in its stream is no refused one, though its mark cannot be stored', async (t: Assert) => {
  const world = new World(t)
  const ledger = createMemoryLedger()
  const commit = ledger.commit.bind(ledger)
  let isFull = false
  ledger.commit = (...given) => (isFull ? Promise.reject(new Error('no room')) : commit(...given))
  const owner = await world.owner({ ledger })
  await owner.api().call('documents.create', { name: 'notes' })
  await textOn(owner)
  isFull = true
  await write(owner.api(), 'one')
  t.is(await textOn(owner), 'one')
  t.ok(
    owner.lines.some((line) => line.includes('no room')),
    'it is reported'
  )
  isFull = false
  await write(owner.api(), 'one two')
  t.alike(await lengthsIn(ledger), ['2'], 'and the next one is on record with it')
})

test('an edit is on record, apart from its stream, before it is acknowledged; a stream that is left is so no more', async (t: Assert) => {
  const { bob } = await scene(t)
  for (const [edits, text] of ['one', 'one two', 'one two three'].entries()) {
    await write(bob.api(), text)
    t.alike(await lengthsIn(bob.ledger), [String(edits + 1)])
  }
  await bob.api().call('documents.forget', { document: 'notes' })
  t.alike(await lengthsIn(bob.ledger), [])
})

test('an own stream that is shorter than it was is a problem of its node from its start on, though nobody opens the document', async (t: Assert) => {
  const { world, bob, ledger } = await lostBlock(t)
  const again = await world.start(bob.actor, { store: bob.store, ledger })
  await world.settle()
  const { problems } = await again.api().call('node.status', {})
  t.alike(
    problems.map(({ code, message }) => [code, message.includes('the document notes lost 1 block')]),
    [['STORE_DAMAGED', true]]
  )
})

test('an own stream that is shorter than its recorded length is a problem of its node from its start on, also without a mark', async (t: Assert) => {
  const { world, bob, ledger } = await lostBlock(t)
  const store = new FakeStore()
  for (const name of ['document-streams', 'documents-arrived']) await store.write(name, await bob.store.read(name))
  const again = await world.start(bob.actor, { store, ledger })
  await world.settle()
  const { problems } = await again.api().call('node.status', {})
  t.alike(
    problems.map(({ code }) => code),
    ['STORE_DAMAGED']
  )
})

test('an own stream shorter than its mark is reported as lost, also before any other mark is stored', async (t: Assert) => {
  const { world, bob, ledger } = await lostBlock(t)
  const store = new FakeStore()
  for (const name of ['document-streams', 'documents-arrived']) await store.write(name, await bob.store.read(name))
  const again = await world.start(bob.actor, { store, ledger })
  const reading = failsWith(t, 'STORE_DAMAGED', () => textOn(again))
  await world.pass(4000)
  await reading
  t.ok((await store.read<Record<string, unknown>>('document-marks'))?.['notes'], 'and known after a restart')
})

test('content missing from a store of documents that was begun anew is lost: it is refused, also after a restart, and never shown as empty', async (t: Assert) => {
  for (const isHeard of [true, false]) {
    const { world, owner, ann, bob } = await scene(t)
    world.log.isWritable = isHeard
    for (const { id } of [owner, ann]) world.net.disconnect(bob.id, id)
    await write(bob.api(), 'of bob')
    await world.settle()
    const ledger = await copyOf(bob.ledger)
    const store = new FakeStore()
    await store.write('document-streams', await bob.store.read('document-streams'))
    await bob.core.close()
    world.streams.renew(bob.id)
    for (let start = 0; start < 2; start++) {
      const again = await world.start(bob.actor, { store, ledger })
      await world.settle()
      const reading = failsWith(t, 'STORE_DAMAGED', () => textOn(again))
      await world.pass(4000)
      await reading
      const { problems } = await again.api().call('node.status', {})
      t.ok(
        problems.some(({ message }) => message.includes('the document notes lost 1 block')),
        `start ${start}, ${isHeard ? 'in the log' : 'unheard'}`
      )
      await again.core.close()
    }
  }
})

/**
 * bob stopped, its streams without the block that it wrote last, and its ledger as a kill right after that would leave
 * it.
 */
async function lostBlock(t: Assert): Promise<{ world: World; bob: FakeNode; ledger: Ledger }> {
  const { world, owner, ann, bob } = await scene(t)
  for (const { id } of [owner, ann]) world.net.disconnect(bob.id, id)
  const back = world.streams.copyOf(bob.id)
  await write(bob.api(), 'of bob')
  const ledger = await copyOf(bob.ledger)
  await bob.core.close()
  back()
  return { world, bob, ledger }
}

const LENGTHS = { from: 'document-length/', to: 'document-length0', limit: 100 }

/** The lengths of own streams that a ledger has on record. */
async function lengthsIn(ledger: Ledger): Promise<string[]> {
  return (await ledger.list(LENGTHS)).map(({ value }) => fromUtf8(value))
}

/** As it is now: what is left of a process that is killed. */
async function copyOf(ledger: Ledger): Promise<Ledger> {
  const copy = createMemoryLedger()
  await copy.commit(await ledger.list(LENGTHS))
  return copy
}
