import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import * as Y from 'yjs'
import { editText, replaceParts } from '../../../src/domain/document/edit.js'
import { sharedParts } from '../../../src/domain/document/shared-types.js'
import { MAX_DIFFERENCES, sequenceDiff } from '../../../src/domain/document/sequence-diff.js'
import { holds } from '../../support/holds.js'

const arbText = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', 'b', '\n', '🌍', 'é'), maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 20 })
)
const arbList = fc.array(fc.constantFrom(1, 2, 3), { maxLength: 12 })

/** Length of a longest common subsequence, by the table. */
function common(a: readonly number[], b: readonly number[]): number {
  const rows = [Array.from({ length: b.length + 1 }, () => 0)]
  for (const [x, left] of a.entries()) {
    const row = [0]
    for (const [y, right] of b.entries()) row.push(left === right ? rows[x][y] + 1 : Math.max(rows[x][y + 1], row[y]))
    rows.push(row)
  }
  return rows[a.length][b.length]
}

function textOf(value: string): { doc: Y.Doc; text: Y.Text } {
  const doc = new Y.Doc()
  const text = doc.getText('text')
  text.insert(0, value)
  return { doc, text }
}

test('the difference of two sequences makes one into the other, and no smaller one does', async (t) => {
  await holds(
    t,
    fc.property(arbList, arbList, (old, next) => {
      const made = [...old]
      let changed = 0
      for (const { at, remove, from, to } of sequenceDiff(old, next).reverse()) {
        made.splice(at, remove, ...next.slice(from, to))
        changed += remove + to - from
      }
      assert.deepEqual(made, next)
      assert.equal(changed, old.length + next.length - 2 * common(old, next))
    }),
    1000
  )
})

test('beyond 512 differences the middle is replaced whole', (t) => {
  const list = (value: number): number[] => [
    0,
    ...Array.from({ length: MAX_DIFFERENCES }, (_, place) => value + place * 2),
    0
  ]
  t.alike(sequenceDiff(list(1), list(2)), [{ at: 1, remove: MAX_DIFFERENCES, from: 1, to: MAX_DIFFERENCES + 1 }])
})

test('a text that is set is the text, and setting it again changes nothing', async (t) => {
  await holds(
    t,
    fc.property(arbText, arbText, (old, target) => {
      const { doc, text } = textOf(old)
      editText(text, target)
      assert.equal(text.toJSON(), target)
      let updates = 0
      doc.on('update', () => updates++)
      editText(text, target)
      assert.equal(updates, 0)
    }),
    500
  )
})

test('a concurrent edit of another member stays when a text is set', async (t) => {
  await holds(
    t,
    fc.property(arbText, arbText, arbText, (one, two, target) => {
      const { doc, text } = textOf(`${one}|${two}`)
      const other = new Y.Doc()
      Y.applyUpdate(other, Y.encodeStateAsUpdate(doc))
      other.getText('text').insert(one.length + 1, 'HERE')
      editText(text, `${target}|${two}`)
      Y.applyUpdate(doc, Y.encodeStateAsUpdate(other))
      assert.equal(text.toJSON(), `${target}|HERE${two}`)
    }),
    300
  )
})

/** Something embedded at each of these places of a text. */
function withEmbeds(value: string, places: readonly number[]): Y.Text {
  const { text } = textOf(value)
  for (const [number, place] of [...places].sort((a, b) => b - a).entries())
    text.insertEmbed(Math.min(place, value.length), { number })
  return text
}

function embeddedIn(text: Y.Text): unknown[] {
  return (text.toDelta() as { insert: unknown }[]).flatMap(({ insert }) => (typeof insert === 'string' ? [] : [insert]))
}

test('an embed in a text stays at its position when the text around it is set', async (t) => {
  await holds(
    t,
    fc.property(arbText, arbText, fc.array(fc.nat({ max: 40 }), { maxLength: 5 }), (old, target, places) => {
      // Not within a character.
      const text = withEmbeds(
        old,
        places.map((place) => Array.from(old).slice(0, place).join('').length)
      )
      const embedded = embeddedIn(text)
      editText(text, target)
      assert.equal(text.toJSON(), target)
      assert.deepEqual(embeddedIn(text), embedded)
    }),
    500
  )
  const image = { insert: { number: 0 } }
  const setTo = (target: string): unknown => {
    const text = withEmbeds('abcd', [2])
    editText(text, target)
    return text.toDelta()
  }
  t.alike(setTo('abcX'), [{ insert: 'ab' }, image, { insert: 'cX' }])
  t.alike(setTo('aXcd'), [{ insert: 'aX' }, image, { insert: 'cd' }])
  t.alike(setTo(''), [image])
})

test('a part of a text is replaced where it is read, beside what is embedded', (t) => {
  const text = withEmbeds('abcd', [2])
  replaceParts(text, [{ at: 3, remove: 1, insert: 'X' }])
  t.alike(text.toDelta(), [{ insert: 'ab' }, { insert: { number: 0 } }, { insert: 'cX' }])
  replaceParts(text, [{ at: 1, remove: 2, insert: 'Y' }])
  t.is(text.toJSON(), 'aYX')
  t.alike(embeddedIn(text), [{ number: 0 }])
})

test('values of a list that lie in a text stay where they are when the text around them is set', (t) => {
  const { text, doc } = textOf('abcd')
  const other = new Y.Doc()
  Y.applyUpdate(other, Y.encodeStateAsUpdate(doc))
  const [root] = doc.share.keys()
  other.getArray(root).insert(2, [1, 2])
  Y.applyUpdate(doc, Y.encodeStateAsUpdate(other))
  editText(text, 'abcX')
  const [part] = sharedParts(doc)
  t.alike(part?.value, ['ab', 1, 2, 'cX'])
})
