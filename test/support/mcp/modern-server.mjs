// The official server of the newer protocol on stdio, which refuses the older one. Its second tool appears when it is
// told to.
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import * as z from 'zod'

let version = 1

serveStdio(
  () => {
    const server = new McpServer(
      { name: 'modern', version: '1.0.0' },
      { capabilities: { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true } } }
    )
    const word = z.object({ text: z.string() })
    server.registerTool(
      'shout',
      { description: 'Shouts.', inputSchema: word, outputSchema: word },
      async ({ text }) => ({
        content: [{ type: 'text', text: text.toUpperCase() }],
        structuredContent: { text: text.toUpperCase() }
      })
    )
    server.registerTool('grow', { description: 'Gets a further tool.', inputSchema: z.object({}) }, async () => {
      server.registerTool('whisper', { description: 'Whispers.', inputSchema: word }, async ({ text }) => ({
        content: [{ type: 'text', text: text.toLowerCase() }]
      }))
      return { content: [{ type: 'text', text: 'grown' }] }
    })
    server.registerResource('one', 'notes://one', {}, async () => ({
      contents: [{ uri: 'notes://one', text: `version ${version}` }]
    }))
    server.registerTool('write', { description: 'Writes a note.', inputSchema: z.object({}) }, async () => {
      version++
      await server.server.sendResourceUpdated({ uri: 'notes://one' })
      return { content: [] }
    })
    return server
  },
  { legacy: 'reject' }
)
