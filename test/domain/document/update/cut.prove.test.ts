import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import * as Y from 'yjs'
import { mustCutUpdate } from '../../../../src/domain/document/update/cut.js'
import {
  apply,
  arbEdits,
  type Edit,
  edited,
  mixed,
  publish,
  replicaOf,
  tell,
  writer
} from '../../../support/documents.js'
import { holds } from '../../../support/holds.js'
import { CLIENT, docOf, long, mustFollow } from '../../../support/document-pieces.js'

/**
 * One edit of many bytes: a long text, a list of many values, many keys, or all of them, beside small edits before and
 * after it.
 */
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
        Array<unknown>(Math.ceil(bytes / 60)).fill(
          `${unit}, one of many values of a list, of which this one is ${list.length}`
        )
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

function valueOf(doc: Y.Doc): unknown {
  assert.equal(doc.store.pendingStructs, null)
  assert.equal(doc.store.pendingDs, null)
  return { text: doc.getText('text').toDelta(), map: doc.getMap('map').toJSON(), list: doc.getArray('list').toJSON() }
}

/** Without the difference of large texts, which takes minutes. */
function mustBeSame(one: Y.Doc, other: Y.Doc): void {
  assert.ok(isDeepStrictEqual(valueOf(one), valueOf(other)))
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

test('large edits of members reach all others, for any order of their blocks', async (t: Assert) => {
  await holds(
    t,
    fc.property(
      arbLarge(),
      arbLarge(),
      fc.array(fc.nat(), { minLength: 1, maxLength: 9 }),
      (first, second, choices) => {
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
      }
    ),
    100
  )
})
