import test, { type Assert } from 'brittle'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { serveShipped } from './shipped.js'

const TOOLS = [
  'test_simple_text',
  'test_image_content',
  'test_audio_content',
  'test_embedded_resource',
  'test_multiple_content_types',
  'test_error_handling',
  'test_tool_with_progress'
]

async function connected(t: Assert, url: URL): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(url))
  t.teardown(() => client.close(), { order: -2 })
  return client
}

test('tools of an imported server answer over HTTP with a token, here and one hop away, as the server does', async (t: Assert) => {
  const { direct, here, hop } = await serveShipped(t)
  const server = await connected(t, direct)
  for (const [where, url] of [
    ['here', here],
    ['one hop away', hop]
  ] as const) {
    const client = await connected(t, url)
    const listed = (await client.listTools()).tools.map(({ name }) => name)
    t.alike(
      TOOLS.filter((name) => !listed.includes(name)),
      [],
      `${where}: listed`
    )
    for (const name of TOOLS) {
      const [{ content, isError = false }, given] = [
        await server.callTool({ name, arguments: {} }),
        await client.callTool({ name, arguments: {} })
      ]
      t.is(given.isError ?? false, isError, `${where}: error of ${name}`)
      if (name !== 'test_error_handling') t.alike(given.content, content, `${where}: content of ${name}`)
    }
  }
})
