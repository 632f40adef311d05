import test from 'brittle'
import fc from 'fast-check'
import { DocumentSize } from '../../../src/domain/document/document-size.js'
import type { Replica } from '../../../src/domain/document/replica.js'
import { publish, replicaOf, stateOf, tell, type Writer, writer } from '../../support/documents.js'

const MOST = 16_777_216
const STEP = 262_144

test('a document is measured once for each 256 KiB that it grows, and never gets larger than it may by more than one update', (t) => {
  // Much is written and removed again, near to the end of what there is room for.
  const arbUpdate = fc.record({
    bytes: fc.integer({ min: 1, max: 40_000 }),
    gone: fc.double({ min: 0, max: 1, noNaN: true })
  })
  const arbUpdates = fc.array(arbUpdate, { minLength: 50, maxLength: 400 })
  const written = (updates: readonly { readonly bytes: number; readonly gone: number }[], begun: number) => {
    let [actual, grown, measured, last] = [begun, 0, 0, 0]
    const size = new DocumentSize(MOST, () => {
      measured++
      return actual
    })
    size.grow(begun)
    for (const { bytes, gone } of updates) {
      if (size.isFull()) break
      actual = Math.max(0, actual + bytes - Math.floor(2 * gone * bytes))
      grown += bytes
      last = bytes
      size.grow(bytes)
    }
    for (let again = 0; again < 10; again++) size.isFull()
    return { actual, grown, measured, last }
  }
  fc.assert(
    fc.property(arbUpdates, fc.integer({ min: MOST - 3 * STEP, max: MOST }), (updates, begun) => {
      const { actual, grown, measured, last } = written(updates, begun)
      return measured <= grown / STEP + 2 && (last === 0 || actual < MOST + last)
    }),
    { numRuns: 200 }
  )
  const steady = Array.from({ length: 400 }, () => ({ bytes: 40_000, gone: 0.5 }))
  const { measured } = written(steady, MOST - 3 * STEP)
  t.ok(measured > 20, `measured ${measured} times`)
})

test('a document is full a step before its maximum, by its size and not by its history', (t) => {
  let actual = 0
  const size = new DocumentSize(MOST, () => actual)
  const write = (bytes: number, stays: number): void => {
    actual += stays
    size.grow(bytes)
  }
  for (let round = 0; round < 200; round++) {
    write(STEP, 0)
    t.absent(size.isFull())
  }
  write(MOST - STEP - 1, MOST - STEP - 1)
  t.absent(size.isFull())
  write(STEP, 1)
  t.ok(size.isFull())
  t.is(size.exact(), MOST - STEP)
})

/** Blocks that a replica applied, of all streams. */
function appliedOf(replica: Replica): number {
  return Object.values(replica.vectorClock()).reduce((sum, blocks) => sum + blocks, 0)
}

/** A replica with so much room, told of whole streams, one after the other, until it takes nothing more of them. */
function toldOf(writers: readonly Writer[], maxBytes: number): Replica {
  const replica = replicaOf(null, { maxBytes })
  for (let before = -1; before !== appliedOf(replica); ) {
    before = appliedOf(replica)
    tell(replica, writers)
  }
  return replica
}

test('a late node catches up with a document of which one member wrote more than its limit and another removed it', (t) => {
  const maxBytes = 1_048_576
  const [ann, bob] = [writer('ann', { maxBytes }), writer('bob', { maxBytes })]
  for (let round = 0; round < 80; round++) {
    ann.replica.doc.getText('text').insert(0, 'x'.repeat(16_000))
    publish(ann)
    tell(bob.replica, [ann])
    bob.replica.doc.getText('text').delete(0, 15_990)
    publish(bob)
    tell(ann.replica, [bob])
  }
  for (const order of [
    [ann, bob],
    [bob, ann]
  ]) {
    const late = toldOf(order, maxBytes)
    t.alike(stateOf(late), stateOf(ann.replica))
    t.absent(late.isFull())
  }
})

test('an update that only deletes makes a full document larger by a little at most', (t) => {
  const ann = writer('ann')
  ann.replica.doc.getText('text').insert(0, 'x'.repeat(20_000))
  publish(ann)
  // Each cuts the text once more.
  for (let at = 0; at < 10_000; at++) {
    ann.replica.doc.getText('text').delete(at, 1)
    publish(ann)
  }
  const maxBytes = 20_000
  const small = toldOf([ann], maxBytes)
  t.ok(small.isFull())
  t.ok(appliedOf(small) > 1)
  const bytes = small.state().byteLength
  t.ok(bytes < maxBytes * 1.2, `${bytes} bytes`)
  t.ok(stateOf(ann.replica).byteLength > 2 * maxBytes)
})
