// An official server on stdio whose tools ask the client. Argument: `old` for the protocol with a handshake, `new` for
// the one without.
import { McpServer as OldServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { inputRequired, inputResponse, McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

const FORM = {
  message: 'Which name?\nOne word.',
  requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
}
const MESSAGE = { messages: [{ role: 'user', content: { type: 'text', text: 'Say hello' } }], maxTokens: 10 }
const text = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] })

async function old() {
  const server = new OldServer({ name: 'old', version: '1.0.0' }, { capabilities: { logging: {} } })
  const tool = (name, run) => server.registerTool(name, { description: `Does ${name}.` }, run)
  tool('form', async () => text(await server.server.elicitInput(FORM)))
  tool('twice', async () => {
    await server.server.elicitInput(FORM)
    return text(await server.server.elicitInput(FORM))
  })
  tool('model', async () => text(await server.server.createMessage(MESSAGE)))
  tool('folders', async () => text(await server.server.listRoots()))
  tool('talks', async () => {
    for (const level of ['debug', 'info', 'error'])
      await server.sendLoggingMessage({ level, data: { level }, logger: 'old' })
    return text('done')
  })
  await server.connect(new StdioServerTransport())
}

const REQUESTS = {
  form: inputRequired.elicit(FORM),
  model: inputRequired.createMessage(MESSAGE),
  folders: inputRequired.listRoots()
}

function modern() {
  serveStdio(
    () => {
      const server = new McpServer({ name: 'new', version: '1.0.0' }, { capabilities: { logging: {} } })
      const tool = (name, run) =>
        server.registerTool(name, { description: `Does ${name}.` }, (...given) => run(given.at(-1).mcpReq))
      for (const [name, request] of Object.entries(REQUESTS))
        tool(name, (request_) => {
          const view = inputResponse(request_.inputResponses, 'it')
          if (view.kind === 'missing') return inputRequired({ inputRequests: { it: request }, requestState: 'state' })
          const { kind: _kind, result, ...rest } = view
          return text(result ?? rest)
        })
      tool('twice', ({ inputResponses, requestState }) => {
        const state = requestState()
        if (state === 'second') return text(inputResponses.it)
        const next = state === undefined ? 'first' : 'second'
        return inputRequired({ inputRequests: { it: REQUESTS.form }, requestState: next })
      })
      server.registerPrompt('greeting', { description: 'Greets a name.' }, ({ mcpReq: { inputResponses } }) => {
        const view = inputResponse(inputResponses, 'it')
        if (view.kind === 'missing') return inputRequired({ inputRequests: { it: REQUESTS.form } })
        return { messages: [{ role: 'user', content: { type: 'text', text: `Hello ${view.content.name}` } }] }
      })
      tool('talks', async (request) => {
        for (const level of ['debug', 'info', 'error']) await request.log(level, { level }, 'new')
        return text('done')
      })
      return server
    },
    { legacy: 'reject' }
  )
}

if (process.argv[2] === 'old') await old()
else modern()
