import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import * as Y from 'yjs'
import { isPartOf, isSameDocument } from '../../../src/domain/document/same-document.js'
import { arbEdits, edited } from '../../support/documents.js'
import { holds } from '../../support/holds.js'

function docOf(updates: readonly Uint8Array[], options: { gc?: boolean } = {}): Y.Doc {
  const doc = new Y.Doc(options)
  doc.on(
    'afterTransaction',
    (transaction: Y.Transaction) => void Object.assign(transaction, { _needFormattingCleanup: false })
  )
  for (const update of updates) Y.applyUpdate(doc, update)
  return doc
}

test('documents of the same updates are the same, however Yjs has cut them and whenever it forgot what is deleted', async (t) => {
  await holds(
    t,
    fc.property(arbEdits(), (edits) => {
      const updates = edited(edits).map(({ update }) => update)
      const doc = docOf(updates)
      const others = [
        docOf([Y.mergeUpdates(updates)]),
        docOf([Y.encodeStateAsUpdate(docOf(updates, { gc: false }))]),
        docOf([Y.encodeStateAsUpdate(doc)])
      ]
      for (const other of others) {
        assert.ok(isSameDocument(doc, other))
        assert.ok(isSameDocument(other, doc))
      }
    }),
    300
  )
})

test('documents of which one lacks an update that did something are not the same', async (t) => {
  await holds(
    t,
    fc.property(arbEdits(), (edits) => {
      const updates = edited(edits).map(({ update }) => update)
      const [whole, less] = [docOf(updates), docOf(updates.slice(0, -1))]
      const bytesOf = (doc: Y.Doc): Buffer => Buffer.from(Y.encodeStateAsUpdate(doc))
      const isEqual = bytesOf(whole).equals(bytesOf(less))
      assert.equal(isSameDocument(whole, less), isEqual)
      assert.equal(isSameDocument(less, whole), isEqual)
    }),
    300
  )
})

test('other content, another place, another parent or another order under the same clocks is not the same', (t) => {
  const doc = (edit: (doc: Y.Doc) => void): Y.Doc => {
    const made = new Y.Doc()
    made.clientID = 7
    edit(made)
    return made
  }
  const text = (value: string) => doc((made) => made.getText('text').insert(0, value))
  const base = text('abc')
  t.ok(isSameDocument(base, text('abc')))
  for (const other of [
    text('abd'),
    text('ab'),
    doc((made) => made.getText('else').insert(0, 'abc')),
    doc((made) => made.getArray('text').insert(0, ['a', 'b', 'c'])),
    doc((made) => {
      made.getText('text').insert(0, 'c')
      made.getText('text').insert(0, 'ab')
    }),
    doc((made) => {
      made.getText('text').insert(0, 'abc')
      made.getText('text').delete(1, 1)
    }),
    new Y.Doc()
  ]) {
    t.absent(isSameDocument(base, other))
    t.absent(isSameDocument(other, base))
  }
})

/**
 * Forgets whole what is deleted in a document, or has each item stand on others, as no honest one does; then read anew.
 */
function altered(doc: Y.Doc, change: (item: Y.Item) => Y.Item | Y.GC): Y.Doc {
  const copy = docOf([Y.encodeStateAsUpdate(doc)])
  for (const structs of copy.store.clients.values())
    for (const [at, struct] of structs.entries()) if (struct instanceof Y.Item) structs[at] = change(struct) as Y.Item
  return docOf([Y.encodeStateAsUpdate(copy)])
}

test('a document that stands on other items than it was written beside, or forgot more than all do, is not the same, and no part', (t) => {
  const doc = new Y.Doc()
  doc.clientID = 7
  const text = doc.getText('text')
  text.insert(0, 'ad')
  text.insert(1, 'bc')
  text.delete(1, 2)
  text.insert(1, 'e')
  text.insert(3, 'z')
  text.delete(3, 1)
  const others = {
    same: altered(doc, (item) => item),
    forgotten: altered(doc, (item) => {
      // What stands on nothing that is forgotten is not forgotten along with it.
      const { left } = item
      if (item.deleted) return new Y.GC(item.id, item.length)
      return Object.assign(item, { origin: left === null ? null : Y.createID(7, 0), rightOrigin: null })
    }),
    // Nothing stands on it yet.
    tail: altered(doc, (item) => (item.deleted && item.id.clock === 5 ? new Y.GC(item.id, item.length) : item)),
    left: altered(doc, (item) =>
      Object.assign(item, { origin: item.origin?.clock === 3 ? Y.createID(7, 0) : item.origin })
    ),
    right: altered(doc, (item) => Object.assign(item, { rightOrigin: item.deleted ? null : item.rightOrigin }))
  }
  for (const [what, other] of Object.entries(others)) {
    t.is(other.getText('text').toJSON(), text.toJSON(), what)
    t.is(isSameDocument(doc, other), what === 'same', what)
    t.is(isSameDocument(other, doc), what === 'same', what)
    t.is(isPartOf(other, doc), what === 'same', what)
  }
})
