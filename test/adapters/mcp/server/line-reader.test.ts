import test from 'brittle'
import fc from 'fast-check'
import { LineReader, type Line } from '../../../../src/adapters/mcp/server/line-reader.js'
import { holds } from '../../../support/holds.js'

/** Reads bytes in pieces that end at the given places. */
function read(
  bytes: Uint8Array,
  cuts: readonly number[],
  maxLineBytes: number
): { readonly lines: Line[]; readonly mostHeld: number } {
  const reader = new LineReader(maxLineBytes)
  const lines: Line[] = []
  let mostHeld = 0
  const ends = [...cuts.map((cut) => cut % (bytes.byteLength + 1)), bytes.byteLength].sort((a, b) => a - b)
  let from = 0
  for (const to of ends) {
    // A copy: what is held must not depend on the chunk.
    const chunk = Uint8Array.from(bytes.subarray(from, to))
    lines.push(...reader.take(chunk))
    chunk.fill(0x0a)
    mostHeld = Math.max(mostHeld, reader.partialBytes)
    from = to
  }
  return { lines, mostHeld }
}

const arbCuts = fc.array(fc.nat(), { maxLength: 20 })

test('however a stream is cut, inside characters too, its lines are the same', async (t) => {
  const arbLine = fc.string({ unit: 'grapheme', maxLength: 40 }).map((text) => text.replaceAll(/[\n\r]/g, ' '))
  const property = fc.property(fc.array(arbLine), fc.constantFrom('\n', '\r\n'), arbCuts, (texts, end, cuts) => {
    const bytes = Buffer.from(texts.map((text) => `${text}${end}`).join(''))
    const { lines } = read(bytes, cuts, 10_000)
    const wanted = texts.filter((text) => text.replace(/^\uFEFF/, '').trim() !== '')
    const got = lines.map((line) => ('text' in line ? line.text?.trim() : null))
    return JSON.stringify(got) === JSON.stringify(wanted.map((text) => text.replace(/^\uFEFF/, '').trim()))
  })
  await holds(t, property, 300)
})

test('any bytes, with any cuts, give as many lines as there are, and no more is stored than a line may have', async (t) => {
  const arbBytes = fc
    .uint8Array({ maxLength: 2000 })
    .map((bytes) => bytes.map((byte) => (byte % 16 === 0 ? 0x0a : byte)))
  const property = fc.property(arbBytes, arbCuts, fc.integer({ min: 1, max: 64 }), (bytes, cuts, maxLineBytes) => {
    const { lines, mostHeld } = read(bytes, cuts, maxLineBytes)
    const whole = read(bytes, [], maxLineBytes).lines
    return mostHeld <= 4096 && JSON.stringify(lines) === JSON.stringify(whole)
  })
  await holds(t, property, 500)
})

test('a line that is too long is skipped to its end without being stored, and reported once with its id', async (t) => {
  const arbId = fc.oneof(fc.integer(), fc.stringMatching(/^[A-Za-z0-9._-]{1,20}$/))
  const arbLong = fc.integer({ min: 5000, max: 100_000 })
  const property = fc.property(
    arbId,
    arbLong,
    arbCuts,
    fc.nat({ max: 2 }),
    fc.boolean(),
    (id, size, cuts, order, isCall) => {
      const call = { method: isCall ? 'tools/call' : 'x', params: { pad: 'p'.repeat(size), id: 'inner' } }
      const message = [
        { jsonrpc: '2.0', id, ...call },
        { ...call, jsonrpc: '2.0', id },
        { ...call, id, jsonrpc: '2.0' }
      ][order]
      const { lines, mostHeld } = read(Buffer.from(`${JSON.stringify(message)}\n"next"\n`), cuts, 4000)
      return (
        mostHeld <= 8192 &&
        JSON.stringify(lines) === JSON.stringify([{ tooLong: { id, tool: isCall ? '' : null } }, { text: '"next"' }])
      )
    }
  )
  await holds(t, property, 200)
})

test('a line that comes byte by byte takes one block of memory', (t) => {
  const reader = new LineReader(1_000_000)
  let early = 0
  for (let i = 0; i < 100_000; i++) early += [...reader.take(Uint8Array.of(0x61))].length
  t.is(early, 0)
  t.ok(reader.partialBytes <= 262_144, `${reader.partialBytes} bytes`)
  t.is([...reader.take(Uint8Array.of(0x0a))].length, 1)
})
