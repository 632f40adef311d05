import test from 'brittle'
import { BoundedOutput, TailOutput } from '../../../../src/adapters/agents/process/output.js'

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

test('bytes that are no UTF-8 are no text', (t) => {
  const output = new BoundedOutput(10)
  output.push(new Uint8Array([0x41, 0xff]))
  t.is(output.text(), null)
  t.alike([...output.bytes()], [0x41, 0xff])
})

test('of a tail the last bytes are kept, without half a character at its start', (t) => {
  const tail = new TailOutput(4)
  tail.push(Buffer.from('long before '))
  tail.push(Buffer.from('€abc\n'))
  t.is(tail.text(), 'abc')
})
