import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import * as Y from 'yjs'
import { editShared, readShared, sharedParts } from '../../../src/domain/document/shared-types.js'
import { nestLists } from '../../support/documents.js'
import { failsWith } from '../../support/fails.js'
import { holds } from '../../support/holds.js'

/** Without the keys that are refused. */
const arbValue = fc
  .jsonValue({ maxDepth: 2 })
  .filter((value) => !/"(?:__proto__|constructor|prototype)":/.test(JSON.stringify(value)))
  .map((value): unknown => JSON.parse(JSON.stringify(value)))
const arbKey = fc.stringMatching(/^[a-z]{1,3}$/)

/** Two documents that have the same, and what makes them hear of each other. */
function pair(begin: (doc: Y.Doc) => void): { docs: [Y.Doc, Y.Doc]; exchange(): void } {
  const docs: [Y.Doc, Y.Doc] = [new Y.Doc(), new Y.Doc()]
  begin(docs[0])
  const exchange = (): void => {
    Y.applyUpdate(docs[1], Y.encodeStateAsUpdate(docs[0]))
    Y.applyUpdate(docs[0], Y.encodeStateAsUpdate(docs[1]))
  }
  exchange()
  return { docs, exchange }
}

test('a map and a list become what they are set to, and set again they change nothing', async (t: Assert) => {
  const arbMap = fc.dictionary(arbKey, arbValue, { maxKeys: 5, noNullPrototype: true })
  const arbList = fc.array(arbValue, { maxLength: 8 })
  await holds(
    t,
    fc.property(arbMap, arbMap, arbList, arbList, (map, nextMap, list, nextList) => {
      const doc = new Y.Doc()
      for (const value of [map, nextMap]) editShared(doc, 'map', { type: 'map', map: value })
      for (const value of [list, nextList]) editShared(doc, 'list', { type: 'list', list: value })
      let updates = 0
      doc.on('update', () => updates++)
      editShared(doc, 'map', { type: 'map', map: nextMap })
      editShared(doc, 'list', { type: 'list', list: nextList })
      const read = [readShared(doc, 'map', 'map'), readShared(doc, 'list', 'list')]
      const sorted = (value: unknown): unknown =>
        Object.fromEntries(Object.entries(value as object).sort(([a], [b]) => (a < b ? -1 : 1)))
      return updates === 0 && JSON.stringify([sorted(read[0]), read[1]]) === JSON.stringify([sorted(nextMap), nextList])
    })
  )
})

test('a concurrent edit of another member stays when a map or a list is set', (t: Assert) => {
  const { docs, exchange } = pair((doc) => {
    editShared(doc, 'map', { type: 'map', map: { a: 1, b: 2 } })
    editShared(doc, 'list', { type: 'list', list: ['a', 'b', 'c'] })
  })
  editShared(docs[0], 'map', { type: 'map', map: { a: 9, b: 2 } })
  editShared(docs[1], 'map', { type: 'map', set: { c: 3 }, remove: ['b'] })
  editShared(docs[0], 'list', { type: 'list', list: ['a', 'x', 'b', 'c'] })
  editShared(docs[1], 'list', { type: 'list', splice: { at: 2, remove: 1, insert: ['d'] } })
  exchange()
  for (const doc of docs) {
    t.alike(readShared(doc, 'map', 'map'), { a: 9, c: 3 })
    t.alike(readShared(doc, 'list', 'list'), ['a', 'x', 'b', 'd'])
  }
})

test('a part of a text is replaced, and places that are not there are refused', async (t: Assert) => {
  const doc = new Y.Doc()
  editShared(doc, 'text', { type: 'text', text: 'hello world' })
  editShared(doc, 'text', { type: 'text', splice: { at: 6, remove: 5, insert: 'you' } })
  t.is(readShared(doc, 'text', 'text'), 'hello you')
  await failsWith(t, 'INVALID_INPUT', () =>
    editShared(doc, 'text', { type: 'text', splice: { at: 9, remove: 1, insert: '' } })
  )
  await failsWith(t, 'INVALID_INPUT', () =>
    editShared(doc, 'list', { type: 'list', splice: { at: 1, remove: 0, insert: [] } })
  )
  await failsWith(t, 'INVALID_INPUT', () => editShared(doc, 'text', { type: 'text', text: '\ud800' }))
  await failsWith(t, 'CONFLICT', () => readShared(doc, 'map', 'text'))
  t.is(readShared(doc, 'text', 'text'), 'hello you')
})

test('edits of others are read as their type, and a read as another type neither changes them nor leaves anything behind', async (t: Assert) => {
  const values = { text: 'hello', map: { a: 1 }, list: [1, 'b'] } as const
  const types = ['text', 'map', 'list'] as const
  const { docs } = pair((doc) => {
    for (const type of types) editShared(doc, type, { type, [type]: values[type] } as never)
    doc.getText('bare').insertEmbed(0, { image: 1 })
    doc.getArray('nested').push([new Y.Map()])
    doc.getText('emptied').insert(0, 'x')
    doc.getText('emptied').delete(0, 1)
  })
  const [, other] = docs
  const roots = [...other.share.keys()]
  for (const root of types) {
    for (const type of types) {
      if (type === root) continue
      await failsWith(t, 'CONFLICT', () => readShared(other, type, root))
      await failsWith(t, 'CONFLICT', () => editShared(other, root, { type, [type]: values[type] } as never))
    }
    t.alike(readShared(other, root, root), values[root])
  }
  await failsWith(t, 'CONFLICT', () => readShared(other, 'list', 'bare'))
  t.is(readShared(other, 'text', 'bare'), '')
  t.alike(readShared(other, 'list', 'nested'), [{}])
  for (const root of ['emptied', 'made-up'])
    t.alike(
      [readShared(other, 'text', root), readShared(other, 'map', root), readShared(other, 'list', root)],
      ['', {}, []]
    )
  t.alike([...other.share.keys()], roots)
  t.ok(
    [...other.share.values()].every((type) => type.constructor === Y.AbstractType),
    'nothing was decided'
  )
  editShared(other, 'text', { type: 'text', text: 'hello you' })
  t.is(readShared(other, 'text', 'text'), 'hello you')
})

test('all parts of a document are found by their content, under any names', async (t: Assert) => {
  const doc = new Y.Doc()
  doc.getText('text').insert(0, 'some')
  doc.getMap('m').set('key', 1)
  doc.getArray('l').insert(0, [1, 'two', new Y.Map([['three', 3]])])
  doc.getArray('maps').insert(0, [new Y.Map([['a', 1]])])
  const element = new Y.XmlElement('p')
  element.insert(0, [new Y.XmlText('hello')])
  doc.getXmlFragment('x').insert(0, [element])
  doc.getText('gone').insert(0, 'x')
  doc.getText('gone').delete(0, 1)
  const other = new Y.Doc()
  Y.applyUpdate(other, Y.encodeStateAsUpdate(doc))
  t.alike(sharedParts(other), [
    { root: 'l', type: 'list', value: [1, 'two', { three: 3 }] },
    { root: 'm', type: 'map', value: { key: 1 } },
    { root: 'maps', type: 'list', value: [{ a: 1 }] },
    { root: 'text', type: 'text', value: 'some' },
    { root: 'x', type: 'xml', value: '<p>hello</p>' }
  ])
  for (const type of ['text', 'list', 'map'] as const)
    await failsWith(t, 'CONFLICT', () => readShared(other, type, 'x'))
})

test('a part of several kinds at once is read as all of them in order, and others are whole beside it', (t: Assert) => {
  const doc = new Y.Doc()
  const paragraph = new Y.XmlElement('p')
  paragraph.insert(0, [new Y.XmlText('hello')])
  doc.getText('rich').insert(0, 'before after')
  doc.getText('rich').format(0, 3, { bold: true })
  doc.getText('rich').insertEmbed(7, paragraph as never)
  doc.getText('rich').insertEmbed(8, { image: 1 })
  doc.getText('text').insert(0, 'some')
  const odd = new Y.XmlElement('p')
  doc.getXmlFragment('odd').insert(0, [odd])
  odd.insert(0, [null, { toString: 1 }, new Y.Map([['a', 1]])] as never)
  t.alike(sharedParts(told(doc)), [
    { root: 'odd', type: 'xml', value: '<p>null{"toString":1}{"a":1}</p>' },
    { root: 'rich', type: 'mixed', value: ['before ', '<p>hello</p>', { image: 1 }, 'after'] },
    { root: 'text', type: 'text', value: 'some' }
  ])
})

test('texts of XML outside of elements are read as texts, and not overwritten by a type', async (t: Assert) => {
  const doc = new Y.Doc()
  doc.getXmlFragment('text').insert(0, [new Y.XmlText('hello '), new Y.XmlText('you')])
  const other = told(doc)
  t.is(readShared(other, 'text', 'text'), 'hello you')
  t.alike(sharedParts(other), [{ root: 'text', type: 'xml', value: 'hello you' }])
  await failsWith(t, 'CONFLICT', () => editShared(other, 'text', { type: 'text', text: 'hello us' }))
  t.is(other.getXmlFragment('text').toJSON(), 'hello you', 'it was made nothing else')
})

test('values without a JSON form are edited as they are read, and stay where nothing else was meant', (t: Assert) => {
  const doc = new Y.Doc()
  doc.getMap('map').set('odd', Number.NaN)
  doc.getMap('map').set('deep', { far: Number.POSITIVE_INFINITY })
  doc.getArray('list').insert(0, [1, Number.NaN, { at: Number.NaN }, 2])
  const other = told(doc)
  const read = (type: 'map' | 'list'): never => JSON.parse(JSON.stringify(readShared(other, type, type))) as never
  editShared(other, 'map', { type: 'map', map: { ...(read('map') as object), more: 1 } })
  editShared(other, 'list', { type: 'list', list: [...(read('list') as unknown[]), 3] })
  t.alike(readShared(other, 'map', 'map'), { odd: Number.NaN, deep: { far: Number.POSITIVE_INFINITY }, more: 1 })
  t.alike(readShared(other, 'list', 'list'), [1, Number.NaN, { at: Number.NaN }, 2, 3])
  editShared(other, 'map', { type: 'map', map: { odd: 5 } })
  editShared(other, 'list', { type: 'list', list: [1] })
  t.alike([readShared(other, 'map', 'map'), readShared(other, 'list', 'list')], [{ odd: 5 }, [1]])
})

test('a map is read with every key that it has', (t: Assert) => {
  const doc = new Y.Doc()
  const keys = ['__proto__', 'constructor', 'toString', '']
  for (const key of keys) doc.getMap('map').set(key, { of: key })
  const other = told(doc)
  const read = new Map(Object.entries(readShared(other, 'map', 'map') as object))
  t.is(read.size, keys.length)
  for (const key of keys) t.alike(read.get(key), { of: key })
  editShared(other, 'map', { type: 'map', map: { a: 1 } })
  t.alike(readShared(other, 'map', 'map'), { a: 1 })
})

test('a part of several kinds has as many values as a document allows', (t: Assert) => {
  const doc = new Y.Doc()
  doc.getArray('mix').insert(
    0,
    Array.from({ length: 300_000 }, (_, i) => i)
  )
  const other = told(doc)
  other.getText('mix').insert(0, 'some')
  const [part] = sharedParts(told(other))
  if (part === undefined) throw new Error('no part was found')
  t.absent(part.fault)
  t.is((part.value as unknown[] | null)?.length, 300_001)
})

test('a part that is nested too deep is named with the reason, and the others are read', async (t: Assert) => {
  const doc = new Y.Doc()
  nestLists(doc.getArray('deep'), 300)
  doc.getText('text').insert(0, 'some')
  const other = told(doc)
  t.alike(sharedParts(other), [
    { root: 'deep', type: 'list', value: null, fault: 'it is nested deeper than 256 levels' },
    { root: 'text', type: 'text', value: 'some' }
  ])
  await failsWith(t, 'CONFLICT', () => readShared(other, 'list', 'deep'))
})

test('the markup of XML is that of Yjs, for any elements, attributes, texts and formats', async (t: Assert) => {
  const arbWord = fc.constantFrom('a', 'b', 'Strong', 'é')
  const arbText = fc.record({
    kind: fc.constant('text' as const),
    pieces: fc.array(
      fc.record({
        insert: arbWord,
        attributes: fc.dictionary(arbKey, fc.dictionary(arbKey, arbWord, { noNullPrototype: true }), {
          noNullPrototype: true
        })
      }),
      { maxLength: 3 }
    )
  })
  const { node } = fc.letrec<{ node: Xml }>((tie) => ({
    node: fc.oneof(
      { depthSize: 'small' },
      arbText,
      fc.record({
        kind: fc.constant('element' as const),
        name: arbWord,
        attributes: fc.dictionary(arbKey, arbWord, { noNullPrototype: true }),
        inner: fc.array(tie('node'), { maxLength: 3 })
      })
    )
  }))
  await holds(
    t,
    fc.property(fc.array(node, { maxLength: 4 }), (nodes) => {
      const doc = new Y.Doc()
      const fragment = doc.getXmlFragment('x')
      fragment.insert(0, nodes.map(xmlOf))
      const [part] = sharedParts(told(doc))
      return (part?.value ?? '') === fragment.toJSON()
    })
  )
})

type Xml =
  | { readonly kind: 'text'; readonly pieces: readonly { readonly insert: string; readonly attributes: object }[] }
  | {
      readonly kind: 'element'
      readonly name: string
      readonly attributes: Readonly<Record<string, string>>
      readonly inner: readonly Xml[]
    }

function xmlOf(node: Xml): Y.XmlElement | Y.XmlText {
  if (node.kind === 'text') {
    const text = new Y.XmlText()
    text.applyDelta([...node.pieces])
    return text
  }
  const element = new Y.XmlElement(node.name)
  for (const [name, value] of Object.entries(node.attributes)) element.setAttribute(name, value)
  element.insert(0, node.inner.map(xmlOf))
  return element
}

/** A document that was told all of another, and where nobody said what anything is. */
function told(doc: Y.Doc): Y.Doc {
  const other = new Y.Doc()
  Y.applyUpdate(other, Y.encodeStateAsUpdate(doc))
  return other
}
