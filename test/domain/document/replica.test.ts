import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { encodeBlock } from '../../../src/domain/document/block.js'
import { clientIdOf } from '../../../src/domain/document/client-ids.js'
import {
  arbEdits,
  forger,
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
import { hash } from '../../support/membership.js'

const arbChoices = fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 40 })

test('Feature: a2a-mcp-protocols, Property 28: CRDT concurrent update confluence', async (t) => {
  await holds(
    t,
    fc.property(arbEdits(), arbChoices, arbChoices, (edits, one, other) => {
      const writers = written(edits)
      const replicas = [one, other].map((choices) => settled(mixed(writers, choices)))
      for (const { replica } of writers) tell(replica, writers)
      const states = [...replicas, ...writers.map(({ replica }) => replica)]
      for (const replica of states) {
        assert.deepEqual(stateOf(replica), stateOf(states[0]))
        assert.deepEqual(
          replica.vectorClock(),
          Object.fromEntries(writers.filter((w) => w.blocks.length > 0).map((w) => [w.key, w.blocks.length]))
        )
        assert.equal(replica.waiting, 0)
      }
    }),
    300
  )
})

test('an update with the clientID of another ends its stream there; earlier updates count, others continue', (t) => {
  const [ann, bob] = [writer('ann'), writer('bob')]
  ann.replica.doc.getText('text').insert(0, 'ann')
  publish(ann)
  bob.replica.doc.getText('text').insert(0, 'bob')
  publish(bob)
  const forged = forger(ann.replica.doc.clientID, [ann, bob])
  forged.doc.getText('text').insert(0, 'forged')
  const replica = replicaOf(null)
  tell(replica, [ann, bob])
  const receipt = replica.receive({
    stream: bob.key,
    index: 1,
    bytes: encodeBlock({ sessions: 1, updates: forged.take() })
  })
  t.alike(receipt, {
    outcome: 'ended',
    stops: [{ stream: bob.key, at: 1, reason: 'an update with the clientID of another', needsRebuild: false }]
  })
  ann.replica.doc.getText('text').insert(3, ' goes on')
  publish(ann)
  tell(replica, [ann])
  t.ok(replica.doc.getText('text').toJSON().includes('ann goes on'))
  t.ok(replica.doc.getText('text').toJSON().includes('bob'))
  bob.replica.doc.getText('text').insert(0, 'more')
  publish(bob)
  t.is(replica.receive({ stream: bob.key, index: 1, bytes: bob.blocks[1] }).outcome, 'ended')
})

test('clocks that are left out or repeated, foreign sessions and garbage end a stream with their reason', (t) => {
  const reasonOf = (bytes: Uint8Array): string | undefined =>
    replicaOf(null).receive({ stream: ann.key, index: 0, bytes }).stops[0]?.reason
  const ann = writer('ann')
  const own = forger(ann.replica.doc.clientID)
  own.doc.getText('text').insert(0, 'one')
  own.doc.getText('text').insert(0, 'two')
  const [one, two] = own.take() as [Uint8Array, Uint8Array]
  const wrong = 'an update that leaves out or repeats clocks'
  t.is(reasonOf(encodeBlock({ sessions: 1, updates: [one, two] })), undefined)
  t.is(reasonOf(encodeBlock({ sessions: 1, updates: [two] })), wrong)
  t.is(reasonOf(encodeBlock({ sessions: 1, updates: [one, one] })), wrong)
  t.is(reasonOf(encodeBlock({ sessions: 0, updates: [one] })), 'an update with the clientID of another')
  t.is(reasonOf(encodeBlock({ sessions: 65, updates: [] })), 'a block with a wrong number of sessions')
  t.is(reasonOf(Uint8Array.of(9, 9)), 'a block is malformed')
  t.is(reasonOf(encodeBlock({ sessions: 1, updates: [Uint8Array.of(1)] })), 'an update: it is cut short')
})

test('nothing throws and the others are equal everywhere, for any bytes of a member', async (t) => {
  const garbage = fc.array(
    fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.tuple(fc.nat(), fc.nat(), fc.integer({ min: 0, max: 255 })).map(([which, at, value]) => ({ which, at, value }))
    ),
    { minLength: 1, maxLength: 5 }
  )
  await holds(
    t,
    fc.property(arbEdits(), garbage, arbChoices, arbChoices, (edits, hostile, one, other) => {
      const writers = written(edits)
      const eve = writers[3]
      for (const bad of hostile) {
        if (bad instanceof Uint8Array) eve.blocks.push(bad)
        else if (eve.blocks.length > 0) {
          const block = Uint8Array.from(eve.blocks[bad.which % eve.blocks.length])
          block[bad.at % block.byteLength] = bad.value
          eve.blocks[bad.which % eve.blocks.length] = block
        }
      }
      const [a, b] = [one, other].map((choices) => settled(mixed(writers, choices)))
      assert.deepEqual(stateOf(a as never), stateOf(b as never))
      assert.deepEqual((a as { vectorClock(): unknown }).vectorClock(), (b as { vectorClock(): unknown }).vectorClock())
    }),
    400
  )
})

test('an update whose left and right neighbour are the wrong way round in one run of text ends its stream', (t) => {
  const ann = writer('ann')
  ann.replica.doc.getText('text').insert(0, 'begin')
  publish(ann)
  const forged = forger(ann.replica.doc.clientID, [ann])
  forged.doc.getText('text').insert(2, '.')
  const [update] = forged.take() as [Uint8Array]
  // Behind clock 1 and before clock 2 becomes behind 1 and before 1.
  const bad = Uint8Array.from(update)
  t.is(bad[bad.byteLength - 4], 2)
  bad[bad.byteLength - 4] = 1
  const bytes = encodeBlock({ sessions: 1, updates: [bad] })
  const replica = replicaOf(null)
  tell(replica, [ann])
  const receipt = replica.receive({ stream: ann.key, index: 1, bytes })
  t.alike(receipt.stops, [
    { stream: ann.key, at: 1, reason: 'an update whose left and right are the wrong way round', needsRebuild: false }
  ])
  t.is(replica.doc.getText('text').toJSON(), 'begin')
})

test('the order of a stream is kept: a block that comes early is not taken, one that comes again changes nothing', (t) => {
  const ann = writer('ann')
  for (const word of ['one', 'two', 'three']) {
    ann.replica.doc.getText('text').insert(0, word)
    publish(ann)
  }
  const replica = replicaOf(null)
  const receive = (index: number): string =>
    replica.receive({ stream: ann.key, index, bytes: ann.blocks[index] }).outcome
  t.alike([1, 2, 0, 0, 2, 1, 2, 1].map(receive), [
    'early',
    'early',
    'taken',
    'known',
    'early',
    'taken',
    'taken',
    'known'
  ])
  t.is(replica.doc.getText('text').toJSON(), 'threetwoone')
})

test('an update that depends on an absent block waits for it, within bounds, and delays nobody else', (t) => {
  const [ann, bob, cem] = [writer('ann'), writer('bob'), writer('cem')]
  ann.replica.doc.getText('text').insert(0, 'base')
  publish(ann)
  tell(bob.replica, [ann])
  for (let i = 0; i < 300; i++) {
    bob.replica.doc.getText('text').insert(4, 'x')
    publish(bob)
  }
  cem.replica.doc.getText('other').insert(0, 'free')
  publish(cem)
  const replica = replicaOf(null)
  tell(replica, [bob, cem])
  t.alike(replica.vectorClock(), { [cem.key]: 1 })
  t.is(replica.waiting, 256)
  t.is(replica.receive({ stream: bob.key, index: 256, bytes: bob.blocks[256] }).outcome, 'later')
  tell(replica, [ann])
  t.is(replica.waiting, 0)
  tell(replica, [bob])
  t.alike(stateOf(replica), stateOf(settled(mixed([ann, bob, cem], [0]))))
})

test('of two versions of one stream none counts: replicas that took different ones are equal once they know, with the edits of others on them', async (t) => {
  await holds(
    t,
    fc.property(arbEdits(), arbChoices, fc.nat({ max: 3 }), (edits, choices, lead) => {
      const eve = writer('eve')
      eve.replica.doc.getText('text').insert(0, 'first.')
      publish(eve)
      const tales = ['one', 'two'].map((tale) => {
        const forged = forger(eve.replica.doc.clientID, [eve])
        forged.doc.getText('text').insert(lead, `${tale}\u0007`)
        return { ...eve, blocks: [...eve.blocks, encodeBlock({ sessions: 1, updates: forged.take() })] }
      }) as [Writer, Writer]
      // Each of two honest members took another tale, and wrote into it.
      const honest = ['ann', 'bob'].map((name, place) => {
        const one = writer(name)
        tell(one.replica, [tales[place]])
        one.replica.doc.getText('text').insert(lead + 1, name)
        publish(one)
        for (const edit of edits.filter(({ who }) => who === place)) {
          one.replica.doc.getText('text').insert(0, edit.value)
          publish(one)
        }
        return one
      })
      const stop = [{ stream: eve.key, at: 1, reason: 'two tales', needsRebuild: true }]
      const [a, b] = tales.map((tale, place) => settled(mixed([tale, ...honest], place === 0 ? choices : [0]), stop))
      assert.deepEqual(stateOf(a as never), stateOf(b as never))
      assert.equal(a?.waiting, 0)
      assert.ok(a?.doc.getText('text').toJSON().includes('first.'))
      assert.ok(!a?.doc.getText('text').toJSON().includes('\u0007'))
      for (const one of honest) assert.equal(a?.vectorClock()[one.key], one.blocks.length)
    })
  )
})

test('edits on a session that only one version of a fork had are not delayed either', (t) => {
  const eve = writer('eve')
  eve.replica.doc.getText('text').insert(0, 'first.')
  publish(eve)
  const forged = forger(clientIdOf({ stream: eve.key, number: 1 }, hash), [eve])
  forged.doc.getText('text').insert(0, 'tale!')
  const tale = { ...eve, blocks: [...eve.blocks, encodeBlock({ sessions: 2, updates: forged.take() })] }
  const ann = writer('ann')
  tell(ann.replica, [tale])
  ann.replica.doc.getText('text').insert(3, 'ann')
  publish(ann)
  ann.replica.doc.getText('text').insert(0, 'on')
  publish(ann)
  const found = ann.replica.stop(eve.key, 1, 'two tales')
  t.ok(found[0]?.needsRebuild)
  t.is(ann.replica.receive({ stream: eve.key, index: 2, bytes: new Uint8Array() }).outcome, 'ended')
  const replica = settled(mixed([ann, tale], [0]), [...found])
  t.alike(replica.vectorClock(), { [ann.key]: 2, [eve.key]: 1 })
  t.is(replica.waiting, 0)
  t.ok(replica.doc.getText('text').toJSON().includes('first.'))
})

test('of two streams that come to one clientID that of the smaller key goes on, whichever came first', (t) => {
  // A hash by which all sessions of the first number are one.
  const weak = (...parts: Uint8Array[]): Uint8Array => hash(parts[0], parts[2])
  const pair = [writer('ann', { hash: weak }), writer('bob', { hash: weak })].sort((a, b) => (a.key < b.key ? -1 : 1))
  const [keeper, loser] = pair as [Writer, Writer]
  t.is(keeper.replica.doc.clientID, loser.replica.doc.clientID)
  for (const one of pair) {
    one.replica.doc.getText('text').insert(0, one === keeper ? 'kept' : 'lost')
    publish(one)
  }
  for (const order of [mixed(pair, [0]), mixed([loser, keeper], [0])]) {
    const replica = settled(order, [], { hash: weak })
    t.is(replica.doc.getText('text').toJSON(), 'kept')
    t.alike(replica.vectorClock(), { [keeper.key]: 1 })
  }
})

test('edits of one turn are one block, and a block is no larger than an update may be', (t) => {
  const ann = writer('ann')
  const text = ann.replica.doc.getText('text')
  for (let i = 0; i < 100; i++) text.insert(0, `edit ${i} `)
  publish(ann)
  t.is(ann.blocks.length, 1)
  publish(ann)
  t.is(ann.blocks.length, 1, 'nothing new, no block')
  for (let i = 0; i < 5; i++) text.insert(0, 'x'.repeat(100_000))
  publish(ann)
  t.is(ann.blocks.length, 4)
  const replica = replicaOf(null)
  tell(replica, [ann])
  t.alike(stateOf(replica), stateOf(ann.replica))
})

test('an edit of one value over 256 KiB, or without a session, is not sent', (t) => {
  const ann = writer('ann')
  ann.replica.doc.getMap('map').set('key', 'x'.repeat(300_000))
  const taken = ann.replica.takeBlocks()
  t.ok(!taken.ok && taken.reason.startsWith('a single value of it is larger than 262144 bytes'))
  const bob = writer('bob')
  bob.replica.doc.clientID = 5
  bob.replica.doc.getText('text').insert(0, 'x')
  t.alike(bob.replica.takeBlocks(), { ok: false, reason: 'an update with the clientID of another' })
})

test('a program writes with a clientID of its own, which was announced before', (t) => {
  const ann = writer('ann')
  publish(ann)
  const session = ann.replica.sessions.open()
  publish(ann)
  t.is(ann.blocks.length, 2, 'announced, though nothing was edited')
  const program = forger(session)
  program.doc.getText('text').insert(0, 'typed')
  const [update] = program.take() as [Uint8Array]
  t.is(ann.replica.write(update), null)
  t.is(ann.replica.write(update), null, 'known already')
  publish(ann)
  t.is(ann.blocks.length, 3)
  const foreign = forger(77)
  foreign.doc.getText('text').insert(0, 'x')
  t.is(ann.replica.write(foreign.take()[0]), 'an update with the clientID of another')
  program.doc.getText('text').insert(0, 'a')
  program.doc.getText('text').insert(0, 'b')
  t.is(ann.replica.write(program.take()[1]), 'an update that leaves out clocks')
  const replica = replicaOf(null)
  tell(replica, [ann])
  t.is(replica.doc.getText('text').toJSON(), 'typed')
})

test('a document that is full takes nothing more, from nobody, and says so', (t) => {
  const ann = writer('ann')
  for (let i = 0; i < 4; i++) {
    ann.replica.doc.getText('text').insert(0, 'x'.repeat(1000))
    publish(ann)
  }
  const small = replicaOf(null, { maxBytes: 2500 })
  const outcomes = ann.blocks.map((bytes, index) => small.receive({ stream: ann.key, index, bytes }).outcome)
  t.alike(outcomes, ['taken', 'taken', 'taken', 'later'])
  t.ok(small.isFull())
  t.alike(small.vectorClock(), { [ann.key]: 3 })
})

test('an observer that throws is no fault of the stream that it watches', (t) => {
  const ann = writer('ann')
  ann.replica.doc.getText('text').insert(0, 'text')
  publish(ann)
  const replica = replicaOf(null)
  replica.doc.getText('text').observe(() => {
    throw new Error('an observer')
  })
  t.alike(tell(replica, [ann]), [])
  t.is(replica.doc.getText('text').toJSON(), 'text')
})
