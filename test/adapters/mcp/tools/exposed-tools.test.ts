import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { type Expose, ExposedTools, LISTED_MAX } from '../../../../src/adapters/mcp/tools/exposed-tools.js'
import type { RegisteredTool, ToolSource } from '../../../../src/adapters/mcp/server/tool.js'
import { failsWith } from '../../../support/fails.js'
import { toolContext } from '../../../support/tool-context.js'
import { holds } from '../../../support/holds.js'

const META = ['a2a_call_tool', 'a2a_describe_tool', 'a2a_find_tools']
const compileSchema = createSchemaCompiler()

function echoTool(name: string, description = ''): RegisteredTool {
  const inputSchema = { type: 'object', properties: { n: { type: 'integer' } } }
  return {
    definition: { name, description, inputSchema },
    validator: compileSchema(inputSchema),
    handler: (args) => Promise.resolve({ name, args })
  }
}

function exposed(tools: readonly RegisteredTool[], expose: Expose = 'auto'): ExposedTools {
  const source: ToolSource = {
    list: () => tools.map(({ definition }) => definition),
    get: (name) => tools.find(({ definition }) => definition.name === name)
  }
  return new ExposedTools({ source, expose, compileSchema })
}

async function names(tools: ExposedTools): Promise<string[]> {
  return (await tools.list()).map(({ name }) => name).sort()
}

async function call(tools: ExposedTools, name: string, args: Readonly<Record<string, unknown>>): Promise<unknown> {
  const tool = await tools.get(name)
  if (tool === undefined) throw new Error(`no tool ${name}`)
  return await tool.handler(args, toolContext())
}

test('a list of up to a hundred tools is complete, a longer one has three tools that find, describe and call', async (t: Assert) => {
  const many = (count: number): RegisteredTool[] => Array.from({ length: count }, (_, at) => echoTool(`a.t${at}`))
  t.is((await names(exposed(many(LISTED_MAX)))).length, LISTED_MAX + 3)
  t.alike(await names(exposed(many(LISTED_MAX + 1))), META)
  t.is((await names(exposed(many(LISTED_MAX + 1), 'all'))).length, LISTED_MAX + 4)
  t.alike(await names(exposed(many(1), 'search')), META)
  t.ok(await exposed(many(LISTED_MAX + 1)).get('a.t7'), 'all can be called')
})

test('a tool is found by words, described with its schema and called by name', async (t: Assert) => {
  const tools = exposed([
    echoTool('text.stats', 'Counts lines of a text'),
    echoTool('files.read', 'Reads a file'),
    echoTool('text.join', 'Joins')
  ])
  const { tools: hits } = (await call(tools, 'a2a_find_tools', { query: 'count TEXT lines' })) as {
    tools: { name: string }[]
  }
  t.alike(
    hits.map(({ name }) => name),
    ['text.stats', 'text.join']
  )
  const described = (await call(tools, 'a2a_describe_tool', { name: 'files.read' })) as {
    name: string
    inputSchema: object
  }
  t.alike(
    [described.name, described.inputSchema],
    ['files.read', { type: 'object', properties: { n: { type: 'integer' } } }]
  )
  t.alike(await call(tools, 'a2a_call_tool', { name: 'files.read', arguments: { n: 1 } }), {
    name: 'files.read',
    args: { n: 1 }
  })
  t.alike(await call(tools, 'a2a_call_tool', { name: 'files.read' }), { name: 'files.read', args: {} })
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

test('every tool is found by any word of its name, and at most twenty are listed', async (t: Assert) => {
  const word = fc.stringMatching(/^[a-z]{3,8}$/)
  await holds(
    t,
    fc.asyncProperty(fc.uniqueArray(word, { minLength: 1, maxLength: 40 }), fc.nat(), async (words, pick) => {
      const wanted = words[pick % words.length] ?? ''
      const tools = exposed(words.map((one) => echoTool(`0.${one}`)))
      const { tools: hits } = (await call(tools, 'a2a_find_tools', { query: wanted })) as { tools: { name: string }[] }
      const containing = words.filter((one) => one.includes(wanted)).length
      return (
        hits.length <= 20 && hits.length === Math.min(20, containing) && hits.every(({ name }) => name.includes(wanted))
      )
    }),
    100
  )
})
