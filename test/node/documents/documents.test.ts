import test, { type Assert } from 'brittle'
import * as Y from 'yjs'
import { NodeError } from '../../../src/kit/errors.js'
import { shortId, utf8 } from '../../../src/kit/ids.js'
import { encodeBlock } from '../../../src/domain/document/block.js'
import { AWARENESS_LIMITS, readAwareness, writeAwareness } from '../../../src/domain/document/awareness.js'
import { sealBlock } from '../../../src/node/documents/local-streams.js'
import { countingIds } from '../../support/counting-ids.js'
import { failsWith } from '../../support/fails.js'
import { Program, documentScene as scene, textOn, write } from '../../support/document-scene.js'
import { type FakeNode, World } from '../../support/fake-node.js'

test('a damaged store of documents gives no sizes: the list reports it, and one document is refused', async (t: Assert) => {
  const { world, bob } = await scene(t)
  t.alike((await bob.api().call('documents.list', {})).problems, [])
  world.streams.damage(bob.id, new NodeError('STORE_DAMAGED', 'the store is damaged'))
  const { problems } = await bob.api().call('documents.list', {})
  t.alike(
    problems.map(({ code, next }) => [code, next]),
    [['STORE_DAMAGED', 'a2a-node stop && a2a-node doctor --repair']]
  )
  await failsWith(t, 'STORE_DAMAGED', () => bob.api().call('documents.show', { document: 'notes' }))
})

test('programs on two nodes that hold a document see the edits of each other, and get none of their own', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  await write(ann.api(), 'hello')
  await world.settle()
  const [one, other] = [new Program(t, ann.api()), new Program(t, bob.api())]
  await world.settle()
  t.is(one.text, 'hello')
  await one.type(5, ' from one')
  await world.settle()
  await other.type(0, 'other: ')
  await world.settle()
  t.is(one.text, 'other: hello from one')
  t.is(other.text, one.text)
  t.is(await textOn(bob), one.text)
  t.not(one.clientId, other.clientId)
  t.is(one.events.filter(({ type }) => type === 'update').length, 1)
})

test('an update with the clientID of another, or that is none, is refused and changes nothing', async (t: Assert) => {
  const { world, ann } = await scene(t)
  const program = new Program(t, ann.api())
  await world.settle()
  const doc = new Y.Doc()
  doc.getText('text').insert(0, 'forged')
  await failsWith(t, 'INVALID_INPUT', () => program.apply(Y.encodeStateAsUpdate(doc)))
  await failsWith(t, 'INVALID_INPUT', () => program.apply(utf8('no update')))
  program.session = 'doc_of_nobody'
  await failsWith(t, 'CHANNEL_CLOSED', () => program.apply(new Uint8Array([0, 0])))
  t.is(await textOn(ann), '')
})

test('programs of other members learn of the presence of a member, and of its end', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  const [one, other] = [new Program(t, ann.api()), new Program(t, bob.api())]
  await world.settle()
  const presence = { client: one.clientId ?? 0, clock: 1, state: { user: 'ann' } }
  await one.present(writeAwareness([presence]))
  await world.settle()
  const heard = (): unknown[] =>
    other.events.flatMap((event) => (event.type === 'awareness' ? [readAwareness(event.update)] : []))
  t.alike(heard(), [[presence]])
  t.absent(
    one.events.some(({ type }) => type === 'awareness'),
    'its own comes not back'
  )
  await failsWith(t, 'INVALID_INPUT', () => one.present(writeAwareness([{ ...presence, client: 7 }])))
  one.end()
  await world.settle()
  t.alike(heard().at(-1), [{ ...presence, clock: 2, state: null }])
})

test('a program with read access sends its presence, under a bounded number of clientIDs', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  await ann.api().call('documents.restrict', { document: 'notes', see: {}, write: { tier: null } })
  await world.settle()
  const reader = new Program(t, bob.api())
  await world.settle()
  t.is(reader.clientId, null)
  const tell = (client: number, clock: number): Promise<unknown> =>
    reader.present(writeAwareness([{ client, clock, state: { user: 'bob' } }]))
  for (let client = 1; client <= AWARENESS_LIMITS.maxClients; client++) await tell(client, 1)
  await failsWith(t, 'INVALID_INPUT', () => tell(AWARENESS_LIMITS.maxClients + 1, 1))
  await tell(1, 2)
})

test('an edit too large to be sent is refused, and the document is unchanged, for programs that hold it too', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  await write(ann.api(), 'before')
  const program = new Program(t, ann.api())
  await world.settle()
  const edit = { type: 'map' as const, set: { key: 'x'.repeat(300_000) } }
  const refusal = await failsWith(t, 'PAYLOAD_TOO_LARGE', () =>
    ann.api().call('documents.edit', { document: 'notes', edit })
  )
  t.ok(refusal.message.includes('a single value'), refusal.message)
  t.is(await textOn(ann), 'before')
  await program.type(6, ' and after')
  t.is(await textOn(ann), 'before and after')
  t.alike(
    program.events.map(({ type }) => type),
    ['open']
  )
  await write(ann.api(), 'after')
  await world.settle()
  t.is(await textOn(bob), 'after')
})

test('an edit that is larger than an update may be reaches members and their programs whole, by the API and by a program', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  const [one, other] = [new Program(t, ann.api()), new Program(t, bob.api())]
  await world.settle()
  await write(ann.api(), 'x🌍'.repeat(100_000))
  await one.type(0, 'é'.repeat(200_000))
  await one.type(0, 'small. ')
  await world.settle()
  const whole = `small. ${'é'.repeat(200_000)}${'x🌍'.repeat(100_000)}`
  for (const text of [one.text, other.text, await textOn(ann), await textOn(bob)]) t.ok(text === whole)
  await write(ann.api(), 'short')
  const list = Array.from({ length: 30_000 }, (_, at) => `value ${at}`)
  await bob.api().call('documents.edit', { document: 'notes', edit: { type: 'list', list } })
  await world.settle()
  t.is(await textOn(bob), 'short')
  t.alike((await ann.api().call('documents.read', { document: 'notes', type: 'list' })).value, list)
})

test('an unreadable part of a stream is skipped and logged with its source, and the others continue', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  await write(bob.api(), 'good')
  await world.settle()
  const stream = world.log.model.view().documents.get('notes')?.streams[0]?.coreKey ?? ''
  await bob.core.deps.documents.append(stream, [utf8('garbage')])
  await world.settle()
  t.is(await textOn(ann), 'good')
  t.ok(
    ann.lines.some((line) => line.includes('CRDT_DESERIALIZATION_FAILED') && line.includes(bob.id)),
    ann.lines.join('\n')
  )
  const { streams } = await ann.api().call('documents.show', { document: 'notes' })
  t.ok(streams[0]?.stopped)
  const { skipped } = await ann.api().call('documents.read', { document: 'notes', type: 'text' })
  t.alike(
    skipped?.map(({ node, reason }) => [node.name, reason]),
    [['bob', 'a block is malformed']],
    'a reader is notified'
  )
  await write(ann.api(), 'good and more')
  await world.settle()
  t.is(await textOn(bob), 'good and more')
})

test('a node whose own stream ended continues with another, and its later edits count everywhere', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  const program = new Program(t, bob.api())
  await world.settle()
  await program.type(0, 'before. ')
  await world.settle()
  const streamsOf = (): string[] =>
    (world.log.model.view().documents.get('notes')?.streams ?? []).map(({ coreKey }) => coreKey)
  const [stream = ''] = streamsOf()
  await bob.core.deps.documents.append(stream, [utf8('garbage')])
  await world.settle()
  await write(bob.api(), 'before. after. ')
  await program.type(0, 'typed. ')
  await world.settle()
  for (const node of [ann, bob]) t.is(await textOn(node), 'typed. before. after. ')
  t.is(streamsOf().length, 2)
  t.absent('skipped' in (await ann.api().call('documents.read', { document: 'notes', type: 'text' })))
})

test('a document that is forgotten is gone here, stays with others, and comes back when it is opened', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  await write(ann.api(), 'kept by bob')
  await world.settle()
  t.is(await textOn(bob), 'kept by bob')
  t.ok((await ann.api().call('documents.forget', { document: 'notes' })).bytes > 0)
  t.alike(
    (await ann.api().call('documents.list', {})).documents.map(({ following, bytes }) => [following, bytes]),
    [[false, 0]]
  )
  t.is(await textOn(bob), 'kept by bob')
  await textOn(ann)
  await world.settle()
  t.is(await textOn(ann), 'kept by bob')
  await write(ann.api(), 'kept by bob, and more')
  await world.settle()
  t.is(await textOn(bob), 'kept by bob, and more')
})

test('a sandboxed member has no part in documents of others, unless a list names the sandbox', async (t: Assert) => {
  const { world, owner, ann } = await scene(t)
  const cat = await world.member('cat', { terms: { sandboxId: 'ci' } })
  await world.link(owner, cat)
  await write(ann.api(), 'seen')
  await world.settle()
  t.alike((await cat.api().call('documents.list', {})).documents, [])
  await failsWith(t, 'DOCUMENT_NOT_FOUND', () => write(cat.api(), 'mine'))
  await ann.api().call('documents.restrict', { document: 'notes', see: { sandboxes: ['ci'] }, write: {} })
  await world.settle()
  t.is(await textOn(cat), 'seen')
  await failsWith(t, 'FORBIDDEN', () => write(cat.api(), 'mine'))
})

test('a member that loses the right to write before its stream is in the log shows its text no longer than others do', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  world.log.isWritable = false
  await write(bob.api(), 'of bob')
  t.is(await textOn(bob), 'of bob')
  await world.settle()
  world.log.isWritable = true
  await ann.api().call('documents.restrict', { document: 'notes', see: {}, write: { tier: null } })
  await world.settle()
  t.is(await textOn(bob), '')
})

test('a member that restricts a document it forgot removes no text of others', async (t: Assert) => {
  const { world, owner, ann, bob } = await scene(t)
  await write(bob.api(), 'of bob')
  await world.settle()
  await ann.api().call('documents.forget', { document: 'notes' })
  await ann.api().call('documents.restrict', { document: 'notes', see: {}, write: { tier: null } })
  await world.settle()
  for (const node of [owner, ann, bob]) t.is(await textOn(node), 'of bob')
})

test('refused edits count again once their member may write again', async (t: Assert) => {
  const { world, owner, ann, bob } = await scene(t)
  // Ann has heard nothing of it when she leaves bob out.
  for (const node of [owner, ann]) world.net.disconnect(bob.id, node.id)
  await write(bob.api(), 'of bob')
  await ann.api().call('documents.restrict', { document: 'notes', see: {}, write: { tier: null } })
  await world.link(owner, ann, bob)
  t.is(await textOn(ann), '')
  t.is(await textOn(bob), '')
  await ann.api().call('documents.restrict', { document: 'notes', see: {}, write: {} })
  await world.settle()
  t.is(await textOn(ann), 'of bob')
  t.is(await textOn(bob), 'of bob')
})

test('a caller that is weaker than its node has the rights of the weaker', async (t: Assert) => {
  const { ann } = await scene(t)
  await ann.api().call('documents.restrict', { document: 'notes', see: {}, write: { tier: 'L1' } })
  await failsWith(t, 'FORBIDDEN', () => write(ann.api({ tier: 3 }), 'weak'))
  await failsWith(t, 'DOCUMENT_NOT_FOUND', () =>
    ann.api({ sandboxId: 'ci' }).call('documents.read', { document: 'notes', type: 'text' })
  )
  await failsWith(t, 'FORBIDDEN', () => ann.api({ tier: 3 }).call('documents.create', { name: 'more' }))
  await write(ann.api(), 'strong')
  t.is(await textOn(ann), 'strong')
})

test('a node with a restored store of documents continues with another stream, and nothing is lost or sent twice', async (t: Assert) => {
  const { world, owner, ann, bob } = await scene(t)
  await write(bob.api(), 'one. ')
  await world.settle()
  const putBack = world.streams.copyOf(bob.id)
  await write(bob.api(), 'one. two. ')
  await world.settle()
  world.net.disconnect(bob.id, ann.id)
  world.net.disconnect(bob.id, owner.id)
  await bob.core.close()
  putBack()
  // What it wrote last is with others alone, and it hears of nobody when it writes.
  const again = await world.start(bob.actor, { store: bob.store })
  const refused = [() => textOn(again), () => write(again.api(), 'three. one. ')].map((call) =>
    failsWith(t, 'STORE_DAMAGED', call)
  )
  await world.pass(4000)
  await Promise.all(refused)
  await world.link(owner, ann, again)
  await world.settle()
  t.is(await textOn(again), 'one. two. ')
  await write(again.api(), 'three. one. two. ')
  await world.settle()
  t.is(await textOn(ann), 'three. one. two. ')
  t.is(await textOn(again), 'three. one. two. ')
  const { streams } = await ann.api().call('documents.show', { document: 'notes' })
  t.alike(
    streams.map(({ node, stopped }) => [node.id, stopped]),
    [
      [bob.id, null],
      [bob.id, null]
    ]
  )
})

test('a node that learns of more blocks of its stream at others continues with another, and so do its programs', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  const program = new Program(t, bob.api())
  await world.settle()
  await program.type(0, 'first. ')
  await world.settle()
  const { clientId } = program
  const stream = world.log.model.view().documents.get('notes')?.streams[0]?.coreKey ?? ''
  const block = sealBlock(encodeBlock({ sessions: 9, updates: [] }), {
    document: bob.core.documents.known.idOf('notes'),
    self: bob.id,
    tier: 1,
    ids: countingIds(),
    at: 1
  })
  // As after an older copy of its store: ann has a block that bob wrote and does not have.
  await ann.core.deps.documents.append(stream, [block])
  await world.settle()
  t.is(program.text, 'first. ')
  t.is(typeof program.clientId, 'number')
  t.not(program.clientId, clientId)
  await program.type(0, 'second. ')
  await world.settle()
  t.is(await textOn(ann), 'second. first. ')
  t.is(await textOn(bob), 'second. first. ')
  t.is(world.log.model.view().documents.get('notes')?.streams.length, 2)
})

test('a forked stream is on record once and a problem of the node, until its member goes on with another', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  await write(bob.api(), 'of bob')
  await world.settle()
  t.is(await textOn(ann), 'of bob')
  const problems = async (node: FakeNode): Promise<string[]> =>
    (await node.api().call('node.status', {})).problems.map(({ message }) => message)
  t.alike(await problems(ann), [])
  const stream = world.log.model.view().documents.get('notes')?.streams[0]?.coreKey ?? ''
  world.streams.fork(stream)
  world.streams.fork(stream)
  await world.settle()
  const told = `bob (${shortId(bob.id)}) signed two different blocks of the document notes at one place: nothing of that stream is taken`
  for (const node of [ann, bob]) {
    t.alike(await problems(node), [told])
    t.alike(
      node.audit.of('strike').map(({ code, rule, peer, reason }) => [code, rule, peer, reason]),
      [['CONFLICT', 'quarantine', bob.id, 'it signed two different blocks of the document notes at one place']]
    )
    t.is(await textOn(node), '')
  }
  await write(bob.api(), 'again')
  await world.settle()
  for (const node of [ann, bob]) {
    t.is(await textOn(node), 'again')
    t.alike(await problems(node), [])
  }
})

test('a document with many blocks is kept when its node stops, and no longer once it is forgotten', async (t: Assert) => {
  const { world, bob } = await scene(t)
  for (let at = 0; at < 300; at++) await write(bob.api(), `edit ${at}`)
  const id = bob.core.documents.known.idOf('notes')
  t.is(await bob.core.deps.documents.kept(id), null)
  await bob.core.close()
  t.ok(((await bob.core.deps.documents.kept(id))?.byteLength ?? 0) > 0)
  const again = await world.start(bob.actor, { store: bob.store })
  t.is(await textOn(again), 'edit 299')
  await write(again.api(), 'after')
  t.is(await textOn(again), 'after')
  await again.api().call('documents.forget', { document: 'notes' })
  t.is(await again.core.deps.documents.kept(id), null)
})

test('a document of which nothing is here, though others wrote into it, is neither read as empty nor edited', async (t: Assert) => {
  const { world, owner, ann, bob } = await scene(t)
  await write(ann.api(), 'precious')
  await world.settle()
  for (const one of [owner, ann]) world.net.disconnect(bob.id, one.id)
  await bob.api().call('documents.forget', { document: 'notes' })
  const calls = [() => textOn(bob), () => write(bob.api(), 'precious!')].map(
    async (call) => await failsWith(t, 'PEER_OFFLINE', call)
  )
  await world.pass(4000)
  await Promise.all(calls)
  const reading = textOn(bob)
  await world.link(owner, ann, bob)
  t.is(await reading, 'precious', 'a timely block is waited for')
  await write(bob.api(), 'precious!')
  await world.settle()
  t.is(await textOn(ann), 'precious!')
})

test('the own edits of a node are there for it, also before the mesh knows its stream and while no edits of others are here', async (t: Assert) => {
  const { world, owner, ann, bob } = await scene(t)
  for (const one of [owner, ann]) world.net.disconnect(bob.id, one.id)
  world.log.isWritable = false
  await write(bob.api(), 'mine')
  await world.settle()
  world.log.isWritable = true
  await write(ann.api(), 'of ann')
  await world.settle()
  t.is(await textOn(bob), 'mine')
  const again = await world.start(bob.actor, { store: bob.store })
  t.is(await textOn(again), 'mine')
})

test('a document that its only holder removed is gone: it is read as empty and edited anew', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner()
  await owner.api().call('documents.create', { name: 'notes' })
  const removed = async (): Promise<void> => {
    await write(owner.api(), 'removed')
    await owner.api().call('documents.forget', { document: 'notes' })
  }
  await removed()
  t.is(await textOn(owner), '', 'there is nobody else')
  await removed()
  const ann = await world.member('ann')
  await world.link(owner, ann)
  const reading = textOn(owner)
  await world.pass(4000)
  t.is(await reading, '', 'all others are there, and none has it')
  const writing = write(owner.api(), 'anew')
  await world.pass(4000)
  await writing
  await world.settle()
  t.is(await textOn(ann), 'anew')
})
