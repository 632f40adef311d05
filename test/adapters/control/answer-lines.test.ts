import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { answerLines, answerText } from '../../../src/adapters/control/answer-lines.js'
import { NodeError } from '../../../src/kit/errors.js'
import { holds } from '../../support/holds.js'

async function* chunksOf(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield await Promise.resolve(bytes.subarray(at, at + size))
}

async function linesOf(chunks: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string[]> {
  const found: string[] = []
  for await (const line of answerLines(chunks, maxBytes)) found.push(line)
  return found
}

test('an answer gives its lines, however it is cut into chunks, without empty ones and without one that has no end', async (t: Assert) => {
  const line = fc.string({ unit: fc.constantFrom('a', 'é', '𝄞', '"'), maxLength: 8 })
  await holds(
    t,
    fc.asyncProperty(
      fc.array(line),
      fc.string({ maxLength: 4 }),
      fc.integer({ min: 1, max: 9 }),
      async (lines, rest, size) => {
        const bytes = Buffer.from(`${lines.map((one) => `${one}\n`).join('')}${rest.replaceAll('\n', '')}`)
        return (
          JSON.stringify(await linesOf(chunksOf(bytes, size), 64)) === JSON.stringify(lines.filter((one) => one !== ''))
        )
      }
    )
  )
})

test('a line over its limit ends the answer with PAYLOAD_TOO_LARGE, also before it ends', async (t: Assert) => {
  t.alike(await linesOf(chunksOf(Buffer.from('12345678\n'), 3), 8), ['12345678'])
  for (const size of [3, 100]) {
    const error = await linesOf(chunksOf(Buffer.from('first\n123456789\n'), size), 8).then(
      null,
      (thrown: unknown) => thrown
    )
    t.ok(error instanceof NodeError && error.code === 'PAYLOAD_TOO_LARGE', String(error))
  }
  let given = 0
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (; given < 100; given++) yield await Promise.resolve(Buffer.from('1234'))
  }
  const error = await linesOf(endless(), 8).then(null, (thrown: unknown) => thrown)
  t.ok(error instanceof NodeError && error.code === 'PAYLOAD_TOO_LARGE', String(error))
  t.is(given, 2, 'the third chunk is over the limit')
})

test('an answer to a call is read up to its limit, however it is cut, and no further', async (t: Assert) => {
  const bytes = Buffer.from('"é𝄞"')
  for (const size of [1, 3, 100]) t.is(await answerText(chunksOf(bytes, size), bytes.byteLength), '"é𝄞"')
  let given = 0
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (; given < 100; given++) yield await Promise.resolve(Buffer.from('1234'))
  }
  const error = await answerText(endless(), 8).then(null, (thrown: unknown) => thrown)
  t.ok(
    error instanceof NodeError && error.code === 'PAYLOAD_TOO_LARGE' && error.message.includes('an answer'),
    String(error)
  )
  t.is(given, 2, 'the third chunk is over the limit')
})
