import assert from 'node:assert/strict'
import c from 'compact-encoding'
import test from 'brittle'
import fc from 'fast-check'
import type { Replica } from '../../../src/domain/document/replica.js'
import { decodeSnapshot } from '../../../src/domain/document/snapshot.js'
import { utf8 } from '../../../src/kit/ids.js'
import {
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
import { SNAPSHOT_LIMITS } from '../../../src/domain/document/snapshot-limits.js'
import { holds } from '../../support/holds.js'
import { hash, keyText } from '../../support/membership.js'

/** Bytes of a document with nothing in it. */
const EMPTY_BYTES = 2

/**
 * Loads bytes that anybody may have made: all of it or nothing gets into the document, and nothing throws, then or
 * later.
 */
function tryLoad(bytes: Uint8Array, isInForce: boolean, writers: readonly Writer[] = []): Replica | null {
  const replica = replicaOf(null)
  const reason = replica.load(bytes, isInForce)
  const { pendingStructs, pendingDs } = replica.doc.store
  assert.deepEqual([pendingStructs, pendingDs], [null, null])
  if (reason !== null) {
    assert.ok(reason.length > 0)
    assert.equal(stateOf(replica).byteLength, EMPTY_BYTES, 'nothing of it is in the document')
    return null
  }
  for (const block of mixed(writers, [0, 1])) replica.receive(block)
  assert.equal(decodeSnapshot(replica.snapshot()).ok, true)
  return replica
}

function snapshotOf(head: unknown, update: Uint8Array): Uint8Array {
  return Uint8Array.from([...c.encode(c.buffer, utf8(JSON.stringify(head))), ...update])
}

test('arbitrary bytes are no snapshot, and never an error', async (t) => {
  await holds(
    t,
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), (bytes, isInForce) => {
      assert.equal(tryLoad(bytes, isInForce), null)
    }),
    2000
  )
})

test('a snapshot changed at any byte is refused whole or read whole, and later updates never make an error', async (t) => {
  const arbDamage = fc.array(
    fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 }), fc.constantFrom('flip', 'put', 'cut', 'add', 'drop')),
    {
      minLength: 1,
      maxLength: 3
    }
  )
  await holds(
    t,
    fc.property(arbEdits(), arbDamage, fc.boolean(), fc.boolean(), (edits, damage, isInForce, isInDocument) => {
      const writers = written(edits)
      let bytes = settled(mixed(writers, [0])).snapshot()
      // Half of the damage goes into the document behind the head.
      const from = isInDocument ? c.encode(c.buffer, c.decode(c.buffer, bytes) ?? new Uint8Array()).byteLength : 0
      for (const [at, value, how] of damage) {
        const place = from + (at % Math.max(1, bytes.byteLength - from))
        const [before, behind] = [bytes.subarray(0, place), bytes.subarray(place + 1)]
        if (how === 'cut') bytes = before
        else if (how === 'add') bytes = Uint8Array.from([...before, value, ...bytes.subarray(place)])
        else if (how === 'drop') bytes = Uint8Array.from([...before, ...behind])
        else
          bytes = Uint8Array.from([
            ...before,
            how === 'flip' ? (bytes[place] ?? 0) ^ (1 << (value & 7)) : value,
            ...behind
          ])
      }
      tryLoad(bytes, isInForce, writers)
    }),
    600
  )
})

test('reading a snapshot and later updates never makes an error, for any streams that it names', async (t) => {
  const arbCount = fc.oneof(fc.nat({ max: 9 }), fc.nat(), fc.maxSafeNat())
  const arbStream = fc.record({
    key: fc.constantFrom(...['ann', 'bob', 'cem', 'eve'].map((name) => keyText(`stream/${name}`))),
    length: arbCount,
    opened: fc.array(arbCount, { maxLength: 3 }),
    clients: fc.array(fc.record({ client: arbCount, clock: arbCount, runs: fc.array(arbCount, { maxLength: 3 }) }), {
      maxLength: 3
    }),
    end: fc.option(fc.record({ at: arbCount, reason: fc.string({ maxLength: 9 }) }))
  })
  await holds(
    t,
    fc.property(arbEdits(), fc.array(arbStream, { maxLength: 4 }), fc.boolean(), (edits, streams, isInForce) => {
      const writers = written(edits)
      const update = stateOf(settled(mixed(writers, [0])))
      tryLoad(snapshotOf({ guid: 'notes', hasGaps: false, streams }, update), isInForce, writers)
    })
  )
})

test('a head of another form is refused with its reason', (t) => {
  const update = Uint8Array.of(0, 0)
  const stream = { key: keyText('s'), length: 1, opened: [0], clients: [], end: null }
  const load = (head: unknown, rest = update): string | null => replicaOf(null).load(snapshotOf(head, rest), true)
  t.is(load({ guid: 'notes', hasGaps: false, streams: [stream] }), null)
  t.is(load({ guid: 'other', hasGaps: false, streams: [stream] }), 'a snapshot of another document')
  const wrong = [
    null,
    [],
    { guid: 'notes', hasGaps: false },
    { guid: 'notes', streams: [] },
    { guid: 'notes', hasGaps: false, streams: [stream, stream] },
    { guid: '', hasGaps: false, streams: [] },
    { guid: 'notes', hasGaps: false, streams: [{ ...stream, key: 's' }] },
    { guid: 'notes', hasGaps: false, streams: [{ ...stream, length: -1 }] },
    { guid: 'notes', hasGaps: false, streams: [{ ...stream, length: 0.5 }] },
    { guid: 'notes', hasGaps: false, streams: [{ ...stream, length: 2 ** 53 }] },
    { guid: 'notes', hasGaps: false, streams: [{ ...stream, opened: Array.from({ length: 4097 }, () => 0) }] },
    { guid: 'notes', hasGaps: false, streams: [{ ...stream, clients: [{ client: 1, clock: 1, runs: [-1] }] }] },
    { guid: 'notes', hasGaps: false, streams: [{ ...stream, end: { at: 1, reason: 'x'.repeat(257) } }] },
    { guid: 'notes', hasGaps: false, streams: Array.from({ length: 4097 }, () => stream) }
  ]
  for (const head of wrong) t.is(load(head), 'a snapshot is malformed', JSON.stringify(head)?.slice(0, 90))
  t.is(
    load({ guid: 'notes', hasGaps: false, streams: [], more: 'x'.repeat(SNAPSHOT_LIMITS.maxHeadBytes) }),
    'a snapshot is too large'
  )
  t.is(
    replicaOf(null).load(new Uint8Array(SNAPSHOT_LIMITS.maxHeadBytes + SNAPSHOT_LIMITS.maxDocumentBytes + 1), true),
    'a snapshot is too large'
  )
})

test('a snapshot in force that says of a stream what its blocks cannot have left is refused before anything is worked out of it', (t) => {
  const key = keyText('s')
  const client = { client: 1, clock: 3, runs: [0, 2] }
  const load = (streams: readonly unknown[]): { reason: string | null; hashes: number } => {
    let hashes = 0
    const replica = replicaOf(null, { hash: (...parts) => (hashes++, hash(...parts)) })
    const reason = replica.load(snapshotOf({ guid: 'notes', hasGaps: false, streams }, Uint8Array.of(0, 0)), true)
    return { reason, hashes }
  }
  const past = (length: number, opened: readonly number[], clients: readonly unknown[] = []): unknown => ({
    key,
    length,
    opened,
    clients,
    end: null
  })
  const most = Array.from({ length: 64 }, () => 0)
  for (const good of [past(0, []), past(1, [0]), past(3, [0, 2, 2]), past(2, [...most, 1])])
    t.is(load([good]).reason, null)
  t.is(
    load([past(3, [0, 2, 2], [client])]).reason,
    'a snapshot with gaps',
    'blocks can have left it, and it is not in the document'
  )
  const many = Array.from({ length: 100 }, (_, at) => ({
    key: keyText(`s${at}`),
    length: 0,
    opened: Array.from({ length: 4096 }, () => 0),
    clients: [],
    end: null
  }))
  const bad = [
    [past(0, [0, 0, 0])],
    [past(0, [], [client])],
    [past(1, [1])],
    [past(3, [2, 1])],
    [past(1, [...most, 0])],
    [past(1, [0], [client, client])],
    [past(1, [0], [{ ...client, runs: [0, 3] }])],
    many
  ]
  for (const streams of bad) {
    const expected = { reason: 'a snapshot that says more of a stream than its blocks can have left', hashes: 0 }
    t.alike(load(streams), expected, JSON.stringify(streams).slice(0, 200))
  }
})

test('streams of which a snapshot in force holds nothing take no place of others', (t) => {
  const streams = Array.from({ length: 4096 }, (_, at) => ({
    key: keyText(`s${at}`),
    length: 0,
    opened: [],
    clients: [],
    end: null
  }))
  const replica = replicaOf(null)
  t.is(replica.load(snapshotOf({ guid: 'notes', hasGaps: false, streams }, Uint8Array.of(0, 0)), true), null)
  const ann = writer('ann')
  ann.replica.doc.getText('text').insert(0, 'ann')
  publish(ann)
  tell(replica, [ann])
  t.is(replica.doc.getText('text').toJSON(), 'ann')
})

test('a document that Yjs would keep apart, or that is not what it may be, is refused before Yjs sees it', (t) => {
  const load = (...update: number[]): string | null => {
    const replica = replicaOf(null)
    const reason = replica.load(
      snapshotOf({ guid: 'notes', hasGaps: false, streams: [] }, Uint8Array.from(update)),
      true
    )
    t.is(stateOf(replica).byteLength, EMPTY_BYTES)
    return reason
  }
  const unread = 'a snapshot whose document cannot be read'
  t.is(load(), unread)
  t.is(load(0, 0, 0), unread, 'something stands behind it')
  t.is(load(1, 1, 7, 1, 0, 1, 0), unread, 'it leaves out clocks')
  t.is(load(0, 1, 7, 1, 0, 1), unread, 'it deletes what is not there')
  t.is(load(1, 1, 7, 0, 9, 1, 1, 97, 4, 103, 117, 105, 100, 126, 0), unread, 'a document inside of it')
  t.is(load(0, 0), null)
})
