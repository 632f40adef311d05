import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { encodeBlock } from '../../../src/domain/document/block.js'
import { clientIdOf } from '../../../src/domain/document/client-ids.js'
import { sevens } from '../../../src/domain/document/needs.js'
import type { Replica } from '../../../src/domain/document/replica.js'
import { PIECE_LIMITS } from '../../../src/domain/document/snapshot-pieces.js'
import { compacted, feed, goingOn, plain, replicaOver, seenIn, type Stream } from '../../support/compacting.js'
import { arbEdits, forger, keptOf, publish, replicaOf, stateOf, tell, type Writer, writer, written } from '../../support/documents.js'
import { holds } from '../../support/holds.js'
import { hash, keyText } from '../../support/membership.js'

const arbChoices = fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 40 })

/** What a member goes on with that says of its stream no more than so many blocks; null when that is nothing. */
function shortened({ key, blocks }: Writer, others: readonly Writer[], length: number): Stream | null {
  const replica = replicaOf(key)
  for (let round = 0; round < 3; round++) tell(replica, [{ key, replica, blocks: blocks.slice(0, length) }, ...others])
  const snapshot = replica.ownSnapshot()
  if (snapshot === null) return null
  // The log says what it continues, whatever it states of that.
  const former = snapshot.former.length > 0 ? snapshot.former : [{ stream: key, sessions: 1 }]
  const beginning = { former, blocks: snapshot.blocks.length }
  return { key: keyText('stream/short'), blocks: [...snapshot.blocks], beginning }
}

function fed(streams: readonly Stream[], choices: readonly number[]): Replica {
  const replica = replicaOver(streams)
  feed(replica, streams, choices)
  return replica
}

test('what a snapshot leaves out of a stream holds up nobody who built on it, and all replicas are equal', async (t) => {
  let filled = 0
  await holds(
    t,
    fc.property(
      fc.tuple(arbEdits(), arbEdits(), arbEdits()).map((all) => all.flat()),
      fc.nat(),
      arbChoices,
      arbChoices,
      (edits, cut, one, other) => {
        const [first, ...others] = written(edits) as [Writer, ...Writer[]]
        if (first.blocks.length === 0) return
        const short = shortened(first, others, 1 + (cut % first.blocks.length))
        if (short === null) return
        const streams = [short, ...others.map(plain)]
        const [a, b] = [fed(streams, one), fed(streams, other)]
        for (const replica of [a, b]) assert.equal(replica.counts().waiting, 0)
        assert.deepEqual(seenIn(a.doc), seenIn(b.doc))
        assert.ok(a.isSameAs(b))
        assert.deepEqual(stateOf(a), stateOf(b))
        if (Buffer.from(keptOf(a)).includes('isFilled')) filled++
        const late = replicaOf(null)
        assert.equal(late.load(keptOf(a)), null)
        assert.deepEqual(keptOf(late), keptOf(a))
      }
    ),
    500
  )
  t.ok(filled > 20, `${filled} times`)
})

/** A member that wrote under two clientIDs, and another that built on both. */
function builtOn(): { ann: Writer; bob: Writer } {
  const [ann, bob] = [writer('ann'), writer('bob')]
  for (const name of ['one', 'two']) {
    ann.replica.doc.getText(name).insert(0, name)
    publish(ann)
    ann.replica.doc.clientID = ann.replica.openSession()
  }
  tell(bob.replica, [ann])
  for (const name of ['one', 'two', 'other']) {
    bob.replica.doc.getText(name).insert(name === 'other' ? 0 : 2, 'bob')
    publish(bob)
  }
  return { ann, bob }
}

test('sessions and streams that a continued stream does not state hold up nobody who built on them', (t) => {
  const { ann, bob } = builtOn()
  const short = shortened({ ...ann, blocks: ann.blocks.slice(0, 1) }, [], 1)
  if (short === null) throw new Error('nothing was written')
  for (const former of [[{ stream: ann.key, sessions: 1 }], [{ stream: ann.key, sessions: 4096 }]]) {
    const streams = [{ ...short, beginning: { former, blocks: short.blocks.length } }, plain(bob)]
    for (const order of [streams, [...streams].reverse()]) {
      const replica = fed(order, [0])
      t.is(replica.counts().waiting, 0)
      t.is(replica.doc.getText('one').toJSON(), 'onbobe')
      t.is(replica.doc.getText('two').toJSON(), '', 'gone with what it stood in')
      t.is(replica.doc.getText('other').toJSON(), 'bob')
      const late = replicaOf(null)
      t.is(late.load(keptOf(replica)), null)
      t.ok(late.isSameAs(replica))
    }
  }
})

test('a stream writes in its snapshot with the sessions that were stated, and with no others', (t) => {
  const { ann } = builtOn()
  const stream = compacted(ann, 'next')
  t.alike(stream.beginning?.former, [{ stream: ann.key, sessions: 3 }])
  const beginning = { former: [{ stream: ann.key, sessions: 1 }], blocks: stream.blocks.length }
  const replica = replicaOver([{ ...stream, beginning }])
  const stops = stream.blocks.flatMap((bytes, index) => replica.receive({ stream: stream.key, index, bytes }).stops)
  t.alike(stops, [{ stream: stream.key, at: 0, reason: 'an update with the clientID of another', needsRebuild: false }])
})

test('of a block that writes with the clientID of another nothing further is read', (t) => {
  const { ann } = builtOn()
  const stranger = forger(writer('stranger').replica.doc.clientID)
  stranger.doc.getText('text').insert(0, 'x')
  const [foreign] = stranger.take() as [Uint8Array]
  const bytes = encodeBlock({ sessions: 3, updates: [foreign, Uint8Array.of(255)] })
  const replica = replicaOf(null)
  t.is(replica.receive({ stream: ann.key, index: 0, bytes }).stops[0]?.reason, 'an update with the clientID of another')
  t.alike(replica.counts().streams, 1)
})

const NOWHERE = 5
const EVES = Array.from({ length: 4096 }, (_, number) => clientIdOf({ stream: keyText('stream/eve'), number }, hash))

/** A stream whose snapshot has this block so many times, and of which nothing can be applied: `blockAt`: a block by its place. */
function stuck(count: number, blockAt: (place: number) => Uint8Array[]): Stream {
  const blocks = Array.from({ length: count }, (_, place) => encodeBlock({ sessions: 0, updates: blockAt(place) }))
  const beginning = { former: [{ stream: keyText('stream/eve'), sessions: 4096 }], blocks: count + 1 }
  return { key: keyText('stream/eve/2'), blocks, beginning }
}

/** An update that deletes what nobody ever wrote. */
function deleting(clock: number): Uint8Array {
  return Uint8Array.from([0, 1, NOWHERE, 1, clock, 1].flatMap(sevens))
}

/** One that writes behind what nobody ever wrote: an item of one deleted clock. */
function writing(session: number, clock: number): Uint8Array {
  return Uint8Array.from([...[1, 1, EVES[session] ?? 0, clock].flatMap(sevens), 0x81, ...sevens(NOWHERE), 1, 1, 0])
}

/** Gives a replica blocks until it takes no more; how many it took. */
function taken(replica: Replica, { key, blocks }: Stream): number {
  for (const [index, bytes] of blocks.entries()) if (replica.receive({ stream: key, index, bytes }).outcome !== 'taken') return index
  return blocks.length
}

test('what waits of one snapshot is bounded by what it takes, and keeps out no other', (t) => {
  const cases = [
    { most: PIECE_LIMITS.maxDeleteBytes, stream: stuck(200, () => Array.from({ length: 4096 }, (_, clock) => deleting(clock))) },
    {
      most: PIECE_LIMITS.maxBytes,
      stream: stuck(200, (place) => Array.from({ length: 4096 }, (_, session) => writing(session, place)))
    }
  ]
  for (const { most, stream } of cases) {
    const { ann, bob } = builtOn()
    const honest = compacted(ann, 'next')
    const replica = replicaOver([stream, honest])
    const count = taken(replica, stream)
    t.ok(count > 5 && count < 200, `${count} blocks`)
    const { waitingBytes } = replica.counts()
    t.ok(waitingBytes <= most && waitingBytes > most / 2, `${waitingBytes} bytes`)
    feed(replica, [honest, plain(bob)], [0])
    t.is(replica.counts().waiting, count)
    t.is(replica.doc.getText('two').toJSON(), 'twbobo')
  }
})

test('whoever waits is not looked at when something else comes', (t) => {
  const stream = stuck(20, (place) => Array.from({ length: 1000 }, (_, session) => writing(session, place)))
  const replica = replicaOver([stream])
  t.is(taken(replica, stream), 20)
  const before = replica.counts().looks
  t.is(before, 1000, 'each lane once')
  const ann = writer('ann')
  for (let place = 0; place < 50; place++) {
    ann.replica.doc.getText('text').insert(place, 'x')
    publish(ann)
  }
  tell(replica, [ann])
  t.is(replica.counts().looks, before + 50)
  t.is(replica.doc.getText('text').length, 50)
})

test('a snapshot that waits as a whole is applied once what it stands on comes, and takes no room then', (t) => {
  const { ann, bob } = builtOn()
  tell(ann.replica, [bob])
  for (let place = 0; place < 100; place++) {
    ann.replica.doc.getText('other').insert(1, `${place}`)
    if (place % 3 === 0) ann.replica.doc.getText('other').delete(0, 1)
    publish(ann)
  }
  tell(bob.replica, [ann])
  const [one, two] = [compacted(ann, 'next/ann'), compacted(bob, 'next/bob')]
  const replica = replicaOver([one, two])
  feed(replica, [one], [0])
  t.ok(replica.counts().waitingBytes > 0)
  feed(replica, [one, two], [0])
  t.is(replica.counts().waitingBytes, 0)
  t.alike(seenIn(replica.doc), seenIn(ann.replica.doc))
  t.ok(replica.isSameAs(ann.replica))
  t.ok(goingOn(one, [two]).replica.isSameAs(replica))
})
