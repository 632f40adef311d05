import test, { type Assert } from 'brittle'
import * as Y from 'yjs'
import { cutUpdate, mustCutUpdate } from '../../../../src/domain/document/update/cut.js'
import { readUpdate, UPDATE_LIMITS } from '../../../../src/domain/document/update/update.js'
import { forger, mixed, publish, settled, stateOf, writer } from '../../../support/documents.js'
import { failsWith } from '../../../support/fails.js'
import { CLIENT, docOf, long, mustFollow } from '../../../support/document-pieces.js'

test('large updates of a program are cut before others get them, and repeating them changes nothing', (t: Assert) => {
  const ann = writer('ann')
  const session = ann.replica.sessions.open()
  publish(ann)
  const program = forger(session, [ann])
  program.doc.getText('text').insert(0, long('🌍', 700_001))
  // Before what it just wrote.
  program.doc.transact(() => {
    program.doc.getText('text').insert(0, 'X')
    program.doc.getText('text').insert(0, long('é', 300_000))
    program.doc.getText('text').insert(3, 'Z')
  })
  for (const update of program.take()) {
    t.is(ann.replica.write(update), null)
    publish(ann)
    for (const piece of mustCutUpdate(update)) t.is(ann.replica.write(piece), null)
    t.alike(ann.replica.takeBlocks(), { ok: true, blocks: [] })
  }
  const replica = settled(mixed([ann], [0]))
  t.alike(stateOf(replica), stateOf(ann.replica))
  t.is(replica.doc.getText('text').toJSON(), program.doc.getText('text').toJSON())
})

test('updates with too many parts are cut as well: insertions and deletions', (t: Assert) => {
  const doc = docOf([], CLIENT)
  const updates: Uint8Array[] = []
  doc.on('update', (update: Uint8Array) => updates.push(update))
  const list = doc.getArray('list')
  const count = UPDATE_LIMITS.maxParts + 3616
  doc.transact(() => {
    for (let at = 0; at < count; at++) list.insert(0, [at])
  })
  const other = docOf(updates, 9)
  const before = other.getArray<number>('list').toJSON()
  doc.transact(() => {
    for (let at = count - 2; at >= 0; at -= 2) list.delete(at)
    list.insert(0, ['instead'])
  })
  t.is(updates.length, 2)
  const [written, removed] = updates.map((update) => mustCutUpdate(update))
  t.is(written?.length, 2)
  t.alike(before.length, count)
  mustFollow([...(written ?? []), ...(removed ?? [])], CLIENT)
  t.alike(
    docOf([...(written ?? []), ...(removed ?? [])])
      .getArray('list')
      .toJSON(),
    list.toJSON()
  )
  // All is removed: more than an update may delete, in stretches that lie apart.
  const gaps = docOf(updates, 9)
  gaps.transact(() => gaps.getArray('list').delete(0, gaps.getArray('list').length))
  const whole = Y.encodeStateAsUpdate(gaps, Y.encodeStateVector(gaps))
  const parts = mustCutUpdate(whole)
  t.alike(
    docOf([...updates, ...parts])
      .getArray('list')
      .toJSON(),
    []
  )
})

test('earlier content is deleted with the first piece, content inserted and deleted at once with the last', (t: Assert) => {
  const doc = docOf([], CLIENT)
  doc.getText('text').insert(0, 'old')
  const known = Y.encodeStateAsUpdate(doc)
  const updates: Uint8Array[] = []
  doc.on('update', (update: Uint8Array) => updates.push(update))
  doc.transact(() => {
    doc.getText('text').delete(0, 3)
    doc.getText('text').insert(0, 'n'.repeat(300_000))
    doc.getArray('list').insert(0, ['gone'])
    doc.getArray('list').delete(0)
  })
  const pieces = mustCutUpdate(updates[0])
  t.is(pieces.length, 2)
  const deletes = pieces.map((piece) => {
    const reading = readUpdate(piece)
    return reading.ok ? reading.update.deletes : null
  })
  t.alike(deletes, [[{ client: CLIENT, clock: 0, length: 3 }], [{ client: CLIENT, clock: 300_003, length: 1 }]])
  t.is(docOf([known, pieces[0]]).getText('text').toJSON().replaceAll('n', ''), '')
})

test('a small edit is handed through as it is, and one that just fits too', (t: Assert) => {
  const made = (text: string): Uint8Array => {
    const doc = docOf([], 7)
    doc.getText('a').insert(0, text)
    return Y.encodeStateAsUpdate(doc)
  }
  for (const update of [made('a'), new Uint8Array([9, 9]), made('a'.repeat(UPDATE_LIMITS.maxBytes - 20))]) {
    const cutting = cutUpdate(update)
    t.ok(cutting.ok && cutting.pieces.length === 1 && cutting.pieces[0] === update)
  }
  const most = made('a'.repeat(UPDATE_LIMITS.maxBytes - made('').byteLength))
  t.ok(most.byteLength > UPDATE_LIMITS.maxBytes)
  t.is(mustCutUpdate(most).length, 2)
})

test('a value that is too large by itself is refused, wherever it stands', async (t: Assert) => {
  const value = 'x'.repeat(300_000)
  const edits: readonly ((doc: Y.Doc) => void)[] = [
    (doc) => doc.getMap('map').set('key', value),
    (doc) => doc.getMap('map').set('key', { bytes: new Uint8Array(300_000) }),
    (doc) => doc.getArray('list').insert(0, ['small', value, 'small']),
    (doc) => doc.getArray('list').insert(0, [new Uint8Array(300_000)]),
    (doc) => doc.getText('text').insertEmbed(0, { value }),
    (doc) => doc.getText('text').insert(0, 'marked', { link: value }),
    (doc) => doc.getMap(value).set('key', 'a name of the document that is too long')
  ]
  for (const edit of edits) {
    const doc = docOf([], CLIENT)
    edit(doc)
    const cutting = cutUpdate(Y.encodeStateAsUpdate(doc))
    t.is(
      cutting.ok ? '' : cutting.reason,
      'a single value of it is larger than 262144 bytes, and cannot be cut: write several values instead, or a text'
    )
    await failsWith(t, 'PAYLOAD_TOO_LARGE', async () => mustCutUpdate(Y.encodeStateAsUpdate(doc)))
  }
  const garbage = cutUpdate(new Uint8Array(300_000).fill(1))
  t.absent(garbage.ok)
})
