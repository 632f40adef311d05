import test, { type Assert } from 'brittle'
import type { DocumentAccess } from '../../../../src/domain/document/access.js'
import { countedBlocks } from '../../../../src/domain/document/counted.js'
import {
  MAX_DOCUMENT_BYTES_OF_MEMBER,
  MAX_DOCUMENTS_OF_MEMBER,
  MAX_REMOVED_DOCUMENTS_OF_MEMBER,
  MAX_STREAMS_OF_MEMBER,
  SNAPSHOT_BLOCKS
} from '../../../../src/domain/membership/fold/document.js'
import { DOCUMENTS_KEY, documentCoreKey } from '../../../../src/domain/membership/keys.js'
import type { DocumentIndexRecord } from '../../../../src/domain/membership/records.js'
import { SERIAL_MAX_STEP } from '../../../../src/domain/membership/serial.js'
import { snapshotBody } from '../../../support/document-entries.js'
import { ACCESS, type Actor, actor, founded, keyText, type LogModel, MESH } from '../../../support/membership.js'

const owner = actor('owner')
const [ann, bob, cat] = [actor('ann'), actor('bob'), actor('cat')]

/** A mesh with two members in no sandbox and one in one. */
function world(): LogModel {
  const log = founded()
  for (const one of [ann, bob]) log.join(owner, one)
  log.join(owner, cat, { sandboxId: 'ci' })
  return log
}

const create = (log: LogModel, by: Actor, access: DocumentAccess | null = null, name = 'notes') =>
  log.write(by, { kind: 'document', mesh: MESH, name, access, at: 1000 })
const stream = (log: LogModel, by: Actor, key: string, name = 'notes') =>
  log.write(by, { kind: 'document-stream', mesh: MESH, name, coreKey: keyText(key) })
const restrict = (log: LogModel, by: Actor, access: DocumentAccess, lengths: Record<string, number> = {}) =>
  log.write(by, { kind: 'document-access', mesh: MESH, name: 'notes', access, lengths })
const end = (
  log: LogModel,
  by: Actor,
  access: DocumentAccess,
  { core, lengths }: { core: string; lengths: Record<string, number> }
) => log.write(by, { kind: 'document-access', mesh: MESH, name: 'notes', access, lengths, ends: keyText(core) })

const snap = (log: LogModel, by: Actor, terms: Parameters<typeof snapshotBody>[0]) => log.write(by, snapshotBody(terms))
const inForce = (log: LogModel) => log.view().documents.get('notes')?.snapshot

/** How many blocks of a stream of `notes` count. */
function counted(log: LogModel, key: string): number {
  const view = log.view()
  const document = view.documents.get('notes')
  if (document === undefined) throw new Error('no document')
  return countedBlocks(view, document, keyText(key))
}

/** The document `notes` of ann, with a stream of hers and one of bob. */
function written(): LogModel {
  const log = world()
  create(log, ann)
  stream(log, ann, 'a')
  stream(log, bob, 'b')
  return log
}

/** A list that lets these nodes see, and those write. */
function only(see: readonly Actor[], write: readonly Actor[], serial: number): DocumentAccess {
  const rule = (who: readonly Actor[]) => ({
    members: who.map(({ id }) => id),
    maxTier: null,
    sandboxes: [],
    unsandboxed: false
  })
  return { see: rule(see), write: rule(write), serial }
}

test('the first member to name a document has created it, and the log keeps one of each name', (t: Assert) => {
  const log = world()
  t.is(create(log, ann).skipped, null)
  t.ok(create(log, bob).skipped)
  t.is(create(log, bob, null, 'plans/2026 \u00e9').skipped, null, 'any line is a name')
  const { documents } = log.view()
  t.alike([...documents.keys()].sort(), ['notes', 'plans/2026 \u00e9'])
  t.alike(documents.get('notes'), { name: 'notes', creator: ann.id, createdAt: 1000, access: null, streams: [] })
  t.alike(log.records.get(DOCUMENTS_KEY), { total: 2, by: { [ann.id]: 1, [bob.id]: 1 }, bytes: {} })
})

test('a member adds streams to documents that it may write, each once and not many', (t: Assert) => {
  const log = world()
  t.ok(stream(log, ann, 's').skipped, 'a document that nobody created has none')
  create(log, ann)
  t.is(stream(log, bob, 's').skipped, null)
  t.ok(stream(log, bob, 's').skipped, 'once')
  t.ok(stream(log, cat, 's2').skipped, 'a sandboxed member may not write by default')
  t.is(stream(log, ann, 's').skipped, null, 'naming the stream of another takes it from nobody')
  for (let i = 1; i < MAX_STREAMS_OF_MEMBER; i++) t.is(stream(log, bob, `s/${i}`).skipped, null)
  t.ok(stream(log, bob, 'one more').skipped)
  t.is(log.view().documents.get('notes')?.streams.length, MAX_STREAMS_OF_MEMBER + 1)
})

test('creator and owner restrict a document, nobody else, and the newest list counts', (t: Assert) => {
  const log = world()
  create(log, ann)
  t.ok(restrict(log, bob, only([bob], [bob], 1)).skipped, 'bob did not create it')
  t.is(restrict(log, ann, only([bob], [], 1), { [keyText('s')]: 4 }).skipped, null)
  t.alike(log.view().documents.get('notes')?.access, {
    access: only([bob], [], 1),
    by: ann.id,
    lengths: { [keyText('s')]: 4 }
  })
  t.ok(restrict(log, ann, only([bob], [], 1)).skipped, 'the same once more changes nothing')
  t.is(restrict(log, owner, only([cat], [cat], 1)).skipped, null, 'of equal serials that of the owner')
  t.ok(restrict(log, ann, only([bob], [bob], 1)).skipped)
  t.ok(restrict(log, ann, only([bob], [bob], 2 + SERIAL_MAX_STEP)).skipped, 'numbers cannot be used up')
  t.is(restrict(log, ann, only([bob], [bob], 2)).skipped, null)
  t.ok(stream(log, cat, 'c').skipped)
  t.is(stream(log, bob, 'b').skipped, null)
  t.is(stream(log, owner, 'o').skipped, null, 'the owner always may')
})

test('a document is born with its list, so that nobody sees it who may not', (t: Assert) => {
  const log = world()
  t.is(create(log, ann, only([cat], [cat], 1)).skipped, null)
  t.ok(stream(log, bob, 'b').skipped)
  t.is(stream(log, cat, 'c').skipped, null)
})

/** A list of so many names. */
function long(count: number, serial: number): DocumentAccess {
  const members = Array.from({ length: count }, (_, at) => actor(`n${at}`).id)
  return { ...only([], [], serial), see: { members, maxTier: null, sandboxes: [], unsandboxed: false } }
}

test('access lists and streams of a member have a share of the view, for any number of documents; the others keep theirs', (t: Assert) => {
  const log = world()
  const list = long(256, 1)
  const size = JSON.stringify({ access: list, by: ann.id, lengths: {} }).length
  const most = Math.floor(MAX_DOCUMENT_BYTES_OF_MEMBER / size)
  const results = Array.from({ length: most + 5 }, (_, at) => create(log, ann, list, `a${at}`).skipped)
  t.is(results.filter((one) => one === null).length, most)
  t.ok(results.at(-1)?.includes('1 MiB'), String(results.at(-1)))
  t.is(create(log, ann, null, 'free').skipped, null, 'without a list it takes nothing')
  const streams = Array.from({ length: 200 }, (_, at) => stream(log, ann, `s${at}`, `a${at % 20}`).skipped)
  t.ok(streams.at(-1)?.includes('1 MiB'), 'streams count as well')
  t.is(create(log, bob, list, 'of-bob').skipped, null)
  t.is(create(log, owner, list, 'of-owner').skipped, null)
})

test('a member over its share can still make lists shorter, and the owner any', (t: Assert) => {
  const log = world()
  create(log, ann, long(200, 1))
  for (let at = 0; create(log, ann, long(20, 1), `a${at}`).skipped === null; at++) continue
  t.ok(restrict(log, ann, long(256, 2)).skipped?.includes('1 MiB'))
  t.is(restrict(log, owner, long(256, 2)).skipped, null, 'that of the owner is in its own share')
  t.is(restrict(log, ann, long(100, 3)).skipped, null, 'the share of the first one is free again')
  t.is(restrict(log, ann, only([], [], 4)).skipped, null)
})

test('the lengths of a document in a list cost its author nothing; those of streams that are none count', (t: Assert) => {
  const log = world()
  create(log, ann)
  const own = Array.from({ length: MAX_STREAMS_OF_MEMBER }, (_, at) => `s${at}`)
  for (const key of own) stream(log, bob, key)
  const lengthsOf = (keys: readonly string[]): Record<string, number> =>
    Object.fromEntries(keys.map((key) => [keyText(key), 9]))
  const bytesOf = ({ id }: Actor): number => (log.records.get(DOCUMENTS_KEY) as DocumentIndexRecord).bytes[id] ?? 0
  restrict(log, ann, only([bob], [bob], 1))
  const bytes = bytesOf(ann)
  t.is(restrict(log, ann, only([bob], [bob], 2), lengthsOf(own)).skipped, null)
  t.is(bytesOf(ann), bytes)
  t.is(bytesOf(bob), 128 * own.length)
  const invented = lengthsOf(Array.from({ length: 512 }, (_, at) => `none${at}`))
  t.is(restrict(log, ann, only([bob], [bob], 3), invented).skipped, null)
  t.ok(bytesOf(ann) - bytes > 512 * 52)
  for (let at = 0; at < 40; at++) create(log, ann, null, `a${at}`)
  const results = Array.from({ length: 40 }, (_, at) =>
    log.write(ann, { kind: 'document-access', mesh: MESH, name: `a${at}`, access: only([], [], 1), lengths: invented })
  )
  t.ok(results.at(-1)?.skipped?.includes('1 MiB'))
})

test('a snapshot counts for its author', (t: Assert) => {
  const log = written()
  const bytesOf = ({ id }: Actor): number => (log.records.get(DOCUMENTS_KEY) as DocumentIndexRecord).bytes[id] ?? 0
  const before = bytesOf(bob)
  t.is(snap(log, bob, { core: 'one', lengths: { a: SNAPSHOT_BLOCKS } }).skipped, null)
  t.is(bytesOf(bob), before + 128)
})

test('no member uses up the documents of the others, nor those of the owner', (t: Assert) => {
  const log = world()
  log.records.set(DOCUMENTS_KEY, { total: MAX_DOCUMENTS_OF_MEMBER, by: { [ann.id]: MAX_DOCUMENTS_OF_MEMBER } })
  t.ok(create(log, ann).skipped)
  t.is(create(log, bob).skipped, null)
  log.records.set(DOCUMENTS_KEY, { total: 1_000_000, by: {} })
  t.ok(create(log, ann, null, 'more').skipped)
  t.is(create(log, owner, null, 'more').skipped, null)
})

test('of a member with the right to write all blocks count; of one that lost the right as many as the list had seen', (t: Assert) => {
  const log = world()
  create(log, ann)
  stream(log, bob, 'b')
  stream(log, ann, 'a')
  t.is(counted(log, 'b'), Number.POSITIVE_INFINITY)
  t.is(counted(log, 'nobody'), 0)
  restrict(log, ann, only([ann, bob], [], 1), { [keyText('b')]: 3 })
  t.is(counted(log, 'b'), 3)
  t.is(counted(log, 'a'), Number.POSITIVE_INFINITY, 'its creator always may')
  restrict(log, ann, only([ann], [], 2))
  t.is(counted(log, 'b'), 0)
  restrict(log, ann, only([ann, bob], [bob], 3))
  t.is(counted(log, 'b'), Number.POSITIVE_INFINITY)
  log.revoke(owner, bob)
  t.is(counted(log, 'b'), Number.POSITIVE_INFINITY, 'the edits of a member outlive its membership')
})

test('a core is a stream of one document only, so that nobody gets it by another', (t: Assert) => {
  const log = world()
  create(log, ann, only([ann], [ann], 1), 'private')
  create(log, bob, null, 'open')
  t.is(stream(log, ann, 's', 'private').skipped, null)
  t.is(stream(log, bob, 's', 'open').skipped, 'the stream is one of another document')
  t.is(stream(log, ann, 's', 'open').skipped, 'the stream is one of another document', 'not even its writer')
  t.is(stream(log, bob, 's2', 'open').skipped, null)
  t.is(log.view().documents.get('open')?.streams.length, 1)
})

test('a member that may write a document puts a snapshot of it in force, in a core that nothing else of a document is in', (t: Assert) => {
  const log = written()
  const lengths = { a: SNAPSHOT_BLOCKS - 1, b: 1 }
  t.is(log.write(bob, { ...snapshotBody({ core: 'one', lengths }), name: 'plans' }).skipped, 'the document is unknown')
  t.is(snap(log, cat, { core: 'one', lengths }).skipped, 'its author may not write the document')
  t.is(snap(log, bob, { core: 'a', lengths }).skipped, 'its core is one of a document already', 'a stream')
  t.is(inForce(log), undefined)
  t.is(snap(log, bob, { core: 'one', lengths }).skipped, null)
  const { kind: _, mesh: __, name: ___, serial: ____, ...snapshot } = snapshotBody({ core: 'one', lengths })
  t.alike(inForce(log), snapshot)
  t.is(
    log.records.get(documentCoreKey(keyText('one'))),
    'notes',
    'so that whether the owner signed it is known by its core'
  )
  const more = { a: 9 * SNAPSHOT_BLOCKS, b: 1 }
  t.is(
    snap(log, ann, { core: 'one', lengths: more }).skipped,
    'its core is one of a document already',
    'the one in force'
  )
  create(log, bob, null, 'plans')
  stream(log, bob, 'p', 'plans')
  const other = { ...snapshotBody({ core: 'one', lengths: { p: SNAPSHOT_BLOCKS } }), name: 'plans' }
  t.is(log.write(bob, other).skipped, 'its core is one of a document already', 'not even in another document')
  t.is(stream(log, bob, 'one', 'plans').skipped, 'the stream is one of another document')
})

test('a snapshot holds at least 1,024 blocks more than the one in force, no less of any stream, and of no other stream', (t: Assert) => {
  const log = written()
  t.is(snap(log, ann, { core: 'x', lengths: {} }).skipped, 'it is not far enough behind the one in force')
  t.is(
    snap(log, ann, { core: 'x', lengths: { a: SNAPSHOT_BLOCKS - 1 } }).skipped,
    'it is not far enough behind the one in force'
  )
  t.is(
    snap(log, ann, { core: 'x', lengths: { a: 5000, z: 1 } }).skipped,
    'it is of a stream that is not one of the document'
  )
  t.is(snap(log, ann, { core: 'one', lengths: { a: 500, b: 600 } }).skipped, null)
  const less = { a: 499, b: 9000 }
  t.is(
    snap(log, ann, { core: 'x', lengths: less }).skipped,
    'it is not far enough behind the one in force',
    'less of one stream'
  )
  t.is(
    snap(log, ann, { core: 'x', lengths: { b: 9000 } }).skipped,
    'it is not far enough behind the one in force',
    'nothing of one'
  )
  t.is(
    snap(log, ann, { core: 'x', lengths: { a: 501, b: 600 + SNAPSHOT_BLOCKS - 2 } }).skipped,
    'it is not far enough behind the one in force'
  )
  t.is(inForce(log)?.coreKey, keyText('one'))
  t.is(snap(log, bob, { core: 'two', lengths: { a: 501, b: 600 + SNAPSHOT_BLOCKS - 1 } }).skipped, null)
  t.is(inForce(log)?.coreKey, keyText('two'), 'it takes the place of the former')
  t.is(
    snap(log, ann, { core: 'one', lengths: { a: 9000, b: 9000 } }).skipped,
    'its core is one of a document already',
    'a former one'
  )
  t.alike(log.view().documents.get('notes')?.streams.length, 2, 'streams stay as they are')
})

test('a snapshot that was made under another access list than the one in force is not taken', (t: Assert) => {
  const log = written()
  const lengths = { a: SNAPSHOT_BLOCKS }
  t.is(snap(log, ann, { core: 'x', lengths, serial: 1 }).skipped, 'it was made under another access list')
  restrict(log, ann, only([ann, bob], [ann], 1), { [keyText('b')]: 3 })
  t.is(snap(log, ann, { core: 'x', lengths }).skipped, 'it was made under another access list')
  t.is(
    snap(log, bob, { core: 'x', lengths, serial: 1 }).skipped,
    'its author may not write the document',
    'nor of a member that lost the right'
  )
  t.is(snap(log, owner, { core: 'one', lengths, serial: 1 }).skipped, null, 'the owner always may')
  restrict(log, ann, only([ann, bob], [ann], 2), { [keyText('a')]: SNAPSHOT_BLOCKS })
  t.is(inForce(log)?.coreKey, keyText('one'), 'it stays in force under the next list')
  t.is(
    snap(log, ann, { core: 'x', lengths: { a: 2 * SNAPSHOT_BLOCKS }, serial: 1 }).skipped,
    'it was made under another access list'
  )
  t.is(snap(log, ann, { core: 'x', lengths: { a: 2 * SNAPSHOT_BLOCKS }, serial: 2 }).skipped, null)
})

test('of a member that lost the right by its certificate the blocks in the snapshot in force count; a list that repeats it ends it', (t: Assert) => {
  const log = written()
  restrict(log, ann, ACCESS)
  t.is(snap(log, ann, { core: 'one', lengths: { a: 24, b: SNAPSHOT_BLOCKS }, serial: 1 }).skipped, null)
  t.is(counted(log, 'b'), Number.POSITIVE_INFINITY)
  const own = log.certificateOf(bob)
  t.is(log.recertify(owner, { ...own, issuer: owner.id, maxTier: 3, serial: own.serial + 1 }).skipped, null)
  t.is(counted(log, 'b'), SNAPSHOT_BLOCKS)
  t.is(counted(log, 'z'), 0)
  restrict(log, ann, only([ann, bob], [ann], 2), { [keyText('a')]: 30, [keyText('b')]: SNAPSHOT_BLOCKS + 7 })
  t.is(counted(log, 'b'), SNAPSHOT_BLOCKS + 7, 'the list says more')
  t.is(inForce(log)?.coreKey, keyText('one'))
  restrict(log, ann, only([ann], [ann], 3), { [keyText('b')]: 3 })
  t.is(counted(log, 'b'), SNAPSHOT_BLOCKS, 'the list says less: its author may be behind')
  end(log, ann, only([ann], [ann], 4), { core: 'another', lengths: {} })
  t.is(inForce(log)?.coreKey, keyText('one'))
  end(log, ann, only([ann], [ann], 5), { core: 'one', lengths: { [keyText('b')]: SNAPSHOT_BLOCKS - 1 } })
  t.is(inForce(log), undefined)
  t.alike(log.view().documents.get('notes')?.ended, [keyText('one')], 'a node that used it gets the correction')
  t.is(counted(log, 'b'), SNAPSHOT_BLOCKS - 1)
  t.is(counted(log, 'a'), Number.POSITIVE_INFINITY)
})

const remove = (log: LogModel, by: Actor, name = 'notes') =>
  log.write(by, { kind: 'document-removed', mesh: MESH, name, at: 2000 })
const index = (log: LogModel) => log.records.get(DOCUMENTS_KEY) as DocumentIndexRecord

test('a removed document gives back the place of its creator and the bytes of its list, and keeps its name and streams', (t: Assert) => {
  for (const by of [ann, owner]) {
    const log = written()
    const bytes = index(log).bytes
    restrict(log, ann, { ...ACCESS, serial: 1 })
    t.is(remove(log, by).skipped, null)
    t.alike(index(log), { total: 0, by: { [ann.id]: 0 }, bytes, removed: { [ann.id]: 1 } })
    const { documents, removedDocuments } = log.view()
    const record = removedDocuments.get('notes')
    t.alike([record?.access, record?.streams.length, record?.removed], [null, 2, { by: by.id, at: 2000 }])
    t.is(documents.size, 0, 'it is none of the documents of the mesh')
    const before = log.state()
    for (const entry of [...log.entries]) t.is(log.apply(entry.entry, entry.isBootstrapRelay).isFull, false)
    t.is(log.state(), before, 'entries of a removed document that come again change nothing')
  }
})

test('nothing is done to a removed document, and nobody but its creator and the owner of the mesh removes one', (t: Assert) => {
  const log = written()
  for (const by of [bob, cat]) t.ok(remove(log, by).skipped)
  t.ok(remove(log, ann, 'other').skipped, 'a document that nobody created')
  t.is(remove(log, ann).skipped, null)
  const state = log.state()
  t.ok(create(log, ann).skipped, 'not again')
  t.ok(create(log, bob).skipped)
  t.ok(stream(log, ann, 'c').skipped)
  t.ok(restrict(log, ann, { ...ACCESS, serial: 2 }).skipped)
  t.ok(snap(log, ann, { core: 'x', lengths: { a: 2000 } }).skipped)
  t.ok(remove(log, owner).skipped)
  t.is(log.state(), state)
})

test('a member makes a bounded number of documents at a time, and removes a bounded number in its life', (t: Assert) => {
  const log = world()
  for (let at = 0; at < MAX_DOCUMENTS_OF_MEMBER; at++) create(log, ann, null, `d${at}`)
  t.ok(create(log, ann, null, 'more').isFull)
  remove(log, ann, 'd0')
  t.is(create(log, ann, null, 'more').skipped, null)
  log.records.set(DOCUMENTS_KEY, { ...index(log), by: {}, removed: { [ann.id]: MAX_REMOVED_DOCUMENTS_OF_MEMBER } })
  t.ok(create(log, ann, null, 'last').isFull)
  t.is(create(log, bob, null, 'last').skipped, null)
})

test('the index of documents is written as before in a mesh that removed none: its bytes are signed', (t: Assert) => {
  const log = written()
  const bytes = `"bytes":{"${ann.id}":128,"${bob.id}":128}`
  t.is(JSON.stringify(index(log)), `{"total":1,"by":{"${ann.id}":1},${bytes}}`)
})
