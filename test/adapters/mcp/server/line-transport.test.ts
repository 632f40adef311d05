import { PassThrough, Writable } from 'node:stream'
import type { JSONRPCMessage } from '@modelcontextprotocol/server'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { LineTransport } from '../../../../src/adapters/mcp/server/line-transport.js'
import { holds } from '../../../support/holds.js'
import { call, McpScene, payloadOf } from '../../../support/mcp.js'

const OPTIONS = { maxLineBytes: 10_000, correlationId: 'c' }

/** An output that takes nothing until it is told to. */
function stuckOutput(): { output: Writable; written: string[]; flow(): void } {
  const written: string[] = []
  let isFlowing = false
  let goOn = (): void => {}
  const output = new Writable({
    highWaterMark: 100,
    decodeStrings: false,
    write: (chunk: string, _encoding, done) => {
      written.push(chunk)
      if (isFlowing) done()
      else goOn = done
    }
  })
  const flow = (): void => {
    isFlowing = true
    goOn()
  }
  return { output, written, flow }
}

test('while the other side does not read, nothing more is read from it', async (t: Assert) => {
  const input = new PassThrough()
  const { output, written, flow } = stuckOutput()
  const transport = new LineTransport({ input, output }, OPTIONS)
  const got: JSONRPCMessage[] = []
  const sent: Promise<void>[] = []
  transport.onmessage = (message) => {
    got.push(message)
    sent.push(transport.send({ jsonrpc: '2.0', id: got.length, result: { pad: 'x'.repeat(60) } }))
  }
  await transport.start()
  for (let id = 0; id < 50; id++) {
    input.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })}\n`)
    await new Promise((resolve) => setImmediate(resolve))
  }
  t.ok(input.isPaused())
  t.ok(got.length <= 3, `${got.length} of 50 were read`)
  let isSent = false
  void sent.at(-1)?.then(() => (isSent = true))
  await new Promise((resolve) => setImmediate(resolve))
  t.absent(isSent, 'the sender waits')
  flow()
  while (got.length < 50) await new Promise((resolve) => setImmediate(resolve))
  await Promise.all(sent)
  t.is(written.length, 50)
})

test('a broken output ends the connection, and waiting senders are released', async (t: Assert) => {
  const input = new PassThrough()
  const { output, written } = stuckOutput()
  const transport = new LineTransport({ input, output }, OPTIONS)
  const errors: string[] = []
  transport.onerror = (error) => void errors.push(error.message)
  const closed = new Promise<void>((resolve) => (transport.onclose = resolve))
  await transport.start()
  const sent = transport.send({ jsonrpc: '2.0', id: 1, result: { pad: 'x'.repeat(200) } })
  output.destroy(new Error('EPIPE'))
  await closed
  await sent
  t.alike(errors, ['EPIPE'])
  await transport.send({ jsonrpc: '2.0', id: 2, result: {} })
  t.is(written.length, 1)
})

test('an answer without a JSON form is an error for its caller', async (t: Assert) => {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const transport = new LineTransport({ input, output }, OPTIONS)
  await transport.start()
  await transport.send({ jsonrpc: '2.0', id: 7, result: { big: 1n } } as never)
  const { id, error } = JSON.parse(String(output.read())) as { id: number; error: { code: number; data: object } }
  t.alike([id, error.code, error.data], [7, -32_603, { correlationId: 'c' }])
})

test('a receiver that throws is not the end of the connection', async (t: Assert) => {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const transport = new LineTransport({ input, output }, OPTIONS)
  const errors: string[] = []
  transport.onerror = (error) => void errors.push(error.message)
  const got = new Promise((resolve) => {
    transport.onmessage = (message) => {
      if ('id' in message && message.id === 1) throw new Error('broken')
      resolve(message)
    }
  })
  await transport.start()
  input.write('{"id":1}\n{"id":2}\n')
  t.alike(await got, { id: 2 })
  t.alike(errors, ['a line could not be served: broken'])
})

test('any bytes at all, in any pieces: every line that is no message is answered and a call after them is served', async (t: Assert) => {
  const arbLine = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes.filter((byte) => byte !== 0x0a)))
    },
    { weight: 2, arbitrary: fc.json().map((text) => Buffer.from(text)) },
    {
      weight: 1,
      arbitrary: fc.integer({ min: 1000, max: 80_000 }).map((size) => Buffer.alloc(size, 0x20 + (size % 90)))
    }
  )
  const property = fc.asyncProperty(
    fc.array(arbLine, { maxLength: 20 }),
    fc.array(fc.nat(), { maxLength: 10 }),
    async (lines, cuts) => {
      const scene = new McpScene({ maxPayloadBytes: 1024 })
      scene.tool('echo', (args) => Promise.resolve(args))
      const client = scene.connect(t)
      await client.open()
      const bytes = Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')]))
      const ends = [...cuts.map((cut) => cut % (bytes.byteLength + 1)), bytes.byteLength].sort((a, b) => a - b)
      let from = 0
      for (const to of ends) {
        client.write(Uint8Array.from(bytes.subarray(from, to)))
        from = to
      }
      client.write(call('the last', 'echo', { a: 1 }))
      const wanted = lines.filter(
        (line) => line.byteLength > 66_560 || line.toString('latin1').replaceAll(/[\t\v\f\r \u00a0]/g, '') !== ''
      ).length
      for (let count = 1; ; count++) {
        const answer = (await client.heard(count))[count - 1]
        if (answer.id !== 'the last') continue
        await client.close()
        // Empty lines get no answer; objects without a method, and what is a space elsewhere only, may or may not.
        const isServed =
          (payloadOf(answer) as { a: number }).a === 1 &&
          client.answers.slice(0, count - 1).every((one) => one.error !== undefined)
        return isServed && count - 1 <= Math.max(wanted, lines.length) && count - 1 >= lines.filter(isNoJson).length
      }
    }
  )
  await holds(t, property, 200)
})

/** Surely no JSON: it begins with a character that no JSON begins with. */
function isNoJson(line: Buffer): boolean {
  return line.byteLength > 0 && line[0] > 0x20 && line[0] < 0x80 && !/[{["\-0-9tfn]/.test(String.fromCharCode(line[0]))
}
