import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { encodeBlock } from '../../../src/domain/document/block.js'
import {
  arbEdits,
  forger,
  mixed,
  publish,
  replicaOf,
  settled,
  stateOf,
  tell,
  writer,
  written
} from '../../support/documents.js'
import { holds } from '../../support/holds.js'

const arbChoices = fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 40 })

test('a replica begun with a snapshot and given the rest is equal, byte for byte, to one that was given all', async (t) => {
  await holds(
    t,
    fc.property(arbEdits(), arbChoices, fc.nat(), (edits, choices, cut) => {
      const order = mixed(written(edits), choices)
      const early = replicaOf(null)
      for (const block of order.slice(0, cut % (order.length + 1))) early.receive(block)
      const late = replicaOf(null)
      assert.equal(late.load(early.snapshot()), null)
      assert.deepEqual(late.vectorClock(), early.vectorClock())
      for (const block of order) late.receive(block)
      const whole = settled(order)
      assert.deepEqual(stateOf(late), stateOf(whole))
      assert.deepEqual(Buffer.from(late.snapshot()), Buffer.from(whole.snapshot()))
    })
  )
})

test('a replica begun with a snapshot refuses the same as one that was given all, also beside deleted text', (t) => {
  const ann = writer('ann')
  const text = ann.replica.doc.getText('text')
  text.insert(0, 'begin')
  publish(ann)
  text.delete(2, 1)
  publish(ann)
  const forged = forger(ann.replica.doc.clientID, [ann])
  forged.doc.getText('text').insert(3, '.')
  const [update] = forged.take() as [Uint8Array]
  // Behind clock 3 and before clock 4 becomes behind 3 and before 1, with what was removed between them.
  const bad = Uint8Array.from(update)
  t.is(bad[bad.byteLength - 4], 4)
  bad[bad.byteLength - 4] = 1
  const whole = replicaOf(null)
  tell(whole, [ann])
  const late = replicaOf(null)
  t.is(late.load(whole.snapshot()), null)
  const block = { stream: ann.key, index: 2, bytes: encodeBlock({ sessions: 1, updates: [bad] }) }
  const stops = [whole, late].map((replica) => replica.receive(block).stops)
  t.is(stops[0]?.length, 1)
  t.alike(stops[1], stops[0])
})

test('a snapshot has the sessions of applied blocks alone: waiting blocks are given again and accepted', (t) => {
  const [ann, bob] = [writer('ann'), writer('bob')]
  ann.replica.doc.getText('text').insert(0, 'base')
  publish(ann)
  tell(bob.replica, [ann])
  for (const word of ['one', 'two']) {
    bob.replica.doc.getText('text').insert(4, word)
    publish(bob)
    bob.replica.doc.clientID = bob.replica.sessions.open()
  }
  const early = replicaOf(null)
  tell(early, [bob])
  t.is(early.waiting, 2)
  const late = replicaOf(null)
  t.is(late.load(early.snapshot()), null)
  t.alike(tell(late, [bob, ann]), [], 'no stream ends')
  t.is(late.doc.getText('text').toJSON(), bob.replica.doc.getText('text').toJSON())
})

test('a snapshot that is garbage, of another document or with clientIDs of nobody is refused, and changes nothing', async (t) => {
  const ann = writer('ann')
  ann.replica.doc.getText('text').insert(0, 'text')
  publish(ann)
  const good = ann.replica.snapshot()
  await holds(
    t,
    fc.property(fc.nat(), fc.integer({ min: 0, max: 255 }), (at, value) => {
      const bad = Uint8Array.from(good)
      bad[at % bad.byteLength] = value
      const replica = replicaOf(null)
      if (replica.load(bad) !== null) assert.equal(stateOf(replica).byteLength, 2)
    }),
    1000
  )
  const nobody = replicaOf(null)
  nobody.doc.clientID = 5
  nobody.doc.getText('text').insert(0, 'text')
  t.is(replicaOf(null).load(nobody.snapshot()), 'a snapshot has an unowned clientID')
  t.is(replicaOf(null).load(new Uint8Array()), 'a snapshot is malformed')
  const replica = replicaOf(null)
  tell(replica, [ann])
  t.is(replica.load(good), 'the replica has begun already')
})
