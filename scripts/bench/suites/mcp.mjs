import { once } from 'node:events'
import http from 'node:http'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { InMemoryTransport } from '@modelcontextprotocol/server'
import { quantile } from '../figures.mjs'
import { BIN, openLab } from '../lab.mjs'
import { NOOP, ourParts, SERVERS, sdkServer } from '../mcp-servers.mjs'
import { addModuleAgent, inTurn, localMesh, times } from '../nodes.mjs'

const IN_PROCESS = { count: 4000, inFlight: 8 }
const OVER_STDIO = 300
const OVER_HTTP = { warmUp: 500, count: 2000, inFlight: 8 }
const HOPS = 200
const HOP = 'a module agent on another node beside the same here'
const TOOLS = 10_000
const SCHEMAS = 100
const MODERN = '2026-07-28'

/** Our MCP runtime beside the SDK's own servers, with the same clients, in turns. */
export async function figures({ runs }) {
  return [
    ...(await inProcess(runs)),
    await overHttp(runs),
    ...(await overNodes(runs)),
    ...(await manyTools()),
    ...(await search(runs))
  ]
}

async function client(transport) {
  const one = new Client({ name: 'bench', version: '1' })
  await one.connect(transport)
  return one
}

async function perSecond(call, { count, inFlight }) {
  let left = count
  const start = performance.now()
  const worker = async () => {
    while (left-- > 0) await call()
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
  return (1000 * count) / (performance.now() - start)
}

async function inProcess(runs) {
  const { serveMcp } = await import(new URL('../../../build/src/adapters/mcp/server/serve.js', import.meta.url).href)
  const [ourEnd, ourServer] = InMemoryTransport.createLinkedPair()
  serveMcp(ourServer, await ourParts())
  const [sdkEnd, sdkServerEnd] = InMemoryTransport.createLinkedPair()
  const server = sdkServer()
  await server.connect(sdkServerEnd)
  const clients = { ours: await client(ourEnd), sdk: await client(sdkEnd) }
  const rates = { ours: [], sdk: [] }
  const measure = async (way) =>
    await perSecond(() => clients[way].callTool({ name: NOOP.name, arguments: { n: 1 } }), IN_PROCESS)
  await inTurn(['ours', 'sdk'], measure)
  await times(runs, () => inTurn(['ours', 'sdk'], async (way) => rates[way].push(await measure(way))))
  await Promise.all(Object.values(clients).map((one) => one.close()))
  const note = `${IN_PROCESS.count} calls a sample, ${IN_PROCESS.inFlight} in flight`
  return [
    {
      name: 'no-op tool in process, rate to the SDK',
      unit: 'x',
      goal: 0.8,
      bound: 'min',
      samples: rates.ours.map((rate, at) => rate / rates.sdk[at]),
      note
    },
    { name: 'no-op tool in process', unit: '/s', goal: null, samples: rates.ours }
  ]
}

/** Milliseconds of each of so many calls, one after the other. */
async function latencies(call, count) {
  const samples = []
  for (let at = 0; at < count; at++) {
    const start = performance.now()
    await call()
    samples.push(performance.now() - start)
  }
  return samples
}

/** A bridge to a running node beside the SDK's stdio server; a tool on another node beside one here. */
async function overNodes(runs) {
  const lab = openLab()
  const clients = []
  const open = async (args, env) => {
    const one = await client(new StdioClientTransport({ command: process.execPath, args, env, stderr: 'ignore' }))
    clients.push(one)
    return one
  }
  try {
    const nodes = await localMesh(lab, ['a', 'b'])
    const [a] = nodes
    await addModuleAgent(nodes, { id: 'reads', capability: 'reads.do', sideEffect: 'read' })
    await addModuleAgent(nodes, { id: 'writes', capability: 'writes.do', sideEffect: 'write' })
    const ours = await open([BIN, '--home', a.home, 'mcp', 'serve'], a.env)
    return bridgeRows(await bridged(runs, ours, await open([SERVERS, 'stdio'], process.env)))
  } finally {
    await Promise.all(clients.map((one) => one.close().catch(() => {})))
    await lab.close()
  }
}

async function bridged(runs, ours, sdk) {
  const calls = {
    ours: () => ours.callTool({ name: 'health', arguments: {} }),
    sdk: () => sdk.callTool({ name: NOOP.name, arguments: {} }),
    ...hopsOf(ours, 'reads'),
    ...hopsOf(ours, 'writes')
  }
  await inTurn(Object.keys(calls), (way) => latencies(calls[way], 50))
  const samples = { ratios: [], bridge: [], reads: [], writes: [] }
  await times(runs, async () => {
    const [one, other] = await inTurn(['ours', 'sdk'], async (way) =>
      quantile(await latencies(calls[way], OVER_STDIO), 0.95)
    )
    samples.ratios.push(one / other)
    samples.bridge.push(one)
    for (const kind of ['reads', 'writes']) {
      const [here, there] = await inTurn(['Here', 'There'], async (at) =>
        quantile(await latencies(calls[`${kind}${at}`], HOPS), 0.5)
      )
      samples[kind].push(there - here)
    }
  })
  return samples
}

/** A tool of an agent here, and of the same one on another node. */
function hopsOf(mcp, kind) {
  const call = (name) => async () => {
    const { isError } = await mcp.callTool({ name, arguments: {} })
    if (isError) throw new Error(`${name} failed`)
  }
  return { [`${kind}Here`]: call(`${kind}__do`), [`${kind}There`]: call(`${kind}_at_b__do`) }
}

function bridgeRows({ ratios, bridge, reads, writes }) {
  return [
    {
      name: 'stdio bridge to a running node, p95 to the SDK over stdio',
      unit: 'x',
      goal: 2,
      samples: ratios,
      note: 'the tool health beside one that does nothing'
    },
    { name: 'stdio bridge to a running node, p95', unit: 'ms', goal: null, samples: bridge },
    { name: 'what a hop adds to a durable tool, p50', unit: 'ms', goal: 5, samples: writes, note: HOP },
    { name: 'what a hop adds to a tool that only reads, p50', unit: 'ms', goal: 1, samples: reads, note: HOP }
  ]
}

const META = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {}
}
const BODY = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: NOOP.name, arguments: { n: 1 }, _meta: META }
})
const HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'content-length': Buffer.byteLength(BODY),
  'mcp-protocol-version': MODERN,
  'mcp-method': 'tools/call',
  'mcp-name': NOOP.name
}

async function overHttp(runs) {
  const lab = openLab()
  try {
    const ways = await inTurn(['ours', 'sdk'], async (kind) => {
      const child = lab.spawn(process.execPath, [SERVERS, 'http', kind], {
        stdio: ['ignore', 'ignore', 'inherit', 'ipc']
      })
      const [{ port }] = await once(child, 'message')
      return { child, port, agent: new http.Agent({ keepAlive: true, maxSockets: OVER_HTTP.inFlight }) }
    })
    const cpuOf = async ({ child }) => {
      child.send('cpu')
      const [{ cpuUs }] = await once(child, 'message')
      return cpuUs
    }
    for (const way of ways) await perSecond(() => post(way), { ...OVER_HTTP, count: OVER_HTTP.warmUp })
    const ratios = []
    await times(runs, async () => {
      const [ours, sdk] = await inTurn(ways, async (way) => {
        const before = await cpuOf(way)
        await perSecond(() => post(way), OVER_HTTP)
        return (await cpuOf(way)) - before
      })
      ratios.push(ours / sdk)
    })
    for (const { agent } of ways) agent.destroy()
    return {
      name: 'no-op tool over HTTP, processor time to the SDK',
      unit: 'x',
      goal: 0.5,
      samples: ratios,
      note: `${OVER_HTTP.count} calls a sample; without the check of a token`
    }
  } finally {
    await lab.close()
  }
}

async function post({ port, agent }) {
  const request = http.request({ host: '127.0.0.1', port, path: '/mcp', method: 'POST', headers: HEADERS, agent })
  request.end(BODY)
  const [response] = await once(request, 'response')
  let text = ''
  for await (const chunk of response) text += String(chunk)
  if (response.statusCode !== 200 || !text.includes('"null"')) throw new Error(`${response.statusCode}: ${text}`)
}

/** Many tools of few schemas: what registering them takes, and telling of them. */
async function manyTools() {
  const schema = (at) => ({ type: 'object', properties: { [`of ${at % SCHEMAS}`]: { type: 'string', maxLength: 10 } } })
  const tools = Array.from({ length: TOOLS }, (_, at) => [
    { ...NOOP, name: `agent.tool${at}`, inputSchema: schema(at) },
    () => Promise.resolve(null)
  ])
  const { serveMcp } = await import(new URL('../../../build/src/adapters/mcp/server/serve.js', import.meta.url).href)
  const [clientEnd, serverEnd] = InMemoryTransport.createLinkedPair()
  await ourParts(tools.slice(0, SCHEMAS))
  const start = performance.now()
  const parts = await ourParts(tools)
  const registering = performance.now() - start
  serveMcp(serverEnd, parts)
  await clientEnd.start()
  const asked = performance.now()
  const answered = new Promise((resolve) => Object.assign(clientEnd, { onmessage: resolve }))
  await clientEnd.send({ jsonrpc: '2.0', id: 2, method: 'tools/list', params: { _meta: META } })
  const { result: listed } = await answered
  const listing = performance.now() - asked
  if (listed?.tools?.length !== TOOLS) throw new Error(`${listed?.tools?.length} tools were listed`)
  return [
    { name: `registering ${TOOLS} tools of ${SCHEMAS} schemas`, unit: 'ms', goal: 500, samples: [registering] },
    { name: 'tools/list of them, the first', unit: 'ms', goal: 50, samples: [listing] }
  ]
}

const WORDS = 'file image report invoice song pod ticket light route query branch contact sensor page'.split(' ')
const VERBS = 'read create delete list send merge start stop resize export'.split(' ')

/** Agents with many tools, as far as a list and a search need them. */
function manyOnMesh() {
  const inputSchema = { type: 'object', properties: { path: { type: 'string' }, limit: { type: 'integer' } } }
  const definitions = Array.from({ length: TOOLS }, (_, at) => {
    const [verb, word] = [VERBS[at % VERBS.length], WORDS[at % WORDS.length]]
    const purpose = `${verb} the ${word} number ${at}`
    return { name: `agent${at % 50}@node.${verb}_${word}_${at}`, description: purpose, purpose, inputSchema }
  })
  const get = (name) => definitions.find((one) => one.name === name)
  const count = () => Promise.resolve(TOOLS)
  return {
    list: () => definitions,
    get: (name) => ({ definition: get(name) }),
    count,
    whole: (some) => Promise.resolve(some)
  }
}

/** A list of few tools in front of many, and a search among them. */
async function search(runs) {
  const compiled = (file) => import(new URL(`../../../build/src/adapters/${file}`, import.meta.url).href)
  const [{ serveMcp }, { ToolCatalog }, { ToolRegistry }, { ExposedTools }, { createSchemaCompiler }] =
    await Promise.all(
      ['mcp/server/serve.js', 'mcp/server/tool-catalog.js', 'mcp/server/tool-registry.js', 'mcp/tools/exposed-tools.js']
        .concat('agents/schemas/compile-schema.js')
        .map(compiled)
    )
  const [compileSchema, mesh] = [createSchemaCompiler(), manyOnMesh()]
  const [lists, searches] = [[], []]
  await times(runs, async () => {
    const limits = { tools: 30, tokens: 6000 }
    const own = new ToolRegistry(compileSchema)
    const mode = { isSearch: false }
    const exposed = new ExposedTools({ own, essential: new Set(), mesh, expose: 'auto', limits, mode, compileSchema })
    const [clientEnd, serverEnd] = InMemoryTransport.createLinkedPair()
    serveMcp(serverEnd, { ...(await ourParts()), tools: new ToolCatalog([exposed]) })
    const one = await client(clientEnd)
    const asked = performance.now()
    const { tools } = await one.listTools()
    lists.push(performance.now() - asked)
    if (tools.length > 10) throw new Error(`${tools.length} tools were listed`)
    const find = (query) => one.callTool({ name: 'a2a_find_tools', arguments: { query } })
    await find('warm up')
    const start = performance.now()
    for (const word of WORDS) await find(`how do I resize a ${word}`)
    searches.push((performance.now() - start) / WORDS.length)
    await one.close()
  })
  return [
    { name: `tools/list in search mode over ${TOOLS} tools`, unit: 'ms', goal: 5, samples: lists },
    {
      name: `a2a_find_tools over ${TOOLS} tools`,
      unit: 'ms',
      goal: null,
      samples: searches,
      note: 'the index is made before'
    }
  ]
}
