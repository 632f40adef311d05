import test from 'brittle'
import fc from 'fast-check'
import { BoundedOutput, LineReader, TailOutput } from '../../../../src/adapters/agents/process/output.js'

test('output is kept up to its limit and refused beyond', (t) => {
  const output = new BoundedOutput(4)
  t.ok(output.push(Buffer.from('ab')))
  t.ok(output.push(Buffer.from('cd')))
  t.absent(output.push(Buffer.from('e')))
  t.is(output.text(), 'abcd')
})

test('a character cut in two by chunks is whole again', (t) => {
  const output = new BoundedOutput(10)
  for (const byte of Buffer.from('é€')) output.push(new Uint8Array([byte]))
  t.is(output.text(), 'é€')
})

test('of a tail the last bytes are kept, without half a character at its start', (t) => {
  const tail = new TailOutput(4)
  tail.push(Buffer.from('long before '))
  tail.push(Buffer.from('€abc\n'))
  t.is(tail.text(), 'abc')
})

test('lines are the same however the bytes are cut, and one over the limit is skipped whole', (t) => {
  const line = fc.string({ unit: fc.constantFrom('a', 'é', ' '), maxLength: 12 })
  fc.assert(
    fc.property(fc.array(line, { maxLength: 10 }), fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (lines, cuts) => {
      const read: string[] = []
      const reader = new LineReader(8, (one) => read.push(one))
      const bytes = Buffer.from(lines.join('\n'))
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const size = cuts[i % cuts.length] ?? 1
        reader.push(bytes.subarray(at, at + size))
        at += size
      }
      reader.end()
      const expected = lines.filter((one) => one !== '' && Buffer.byteLength(one) <= 8)
      return JSON.stringify(read) === JSON.stringify(expected)
    }),
    { numRuns: 500 }
  )
  t.pass()
})
