import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import * as Y from 'yjs'
import { encodeBlock } from '../../../src/domain/document/block.js'
import type { Replica } from '../../../src/domain/document/replica.js'
import {
  arbSteps,
  CompactingWorld,
  compacted,
  feed,
  goingOn,
  plain,
  replicaOver,
  runsIn,
  seenIn,
  type Stream
} from '../../support/compacting.js'
import { apply, arbEdits, forger, keptOf, mixed, publish, replicaOf, stateOf, tell, type Writer, writer } from '../../support/documents.js'
import { holds } from '../../support/holds.js'

const arbChoices = fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 40 })
const ALL = [99, 99, 99, 99]

test('whoever has only the streams that are left has the document that those have who saw all of it being written', async (t) => {
  let compactions = 0
  await holds(
    t,
    fc.property(arbSteps(), arbChoices, arbChoices, (steps, one, other) => {
      const world = new CompactingWorld()
      for (const step of steps) world.step(step)
      compactions += world.compactions
      const streams = world.streams()
      const newcomers = [one, other].map((choices) => {
        const replica = replicaOver(streams)
        feed(replica, streams, choices)
        return replica
      }) as [Replica, Replica]
      for (const member of world.members) world.hear(member, ALL)
      const replicas = [...newcomers, ...world.members.map(({ replica }) => replica)]
      for (const replica of replicas) {
        assert.equal(replica.counts().waiting, 0)
        assert.deepEqual(seenIn(replica.doc), seenIn(world.witness))
        assert.deepEqual(stateOf(replica), stateOf(newcomers[0]))
        assert.ok(replica.isSameAs(newcomers[0]))
        assert.deepEqual(runsIn(replica), runsIn(newcomers[0]))
      }
    }),
    200
  )
  t.ok(compactions > 600, `${compactions} compactions`)
})

/** Two who write into each other's text, each under two clientIDs: all that one wrote stands on what the other did. */
function entwined(turns: number): [Writer, Writer] {
  const pair: [Writer, Writer] = [writer('ann'), writer('bob')]
  const sessions = pair.map(({ replica }) => replica.openSession())
  for (let turn = 0; turn < turns; turn++) {
    const one = pair[turn % 2]
    tell(one.replica, pair)
    one.replica.doc.clientID = turn % 4 < 2 ? one.replica.ownClientId() : (sessions[turn % 2] ?? 0)
    const text = one.replica.doc.getText('text')
    text.insert(Math.floor(text.length / 2), `${turn};`)
    publish(one)
  }
  for (const one of pair) tell(one.replica, pair)
  return pair
}

/** A newcomer that is given streams one after the other. */
function newcomer(streams: readonly Stream[]): Replica {
  const replica = replicaOver(streams)
  for (const { key, blocks } of streams) {
    for (const [index, bytes] of blocks.entries()) assert.deepEqual(replica.receive({ stream: key, index, bytes }).stops, [])
  }
  return replica
}

test('two snapshots that stand on each other are applied, whichever comes first', (t) => {
  const pair = entwined(80)
  const streams = pair.map((one, place) => compacted(one, `next/${place}`)) as [Stream, Stream]
  for (const order of [streams, [...streams].reverse()]) {
    const replica = newcomer(order)
    t.is(replica.counts().waiting, 0)
    t.alike(seenIn(replica.doc), seenIn(pair[0].replica.doc))
  }
  const half = newcomer(streams.slice(0, 1))
  t.is(half.counts().waiting, streams[0].blocks.length)
  t.is(half.snapshot(), null, 'a part of it is in the document')
  t.alike(half.vectorClock(), {})
})

test('a snapshot and a long stream that stand on each other are applied within what may wait', (t) => {
  const [ann, bob] = entwined(2400)
  const streams = [compacted(ann, 'next'), plain(bob)]
  t.ok(bob.blocks.length > 1000)
  for (const order of [streams, [...streams].reverse()]) {
    const replica = replicaOver(order)
    feed(replica, order, [0])
    t.is(replica.counts().waiting, 0)
    t.alike(seenIn(replica.doc), seenIn(ann.replica.doc))
  }
})

/** A member that wrote, and the stream that it goes on with. */
function moved(): { before: Writer; stream: Stream; after: Writer } {
  const before = writer('ann')
  before.replica.doc.getText('text').insert(0, 'before')
  publish(before)
  const stream = compacted(before, 'next')
  return { before, stream, after: goingOn(stream) }
}

test('a stream that continues others is edited under clientIDs of its own: those of the others are closed, however often it moves', (t) => {
  const ann = writer('ann')
  const [session] = [ann.replica.openSession(), ann.replica.openSession()]
  publish(ann)
  let now = ann
  const seen = new Set<number>()
  const former = [{ stream: ann.key, sessions: 3 }]
  for (let time = 0; time < 5; time++) {
    const id = time === 0 ? session : now.replica.ownClientId()
    seen.add(id)
    now.replica.doc.clientID = id
    now.replica.doc.getText('text').insert(time, `${time}`)
    publish(now)
    now = goingOn(compacted(now, `next/${time}`))
    t.alike(
      [...seen, now.replica.ownClientId(), now.replica.openSession(), 5].map((each) => now.replica.isOfPrograms(each)),
      [...[...seen].map(() => false), false, true, false]
    )
    t.alike(now.replica.ownSnapshot()?.former, former, 'streams with a clientID that was used')
    former.push({ stream: now.key, sessions: 2 })
  }
  t.is(seen.size, 5)
  t.is(now.replica.doc.getText('text').toJSON(), '01234')
  const old = forger(session)
  old.doc.getText('text').insert(0, 'x')
  t.is(now.replica.write(old.take()[0] ?? new Uint8Array()), 'an update with the clientID of another')
})

test('what is of more than 32 streams is left as it is', (t) => {
  let now = writer('ann')
  for (let time = 0; time < 33; time++) {
    if (time < 32) t.ok(now.replica.ownSnapshot() !== null || time === 0)
    now.replica.doc.getText('text').insert(0, 'x')
    publish(now)
    if (time < 32) now = goingOn(compacted(now, `next/${time}`))
  }
  t.is(now.replica.ownSnapshot(), null)
})

test('a stream that continues others has their clientIDs and no other, and leaves out or repeats no clocks', (t) => {
  const { before, stream, after } = moved()
  const bob = writer('bob')
  const first = (updates: Uint8Array[]): unknown => {
    const replica = replicaOver([stream])
    return replica.receive({ stream: stream.key, index: 0, bytes: encodeBlock({ sessions: 0, updates }) }).stops
  }
  const next = (updates: Uint8Array[]): unknown => {
    const bytes = encodeBlock({ sessions: 0, updates })
    return newcomer([stream]).receive({ stream: stream.key, index: stream.blocks.length, bytes }).stops
  }
  const ended = (at: number, reason: string): unknown => [{ stream: stream.key, at, reason, needsRebuild: false }]
  const foreign = forger(bob.replica.doc.clientID)
  foreign.doc.getText('text').insert(0, 'x')
  const [stolen] = foreign.take() as [Uint8Array]
  t.alike(first([stolen]), ended(0, 'an update with the clientID of another'))
  const own = forger(before.replica.doc.clientID)
  own.doc.getText('text').insert(0, 'one')
  own.doc.getText('text').insert(0, 'two')
  const [one, two] = own.take() as [Uint8Array, Uint8Array]
  const wrong = 'an update that leaves out or repeats clocks'
  t.alike(first([one, two]), [])
  t.alike(first([two]), ended(0, wrong))
  t.alike(first([one, one]), ended(0, wrong))
  t.alike(next([one]), ended(stream.blocks.length, 'an update with the clientID of another'))
  after.replica.doc.getText('text').insert(6, ', after')
  publish(after)
  t.alike(stream.blocks.length, 2)
  t.is(newcomer([stream]).doc.getText('text').toJSON(), 'before, after')
})

test('a stream is continued by one other, and only before a block of either was given', async (t) => {
  const { before, stream } = moved()
  const beginning = stream.beginning ?? { former: [], blocks: 0 }
  const replica = newcomer([stream])
  t.alike(replica.continues(stream.key, beginning), [], 'said again')
  const other = { ...stream, key: writer('other').key }
  await t.exception(() => replica.continues(other.key, beginning), /cannot continue/)
  await t.exception(() => replica.continues(stream.key, { ...beginning, blocks: 2 }), /cannot continue/)
  const late = replicaOf(null)
  tell(late, [before])
  await t.exception(() => late.continues(stream.key, beginning), /cannot continue/)
  t.is(replica.receive({ stream: before.key, index: 0, bytes: before.blocks[0] }).outcome, 'ended', 'its clientIDs are of another')
})

test('what the former stream of one that ended wrote is filled, so that what others built on it counts', (t) => {
  const { before, stream } = moved()
  const bob = writer('bob')
  tell(bob.replica, [before])
  bob.replica.doc.getText('text').insert(3, 'bob')
  bob.replica.doc.getText('other').insert(0, 'bob')
  publish(bob)
  for (const stop of [
    (replica: Replica) => replica.stop(stream.key, 0, 'void'),
    (replica: Replica) => replica.stop(stream.key, 1, 'void')
  ]) {
    for (const isFirst of [true, false]) {
      const long = { ...stream, beginning: { former: [{ stream: before.key, sessions: 1 }], blocks: 2 } }
      const replica = replicaOver(isFirst ? [] : [long])
      stop(replica)
      if (isFirst) replica.continues(long.key, long.beginning)
      tell(replica, [bob])
      t.alike(replica.vectorClock(), { [bob.key]: 1 })
      t.is(replica.doc.getText('other').toJSON(), 'bob')
      t.is(replica.receive({ stream: stream.key, index: 0, bytes: stream.blocks[0] }).outcome, 'ended')
    }
  }
})

test('a stop within a snapshot takes back all of it, one behind it only what follows', (t) => {
  const { stream, after } = moved()
  after.replica.doc.getText('text').insert(0, 'after, ')
  publish(after)
  t.alike(newcomer([stream]).stop(stream.key, 1, 'void')[0], { stream: stream.key, at: 1, reason: 'void', needsRebuild: true })
  t.alike(newcomer([stream]).stop(stream.key, 2, 'void')[0], { stream: stream.key, at: 2, reason: 'void', needsRebuild: false })
  const long = { ...stream, beginning: { former: stream.beginning?.former ?? [], blocks: 2 } }
  t.alike(newcomer([long]).stop(stream.key, 1, 'void')[0], { stream: stream.key, at: 0, reason: 'void', needsRebuild: true })
})

test('where something was filled, waits or was not taken a member cannot tell all that it wrote', (t) => {
  t.is(replicaOf(null).ownSnapshot(), null)
  t.is(writer('ann').replica.ownSnapshot(), null, 'nothing written')
  const [ann, bob] = [writer('ann'), writer('bob')]
  for (const word of ['bob', 'more']) {
    bob.replica.doc.getText('text').insert(0, word)
    publish(bob)
  }
  tell(ann.replica, [bob])
  ann.replica.doc.getText('text').insert(1, 'ann')
  t.is(ann.replica.ownSnapshot(), null, 'not taken')
  publish(ann)
  t.ok(ann.replica.ownSnapshot() !== null)
  const again = replicaOf(ann.key)
  tell(again, [ann])
  t.is(again.ownSnapshot(), null, 'it waits')
  again.stop(bob.key, 1, 'two tales')
  tell(again, [bob])
  t.is(again.counts().waiting, 0)
  t.is(again.ownSnapshot(), null, 'filled')
  const late = replicaOf(ann.key)
  t.is(late.load(keptOf(again)), null)
  t.is(late.ownSnapshot(), null, 'filled before it was kept')
  ann.replica.stop(ann.key, 1, 'two tales')
  t.is(ann.replica.ownSnapshot(), null, 'ended')
})

test('what is kept of a replica knows which streams continue which, and is refused where others do', (t) => {
  const { before, stream, after } = moved()
  after.replica.doc.getText('text').insert(0, 'after, ')
  publish(after)
  const kept = keptOf(newcomer([stream]))
  const late = replicaOf(stream.key)
  t.is(late.load(kept), null)
  t.alike(late.vectorClock(), { [stream.key]: 2 })
  t.is(late.ownClientId(), after.replica.doc.clientID)
  t.alike(Buffer.from(keptOf(late)), Buffer.from(kept))
  t.alike(late.ownSnapshot(), goingOn(stream).replica.ownSnapshot())
  t.is(replicaOver([stream]).load(kept), null)
  const other = 'a snapshot in which other streams go on'
  t.is(replicaOver([{ ...stream, beginning: { former: [{ stream: before.key, sessions: 1 }], blocks: 2 } }]).load(kept), other)
  t.is(replicaOver([{ ...stream, key: writer('other').key }]).load(kept), other)
  const old = replicaOf(null)
  tell(old, [before])
  t.is(replicaOver([stream]).load(keptOf(old)), other, 'kept before the stream was continued')
  t.absent(Buffer.from(keptOf(old)).includes('beginning'), 'as it always was')
})

test('20,000 characters that were typed, and half of them removed, are a small part of their stream', (t) => {
  const ann = writer('ann')
  const text = ann.replica.doc.getText('text')
  for (let i = 0; i < 20_000; i++) {
    if (i % 60 < 20) text.delete(text.length - 1, text.length > 0 ? 1 : 0)
    else text.insert(text.length, String.fromCharCode(97 + (i % 26)))
    if (i % 10 === 9) publish(ann)
  }
  const sizeOf = (blocks: readonly Uint8Array[]): number => blocks.reduce((sum, { byteLength }) => sum + byteLength, 0)
  const stream = compacted(ann, 'next')
  t.ok(sizeOf(stream.blocks) * 10 < sizeOf(ann.blocks), `${sizeOf(stream.blocks)} of ${sizeOf(ann.blocks)} bytes`)
  t.is(newcomer([stream]).doc.getText('text').toJSON(), text.toJSON())
})

test('a text or list of megabytes is cut into updates, but never between the halves of a character', (t) => {
  const ann = writer('ann')
  const { doc } = ann.replica
  for (let i = 0; i < 32; i++) {
    doc.getText('text').insert(i * 65_538, `x${'🌍'.repeat(32_768)}y`)
    doc.getArray('list').insert(
      i * 500,
      Array.from({ length: 500 }, (_, place) => ({ place, value: 'v'.repeat(60) }))
    )
    publish(ann)
  }
  const stream = compacted(ann, 'next')
  t.ok(stream.blocks.length > 16, `${stream.blocks.length} blocks`)
  const replica = newcomer([stream])
  t.is(replica.counts().waiting, 0)
  t.is(replica.doc.getText('text').toJSON(), doc.getText('text').toJSON())
  t.alike(replica.doc.getArray('list').toJSON(), doc.getArray('list').toJSON())
})

test('text that went with what held it is refused nothing that was written beside it while it was there', (t) => {
  const [ann, bob] = [writer('ann'), writer('bob')]
  ann.replica.doc.getMap('map').set('k', new Y.Text())
  const textOf = (doc: Y.Doc): Y.Text => doc.getMap('map').get('k') as Y.Text
  for (const word of ['last', 'middle', 'first']) textOf(ann.replica.doc).insert(0, word)
  publish(ann)
  tell(bob.replica, [ann])
  // Behind the end of "middle" and before the beginning of "last": a later clock on the left than on the right.
  textOf(bob.replica.doc).insert(11, 'bob')
  publish(bob)
  ann.replica.doc.getMap('map').delete('k')
  publish(ann)
  const replica = newcomer([compacted(ann, 'next'), plain(bob)])
  t.is(replica.counts().waiting, 0)
  tell(ann.replica, [bob])
  t.alike(seenIn(replica.doc), seenIn(ann.replica.doc))
})

test('whatever the blocks of a snapshot are, nothing throws and the others are equal everywhere', async (t: Assert) => {
  const arbDamage = fc.array(fc.tuple(fc.nat(), fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 3 })
  await holds(
    t,
    fc.property(arbEdits(), arbDamage, arbChoices, arbChoices, (edits, damage, one, other) => {
      const pair = [writer('ann'), writer('bob')] as [Writer, Writer]
      for (const edit of edits) {
        const each = pair[edit.who % 2]
        if (edit.isInformed) tell(each.replica, pair)
        apply(each.replica.doc, edit)
        publish(each)
      }
      for (const each of pair) tell(each.replica, pair)
      if (pair[0].replica.ownSnapshot() === null) return
      const bad = compacted(pair[0], 'next')
      for (const [which, at, value] of damage) {
        const block = Uint8Array.from(bad.blocks[which % bad.blocks.length])
        block[at % block.byteLength] = value
        bad.blocks[which % bad.blocks.length] = block
      }
      const [a, b] = [one, other].map((choices) => settledOver([bad, plain(pair[1])], choices)) as [Replica, Replica]
      assert.deepEqual(a.vectorClock(), b.vectorClock())
      assert.deepEqual(stateOf(a), stateOf(b))
    }),
    300
  )
})

/** A replica of these streams; made anew, as its node would, whenever a stop asks for it. */
function settledOver(streams: readonly Stream[], choices: readonly number[]): Replica {
  const order = mixed(
    streams.map((stream) => ({ ...stream, replica: replicaOf(null) })),
    choices
  )
  const stops: { stream: string; at: number; reason: string }[] = []
  for (let tries = 0; tries < 10; tries++) {
    const replica = replicaOver(streams)
    for (const { stream, at, reason } of stops) replica.stop(stream, at, reason)
    const found = order.flatMap((block) => replica.receive(block).stops)
    if (!found.some(({ needsRebuild }) => needsRebuild)) return replica
    stops.push(...found)
  }
  throw new Error('a replica that is made anew again and again')
}
