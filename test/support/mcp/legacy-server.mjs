// The official server of the older protocol on stdio.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import * as z from 'zod'

const server = new McpServer({ name: 'legacy', version: '1.0.0' })
const word = { text: z.string() }
server.registerTool('shout', { description: 'Shouts.', inputSchema: word, outputSchema: word }, async ({ text }) => ({
  content: [{ type: 'text', text: text.toUpperCase() }],
  structuredContent: { text: text.toUpperCase() }
}))
server.registerTool('fail', { description: 'Fails.' }, async () => {
  throw new Error('it is broken')
})
await server.connect(new StdioServerTransport())
