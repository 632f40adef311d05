import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import * as Y from 'yjs'
import { readUpdate, stateFault, UPDATE_LIMITS } from '../../../../src/domain/document/update/update.js'
import { arbEdits, edited } from '../../../support/documents.js'
import { holds } from '../../../support/holds.js'

/** Bytes of Yjs's numbers, 7 bits a byte. */
function sevens(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...sevens(Math.floor(value / 128))]
}

function bytes(...parts: (number | number[])[]): Uint8Array {
  return Uint8Array.from(parts.flat())
}

function text(value: string): number[] {
  const utf8 = [...Buffer.from(value)]
  return [...sevens(utf8.length), ...utf8]
}

/** An update of client 7 with one item under the root `a`, of this kind and content. */
function item(kind: number, content: number[]): Uint8Array {
  return bytes(1, 1, 7, 0, kind, 1, text('a'), content, 0)
}

function reasonOf(update: Uint8Array): string | null {
  const reading = readUpdate(update)
  return reading.ok ? null : reading.reason
}

test('an update has the insertions, dependencies and deletions that Yjs reports', async (t) => {
  await holds(
    t,
    fc.property(arbEdits(), (edits) => {
      for (const { update } of edited(edits)) {
        const reading = readUpdate(update)
        assert.ok(reading.ok, reading.ok ? '' : reading.reason)
        const { structs, ds } = Y.decodeUpdate(update)
        const length = structs.reduce((sum, struct) => sum + struct.length, 0)
        const { writes, deletes } = reading.update
        assert.equal(writes?.client, structs[0]?.id.client)
        assert.equal(writes?.clock, structs[0]?.id.clock)
        assert.equal(writes?.length ?? 0, length)
        const ranges = [...ds.clients].flatMap(([client, items]) =>
          items.map(({ clock, len }) => ({ client, clock, length: len }))
        )
        assert.deepEqual(deletes, ranges)
      }
    })
  )
})

test('an update whose needs are fulfilled leaves nothing behind in Yjs, one whose are not does', async (t) => {
  await holds(
    t,
    fc.property(arbEdits(), fc.nat(), (edits, seed) => {
      const updates = edited(edits).map(({ update }) => update)
      const doc = new Y.Doc()
      // Any order at all: those that fit are applied, the others are not.
      const order = updates.map((_, place) => updates[(place * 7 + seed) % updates.length])
      for (const update of order) {
        const reading = readUpdate(update)
        assert.ok(reading.ok)
        const state = Y.decodeStateVector(Y.encodeStateVector(doc))
        const { writes, needs } = reading.update
        const isReady =
          (writes === null || writes.clock <= (state.get(writes.client) ?? 0)) &&
          [...needs].every(([client, end]) => end <= (state.get(client) ?? 0))
        const trial = new Y.Doc()
        Y.applyUpdate(trial, Y.encodeStateAsUpdate(doc))
        Y.applyUpdate(trial, update)
        assert.equal(trial.store.pendingStructs === null && trial.store.pendingDs === null, isReady)
        if (isReady) Y.applyUpdate(doc, update)
      }
    })
  )
})

test('arbitrary bytes never throw, and Yjs accepts every part that is accepted', async (t) => {
  await holds(
    t,
    fc.property(fc.uint8Array({ maxLength: 64 }), (raw) => {
      if (readUpdate(raw).ok) Y.applyUpdate(new Y.Doc(), raw)
    }),
    5000
  )
})

test('an update that was changed at any place never makes the reader throw, nor Yjs once it was taken', async (t) => {
  const damage = fc.array(
    fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 }), fc.constantFrom('flip', 'put', 'cut', 'add')),
    {
      minLength: 1,
      maxLength: 4
    }
  )
  await holds(
    t,
    fc.property(arbEdits(), fc.nat(), damage, (edits, which, changes) => {
      const made = edited(edits)
      const chosen = which % made.length
      let update: Uint8Array = Uint8Array.from((made[chosen] as { update: Uint8Array }).update)
      for (const [at, value, how] of changes) {
        const place = at % Math.max(1, update.byteLength)
        if (how === 'cut') update = update.subarray(0, place)
        else if (how === 'add') update = bytes([...update.subarray(0, place)], value, [...update.subarray(place)])
        else if (update.byteLength > 0) update[place] = how === 'flip' ? update[place] ^ (1 << (value & 7)) : value
      }
      const reading = readUpdate(update)
      if (!reading.ok) return
      const doc = new Y.Doc()
      for (const before of made.slice(0, chosen)) Y.applyUpdate(doc, before.update)
      const state = Y.decodeStateVector(Y.encodeStateVector(doc))
      const { writes, needs } = reading.update
      const isReady =
        (writes === null || writes.clock === (state.get(writes.client) ?? 0)) &&
        [...needs].every(([client, end]) => end <= (state.get(client) ?? 0))
      if (!isReady) return
      Y.applyUpdate(doc, update)
      assert.equal(doc.store.pendingStructs, null)
      assert.equal(doc.store.pendingDs, null)
    }),
    2000
  )
})

test('counts and lengths beyond what follows are refused before anything is made for them', (t) => {
  const huge = sevens(2 ** 52)
  const reasons = [
    bytes(1, huge, 7, 0),
    bytes(1, sevens(2 ** 25), 7, 0, 0, 1),
    bytes(0, huge),
    bytes(0, 1, 7, sevens(2 ** 31), 0, 1),
    item(2, huge),
    item(3, huge),
    item(4, huge),
    item(8, huge),
    item(8, [1, 117, ...huge]),
    item(8, [1, 118, ...huge]),
    item(1, huge),
    bytes(1, 1, 7, 0, 0, huge, 0),
    bytes(1, 1, 7, huge, 0, 1, 0),
    bytes(0, 1, 7, 1, huge, huge),
    bytes([255, 255, 255, 255, 255, 255, 255, 255, 255, 1])
  ].map(reasonOf)
  t.absent(reasons.includes(null), reasons.join('; '))
})

test('values that are nested deeper than 32, have forbidden keys or are not JSON are refused', (t) => {
  const nested = (depth: number): number[] => [1, ...Array.from({ length: depth }, () => [117, 1]).flat(), 126]
  t.is(reasonOf(item(8, nested(32))), null)
  t.is(reasonOf(item(8, nested(33))), 'nested deeper than 32')
  t.is(reasonOf(item(8, nested(100_000))), 'nested deeper than 32')
  t.is(reasonOf(item(8, [1, 118, 1, ...text('__proto__'), 126])), 'the key __proto__ is not allowed')
  t.is(reasonOf(item(5, text('{'))), 'a JSON value: not JSON')
  t.is(reasonOf(item(5, text('[1]'))), null)
  t.is(reasonOf(item(2, [1, ...text('undefined')])), null)
  t.is(reasonOf(item(5, text('['.repeat(50) + ']'.repeat(50)))), 'a JSON value: nested deeper than 32')
})

test('an update that would make Yjs throw or wait is refused with its reason', (t) => {
  t.is(reasonOf(bytes(2, 1, 7, 0, 0, 1, 1, 8, 0, 0, 1, 0)), 'it writes for more than one clientID')
  t.is(reasonOf(bytes(1, 1, 7, 0, 10, 1, 0)), 'content of an unknown kind', 'a gap')
  t.is(reasonOf(item(9, [...text('guid'), 126])), 'a document inside of a document')
  t.is(reasonOf(item(11, [1])), 'content of an unknown kind')
  t.is(reasonOf(item(7, [7])), 'a shared type of an unknown kind')
  t.is(reasonOf(item(8, [1, 122, 0, 0, 0, 0, 0, 0, 0, 1])), 'a value of an unknown kind', 'a bigint')
  t.is(reasonOf(item(4, [2, 0xff, 0x41])), 'a text is not UTF-8')
  t.is(reasonOf(item(4, [2, 0xc3, 0xa9])), null)
  t.is(reasonOf(item(4, text('\uFFFD'))), null)
  t.is(reasonOf(item(4, [0])), 'a part of no length')
  t.is(reasonOf(bytes(1, 1, 7, 0, 0x84, 7, 0, text('x'), 0)), 'an item comes before its dependency')
  t.is(reasonOf(bytes(1, 1, 7, 0, 4, 0, 7, 0, text('x'), 0)), 'an item comes before its dependency', 'a parent')
  t.is(reasonOf(bytes(1, 1, 7, 0, 4, 2, text('x'), 0)), 'a parent of an unknown form')
  t.is(reasonOf(bytes(1, 0, 7, 0, 0, 0)), 'a clientID without anything written')
  t.is(reasonOf(bytes(0, 2, 7, 1, 0, 1, 7, 1, 2, 1)), 'a clientID is deleted from twice')
  t.is(reasonOf(bytes(0, 1, 7, 2, 5, 1, 0, 1)), 'its deletions are not in order')
  t.is(reasonOf(bytes(1, 1, 7, 0, 0, 1, 1, 7, 1, 0, 2)), 'it deletes items that it has not written yet')
  t.is(reasonOf(bytes(0, 0, 0)), 'there are bytes behind its end')
  t.is(reasonOf(bytes()), 'it is cut short')
})

test('an update may have 256 KiB and 16,384 parts, and no more', (t) => {
  const largest = UPDATE_LIMITS.maxBytes - item(4, []).byteLength - 3
  t.is(reasonOf(item(4, text('x'.repeat(largest)))), null)
  t.is(reasonOf(item(4, text('x'.repeat(largest + 1)))), `larger than ${UPDATE_LIMITS.maxBytes} bytes`)
  const parts = (count: number): Uint8Array =>
    bytes(1, sevens(count), 7, 0, Array.from({ length: count }, () => [0, 1]).flat(), 0)
  t.is(reasonOf(parts(UPDATE_LIMITS.maxParts)), null)
  t.is(reasonOf(parts(UPDATE_LIMITS.maxParts + 1)), 'more than 16384 parts')
})

test('a whole document of any edits, of many clientIDs, has no fault, and a new one takes all of it', async (t) => {
  await holds(
    t,
    fc.property(arbEdits(), fc.integer({ min: 0, max: 40 }), (edits, others) => {
      const doc = new Y.Doc()
      for (const { update } of edited(edits)) Y.applyUpdate(doc, update)
      for (let client = 1; client <= others; client++) {
        doc.clientID = client
        doc.getText('text').insert(client % (doc.getText('text').length + 1), 'x')
      }
      const state = Y.encodeStateAsUpdate(doc)
      assert.equal(stateFault(state), null)
      const copy = new Y.Doc()
      Y.applyUpdate(copy, state)
      assert.deepEqual(Y.encodeStateVector(copy), Y.encodeStateVector(doc))
    })
  )
})

test('a whole document that was changed at any place never makes the reader throw, nor Yjs if no fault was found', async (t) => {
  const damage = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 3 })
  await holds(
    t,
    fc.property(arbEdits(), damage, (edits, changes) => {
      const state = Uint8Array.from(Y.mergeUpdates(edited(edits).map(({ update }) => update)))
      for (const [at, value] of changes) state[at % state.byteLength] = value
      if (stateFault(state) === null) Y.applyUpdate(new Y.Doc(), state)
    }),
    1000
  )
})

test('a whole document is refused for cut, foreign or excess content, in any of its clientIDs', (t) => {
  const gc = (client: number): number[] => [1, client, 0, 0, 1]
  t.is(stateFault(bytes(0, 0)), null)
  t.is(stateFault(bytes(3, gc(7), gc(8), gc(9), 0)), null)
  t.is(reasonOf(bytes(3, gc(7), gc(8), gc(9), 0)), 'it writes for more than one clientID')
  t.is(stateFault(bytes()), 'it is cut short')
  t.is(stateFault(bytes(2, gc(7))), 'it is cut short')
  t.is(stateFault(bytes(sevens(2 ** 40), gc(7), 0)), 'a count is larger than the rest', 'clientIDs')
  t.is(stateFault(bytes(2, gc(7), sevens(2 ** 40), 8, 0, 0, 1, 0)), 'a count is larger than the rest', 'parts')
  t.is(
    stateFault(bytes(1, gc(7), sevens(2 ** 40))),
    'a count is larger than the rest',
    'clientIDs with something deleted'
  )
  t.is(
    stateFault(bytes(1, gc(7), 1, 7, sevens(2 ** 40), 0, 1)),
    'a count is larger than the rest',
    'the deleted content'
  )
  t.is(stateFault(bytes(2, gc(7), gc(8), 0, 0)), 'there are bytes behind its end')
  t.is(stateFault(bytes(2, gc(7), [0, 8, 0], 0)), 'a clientID without anything written')
  t.is(stateFault(bytes(2, gc(7), [1, 8, 0, 0, 0], 0)), 'a part of no length')
  t.is(stateFault(bytes(2, gc(7), [1, 8, sevens(2 ** 32), 0, 1].flat(), 0)), 'a clock is too large')
  t.is(
    stateFault(bytes(2, gc(7), [1, 8, 0, 9, 1, text('a'), text('guid'), 126].flat(), 0)),
    'a document inside of a document'
  )
  t.is(stateFault(bytes(2, gc(7), gc(8), 2, [7, 1, 0, 1], [7, 1, 0, 1])), 'a clientID is deleted from twice')
  t.is(stateFault(bytes(1, gc(7), 1, [8, 2, 5, 1, 0, 1])), 'its deletions are not in order')
})

test('a whole document has as many as 2,097,152 parts, of all clientIDs together', (t) => {
  const most = 2_097_152
  const state = (parts: number): Uint8Array => {
    const half = Math.floor(parts / 2)
    const heads = [half, parts - half].map((count, place) => [...sevens(count), 7 + place, 0])
    const all = new Uint8Array(1 + (heads[0]?.length ?? 0) + (heads[1]?.length ?? 0) + parts * 2 + 1)
    all[0] = 2
    let at = 1
    for (const [place, head] of heads.entries()) {
      all.set(head, at)
      at += head.length
      for (let part = 0; part < (place === 0 ? half : parts - half); part++, at += 2) all[at + 1] = 1
    }
    return all
  }
  t.is(stateFault(state(most)), null)
  t.is(stateFault(state(most + 1)), `more than ${most} parts`)
})
