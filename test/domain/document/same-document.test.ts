import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import * as Y from 'yjs'
import { isSameDocument } from '../../../src/domain/document/same-document.js'
import { arbEdits, edited } from '../../support/documents.js'
import { holds } from '../../support/holds.js'

function docOf(updates: readonly Uint8Array[], options: { gc?: boolean } = {}): Y.Doc {
  const doc = new Y.Doc(options)
  doc.on('afterTransaction', (transaction: Y.Transaction) => void Object.assign(transaction, { _needFormattingCleanup: false }))
  for (const update of updates) Y.applyUpdate(doc, update)
  return doc
}

test('documents of the same updates are the same, however Yjs has cut them and whether it forgot what is deleted', async (t) => {
  await holds(
    t,
    fc.property(arbEdits(), (edits) => {
      const updates = edited(edits).map(({ update }) => update)
      const doc = docOf(updates)
      const others = [docOf([Y.mergeUpdates(updates)]), docOf(updates, { gc: false }), docOf([Y.encodeStateAsUpdate(doc)])]
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
