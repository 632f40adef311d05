import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import test, { type Assert } from 'brittle'
import { boundAnswers } from '../../../../src/adapters/mcp/imported/imported-answers.js'

/** A transport whose sends are taken when `read` is called. */
function slowTransport(): { transport: Transport; sent: JSONRPCMessage[]; read: () => void } {
  const sent: JSONRPCMessage[] = []
  const waiting: (() => void)[] = []
  const send = async (message: JSONRPCMessage): Promise<void> => {
    sent.push(message)
    await new Promise<void>((resolve) => waiting.push(resolve))
  }
  const transport: Transport = { start: () => Promise.resolve(), close: () => Promise.resolve(), send }
  return { transport, sent, read: () => waiting.splice(0).forEach((done) => done()) }
}

const answer = (id: string | number): JSONRPCMessage => ({ jsonrpc: '2.0', id, result: {} })

test('a server that asks and does not read is cut; requests to it are not counted', async (t: Assert) => {
  const { transport, sent, read } = slowTransport()
  const cuts: string[] = []
  boundAnswers(transport, (reason) => cuts.push(reason))
  for (let id = 0; id < 100; id++) void transport.send({ jsonrpc: '2.0', id, method: 'tools/list' })
  const answers = Array.from({ length: 64 }, (_, id) => transport.send(answer(id)))
  t.alike([sent.length, cuts.length], [164, 0])
  await transport.send(answer(64))
  t.alike([sent.length, cuts], [164, ['it asks and does not read the answers']])
  read()
  await Promise.all(answers)
  void transport.send(answer(65))
  t.is(sent.length, 165, 'the read bytes are free again')
})

test('a request with an enormous id gets no answer', async (t: Assert) => {
  const { transport, sent, read } = slowTransport()
  boundAnswers(transport, () => t.fail('cut'))
  await transport.send(answer('x'.repeat(257)))
  t.is(sent.length, 0)
  const sending = transport.send(answer('x'.repeat(256)))
  read()
  await sending
  t.is(sent.length, 1)
})
