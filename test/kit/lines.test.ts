import test from 'brittle'
import fc from 'fast-check'
import { LineSplitter, type LongLine } from '../../src/kit/lines.js'
import { fromUtf8, utf8 } from '../../src/kit/ids.js'
import { holds } from '../support/holds.js'

const EDGE = 5
const arbCuts = fc.array(fc.nat(), { maxLength: 20 })

/** The lines of bytes that come in pieces; the chunks are overwritten afterwards, since nothing may depend on them. */
function read(
  bytes: Uint8Array,
  cuts: readonly number[],
  maxBytes: number
): { readonly lines: unknown[]; readonly mostHeld: number } {
  const splitter = new LineSplitter({ maxBytes, edgeBytes: EDGE })
  const lines: unknown[] = []
  let mostHeld = 0
  let from = 0
  for (const to of [...cuts.map((cut) => cut % (bytes.byteLength + 1)), bytes.byteLength].sort((a, b) => a - b)) {
    const chunk = Uint8Array.from(bytes.subarray(from, to))
    for (const line of splitter.push(chunk)) lines.push(shownOf(line))
    chunk.fill(0x0a)
    mostHeld = Math.max(mostHeld, splitter.partialBytes)
    from = to
  }
  lines.push(shownOf(splitter.end()))
  return { lines, mostHeld }
}

function shownOf(line: Uint8Array | LongLine): unknown {
  return line instanceof Uint8Array
    ? fromUtf8(line)
    : { head: fromUtf8(line.head), tail: fromUtf8(line.tail), bytes: line.bytes }
}

test('lines are the same however the bytes are cut; of one over the limit there are its edges and its length', async (t) => {
  const arbLine = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\r'), maxLength: 24 })
  const property = fc.property(
    fc.array(arbLine, { maxLength: 10 }),
    arbCuts,
    fc.integer({ min: EDGE, max: 16 }),
    (texts, cuts, maxBytes) => {
      const expected = texts.map((text) =>
        text.length <= maxBytes ? text : { head: text.slice(0, EDGE), tail: text.slice(-EDGE), bytes: text.length }
      )
      const { lines } = read(utf8(texts.join('\n')), cuts, maxBytes)
      return JSON.stringify(lines) === JSON.stringify(expected.length === 0 ? [''] : expected)
    }
  )
  await holds(t, property, 1000)
})

test('a character that is cut in two is whole in its line', async (t) => {
  const arbLine = fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replaceAll('\n', ' '))
  const property = fc.property(fc.array(arbLine, { minLength: 1 }), arbCuts, (texts, cuts) => {
    const { lines } = read(utf8(texts.join('\n')), cuts, 1000)
    return JSON.stringify(lines) === JSON.stringify(texts)
  })
  await holds(t, property)
})

test('no more is kept than twice what one line may have, however long lines are', async (t) => {
  const property = fc.property(fc.integer({ min: 1, max: 100_000 }), arbCuts, (size, cuts) => {
    const { lines, mostHeld } = read(new Uint8Array(size).fill(0x61), cuts, 5000)
    return mostHeld <= 2 * 5000 && lines.length === 1
  })
  await holds(t, property, 1000)
})

test('bytes of a line that has not ended are counted beyond the limit too', (t) => {
  const splitter = new LineSplitter({ maxBytes: 4 })
  for (let i = 0; i < 10; i++) t.is([...splitter.push(utf8('ab'))].length, 0)
  t.is(splitter.openBytes, 20)
  t.is([...splitter.push(utf8('\n'))].length, 1)
  t.is(splitter.openBytes, 0)
})
