import test from 'brittle'
import fc from 'fast-check'
import { DocumentSize } from '../../../src/domain/document/document-size.js'

const MOST = 16_777_216
const STEP = 262_144

test('a document is measured once for each 256 KiB that it grows, and never gets larger than it may by more than one update', (t) => {
  // Much is written and removed again, near to the end of what there is room for.
  const arbUpdate = fc.record({ bytes: fc.integer({ min: 1, max: 40_000 }), gone: fc.double({ min: 0, max: 1, noNaN: true }) })
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

test('a document is full a step before the most that it may have, by its size and not by what was ever written', (t) => {
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
