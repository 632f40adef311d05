import test, { type Assert } from 'brittle'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { MeshTools } from '../../../../src/adapters/mcp/tools/mesh-tools.js'
import { knownDefinitions } from '../../../../src/adapters/mcp/tools/whole-definitions.js'
import type { ToolDefinition } from '../../../../src/adapters/mcp/server/tool.js'
import type { CapabilityDescriptor } from '../../../../src/domain/card/card.js'
import { failsWith } from '../../../support/fails.js'
import { agentDefinition, capability, FakeAgent } from '../../../support/fake-agents.js'
import { type FakeNode, World } from '../../../support/fake-node.js'
import { toolContext } from '../../../support/tool-context.js'

const SCHEMA = {
  type: 'object',
  properties: { text: { type: 'string' } },
  required: ['text'],
  additionalProperties: false
}

interface Mesh {
  readonly world: World
  readonly owner: FakeNode
  readonly members: ReadonlyMap<string, FakeNode>
  readonly tools: MeshTools
  /** The machine that ran a call of a tool with these arguments. */
  ran(name: string, args?: object): Promise<unknown>
}

interface Offered extends Partial<CapabilityDescriptor> {
  readonly version?: string
}

/** An owner `a` and members, each with the agent `text` as given; null: without it. */
async function mesh(t: Assert, here: Offered | null, there: Readonly<Record<string, Offered>>): Promise<Mesh> {
  const world = new World(t)
  const agentsOf = (node: string, offered: Offered | null): FakeAgent[] => {
    if (offered === null) return []
    const { version = '1.0.0', ...rest } = offered
    const capabilities = [capability('text.count', { inputSchema: SCHEMA, ...rest })]
    return [
      new FakeAgent({ ...agentDefinition('text', { capabilities }), version }, () => ({ ok: true, result: node }))
    ]
  }
  const owner = await world.owner({ agents: agentsOf('a', here) })
  const members = new Map<string, FakeNode>()
  for (const [name, offered] of Object.entries(there)) {
    const member = await world.member(name, { agents: agentsOf(name, offered) })
    await world.link(owner, member)
    members.set(name, member)
  }
  const deps = { clock: world.clock, compileSchema: createSchemaCompiler(), toJson: (value: unknown) => value }
  const tools = new MeshTools({ api: owner.api(), ...deps, known: knownDefinitions(), chosen: null, favorites: [] })
  const ran = async (name: string, args = {}): Promise<unknown> => {
    const found = await tools.get(name)
    const all = { text: 'x', ...args }
    t.alike(found?.validator(all), [])
    const result = found?.handler(all, toolContext())
    result?.catch(() => {})
    await world.settle()
    return await result
  }
  return { world, owner, members, tools, ran }
}

function listed(definitions: readonly ToolDefinition[]): unknown[] {
  return definitions.map(({ name, inputSchema: { properties, required } }) => [
    name,
    (properties as { node?: { enum: unknown } }).node?.enum ?? null,
    (required as readonly string[]).includes('node')
  ])
}

const READ = { sideEffect: 'read' } as const

test('a tool that several machines offer in one version is listed once, with the argument node', async (t: Assert) => {
  const here = await mesh(t, READ, { b: READ, c: READ })
  t.alike(listed(await here.tools.list()), [['text.count', ['owner', 'b', 'c'].sort(), false]])
  t.is(await here.tools.count(), 1)
  t.is(await here.ran('text.count'), 'a')
  t.is(await here.ran('text.count', { node: 'c' }), 'c')
  t.is(await here.ran('text__count', { node: here.members.get('b')?.id }), 'b')
  t.is(await here.ran('text@c.count'), 'c', 'the tool of each machine is called by its own name, too')
})

test('a tool of other machines alone needs the argument, so that none attracts calls by a copy of it', async (t: Assert) => {
  const { tools, ran } = await mesh(t, null, { b: READ, c: READ })
  t.alike(listed(await tools.list()), [['text.count', ['b', 'c'], true]])
  t.is((await failsWith(t, 'INVALID_INPUT', () => ran('text.count'))).message, 'name the machine in "node": b, c')
  t.is(await ran('text.count', { node: 'c' }), 'c')
  const unknown = await failsWith(t, 'INVALID_INPUT', () => ran('text.count', { node: 'z' }))
  t.is(unknown.message, '"node" is none of b, c')
})

test('tools of other versions, of other schemas, or with an argument node of their own stay apart', async (t: Assert) => {
  const node = { ...SCHEMA, properties: { text: { type: 'string' }, node: { type: 'string' } } }
  for (const [here, there] of [
    [READ, { ...READ, version: '2.0.0' }],
    [READ, { ...READ, description: 'another' }],
    [READ, { ...READ, inputSchema: { ...SCHEMA, title: 'another' } }],
    [
      { ...READ, inputSchema: node },
      { ...READ, inputSchema: node }
    ]
  ] as const) {
    const { tools, ran } = await mesh(t, here, { b: there })
    t.alike((await tools.list()).map(({ name }) => name).sort(), ['text.count', 'text@b.count'], JSON.stringify(there))
    t.is(await ran('text.count'), 'a')
    t.is(await ran('text@b.count'), 'b')
  }
  const two = await mesh(t, { ...READ, version: '2.0.0' }, { b: READ, c: READ })
  t.is((await two.tools.list()).length, 3, 'the name is that of this version here')
  const newer = { ...READ, version: '2.0.0' }
  const mixed = await mesh(t, READ, { b: READ, c: newer, d: newer })
  t.alike(
    listed(await mixed.tools.list()),
    [
      ['text.count', ['owner', 'b'].sort(), false],
      ['text@c.count', null, false],
      ['text@d.count', null, false]
    ],
    'others with another version divide no group of this machine'
  )
  const pairs = await mesh(t, null, {
    b: READ,
    c: READ,
    d: { ...READ, version: '2.0.0' },
    e: { ...READ, version: '2.0.0' }
  })
  t.is((await pairs.tools.list()).length, 4)
})

test('a machine that goes away changes nothing of the list, and a call that names it says since when', async (t: Assert) => {
  const { world, owner, members, tools, ran } = await mesh(t, READ, { b: READ })
  const before = JSON.stringify(await tools.list())
  const stop = tools.onChange(() => {})
  world.net.disconnect(owner.id, members.get('b')?.id ?? '')
  await world.pass(120_000, 1000)
  t.is(JSON.stringify(await tools.list()), before)
  t.is(await tools.count(), 1)
  const { message } = await failsWith(t, 'PEER_OFFLINE', () => ran('text.count', { node: 'b' }))
  t.ok(message.startsWith('b, the node of text@b, is offline since '), message)
  t.is(await ran('text.count'), 'a')
  stop()
  await world.settle()
})
