// HTTP servers that answer A2A's SendMessage: `gateway-servers.mjs bare|ours|sdk`. Tells its port (and token) to the
// parent, and answers each message of the parent with the processor time it has used and the memory it takes.
// `bare` reads and writes JSON of the same form and length with nothing between; `ours` is a whole node with its memory
// set as `a2a-node start` does it; `sdk` is the SDK's own express server, in memory.
import fs from 'node:fs'
import http from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const GATEWAYS = fileURLToPath(import.meta.url)

/** What a server without anything behind it says: as long as what the node says, with ids like its own. */
const CONTEXT = 'ctx_ybndrfg8ejkmcpqx'
const TASK = 'task_ybndrfg8ejkmcpqx'
const ANSWER = { messageId: 'msg_ybndrfg8ejkmcpqx', contextId: CONTEXT, role: 'ROLE_AGENT', parts: [{ text: 'pong' }] }
const STATUS = { state: 'TASK_STATE_COMPLETED', timestamp: '2026-01-01T00:00:00.000Z' }
const ARTIFACTS = [{ artifactId: 'result', name: 'result', parts: [{ text: 'pong' }] }]

function bareAnswer({ messageId, role, parts, metadata }) {
  if (metadata?.task !== true) return { message: ANSWER }
  const history = [{ messageId, contextId: CONTEXT, taskId: TASK, role, parts, metadata }]
  return { task: { id: TASK, contextId: CONTEXT, status: STATUS, artifacts: ARTIFACTS, history } }
}

async function bodyOf(request) {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString('utf8'))
}

function answer(response, value) {
  const body = Buffer.from(JSON.stringify(value))
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
}

async function bare() {
  const server = http.createServer((request, response) => {
    void bodyOf(request).then(({ id, params }) =>
      answer(response, { jsonrpc: '2.0', id, result: bareAnswer(params.message) })
    )
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: server.address().port, token: 'none', isBare: true }
}

/** The same agent twice: what only reads is answered by a message, the other by a task. */
const capability = (id, sideEffect) => ({
  id,
  name: id,
  description: '',
  inputSchema: {},
  outputSchema: {},
  sideEffect,
  idempotent: true
})

async function ours() {
  const { loadConfig, resolveHome, startNode } = await import('a2a-node')
  const { tuneHeap } = await import(new URL('../../build/src/cli/heap.js', import.meta.url))
  tuneHeap()
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'a2ab-g'))
  process.on('exit', () => fs.rmSync(home, { recursive: true, force: true }))
  const paths = resolveHome({ home })
  fs.writeFileSync(
    paths.configFile,
    'network: { kind: local }\nhttp: { listen: "127.0.0.1:0", maxConnections: 1200, anonymousLimit: { perMinute: 1000000, burst: 100000 } }\nledger: { durability: process }\na2a: { rateLimit: { perMinute: 1000000, burst: 100000 } }\n'
  )
  const { config } = await loadConfig({ file: paths.configFile })
  const node = await startNode({ config, home: paths, name: 'bench', join: null, extraAgentDirs: [], log: null })
  const run = () => ({ text: 'pong' })
  await node.attach({ id: 'reader', concurrency: 64, capabilities: [capability('reader.ping', 'none')], run })
  await node.attach({ id: 'worker', concurrency: 64, capabilities: [capability('worker.ping', 'exec')], run })
  const sleep = (_task, { signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve))
  await node.attach({
    id: 'sleeper',
    concurrency: 2000,
    capabilities: [capability('sleeper.ping', 'exec')],
    run: sleep
  })
  const operator = { kind: 'operator', name: 'operator', tier: 0, sandboxId: null, scopes: ['read', 'send', 'admin'] }
  const { token } = await node.apiFor(operator).call('token.create', { tier: 0 })
  return { port: Number(new URL(node.info.http).port), token }
}

const CARD = {
  name: 'sdk',
  description: '',
  version: '1',
  supportedInterfaces: [{ url: 'http://127.0.0.1', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: true },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: []
}
const PART = { content: { $case: 'text', value: 'pong' }, metadata: undefined, filename: '', mediaType: '' }

/** The agent of the SDK's server: answers with a message, or with a task as ours does. */
function executor({ AgentEvent, Role, TaskState }) {
  const status = (state) => ({ state, message: undefined, timestamp: new Date().toISOString() })
  const more = { metadata: undefined, extensions: [] }
  const message = {
    messageId: 'msg_1',
    taskId: '',
    role: Role.ROLE_AGENT,
    parts: [PART],
    referenceTaskIds: [],
    ...more
  }
  const artifact = { artifactId: 'result', name: 'result', description: '', parts: [PART], ...more }
  const execute = async ({ taskId, contextId, userMessage }, bus) => {
    const metadata = undefined
    const told = (state) => AgentEvent.statusUpdate({ taskId, contextId, status: status(state), metadata })
    if (userMessage.metadata?.task !== true) {
      bus.publish(AgentEvent.message({ ...message, contextId }))
      return bus.finished()
    }
    const submitted = status(TaskState.TASK_STATE_SUBMITTED)
    bus.publish(
      AgentEvent.task({ id: taskId, contextId, status: submitted, artifacts: [], history: [userMessage], metadata })
    )
    bus.publish(told(TaskState.TASK_STATE_WORKING))
    bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: false, lastChunk: true, metadata }))
    bus.publish(told(TaskState.TASK_STATE_COMPLETED))
    bus.finished()
  }
  return { execute, cancelTask: async () => {} }
}

async function sdk() {
  const names = ['@a2a-js/sdk/server', '@a2a-js/sdk/server/express', '@a2a-js/sdk', 'express']
  const [server, routes, types, { default: express }] = await Promise.all(names.map((name) => import(name)))
  const requestHandler = new server.DefaultRequestHandler(
    types.AgentCard.fromJSON(CARD),
    new server.InMemoryTaskStore(),
    executor({ ...server, ...types })
  )
  const app = express()
  app.use('/.well-known/agent-card.json', routes.agentCardHandler({ agentCardProvider: requestHandler }))
  app.use('/agents/:agent', routes.jsonRpcHandler({ requestHandler, userBuilder: routes.UserBuilder.noAuthentication }))
  const listener = app.listen(0, '127.0.0.1')
  await new Promise((resolve) => listener.once('listening', resolve))
  return { port: listener.address().port, token: 'none' }
}

if (process.argv[1] === GATEWAYS) {
  const kinds = { bare, ours, sdk }
  process.send(await kinds[process.argv[2]]())
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send({ cpuUs: user + system, rss: process.memoryUsage().rss })
  })
  process.on('disconnect', () => process.exit(0))
}
