import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import * as Y from 'yjs'
import { NodeError } from '../../../../src/kit/errors.js'
import { restoringEdits } from '../../../../src/domain/document/history/restore.js'
import { editShared, sharedParts } from '../../../../src/domain/document/shared-types.js'
import { apply, arbEdits } from '../../../support/documents.js'
import { holds } from '../../../support/holds.js'

function copyOf(doc: Y.Doc): Y.Doc {
  const copy = new Y.Doc()
  Y.applyUpdate(copy, Y.encodeStateAsUpdate(doc))
  return copy
}

function restored(doc: Y.Doc, former: Y.Doc, only?: string): Y.Doc {
  const now = copyOf(doc)
  for (const { root, edit } of restoringEdits(now, former, only)) editShared(now, root, edit)
  return now
}

test('after a restore the content equals the former state, for any edits in between', async (t) => {
  await holds(
    t,
    fc.property(arbEdits(), fc.nat({ max: 24 }), (edits, k) => {
      const doc = new Y.Doc()
      let former = copyOf(doc)
      for (const [at, edit] of edits.filter(({ kind }) => kind !== 'nest' && kind !== 'mark').entries()) {
        if (at === k) former = copyOf(doc)
        apply(doc, edit)
      }
      const now = restored(doc, former)
      assert.deepEqual(sharedParts(now), sharedParts(former))
      assert.deepEqual(restoringEdits(now, former), [], 'a second restore changes nothing')
    }),
    300
  )
})

test('with formats and nested types a restore is refused, or the content equals the former state', async (t) => {
  await holds(
    t,
    fc.property(arbEdits(), fc.nat({ max: 24 }), (edits, k) => {
      const doc = new Y.Doc()
      let former = copyOf(doc)
      for (const [at, edit] of edits.entries()) {
        if (at === k) former = copyOf(doc)
        apply(doc, edit)
      }
      try {
        assert.deepEqual(sharedParts(restored(doc, former)), sharedParts(former))
      } catch (error) {
        if (!(error instanceof NodeError)) throw error
        assert.equal(error.code, 'CONFLICT')
      }
    }),
    300
  )
})

test('XML, formatted text, nested types and a changed type are refused by name; unchanged ones are left alone', (t) => {
  const cases: [string, (doc: Y.Doc) => void, (doc: Y.Doc) => void][] = [
    [
      'XML',
      (doc) => doc.getXmlFragment('x').insert(0, [new Y.XmlElement('p')]),
      (doc) => doc.getXmlFragment('x').delete(0, 1)
    ],
    [
      'formatted',
      (doc) => doc.getText('x').insert(0, 'bold', { bold: true }),
      (doc) => doc.getText('x').format(0, 4, { bold: null })
    ],
    [
      'inside of each other',
      (doc) => void doc.getMap('x').set('k', new Y.Array()),
      (doc) => doc.getMap('x').delete('k')
    ],
    [
      'inside of each other',
      (doc) => doc.getText('x').insertEmbed(0, { image: 'a' }),
      (doc) => doc.getText('x').delete(0, 1)
    ]
  ]
  for (const [reason, before, after] of cases) {
    const doc = new Y.Doc()
    before(doc)
    doc.getText('plain').insert(0, 'one')
    const former = copyOf(doc)
    doc.getText('plain').insert(3, ', two')
    t.is(restored(doc, former).getText('plain').toJSON(), 'one', `${reason}: it is unchanged`)
    after(doc)
    let message = ''
    try {
      restoringEdits(copyOf(doc), former)
    } catch (error) {
      message = error instanceof NodeError ? error.message : ''
    }
    t.ok(message.includes('the part x') && message.includes(reason), message)
    t.is(restored(doc, former, 'plain').getText('plain').toJSON(), 'one', `${reason}: another part alone`)
  }
})
