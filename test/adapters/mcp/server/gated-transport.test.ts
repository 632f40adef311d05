import { InMemoryTransport, type JSONRPCMessage } from '@modelcontextprotocol/server'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { GatedTransport, type RefusedRequest } from '../../../../src/adapters/mcp/server/gated-transport.js'
import { serveMcp } from '../../../../src/adapters/mcp/server/serve.js'
import { holds } from '../../../support/holds.js'
import { call, CLAIM, initialize, McpScene, payloadOf, request } from '../../../support/mcp.js'

/** A gate before the SDK's own transport, with both ends to watch. */
async function gated(): Promise<{
  gate: GatedTransport
  passed: unknown[]
  sent: JSONRPCMessage[]
  refused: RefusedRequest[]
  other: InMemoryTransport
}> {
  const [ours, other] = InMemoryTransport.createLinkedPair()
  const [passed, sent, refused]: [unknown[], JSONRPCMessage[], RefusedRequest[]] = [[], [], []]
  const gate = new GatedTransport(ours, {
    correlationId: 'c',
    eras: 'both',
    log: () => {},
    onRefused: (one) => void refused.push(one)
  })
  gate.onmessage = (message) => void passed.push(message)
  other.onmessage = (message) => void sent.push(message)
  await other.start()
  await gate.start()
  return { gate, passed, sent, refused, other }
}

test('once closed nothing is written and nothing passes', async (t: Assert) => {
  const { gate, passed, sent, other } = await gated()
  let closes = 0
  gate.onclose = () => closes++
  await other.send(initialize() as JSONRPCMessage)
  await gate.close()
  t.is(gate.state, 'CLOSED')
  await gate.send({ jsonrpc: '2.0', id: 'init', result: {} })
  await gate.send({ jsonrpc: '2.0', method: 'notifications/progress' })
  t.alike([passed.length, sent.length, closes], [1, 0, 1])
})

test('the state follows the handshake, and a refused request is reported', async (t: Assert) => {
  const { gate, other, passed, refused } = await gated()
  const states = [gate.state]
  for (const message of [
    request(1, 'ping'),
    initialize(),
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    request(2, 'ping')
  ]) {
    await other.send(message as JSONRPCMessage)
    states.push(gate.state)
  }
  t.alike(states, ['STARTING', 'STARTING', 'INITIALIZING', 'RUNNING', 'RUNNING'])
  t.is(passed.length, 3)
  t.alike(
    refused.map(({ method, code }) => [method, code]),
    [['ping', -32_002]]
  )
})

test('any transport of the SDK is gated the same: in memory, without lines', async (t: Assert) => {
  const [ours, other] = InMemoryTransport.createLinkedPair()
  const scene = new McpScene()
  scene.tool('echo', (args) => Promise.resolve(args))
  const served = serveMcp(ours, scene.parts)
  const answers: unknown[] = []
  let heard = (): void => {}
  other.onmessage = (message) => {
    answers.push(message)
    heard()
  }
  await other.start()
  const ask = async (message: object): Promise<never> => {
    const count = answers.length + 1
    await other.send(message as JSONRPCMessage)
    while (answers.length < count) await new Promise<void>((resolve) => (heard = resolve))
    return answers.at(-1) as never
  }
  t.is(((await ask([request(1, 'ping')])) as { error: { code: number } }).error.code, -32_600)
  t.is(((await ask(call(1, 'echo'))) as { error: { code: number } }).error.code, -32_002)
  t.alike(payloadOf(await ask(call(1, 'echo', { a: 1 }, CLAIM))), { a: 1 })
  await other.close()
  await served.closed
})

test('each request gets one answer at most and no throw leaves the gate, for any messages in any order', async (t: Assert) => {
  const arbMessage = fc.oneof(
    fc.record(
      {
        jsonrpc: fc.constantFrom('2.0', '1.0', 2),
        id: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constantFrom('a', null, 1.5, true), fc.jsonValue()),
        method: fc.oneof(
          fc.constantFrom('initialize', 'notifications/initialized', 'notifications/cancelled', 'tools/call', 'ping'),
          fc.jsonValue()
        ),
        params: fc.oneof(
          fc.constant({ name: 'echo', requestId: 1 }),
          fc.constant({ protocolVersion: 'x', capabilities: {}, clientInfo: { name: 'a', version: '0' } }),
          fc.constant({ name: 'echo', _meta: CLAIM }),
          fc.jsonValue()
        ),
        result: fc.jsonValue(),
        error: fc.jsonValue()
      },
      { requiredKeys: [], noNullPrototype: true }
    ),
    fc.jsonValue()
  )
  const property = fc.asyncProperty(fc.array(arbMessage, { maxLength: 15 }), async (messages) => {
    const scene = new McpScene()
    scene.tool('echo', (args) => Promise.resolve(args))
    const client = scene.connect(t)
    client.write(...messages.map((one) => JSON.stringify(one)))
    const last = await new Promise<unknown>((resolve) => {
      const wait = async (): Promise<void> => {
        client.write(request('the last', 'ping', { _meta: CLAIM }))
        for (let count = 1; ; count++) {
          const answer = (await client.heard(count))[count - 1]
          if (answer.id === 'the last') return resolve(answer)
        }
      }
      void wait()
    })
    const asked = messages.filter((one) => typeof one === 'object' && one !== null && 'id' in one).length
    const withId = client.answers.filter((one) => one.id !== null && one.id !== 'the last').length
    await client.close()
    return last !== undefined && withId <= asked && client.answers.length <= messages.length + 1
  })
  await holds(t, property, 300)
})
