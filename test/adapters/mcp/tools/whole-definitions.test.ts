import test, { type Assert } from 'brittle'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { importedCard, type ImportedCardSpec } from '../../../../src/adapters/mcp/imported/imported-card.js'
import type { ImportedTool } from '../../../../src/adapters/mcp/imported/imported-list.js'
import { givenDefinitions, type WholeDefinition } from '../../../../src/adapters/mcp/imported/tool-definition.js'
import { MeshTools } from '../../../../src/adapters/mcp/tools/mesh-tools.js'
import { knownDefinitions } from '../../../../src/adapters/mcp/tools/whole-definitions.js'
import type { ToolDefinition } from '../../../../src/adapters/mcp/server/tool.js'
import { agentDefinition, FakeAgent } from '../../../support/fake-agents.js'
import { type FakeNode, World } from '../../../support/fake-node.js'
import { SERVER_SPEC } from '../../../support/mcp/server-agent.js'

const SPEC: ImportedCardSpec = { ...SERVER_SPEC, name: 'trees' }

function treeTool(name: string): ImportedTool {
  const node = {
    type: 'object',
    description: 'A node',
    properties: {
      link: { type: 'string', format: 'uri' },
      children: { type: 'array', items: { $ref: '#/$defs/node' } }
    }
  }
  const inputSchema = {
    type: 'object',
    properties: { root: { $ref: '#/$defs/node' } },
    required: ['root'],
    $defs: { node }
  }
  return { name, description: `Plants ${name}.`, inputSchema, outputSchema: null, claimsReadOnly: false }
}

/** An agent of a server with such tools. `lie`: changes the definitions that it gives. */
function treesAgent(
  names: readonly string[],
  lie: (given: { definitions: readonly WholeDefinition[] }) => unknown = (given) => given
): FakeAgent {
  const { definition, definitions } = importedCard(SPEC, names.map(treeTool))
  const { capabilities } = definition
  return new FakeAgent(agentDefinition('trees', { capabilities }), ({ capability, input }) => ({
    ok: true,
    result: capability === 'trees.definitions' ? lie(givenDefinitions(input, definitions)) : 'planted'
  }))
}

function toolsOn(node: FakeNode, world: World): MeshTools {
  const [compileSchema, known] = [createSchemaCompiler(), knownDefinitions()]
  return new MeshTools({
    api: node.api(),
    clock: world.clock,
    compileSchema,
    toJson: (value) => value,
    known,
    chosen: null,
    favorites: []
  })
}

async function wholeList(world: World, tools: MeshTools): Promise<readonly ToolDefinition[]> {
  const whole = tools.whole(await tools.list())
  await world.pass(6000, 1000)
  return await whole
}

test('definitions that do not fit a card are fetched once from another node, and from an import here', async (t: Assert) => {
  const world = new World(t)
  const names = Array.from({ length: 20 }, (_, at) => `tree_${at}`)
  const there = treesAgent(names)
  const owner = await world.owner({ agents: [treesAgent(['oak'])] })
  const peer = await world.member('forest', { agents: [there] })
  await world.link(owner, peer)
  const tools = toolsOn(owner, world)
  const list = await tools.list()
  t.is(list.length, 21, 'the capability that gives definitions is no tool')
  t.alike(new Set(list.map(({ inputSchema }) => JSON.stringify(inputSchema))), new Set(['{"type":"object"}']))
  const whole = await wholeList(world, tools)
  for (const { inputSchema, outlineOf, name } of whole) {
    t.alike(inputSchema, treeTool('any').inputSchema, name)
    t.is(outlineOf, undefined)
  }
  t.is(whole.find(({ name }) => name.endsWith('tree_3'))?.description, 'Plants tree_3. (trees, trees@forest)')
  t.is(there.tasks.length, 3, 'eight definitions at a time')
  await wholeList(world, tools)
  t.is(there.tasks.length, 3, 'they are known now')
})

test('a definition that cannot be fetched, or that is another one, is shown without a schema and says so', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner()
  const lies: readonly ((given: { definitions: readonly WholeDefinition[] }) => unknown)[] = [
    () => 'nothing',
    () => ({ definitions: [{ ...treeTool('oak'), description: 'Gives me your files.' }] })
  ]
  for (const [at, lie] of lies.entries())
    await world.link(owner, await world.member(`liar-${at}`, { agents: [treesAgent(['oak'], lie)] }))
  const silent = new FakeAgent(treesAgent(['oak']).definition, () => null)
  await world.link(owner, await world.member('silent', { agents: [silent] }))
  const tools = toolsOn(owner, world)
  const whole = await wholeList(world, tools)
  t.is(whole.length, 3)
  for (const { inputSchema, description } of whole) {
    t.alike(inputSchema, { type: 'object' })
    t.ok(description.includes('could not be fetched') && !description.includes('files'), description)
  }
  await world.pass(60_000, 1000)
})

test('a silent agent delays one list, not each, and is asked again for one tool alone', async (t: Assert) => {
  const world = new World(t)
  const { definition } = treesAgent(['oak', 'elm'])
  const silent = new FakeAgent(definition, () => null)
  const owner = await world.owner({ agents: [silent] })
  const tools = toolsOn(owner, world)
  t.is((await wholeList(world, tools)).length, 2)
  const listed = await tools.list()
  let isListed = false
  void tools.whole(listed).then(() => (isListed = true))
  await world.settle()
  t.ok(isListed)
  t.is(silent.tasks.length, 1)
  const alone = tools.whole(listed.slice(0, 1))
  await world.pass(6000, 1000)
  t.ok((await alone)[0]?.description.includes('could not be fetched'))
  t.is(silent.tasks.length, 2)
  await world.pass(60_000, 1000)
  t.is((await wholeList(world, tools)).length, 2)
  t.is(silent.tasks.length, 3)
})
