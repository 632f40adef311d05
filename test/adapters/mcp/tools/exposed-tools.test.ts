import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import {
  type ExposedToolsDeps,
  ExposedTools,
  type ListMode,
  type MeshSource
} from '../../../../src/adapters/mcp/tools/exposed-tools.js'
import type { RegisteredTool, ToolDefinition } from '../../../../src/adapters/mcp/server/tool.js'
import { ToolCatalog } from '../../../../src/adapters/mcp/server/tool-catalog.js'
import { ToolRegistry } from '../../../../src/adapters/mcp/server/tool-registry.js'
import { publishedName } from '../../../../src/adapters/mcp/tools/published-names.js'
import { publishedTools } from '../../../../src/adapters/mcp/tools/published-tools.js'
import { failsWith } from '../../../support/fails.js'
import { toolContext } from '../../../support/tool-context.js'
import { holds } from '../../../support/holds.js'

const META = ['a2a_call_tool', 'a2a_find_tools']
const compileSchema = createSchemaCompiler()

function echoTool(name: string, description = ''): RegisteredTool {
  const inputSchema = { type: 'object', properties: { n: { type: 'integer' } } }
  return {
    definition: { name, description, inputSchema },
    validator: compileSchema(inputSchema),
    handler: (args) => Promise.resolve({ name, args })
  }
}

/** Agents whose tools a test changes. */
class FakeMesh implements MeshSource {
  readonly listeners = new Set<() => void>()
  tools: readonly RegisteredTool[]

  constructor(tools: readonly RegisteredTool[]) {
    this.tools = tools
  }

  list(): ReturnType<MeshSource['list']> {
    return this.tools.map(({ definition }) => definition)
  }

  count(): Promise<number> {
    return Promise.resolve(this.tools.length)
  }

  hasFavorites = false

  favorites(): Promise<readonly ToolDefinition[]> {
    return Promise.resolve(this.hasFavorites ? this.tools.slice(0, 1).map(({ definition }) => definition) : [])
  }

  whole(definitions: readonly ToolDefinition[]): Promise<readonly ToolDefinition[]> {
    return Promise.resolve(definitions)
  }

  get(name: string): RegisteredTool | undefined {
    return this.tools.find(({ definition }) => [definition.name, publishedName(definition.name)].includes(name))
  }

  onChange(changed: () => void): () => void {
    this.listeners.add(changed)
    return () => this.listeners.delete(changed)
  }

  change(tools: readonly RegisteredTool[]): void {
    this.tools = tools
    for (const changed of this.listeners) changed()
  }
}

function own(): ToolRegistry {
  const registry = new ToolRegistry(compileSchema)
  for (const name of ['a2a_send', 'health']) {
    const { definition, handler } = echoTool(name)
    registry.register(definition, handler)
  }
  return registry
}

function exposed(tools: readonly RegisteredTool[] | FakeMesh, given: Partial<ExposedToolsDeps> = {}): ExposedTools {
  const mesh = tools instanceof FakeMesh ? tools : new FakeMesh(tools)
  return new ExposedTools({
    own: own(),
    essential: new Set(['a2a_send']),
    mesh,
    expose: 'auto',
    limits: { tools: 30, tokens: 6000 },
    mode: { isSearch: false },
    compileSchema,
    ...given
  })
}

async function names(tools: ExposedTools): Promise<string[]> {
  return (await tools.list()).map(({ name }) => name).sort()
}

const many = (count: number, description = ''): RegisteredTool[] =>
  Array.from({ length: count }, (_, at) => echoTool(`a.t${at}`, description))

async function call(tools: ExposedTools, name: string, args: Readonly<Record<string, unknown>>): Promise<unknown> {
  const tool = await tools.get(name)
  if (tool === undefined) throw new Error(`no tool ${name}`)
  return await tool.handler(args, toolContext())
}

async function found(tools: ExposedTools, query: string): Promise<string[]> {
  const { tools: hits } = (await call(tools, 'a2a_find_tools', { query })) as { tools: { name: string }[] }
  return hits.map(({ name }) => name)
}

test('a short list is complete; one of 30 tools, or of 6,000 tokens, is a fixed few that find and call the others', async (t: Assert) => {
  const fixed = [...META, 'a2a_send']
  t.is((await names(exposed(many(29)))).length, 29 + META.length + 2)
  t.alike(await names(exposed(many(30))), fixed)
  t.alike(await names(exposed(many(12, 'word '.repeat(400)))), fixed, 'twelve tools of 500 tokens')
  t.is((await names(exposed(many(11, 'word '.repeat(400))))).length, 11 + META.length + 2)
  t.alike(await names(exposed(many(3), { limits: { tools: 3, tokens: 6000 } })), fixed, 'by the setting')
  t.is((await names(exposed(many(101), { expose: 'all' }))).length, 101 + META.length + 2)
  t.alike(await names(exposed(many(1), { expose: 'search' })), fixed)
  for (const name of ['a.t7', 'health', 'a2a_describe_tool'])
    t.ok(await exposed(many(30)).get(name), 'all can be called')
})

test('a list that once was long changes no byte and notifies nobody, while agents come and go', async (t: Assert) => {
  const mode: ListMode = { isSearch: false }
  const mesh = new FakeMesh(many(40))
  const catalog = new ToolCatalog([exposed(mesh, { mode })])
  let changes = 0
  catalog.onChange(() => changes++)
  const list = publishedTools(catalog, 'fitted')
  const before = JSON.stringify(await list())
  for (const tools of [many(2), [], many(50)]) {
    mesh.change(tools)
    t.is(JSON.stringify(await list()), before)
    t.is(
      JSON.stringify(await publishedTools(new ToolCatalog([exposed(mesh, { mode })]), 'fitted')()),
      before,
      'a new connection'
    )
  }
  t.is(changes, 0)
  const short = new ToolCatalog([exposed(mesh, { expose: 'all' })])
  short.onChange(() => changes++)
  mesh.change([])
  t.is(changes, 1, 'a whole list reports changes')
})

test('a fixed list has the favorites, too, and reports their changes', async (t: Assert) => {
  const mesh = new FakeMesh(many(40))
  mesh.hasFavorites = true
  const tools = exposed(mesh)
  t.alike(await names(tools), ['a.t0', ...META, 'a2a_send'])
  let changes = 0
  const stop = tools.onChange(() => changes++)
  mesh.change(many(40, 'other'))
  t.is(changes, 1)
  stop()
})

test('a tool is found by words with its whole schema, described, and called by name', async (t: Assert) => {
  const tools = exposed([
    echoTool('text.stats', 'Counts lines of a text'),
    echoTool('files.read', 'Reads a file'),
    echoTool('text.join', 'Joins')
  ])
  const inputSchema = { type: 'object', properties: { n: { type: 'integer' } } }
  t.alike(await call(tools, 'a2a_find_tools', { query: 'how do I count the lines of this TEXT?' }), {
    tools: [{ name: 'text__stats', description: 'Counts lines of a text', inputSchema }]
  })
  const described = (await call(tools, 'a2a_describe_tool', { name: 'files.read' })) as {
    name: string
    inputSchema: object
  }
  t.alike([described.name, described.inputSchema], ['files.read', inputSchema])
  t.alike(await call(tools, 'a2a_call_tool', { name: 'files.read', arguments: { n: 1 } }), {
    name: 'files.read',
    args: { n: 1 }
  })
  t.alike(await call(tools, 'a2a_call_tool', { name: 'files.read' }), { name: 'files.read', args: {} })
})

test('a search that finds nothing says how to go on', async (t: Assert) => {
  const { tools, next } = (await call(exposed(many(3)), 'a2a_find_tools', { query: 'zebra' })) as {
    tools: unknown[]
    next: string
  }
  t.alike(tools, [])
  t.ok(next.includes('a2a_list_agents'))
})

test('hits with large schemas are named without them after the first', async (t: Assert) => {
  const tools = exposed(
    ['one', 'two', 'three'].map((name) => echoTool(`zebra.${name}`, `zebra ${'long '.repeat(400)}`))
  )
  const { tools: hits, more } = (await call(tools, 'a2a_find_tools', { query: 'zebra' })) as {
    tools: unknown[]
    more: string[]
  }
  t.alike([hits.length, more.length], [2, 1])
})

test('an absent tool is reported with one of a similar name; wrong arguments are found', async (t: Assert) => {
  const tools = exposed([echoTool('text.stats')])
  await failsWith(t, 'CAPABILITY_NOT_FOUND', () => call(tools, 'a2a_call_tool', { name: 'text.stat' }))
  const error = (await call(tools, 'a2a_describe_tool', { name: 'text.stat' }).catch(
    (failure: unknown) => failure
  )) as Error
  t.ok(error.message.includes('did you mean text.stats'))
  await failsWith(t, 'INVALID_INPUT', () =>
    call(tools, 'a2a_call_tool', { name: 'text.stats', arguments: { n: 'one' } })
  )
})

test('a tool is found by the word of its name, and at most five are listed, also after the tools have changed', async (t: Assert) => {
  const word = fc.stringMatching(/^[a-z]{4,8}[bcdfg]$/)
  const property = fc.asyncProperty(
    fc.uniqueArray(word, { minLength: 1, maxLength: 40 }),
    fc.nat(),
    async (words, pick) => {
      const wanted = words[pick % words.length] ?? ''
      const mesh = new FakeMesh(words.map((one) => echoTool(`x.${one}`)))
      const tools = exposed(mesh)
      const hits = await found(tools, wanted)
      mesh.change(mesh.tools.filter(({ definition }) => definition.name !== `x.${wanted}`))
      const without = await found(tools, wanted)
      mesh.change([...mesh.tools, echoTool(`x.${wanted}`, 'again')])
      const again = await found(tools, wanted)
      const name = `x__${wanted}`
      return hits.length <= 5 && hits[0] === name && !without.includes(name) && again[0] === name
    }
  )
  await holds(t, property, 100)
})
