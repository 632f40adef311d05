import { duplexPair } from 'node:stream'
import test, { type Assert } from 'brittle'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { serveMcp } from '../../../../src/adapters/mcp/server/serve.js'
import { call, CLAIM, McpScene, payloadOf, request, StreamTransport } from '../../../support/mcp.js'

function withEcho(): McpScene {
  const scene = new McpScene()
  scene.registry.register(
    {
      name: 'text.echo',
      description: 'says it again',
      inputSchema: { type: 'object', properties: { say: { type: 'string' } }, required: ['say'] }
    },
    (args) => Promise.resolve({ said: args['say'] })
  )
  return scene
}

for (const mode of ['legacy', 'auto'] as const) {
  test(`the official client lists and calls tools over a stream (${mode})`, async (t: Assert) => {
    const client = await withEcho().client(t, mode)
    const { tools } = await client.listTools()
    t.alike(
      tools.map((one) => one.name),
      ['text__echo']
    )
    for (const name of ['text__echo', 'text.echo']) {
      const { content, isError } = await client.callTool({ name, arguments: { say: 'hello' } })
      t.alike(content, [{ type: 'text', text: '{"said":"hello"}' }], name)
      t.absent(isError)
    }
    t.is(client.getServerVersion()?.name, 'scene')
    t.is(client.getNegotiatedProtocolVersion(), mode === 'auto' ? '2026-07-28' : '2025-11-25')
  })
}

test('the official client of the first generation lists and calls tools over a stream', async (t: Assert) => {
  const [ours, theirs] = duplexPair()
  const served = serveMcp({ input: theirs, output: theirs }, withEcho().parts)
  const client = new ClientV1({ name: 'v1', version: '0' })
  await client.connect(new StreamTransport(ours))
  t.is((await client.listTools()).tools[0]?.name, 'text__echo')
  const { content } = await client.callTool({ name: 'text__echo', arguments: { say: 'hello' } })
  t.alike(content, [{ type: 'text', text: '{"said":"hello"}' }])
  await client.close()
  await served.closed
})

test('a message that claims its version is served without a handshake, one that does not is not', async (t: Assert) => {
  const client = withEcho().connect(t)
  const refused = await client.ask(call(1, 'text.echo', { say: 'a' }))
  t.is(refused.error?.code, -32_002)
  const served = await client.ask(call(2, 'text.echo', { say: 'a' }, CLAIM))
  t.alike(payloadOf(served), { said: 'a' })
  const listed = await client.ask(request(3, 'tools/list'))
  t.is(listed.error?.code, -32_002)
})
