import test, { type Assert } from 'brittle'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { A2A_TOOLS, a2aTools } from '../../../../src/adapters/mcp/tools/a2a-tools.js'
import { ExposedTools, type MeshSource } from '../../../../src/adapters/mcp/tools/exposed-tools.js'
import { meshInstructions } from '../../../../src/adapters/mcp/tools/instructions.js'
import { publishedTools } from '../../../../src/adapters/mcp/tools/published-tools.js'
import { ToolCatalog } from '../../../../src/adapters/mcp/server/tool-catalog.js'
import { toolsOf } from '../../../../src/adapters/mcp/tools/mesh-tools.js'
import { publishedName } from '../../../../src/adapters/mcp/tools/published-names.js'
import { stemOf } from '../../../../src/adapters/mcp/tools/search-words.js'
import { ToolRegistry } from '../../../../src/adapters/mcp/server/tool-registry.js'
import type { NodeApi } from '../../../../src/ports/node-api.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { corpusAgents } from '../../../support/mcp/tools-corpus/corpus.js'
import { HELD_BACK, QUESTIONS, type Question } from '../../../support/mcp/tools-corpus/questions.js'
import { toolContext } from '../../../support/tool-context.js'

const compileSchema = createSchemaCompiler()
const deps = { api: {} as NodeApi, clock: new ManualClock(), compileSchema, toJson: (value: unknown) => value }

function corpusTools(): ExposedTools {
  const tools = corpusAgents().flatMap((agent) => toolsOf(agent, deps))
  const byName = new Map(tools.map((tool) => [publishedName(tool.definition.name), tool]))
  const mesh: MeshSource = {
    list: () => tools.map(({ definition }) => definition),
    count: () => Promise.resolve(tools.length),
    whole: (definitions) => Promise.resolve(definitions),
    hasFavorites: false,
    favorites: () => Promise.resolve([]),
    get: (name) => byName.get(name)
  }
  const limits = { tools: 30, tokens: 6000 }
  const own = new ToolRegistry(compileSchema)
  for (const tool of a2aTools(deps)) own.register(tool.definition, tool.handler, tool)
  return new ExposedTools({
    own,
    essential: A2A_TOOLS,
    mesh,
    expose: 'auto',
    limits,
    mode: { isSearch: false },
    compileSchema
  })
}

interface Found {
  readonly names: readonly string[]
  readonly tokens: number
}

async function find(tools: ExposedTools, query: string): Promise<Found> {
  const tool = await tools.get('a2a_find_tools')
  const result = (await tool?.handler({ query }, toolContext())) as { tools: { name: string }[] }
  return { names: result.tools.map(({ name }) => name), tokens: JSON.stringify(result).length / 4 }
}

/** The published names of `server.tool`, without the machine. */
function isOneOf(name: string, wanted: readonly string[]): boolean {
  return wanted.some((one) => name.replace(/_at_[^_]+__/, '.') === one)
}

async function score(t: Assert, questions: readonly Question[]): Promise<{ right: number; tokens: number }> {
  const tools = corpusTools()
  let [right, tokens] = [0, 0]
  for (const [question, ...wanted] of questions) {
    const found = await find(tools, question)
    const isRight = found.names.some((name) => isOneOf(name, wanted))
    if (isRight) right++
    else t.comment(`${question}: ${found.names.join(', ')}`)
    tokens += found.tokens / questions.length
    t.ok(found.names.length <= 5, question)
  }
  t.comment(`${right} of ${questions.length}, ${Math.round(tokens)} tokens a search`)
  return { right, tokens }
}

test('of 20 plain questions over 391 tools at least 18 find the right one among five, for 700 tokens at most', async (t: Assert) => {
  const { right, tokens } = await score(t, QUESTIONS)
  t.ok(right >= 18, `${right} of 20`)
  t.ok(tokens <= 700, `${Math.round(tokens)} tokens`)
})

test('of 20 further questions, by which nothing was tuned, at least 17 find the right tool', async (t: Assert) => {
  const { right, tokens } = await score(t, HELD_BACK)
  t.ok(right >= 17, `${right} of 20`)
  t.ok(tokens <= 700, `${Math.round(tokens)} tokens`)
})

test('a mesh with 391 tools costs a model less than 1,500 tokens', async (t: Assert) => {
  const list = await publishedTools(new ToolCatalog([corpusTools()]), 'fitted')()
  const sent = list.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
  const agents = corpusAgents().map(({ capabilities, ...agent }) => ({
    ...agent,
    capabilities: capabilities.map(({ id }) => id)
  }))
  const api = { call: () => Promise.resolve({ agents, problems: [] }) } as unknown as NodeApi
  const instructions = await meshInstructions(api, true)
  const tokens = (JSON.stringify(sent).length + instructions.length) / 4
  t.comment(`${Math.round(tokens)} tokens: ${list.length} tools and ${instructions.length} characters of instructions`)
  t.ok(tokens < 1500, `${Math.round(tokens)}`)
})

test('names of machines and their labels find the tools there', async (t: Assert) => {
  const tools = corpusTools()
  t.alike((await find(tools, 'status of the printer on pi')).names.slice(0, 1), ['printer_at_pi__printer_status'])
  const { names } = await find(tools, 'transcribe with the gpu')
  t.is(names[0], 'audio_at_gpu-box__transcribe')
})

test('a word is the same with its usual endings', (t: Assert) => {
  for (const words of [
    'resize resizes resized resizing',
    'query queries',
    'box boxes',
    'stop stops stopped stopping',
    'container containers',
    'small smaller'
  ])
    t.is(new Set(words.split(' ').map(stemOf)).size, 1, words)
  t.is(new Set('status state stat'.split(' ').map(stemOf)).size, 2)
})
