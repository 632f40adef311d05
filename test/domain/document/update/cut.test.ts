import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import * as Y from 'yjs'
import { cutUpdate, mustCutUpdate } from '../../../../src/domain/document/update/cut.js'
import { readUpdate, UPDATE_LIMITS } from '../../../../src/domain/document/update/update.js'
import {
  apply,
  arbEdits,
  type Edit,
  edited,
  forger,
  mixed,
  publish,
  replicaOf,
  settled,
  stateOf,
  tell,
  writer
} from '../../../support/documents.js'
import { failsWith } from '../../../support/fails.js'
import { holds } from '../../../support/holds.js'

const CLIENT = 2 ** 52 + 1

/** One edit of many bytes: a long text, a list of many values, many keys, or all of them, beside small edits before and after it. */
interface Large {
  readonly unit: string
  readonly bytes: number
  readonly kinds: readonly ('text' | 'list' | 'map' | 'own')[]
  readonly small: readonly Edit[]
}

function arbLarge(): fc.Arbitrary<Large> {
  return fc.record({
    unit: fc.constantFrom('a', 'é', '한', '🌍', 'a🌍', '\uFEFFb', 'é🌍\n"'),
    bytes: fc.integer({ min: 250_000, max: 400_000 }),
    kinds: fc.uniqueArray(fc.constantFrom('text' as const, 'list', 'map', 'own'), { minLength: 1 }),
    small: arbEdits()
  })
}

/** So many bytes of text, of whole characters; the first one is of one byte, so that later ones begin anywhere. */
function long(unit: string, bytes: number): string {
  return `${bytes % 2 === 0 ? '' : '.'}${unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit)))}`
}

/** Makes the edit in one transaction; its update. */
function write(doc: Y.Doc, { unit, bytes, kinds, small }: Large): Uint8Array {
  const updates: Uint8Array[] = []
  const listen = (update: Uint8Array): void => void updates.push(update)
  doc.on('update', listen)
  doc.transact(() => {
    for (const edit of small) apply(doc, edit)
    const [text, list, map] = [doc.getText('text'), doc.getArray('list'), doc.getMap('map')]
    if (kinds.includes('text')) text.insert(0, long(unit, bytes))
    if (kinds.includes('list'))
      list.insert(
        0,
        Array<unknown>(Math.ceil(bytes / 60)).fill(`${unit}, one of many values of a list, of which this one is ${list.length}`)
      )
    if (kinds.includes('map')) for (let at = 0; at < 200; at++) map.set(`key ${at}`, unit.repeat(1000))
    // What is written and removed at once, and part of what was there.
    if (kinds.includes('own')) {
      list.insert(0, ['own', unit, null])
      list.delete(1, Math.min(3, list.length - 1))
      text.insert(text.length, long(unit, bytes >> 2))
    }
    for (const edit of small.slice(0, 3)) apply(doc, edit)
  })
  doc.off('update', listen)
  assert.equal(updates.length, 1)
  return updates[0]
}

function docOf(updates: readonly Uint8Array[], clientID?: number): Y.Doc {
  const doc = new Y.Doc()
  if (clientID !== undefined) doc.clientID = clientID
  for (const update of updates) Y.applyUpdate(doc, update)
  return doc
}

function valueOf(doc: Y.Doc): unknown {
  assert.equal(doc.store.pendingStructs, null)
  assert.equal(doc.store.pendingDs, null)
  return { text: doc.getText('text').toDelta(), map: doc.getMap('map').toJSON(), list: doc.getArray('list').toJSON() }
}

/** Without the difference of large texts, which takes minutes. */
function mustBeSame(one: Y.Doc, other: Y.Doc): void {
  assert.ok(isDeepStrictEqual(valueOf(one), valueOf(other)))
}

/** The clock up to which pieces write, each being one that others take. */
function mustFollow(pieces: readonly Uint8Array[], client: number): number | null {
  let next: number | null = null
  for (const piece of pieces) {
    const reading = readUpdate(piece)
    assert.ok(reading.ok, reading.ok ? '' : reading.reason)
    const { writes } = reading.update
    if (writes === null) continue
    assert.equal(writes.client, client)
    if (next !== null) assert.equal(writes.clock, next)
    next = writes.clock + writes.length
  }
  return next
}

test('the pieces of an edit are updates that others take, and make the same document as the whole, beside edits of others too', async (t: Assert) => {
  let cuts = 0
  await holds(
    t,
    fc.property(arbLarge(), arbEdits(), arbEdits(), fc.nat(), (large, before, meanwhile, choice) => {
      const known = edited(before).map(({ update }) => update)
      const doc = docOf(known, CLIENT)
      const whole = write(doc, large)
      const pieces = mustCutUpdate(whole)
      cuts += pieces.length - 1
      const end = mustFollow(pieces, CLIENT)
      assert.equal(end, Y.getState(doc.store, CLIENT))
      const [one, other] = [docOf([...known, whole]), docOf([...known, ...pieces])]
      mustBeSame(other, one)
      assert.ok(isDeepStrictEqual(Y.encodeStateAsUpdate(other), Y.encodeStateAsUpdate(one)))
      // What others wrote at the same time comes between any two pieces.
      const theirs = new Y.Doc()
      for (const update of known) Y.applyUpdate(theirs, update)
      theirs.clientID = 5
      for (const edit of meanwhile) apply(theirs, edit)
      const beside = Y.encodeStateAsUpdate(theirs)
      Y.applyUpdate(one, beside)
      const place = choice % (pieces.length + 1)
      mustBeSame(docOf([...known, ...pieces.slice(0, place), beside, ...pieces.slice(place)]), one)
      mustBeSame(docOf([...known, beside, whole]), one)
    }),
    100
  )
  t.ok(cuts > 100, `${cuts} cuts`)
})

test('large edits of members reach all others, in whatever order their blocks come', async (t: Assert) => {
  await holds(
    t,
    fc.property(arbLarge(), arbLarge(), fc.array(fc.nat(), { minLength: 1, maxLength: 9 }), (first, second, choices) => {
      const [ann, bob] = [writer('ann'), writer('bob')]
      write(ann.replica.doc, first)
      publish(ann)
      tell(bob.replica, [ann])
      write(bob.replica.doc, second)
      write(ann.replica.doc, { ...second, small: first.small, kinds: ['own'] })
      publish(ann)
      publish(bob)
      tell(ann.replica, [bob])
      tell(bob.replica, [ann])
      const late = replicaOf(null)
      // What had to wait for too much is offered again.
      for (const block of mixed([ann, bob], choices)) late.receive(block)
      tell(late, [ann, bob])
      for (const { replica } of [ann, bob]) {
        assert.deepEqual(replica.ends(), new Map())
        assert.deepEqual(late.vectorClock(), replica.vectorClock())
        mustBeSame(late.doc, replica.doc)
      }
    }),
    100
  )
})

test('what a program writes at once is cut before others get it, and repeated it changes nothing', (t: Assert) => {
  const ann = writer('ann')
  const session = ann.replica.openSession()
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

test('more parts than an update may have are cut as well: what is written, and what is deleted', (t: Assert) => {
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

test('what was there is deleted with the first piece, what is written and deleted at once with the last', (t: Assert) => {
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
