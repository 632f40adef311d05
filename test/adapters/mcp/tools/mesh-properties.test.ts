import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import type { ToolDefinition } from '../../../../src/adapters/mcp/server/tool.js'
import { invocationEvent, type OnCompleted } from '../../../../src/adapters/mcp/server/tool-record.js'
import type { InvocationRecord } from '../../../../src/ports/tool-calls.js'
import { ToolRegistry } from '../../../../src/adapters/mcp/server/tool-registry.js'
import { canonicalJson } from '../../../../src/kit/json.js'
import { NodeError } from '../../../../src/kit/errors.js'
import { A2AObservability } from '../../../../src/node/observe/observability.js'
import { ToolCalls } from '../../../../src/node/observe/tool-calls.js'
import { holds } from '../../../support/holds.js'
import { arbJson, call, McpScene, payloadOf, request, type RawClient } from '../../../support/mcp.js'

const compile = createSchemaCompiler()
const arbPart = fc.stringMatching(/^[a-z][a-z0-9-]{0,11}$/)
// Other schemas are listed in the form that every client takes: see published-schema.test.ts.
const arbMember = fc.constantFrom(
  { type: 'string' },
  { type: 'integer' },
  { type: 'boolean' },
  { type: 'array', items: { type: 'string' } },
  { type: 'object' }
)
const arbSchema = fc
  .dictionary(arbPart, arbMember, { maxKeys: 3, noNullPrototype: true })
  .map((properties) => ({ type: 'object', properties }))
const arbTool = fc.record({
  agent: arbPart,
  tool: arbPart,
  description: fc.string({ unit: 'grapheme', maxLength: 40 }),
  inputSchema: arbSchema,
  outputSchema: fc.option(arbSchema, { nil: undefined })
})
const arbTools = fc.uniqueArray(arbTool, { selector: ({ agent, tool }) => `${agent}.${tool}`, maxLength: 10 })
/** JSON that JSON keeps: no -0. */
const arbValue = arbJson({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown)

function definitionOf({
  agent,
  tool,
  description,
  inputSchema,
  outputSchema
}: typeof arbTool extends fc.Arbitrary<infer T> ? T : never): ToolDefinition {
  const named = { name: `${agent}.${tool}`, description, inputSchema, source: `${agent}@node` }
  return outputSchema === undefined ? named : { ...named, outputSchema }
}

async function using<T>(t: Assert, scene: McpScene, run: (client: RawClient) => Promise<T>): Promise<T> {
  const client = scene.connect(t)
  try {
    await client.open()
    return await run(client)
  } finally {
    await client.close()
  }
}

test('Feature: a2a-mcp-protocols, Property 18: MCP tool registration and listing', async (t: Assert) => {
  const property = fc.asyncProperty(arbTools, async (tools) => {
    const scene = new McpScene()
    const definitions = tools.map(definitionOf)
    for (const one of definitions) scene.registry.register(one, () => Promise.resolve(null))
    const byName = (all: readonly ToolDefinition[]): string =>
      canonicalJson([...all].sort((a, b) => (a.name < b.name ? -1 : 1)))
    if (byName(scene.registry.list()) !== byName(definitions)) return false
    return await using(t, scene, async (client) => {
      const listed = (await client.ask(request(1, 'tools/list'))).result?.['tools'] as (ToolDefinition & {
        _meta: Record<string, string>
      })[]
      const told = listed.map(({ description, inputSchema, outputSchema, _meta: meta }) => {
        const named = { name: meta['a2a-node/name'], description, inputSchema, source: meta['a2a-node/source'] }
        return outputSchema === undefined ? named : { ...named, outputSchema }
      })
      return (
        byName(told) === byName(definitions) &&
        listed.every(({ name, _meta: meta }) => name === meta['a2a-node/name'].replace('.', '__'))
      )
    })
  })
  await holds(t, property, 100)
})

test('Feature: a2a-mcp-protocols, Property 19: MCP tool invocation routing', async (t: Assert) => {
  const property = fc.asyncProperty(
    arbTools,
    arbValue,
    fc.nat(),
    fc.boolean(),
    async (tools, result, pick, isPublished) => {
      const scene = new McpScene()
      const called: string[] = []
      for (const one of tools) {
        const definition = definitionOf({ ...one, inputSchema: { type: 'object', properties: {} } })
        scene.registry.register(definition, (args) => {
          called.push(definition.name)
          return Promise.resolve({ from: definition.source, args, result })
        })
      }
      if (tools.length === 0) return true
      const { agent, tool } = tools[pick % tools.length]
      return await using(t, scene, async (client) => {
        const answer = await client.ask(call(1, isPublished ? `${agent}__${tool}` : `${agent}.${tool}`, { pick }))
        const wanted = canonicalJson({ from: `${agent}@node`, args: { pick }, result })
        return canonicalJson(payloadOf(answer)) === wanted && called.join() === `${agent}.${tool}`
      })
    }
  )
  await holds(t, property, 100)
})

test('Feature: a2a-mcp-protocols, Property 20: MCP tool name uniqueness', async (t: Assert) => {
  const property = fc.asyncProperty(arbTools, fc.nat(), async (tools, pick) => {
    const registry = new ToolRegistry(compile)
    for (const one of tools) registry.register(definitionOf(one), () => Promise.resolve('first'))
    if (tools.length === 0) return true
    const again = definitionOf(tools[pick % tools.length])
    try {
      registry.register({ ...again, description: 'another' }, () => Promise.resolve('second'))
      return false
    } catch (error) {
      const refused = error as NodeError
      const isTold = refused.code === 'CONFLICT' && (refused.data as { reason: string }).reason === 'DUPLICATE_TOOL'
      const kept = await registry.get(again.name)?.handler({}, {} as never)
      return (
        isTold &&
        refused.message.includes(JSON.stringify(again.name)) &&
        kept === 'first' &&
        registry.list().length === tools.length
      )
    }
  })
  await holds(t, property, 100)
})

/** What is done to one tool, and what comes of it. */
const arbCall = fc.record({
  tool: fc.constantFrom('a.ok', 'a.fails', 'b.ok', 'b.late', 'no.such'),
  args: fc.dictionary(arbPart, arbValue, { maxKeys: 3, noNullPrototype: true })
})

async function callsOf(
  t: Assert,
  calls: readonly { readonly tool: string; readonly args: Record<string, unknown> }[],
  result: unknown,
  onCompleted: OnCompleted = () => {}
): Promise<readonly InvocationRecord[]> {
  const scene = new McpScene()
  scene.onRecord = onCompleted
  for (const name of ['a.ok', 'b.ok']) scene.tool(name, () => Promise.resolve(result))
  scene.tool('a.fails', () => Promise.reject(new NodeError('INVALID_INPUT', 'no', { data: result })))
  let late = (): void => {}
  scene.tool('b.late', () => {
    queueMicrotask(() => scene.clock.advance(30_000))
    return new Promise((resolve) => (late = () => resolve(result)))
  })
  return await using(t, scene, async (client) => {
    for (const { tool, args } of calls) {
      await client.ask(call(1, tool, args))
      scene.clock.advance(7)
      if (tool !== 'b.late') continue
      const count = scene.records.length
      late()
      await scene.recorded(count + 1)
    }
    await client.ask(call(1, 'a.ok', []))
    return scene.records
  })
}

test('Feature: a2a-mcp-protocols, Property 33: MCP tool invocation metrics accuracy', async (t: Assert) => {
  const property = fc.asyncProperty(fc.array(arbCall, { maxLength: 12 }), async (calls) => {
    const observability = new A2AObservability()
    for (const record of await callsOf(t, calls, 1)) {
      const event = invocationEvent(record)
      if (event !== null) observability.emit({ ...noEvent, ...event })
    }
    const { totalToolInvocations, toolInvocationsByTool, toolErrorCount } = observability.getMetrics()
    const wanted: Record<string, number> = {}
    for (const { tool: called } of calls) {
      const tool = called === 'no.such' ? 'unknown' : called
      wanted[tool] = (wanted[tool] ?? 0) + 1
    }
    const failed = calls.filter(({ tool }) => !tool.endsWith('.ok')).length
    return (
      totalToolInvocations === calls.length &&
      canonicalJson(toolInvocationsByTool) === canonicalJson(wanted) &&
      toolErrorCount === failed
    )
  })
  await holds(t, property, 100)
})

const noEvent = {
  envelopeId: undefined,
  sender: undefined,
  recipient: undefined,
  messageType: undefined,
  routingPath: undefined,
  hops: undefined
}

test('Feature: a2a-mcp-protocols, Property 34: MCP invocation record serialization round trip', async (t: Assert) => {
  const property = fc.asyncProperty(fc.array(arbCall, { maxLength: 6 }), arbValue, async (calls, result) => {
    const stored = new ToolCalls()
    const records = await callsOf(t, calls, result, (record, resultChars) => stored.add(record, resultChars))
    // As `tools calls` exports them, and as a reader of its lines gets them back.
    const exported = stored.list().map((one) => JSON.stringify(one))
    return records.every((record, index) => {
      const back = JSON.parse(exported[index] ?? 'null') as InvocationRecord
      const hasResult = back.outcome !== 'success' || canonicalJson(back.result) === canonicalJson(result)
      return hasResult && canonicalJson(back) === canonicalJson(record) && 'result' in back === 'result' in record
    })
  })
  await holds(t, property, 100)
})
