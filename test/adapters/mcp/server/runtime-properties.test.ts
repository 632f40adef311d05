import { duplexPair } from 'node:stream'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { ToolCatalog } from '../../../../src/adapters/mcp/server/tool-catalog.js'
import { ToolRegistry } from '../../../../src/adapters/mcp/server/tool-registry.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { createLayer } from '../../../../src/node/sdk/layer.js'
import { World } from '../../../support/fake-node.js'
import { holds } from '../../../support/holds.js'
import {
  arbJson,
  ANYTHING,
  call,
  CLAIM,
  initialize,
  McpScene,
  payloadOf,
  request,
  RawClient
} from '../../../support/mcp.js'
import { MCP_SETTINGS, mcpServiceOf } from '../../../support/mcp-http.js'

const arbName = fc.stringMatching(/^[a-z][a-zA-Z0-9._/@-]{0,70}$/)
const arbWord = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 })
const arbId = fc.oneof(fc.integer(), fc.string({ maxLength: 20 }))
const arbCorrelation = fc.option(fc.string({ minLength: 1, maxLength: 128 }), { nil: undefined })
/** JSON that is no object. */
const arbNoObject = fc.oneof(fc.boolean(), fc.integer(), fc.string(), fc.array(arbJson()))

/** A connection of one run, closed at its end. */
async function using<T>(t: Assert, scene: McpScene, run: (client: RawClient) => Promise<T>): Promise<T> {
  const client = scene.connect(t)
  try {
    return await run(client)
  } finally {
    await client.close()
  }
}

test('Feature: mcp-runtime, Property 1: Initialization Response Completeness', async (t: Assert) => {
  const property = fc.asyncProperty(
    arbWord,
    arbWord,
    fc.boolean(),
    fc.boolean(),
    async (name, version, hasResources, hasPrompts) => {
      const resources = { list: () => [], read: () => Promise.resolve(undefined) }
      const prompts = { list: () => [], get: () => Promise.resolve(undefined) }
      const scene = new McpScene({
        name,
        version,
        ...(hasResources ? { resources } : {}),
        ...(hasPrompts ? { prompts } : {})
      })
      return await using(t, scene, async (client) => {
        const { result } = await client.open()
        const { capabilities, serverInfo } = result as {
          capabilities: object
          serverInfo: { name: string; version: string }
        }
        const wanted = ['logging', 'tools', ...(hasResources ? ['resources'] : []), ...(hasPrompts ? ['prompts'] : [])]
        const isComplete = serverInfo.name === name && serverInfo.version === version
        return isComplete && JSON.stringify(Object.keys(capabilities).sort()) === JSON.stringify(wanted.sort())
      })
    }
  )
  await holds(t, property, 100)
})

test('Feature: mcp-runtime, Property 2: Strict Initialization Gate', async (t: Assert) => {
  const arbMethod = fc.oneof(
    fc.constantFrom('tools/list', 'tools/call', 'ping', 'resources/list', 'prompts/get', 'logging/setLevel'),
    arbName.filter((name) => name !== 'initialize')
  )
  const arbStep = fc.record({ id: arbId, method: arbMethod, correlationId: arbCorrelation, isInitialize: fc.boolean() })
  const property = fc.asyncProperty(fc.array(arbStep, { minLength: 1, maxLength: 8 }), async (steps) => {
    const scene = new McpScene()
    let runs = 0
    scene.tool('count', () => Promise.resolve(runs++))
    return await using(t, scene, async (client) => {
      for (const { id, method, correlationId, isInitialize } of steps) {
        // At any moment of the handshake, but never its second step.
        if (isInitialize && (await client.ask(initialize(id))).error !== undefined) return false
        const { error, id: answered } = await client.ask(
          request(id, method, { name: 'count', _meta: { correlationId } })
        )
        const data = error?.data
        if (error?.code !== -32_002 || error.message !== 'Not initialized' || answered !== id) return false
        if (data?.['code'] !== 'NOT_INITIALIZED' || data['correlationId'] !== 'connection-1') return false
      }
      await client.open()
      const served = await client.ask(call('now', 'count'))
      return served.result?.['isError'] === false && runs === 1
    })
  })
  await holds(t, property, 100)
})

test('Feature: mcp-runtime, Property 3: Protocol Error Correlation', async (t: Assert) => {
  const meta = (correlationId: string | undefined): object => ({ _meta: { correlationId } })
  const arbFaulty = fc.tuple(arbCorrelation, arbJson(), arbNoObject).map(([correlationId, value, noObject]) => {
    const given = correlationId ?? 'connection-1'
    const rows: readonly (readonly [unknown, string])[] = [
      [request(1, 'no/such', meta(correlationId)), given],
      [request(1, 'tools/call', { name: 1, ...meta(correlationId) }), given],
      [request(1, 'tools/call', { name: 'x', arguments: noObject, ...meta(correlationId) }), given],
      [request(1, 'resources/read', meta(correlationId)), given],
      [request(1.5, 'ping', meta(correlationId)), given],
      [{ ...request(1, 'ping', meta(correlationId)), jsonrpc: '1' }, given],
      [request(1, 'tools/list', { _meta: noObject }), 'connection-1'],
      [request(1, 'ping', noObject === undefined ? 1 : noObject), 'connection-1'],
      [`{${JSON.stringify(value)}`, 'connection-1'],
      [noObject, 'connection-1']
    ]
    return rows
  })
  const property = fc.asyncProperty(arbFaulty, async (rows) => {
    return await using(t, new McpScene(), async (client) => {
      await client.open()
      for (const [line, wanted] of rows) {
        const { error } = await client.ask(
          typeof line === 'string' ? (line.startsWith('{') ? line : JSON.stringify(line)) : line
        )
        if (error?.data?.['correlationId'] !== wanted) return false
      }
      return true
    })
  })
  await holds(t, property, 100)
})

test('Feature: mcp-runtime, Property 4: Tools/List Ordering', async (t: Assert) => {
  const arbLists = fc.tuple(fc.uniqueArray(arbName, { maxLength: 12 }), fc.uniqueArray(arbName, { maxLength: 12 }))
  const property = fc.asyncProperty(arbLists, async ([first, second]) => {
    const other = new ToolRegistry(createSchemaCompiler())
    const scene = new McpScene({ sources: [other] })
    for (const name of first) scene.tool(name, () => Promise.resolve(null))
    for (const name of second)
      other.register({ name, description: '', inputSchema: ANYTHING }, () => Promise.resolve(null))
    const isSorted = (names: readonly string[]): boolean => names.every((name, i) => i === 0 || names[i - 1] < name)
    return await using(t, scene, async (client) => {
      await client.open()
      const tools = ((await client.ask(request(1, 'tools/list'))).result ?? {})['tools'] as {
        name: string
        _meta: Record<string, string>
      }[]
      const canonical = tools.map(({ _meta: meta }) => meta['a2a-node/name']).sort()
      const whole = [...new Set([...first, ...second])].sort()
      const names = tools.map((one) => one.name)
      const isPublishable = names.every((name) => /^[A-Za-z0-9_-]{1,64}$/.test(name))
      const isListed =
        JSON.stringify(canonical) === JSON.stringify(whole) && isSorted(scene.registry.list().map((one) => one.name))
      return isListed && isPublishable && isSorted(names)
    })
  })
  await holds(t, property, 100)
})

test('Feature: mcp-runtime, Property 5: Validator Precompilation', async (t: Assert) => {
  const arbArgs = fc.array(fc.dictionary(fc.constantFrom('n', 'm'), arbJson(), { noNullPrototype: true }), {
    minLength: 1,
    maxLength: 8
  })
  const compile = createSchemaCompiler()
  const property = fc.asyncProperty(arbArgs, fc.integer({ min: 1, max: 5 }), async (calls, count) => {
    let compiled = 0
    const registry = new ToolRegistry((schema) => {
      compiled++
      return compile(schema)
    })
    const inputSchema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
    for (let i = 0; i < count; i++)
      registry.register({ name: `t${i}`, description: '', inputSchema }, (args) => Promise.resolve(args['n']))
    const validators = new Set(Array.from({ length: count }, (_, i) => registry.get(`t${i}`)?.validator))
    const before = compiled
    const scene = new McpScene({ tools: new ToolCatalog([registry]) })
    return await using(t, scene, async (client) => {
      await client.open()
      for (const args of calls) {
        const answer = await client.ask(call(1, `t${count - 1}`, args))
        const isInteger = Number.isInteger(args['n'])
        if (answer.result?.['isError'] !== !isInteger) return false
        if (!isInteger && payloadOf(answer)['code'] !== 'INVALID_ARGUMENT') return false
      }
      return compiled === before && before === 1 && validators.size === 1
    })
  })
  await holds(t, property, 100)
})

test('Feature: mcp-runtime, Property 6: Arguments Shape Enforcement', async (t: Assert) => {
  const scene = new McpScene()
  let runs = 0
  scene.tool('count', () => Promise.resolve(runs++))
  const client = scene.connect(t)
  await client.open()
  const property = fc.asyncProperty(arbNoObject, fc.boolean(), async (args, isClaimed) => {
    const { error, id } = await client.ask(call(1, 'count', args, isClaimed ? CLAIM : undefined))
    return error?.code === -32_602 && id === 1 && runs === 0
  })
  await holds(t, property, 200)
  t.is((await client.ask(call(1, 'count', {}))).result?.['isError'], false)
  t.is(runs, 1)
})

test('Feature: mcp-runtime, Property 7: Concurrency Limit Enforcement', async (t: Assert) => {
  const limits = fc.record({
    max: fc.integer({ min: 1, max: 6 }),
    calls: fc.integer({ min: 1, max: 15 }),
    again: fc.integer({ min: 1, max: 6 })
  })
  const property = fc.asyncProperty(limits, async ({ max, calls, again }) => {
    const scene = new McpScene({ maxConcurrentExecutions: max, maxWaitingExecutions: 0 })
    const ends: (() => void)[] = []
    let running = 0
    let most = 0
    scene.tool('hold', async () => {
      most = Math.max(most, ++running)
      await new Promise<void>((resolve) => ends.push(resolve))
      running--
      return 'done'
    })
    return await using(t, scene, async (client) => {
      await client.open()
      for (let id = 0; id < calls; id++) client.write(call(id, 'hold'))
      const refused = Math.max(0, calls - max)
      const early = (await client.heard(refused)).slice(0, refused)
      if (!early.every((one) => payloadOf(one)['code'] === 'RESOURCE_EXHAUSTED')) return false
      while (ends.length < calls - refused) await new Promise((resolve) => setImmediate(resolve))
      for (const end of ends.splice(0)) end()
      await client.heard(calls)
      const isAnswered = client.answers.slice(refused).every((one) => payloadOf(one) === ('done' as never))
      // Every slot came back.
      for (let id = 0; id < Math.min(again, max); id++) client.write(call(id, 'hold'))
      while (ends.length < Math.min(again, max)) await new Promise((resolve) => setImmediate(resolve))
      for (const end of ends.splice(0)) end()
      await client.heard(calls + Math.min(again, max))
      return isAnswered && most <= max && running === 0 && scene.limits.getTelemetry().concurrentExecutions === 0
    })
  })
  await holds(t, property, 100)
})

test('Feature: mcp-runtime, Property 8: Timeout Enforcement with Cooperative Cancellation', async (t: Assert) => {
  const times = fc.record({
    deadline: fc.integer({ min: 1, max: 1000 }),
    ends: fc.integer({ min: 0, max: 2000 }),
    hasThrown: fc.boolean()
  })
  const property = fc.asyncProperty(times, async ({ deadline, ends, hasThrown }) => {
    const scene = new McpScene({ defaultTimeoutMs: deadline, maxConcurrentExecutions: 1 })
    let signal: AbortSignal | null = null
    let begun = (): void => {}
    const isRunning = new Promise<void>((resolve) => (begun = resolve))
    scene.tool('work', (_, { abortSignal }) => {
      signal = abortSignal
      return new Promise((resolve, reject) => {
        scene.clock.after(ends, () => (hasThrown ? reject(new Error('failed')) : resolve('done')))
        begun()
      })
    })
    return await using(t, scene, async (client) => {
      await client.open()
      client.write(call(1, 'work'))
      await isRunning
      // Whichever timer is set first runs first when both are due.
      const isLate = ends >= deadline
      scene.clock.advance(Math.min(ends, deadline))
      const payload = payloadOf((await client.heard(1))[0])
      if (!isLate)
        return (
          (payload['code'] ?? payload) === (hasThrown ? 'INTERNAL' : 'done') &&
          !signal?.aborted &&
          scene.records.length === 1
        )
      const isHeld = ends === deadline || scene.limits.getTelemetry().concurrentExecutions === 1
      if (payload['code'] !== 'TIMEOUT' || !signal?.aborted || !isHeld) return false
      scene.clock.advance(ends - deadline)
      const outcomes = (await scene.recorded(2)).map((one) => one.outcome).join(' ')
      const { id } = await client.ask(request('next', 'ping'))
      return (
        outcomes === 'timeout late_completed' && id === 'next' && scene.limits.getTelemetry().concurrentExecutions === 0
      )
    })
  })
  await holds(t, property, 150)
})

test('Feature: mcp-runtime, Property 9: Log Redaction and Sanitization', async (t: Assert) => {
  const secret = 'hunter2-hunter2'
  const arbFields = fc.record({
    key: fc.constantFrom('password', 'API_KEY', 'Authorization', 'access-token'),
    depth: fc.nat({ max: 2 }),
    text: fc.string({ unit: 'binary', maxLength: 60 })
  })
  const property = fc.asyncProperty(arbFields, async ({ key, depth, text }) => {
    const lines: string[] = []
    const clock = { now: () => 0 }
    const telemetry = new MemoryTelemetry({
      clock,
      level: 'debug',
      format: 'text',
      write: (line) => void lines.push(line)
    })
    const scene = new McpScene({ log: (level, message, fields) => telemetry.log(level, message, fields) })
    let fields: Record<string, unknown> = { [key]: secret, text }
    for (let i = 0; i < depth; i++) fields = { in: [fields] }
    const before = JSON.stringify(fields)
    scene.tool('log', (args, { log }) => {
      log('info', text, fields)
      return Promise.reject(new Error(`${String(args['text'])}\n`))
    })
    return await using(t, scene, async (client) => {
      await client.open()
      const answer = await client.ask(
        call(1, 'log', { password: secret, text }, { correlationId: `c${text}`.slice(0, 128) })
      )
      const isWhole = payloadOf(answer)['message'] === `${text}\n` && JSON.stringify(fields) === before
      const clean = lines.every(
        (line) => !line.includes('hunter2') && !/\p{Cc}/u.test(line.slice(0, -1)) && line.endsWith('\n')
      )
      return isWhole && clean && lines.some((line) => line.includes('[REDACTED]'))
    })
  })
  await holds(t, property, 150)
})

test('Feature: mcp-runtime, Property 10: Agent Serialism', async (t: Assert) => {
  const script = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat({ max: 5 })), { minLength: 1, maxLength: 15 })
  const world = new World(t)
  const node = await world.owner()
  const { agents } = createLayer(node.core)
  const service = mcpServiceOf(world, node, {
    settings: {
      ...MCP_SETTINGS,
      tools: { ...MCP_SETTINGS.tools, adminRegistrationEnabled: true, adminPolicy: 'local_stdio_only' },
      security: { dynamicRegistrationEnabled: true },
      resources: { maxConcurrentExecutions: 20 }
    }
  })
  t.teardown(() => service.close())
  const [stream, other] = duplexPair()
  service.open(other, { kind: 'mcp', name: 'raw', tier: 0, sandboxId: null, scopes: ['read', 'send', 'admin'] })
  const client = new RawClient(stream, { closed: Promise.resolve(), close: () => Promise.resolve() })
  t.teardown(() => client.close(), { order: -1 })
  await client.open()
  await client.ask(call('new', 'admin/registerTool', { name: 'say', description: '', toolType: 'agentProxy' }))
  let overlaps = 0
  const order = new Map<string, number[]>()
  for (const id of ['a', 'b', 'c']) {
    let isBusy = false
    await agents.registerAgent(id, async ({ payload }, { state }) => {
      if (isBusy) overlaps++
      isBusy = true
      const { index, turns } = payload as { index: number; turns: number }
      order.set(id, [...(order.get(id) ?? []), index])
      const count = (state.get('count') ?? 0) as number
      for (let i = 0; i < turns; i++) await Promise.resolve()
      state.set('count', count + 1)
      isBusy = false
      return index
    })
  }
  const countOf = (id: string): number => (agents.getAgentState(id)?.get('count') ?? 0) as number
  const property = fc.asyncProperty(script, async (messages) => {
    const before = new Map(['a', 'b', 'c'].map((id) => [id, countOf(id)]))
    client.answers.length = 0
    order.clear()
    for (const [index, [targetAgentId, turns]] of messages.entries())
      client.write(call(index, 'say', { targetAgentId, message: { type: 'do', payload: { index, turns } } }))
    const answers = await client.heard(messages.length)
    const isAnswered = answers.every((one) => payloadOf(one) === (one.id as never))
    const isInOrder = [...before].every(([id, count]) => {
      const sent = [...messages.keys()].filter((index) => messages[index][0] === id)
      return JSON.stringify(order.get(id) ?? []) === JSON.stringify(sent) && countOf(id) - count === sent.length
    })
    return isAnswered && isInOrder && overlaps === 0
  })
  await holds(t, property, 100)
})
