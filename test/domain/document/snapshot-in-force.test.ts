import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import test from 'brittle'
import fc from 'fast-check'
import * as Y from 'yjs'
import { decodeBlock, encodeBlock } from '../../../src/domain/document/block.js'
import { isPartOfReplica, isSameReplica } from '../../../src/domain/document/same-replica.js'
import type { Replica, StreamBlock } from '../../../src/domain/document/replica.js'
import { isSameDocument } from '../../../src/domain/document/same-document.js'
import {
  apply,
  arbEdits,
  mixed,
  publish,
  replicaOf,
  settled,
  stateOf,
  tell,
  type Writer,
  writer,
  written
} from '../../support/documents.js'
import { holds } from '../../support/holds.js'

const arbChoices = fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 40 })
/** Blocks that are put in the place of others: none of them can be taken. */
const arbJunk = fc.array(
  fc.record({ who: fc.nat({ max: 3 }), at: fc.nat({ max: 8 }), bytes: fc.uint8Array({ maxLength: 8 }) }),
  {
    maxLength: 2
  }
)

/** Puts junk into streams. */
function spoil(writers: readonly Writer[], junk: readonly { who: number; at: number; bytes: Uint8Array }[]): void {
  for (const { who, at, bytes } of junk) {
    const { blocks } = writers[who]
    if (at <= blocks.length) blocks.splice(at, 1, Uint8Array.of(255, ...bytes))
  }
}

/** A replica that was told the first so many of these, and one begun with its snapshot in force. */
function begun(order: readonly StreamBlock[], count: number): { early: Replica; late: Replica } {
  const early = replicaOf(null)
  for (const block of order.slice(0, count)) early.receive(block)
  // With gaps it is refused.
  fc.pre(early.isWritable)
  const late = replicaOf(null)
  assert.equal(late.load(early.snapshot(), true), null)
  return { early, late }
}

/** Those that are not in a replica. */
function behind(order: readonly StreamBlock[], replica: Replica): StreamBlock[] {
  const lengths = replica.vectorClock()
  return order.filter(({ stream, index }) => index >= (lengths[stream] ?? 0))
}

function assertSame(one: Replica, other: Replica): void {
  assert.ok(isSameReplica(one, other))
  assert.ok(isSameReplica(other, one))
  assert.deepEqual(one.vectorClock(), other.vectorClock())
}

test('a replica begun with the snapshot in force and given the later updates equals one with all updates, and accepts the same from then on', async (t) => {
  await holds(
    t,
    fc.property(arbEdits(), arbChoices, fc.nat(), arbJunk, (edits, choices, cut, junk) => {
      const writers = written(edits)
      spoil(writers, junk)
      const order = mixed(writers, choices)
      const { early, late } = begun(order, cut % (order.length + 1))
      assertSame(late, early)
      for (const block of behind(order, late)) late.receive(block)
      const whole = settled(order)
      assertSame(late, whole)
      assert.deepEqual(late.ends(), whole.ends())
      for (const one of writers) {
        apply(one.replica.doc, { who: 0, kind: 'text', at: 3, value: 'more', isInformed: false })
        const before = one.blocks.length
        publish(one)
        for (const bytes of [...one.blocks.slice(before), Uint8Array.of(255)]) {
          const block = { stream: one.key, index: one.blocks.length - 1, bytes }
          assert.deepEqual(late.receive(block), whole.receive(block))
        }
        const again = { stream: one.key, index: one.blocks.length, bytes: Uint8Array.of(255) }
        assert.deepEqual(late.receive(again), whole.receive(again))
      }
      assertSame(late, whole)
    })
  )
})

test('a stop below what the snapshot in force holds ends the stream behind that, and asks for no new replica', async (t) => {
  await holds(
    t,
    fc.property(arbEdits(), arbChoices, fc.nat(), fc.nat(), (edits, choices, cut, at) => {
      const order = mixed(written(edits), choices)
      const { early, late } = begun(order, cut % (order.length + 1))
      for (const [stream, held] of Object.entries(early.vectorClock())) {
        const stop = { stream, at: held, reason: 'a list', needsRebuild: false }
        assert.deepEqual(late.stop(stream, at % (held + 1), 'a list'), [stop])
        assert.equal(late.receive({ stream, index: held, bytes: Uint8Array.of(255) }).outcome, 'ended')
        const believed = replicaOf(null)
        assert.equal(believed.load(early.snapshot()), null)
        assert.equal(
          believed.stop(stream, at % held, 'a list')[0]?.needsRebuild,
          true,
          'without force it is taken back'
        )
      }
      assertSame(late, early)
      const stops = [...late.ends()].map(([stream, end]) => ({ stream, ...end, needsRebuild: false }))
      for (const block of behind(order, late)) late.receive(block)
      assertSame(late, settled(order, stops))
    })
  )
})

test('a stop behind what the snapshot in force holds takes back what came since', (t) => {
  const ann = writer('ann')
  for (const word of ['one', 'two', 'three']) {
    ann.replica.doc.getText('text').insert(0, word)
    publish(ann)
  }
  const order = mixed([ann], [0])
  const { late } = begun(order, 1)
  tell(late, [ann])
  t.alike(late.stop(ann.key, 2, 'a list'), [{ stream: ann.key, at: 2, reason: 'a list', needsRebuild: true }])
  t.alike(late.stop(ann.key, 0, 'another list'), [
    { stream: ann.key, at: 1, reason: 'another list', needsRebuild: true }
  ])
})

test('a stream that had ended at the time of the snapshot continues behind it, unless it is found to end again', (t) => {
  const ann = writer('ann')
  for (const word of ['one', 'two']) {
    ann.replica.doc.getText('text').insert(0, word)
    publish(ann)
  }
  const early = replicaOf(null)
  early.stop(ann.key, 1, 'a list')
  tell(early, [ann])
  for (const isInForce of [true, false]) {
    const late = replicaOf(null)
    t.is(late.load(early.snapshot(), isInForce), null)
    t.is(late.ends().size, isInForce ? 0 : 1)
    tell(late, [ann])
    t.is(late.doc.getText('text').toJSON(), isInForce ? 'twoone' : 'one')
  }
})

test('replicas of equally many blocks are the same if and only if none lacks an update that did something', async (t) => {
  await holds(
    t,
    fc.property(arbEdits(), arbChoices, (edits, choices) => {
      const order = mixed(written(edits), choices)
      const last = order.at(-1)
      if (last === undefined) return
      const { sessions } = decodeBlock(last.bytes) ?? assert.fail('a block of its own cannot be read')
      const [whole, less] = [
        settled(order),
        settled([...order.slice(0, -1), { ...last, bytes: encodeBlock({ sessions, updates: [] }) }])
      ]
      // What stands on it waits for ever.
      const isShort = less.waiting > 0
      const isEqual = !isShort && stateOf(whole).equals(stateOf(less))
      assert.ok(isShort || isDeepStrictEqual(less.vectorClock(), whole.vectorClock()))
      assert.equal(isSameReplica(whole, less), isEqual)
      assert.equal(isSameReplica(less, whole), isEqual)
      const shorter = settled(order.slice(0, -1))
      assert.ok(!isSameReplica(whole, shorter) && !isSameReplica(shorter, whole), 'one has not seen the block')
    })
  )
})

test('replicas with equal documents differ if their sessions, or the runs of deleted content, differ', (t) => {
  const told = (blocks: readonly Uint8Array[]): Replica => {
    const replica = replicaOf(null)
    for (const [index, bytes] of blocks.entries())
      t.is(replica.receive({ stream: writer('ann').key, index, bytes }).outcome, 'taken')
    return replica
  }
  const gone = (...edits: (readonly [number, string])[]): Uint8Array[] => {
    const ann = writer('ann')
    // Of text in a part that is deleted nothing is left; that which stood in the document itself keeps its place.
    const map = ann.replica.doc.getMap('map')
    const text = new Y.Text()
    map.set('text', text)
    for (const [at, value] of edits) text.insert(at, value)
    publish(ann)
    map.delete('text')
    publish(ann)
    return ann.blocks
  }
  const [first, last] = gone([0, 'ab']) as [Uint8Array, Uint8Array]
  const { updates } = decodeBlock(last) ?? { updates: [] }
  const base = told([first, last])
  t.ok(isSameReplica(base, told([first, last])))
  const others = { sessions: [first, encodeBlock({ sessions: 2, updates })], runs: gone([0, 'b'], [0, 'a']) }
  for (const [what, blocks] of Object.entries(others)) {
    const other = told(blocks)
    t.ok(isSameDocument(other.doc, base.doc), `the documents are equal: ${what}`)
    t.absent(isSameReplica(base, other), what)
    t.absent(isSameReplica(other, base), what)
  }
})

test('a document with gaps gives no snapshot in force: the content of a gap follows from more than its blocks', (t) => {
  const [ann, bob] = [writer('ann'), writer('bob')]
  const text = ann.replica.doc.getText('text')
  for (const word of ['base', ' more']) {
    text.insert(text.length, word)
    publish(ann)
  }
  tell(bob.replica, [ann])
  bob.replica.doc.getText('text').insert(9, ' bob')
  publish(bob)
  const early = replicaOf(null)
  early.stop(ann.key, 1, 'a list')
  tell(early, [ann, bob])
  t.absent(early.isWritable)
  t.is(replicaOf(null).load(early.snapshot(), true), 'a snapshot with gaps')
  const kept = replicaOf(null)
  t.is(kept.load(early.snapshot()), null, 'a node may have some for itself')
  t.absent(kept.isWritable)
  const whole = replicaOf(null)
  tell(whole, [ann, bob])
  t.ok(whole.isWritable)
})

test('the document of a part of the blocks is in a replica of all, and in none that lacks or alters some of it', async (t) => {
  await holds(
    t,
    fc.property(arbEdits(), arbChoices, fc.nat(), (edits, choices, cut) => {
      const order = mixed(written(edits), choices)
      const [part, whole] = [replicaOf(null), replicaOf(null)]
      for (const block of order.slice(0, cut % (order.length + 1))) part.receive(block)
      for (const block of order) whole.receive(block)
      assert.ok(isPartOfReplica(part, whole))
      assert.equal(isPartOfReplica(whole, part), isSameDocument(whole.doc, part.doc))
      const altered = replicaOf(null)
      for (const block of order) altered.receive(block)
      altered.doc.getText('text').insert(0, 'more')
      assert.ok(!isPartOfReplica(altered, whole))
    })
  )
})
