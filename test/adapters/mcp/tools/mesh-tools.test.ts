import test, { type Assert } from 'brittle'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { createStarters } from '../../../../src/adapters/agents/starters/starters.js'
import { NOT_GRANTED } from '../../../../src/domain/card/card.js'
import { MeshResources } from '../../../../src/adapters/mcp/resources/mesh-resources.js'
import { MeshTools, type MeshToolsDeps } from '../../../../src/adapters/mcp/tools/mesh-tools.js'
import { ToolCatalog } from '../../../../src/adapters/mcp/server/tool-catalog.js'
import { ToolRegistry } from '../../../../src/adapters/mcp/server/tool-registry.js'
import { structuredErrorOf } from '../../../../src/adapters/mcp/server/structured-error.js'
import type { RegisteredTool } from '../../../../src/adapters/mcp/server/tool.js'
import { knownDefinitions } from '../../../../src/adapters/mcp/tools/whole-definitions.js'
import type { Principal } from '../../../../src/ports/node-api.js'
import { approvalScene, firstWaiting } from '../../../support/approval-scene.js'
import { failsWith } from '../../../support/fails.js'
import { capability, echo, FakeAgent, agentDefinition } from '../../../support/fake-agents.js'
import { type FakeNode, World } from '../../../support/fake-node.js'
import { toolContext } from '../../../support/tool-context.js'

function toolsOn(
  node: FakeNode,
  world: World,
  principal: Partial<Principal> = {},
  { chosen = null, favorites = [] }: Partial<Pick<MeshToolsDeps, 'chosen' | 'favorites'>> = {}
): MeshTools {
  return new MeshTools({
    api: node.api(principal),
    clock: world.clock,
    compileSchema: createSchemaCompiler(),
    toJson: (value) => value,
    known: knownDefinitions(),
    chosen,
    favorites
  })
}

async function names(tools: MeshTools): Promise<string[]> {
  return (await tools.list()).map(({ name }) => name).sort()
}

async function tool(tools: MeshTools, name: string): Promise<RegisteredTool> {
  const found = await tools.get(name)
  if (found === undefined) throw new Error(`no tool ${name}`)
  return found
}

/** An owner with `text`, a member with another `text` and a sandboxed agent. */
async function scene(
  t: Assert
): Promise<{ world: World; owner: FakeNode; peer: FakeNode; here: FakeAgent; there: FakeAgent }> {
  const world = new World(t)
  const here = echo('text', { capabilities: [capability('text.stats'), capability('count'), capability('text.count')] })
  const there = echo('text')
  const owner = await world.owner({ agents: [here] })
  const peer = await world.member('gpu-box', {
    agents: [there, echo('mcp-tool', { capabilities: [capability('mcp_mcp-tool_run')] })]
  })
  await world.link(owner, peer)
  return { world, owner, peer, here, there }
}

test('agents of this node give agent.tool, those of others agent@node.tool, and equal names stay apart', async (t: Assert) => {
  const { world, owner, peer } = await scene(t)
  t.alike(await names(toolsOn(owner, world)), [
    'mcp-tool@gpu-box.mcp_mcp-tool_run',
    'text.count',
    'text.stats',
    'text.text.count',
    'text@gpu-box.do'
  ])
  t.alike(await names(toolsOn(peer, world)), [
    'mcp_mcp-tool_run',
    'text.do',
    'text@owner.count',
    'text@owner.stats',
    'text@owner.text.count'
  ])
})

test('a tool is called by its canonical or its published name, and gives what its agent gives', async (t: Assert) => {
  const { world, owner, here, there } = await scene(t)
  const tools = toolsOn(owner, world)
  const context = toolContext()
  for (const name of ['text.stats', 'text__stats'])
    t.alike(await (await tool(tools, name)).handler({ a: 1 }, context), { a: 1 })
  const far = (await tool(tools, 'text_at_gpu-box__do')).handler({ b: 2 }, context)
  await world.settle()
  t.alike(await far, { b: 2 })
  t.alike([here.tasks.length, there.tasks.length], [2, 1])
  t.is(await tools.get('text.nothing'), undefined)
})

test('a tool is called by its capability, and by its address as a2a_list_agents prints it, on this node too', async (t: Assert) => {
  const { world, owner } = await scene(t)
  const tools = toolsOn(owner, world)
  const named = async (alias: string): Promise<string | undefined> => (await tools.alias(alias))?.definition.name
  t.is(await named('text@owner.text.stats'), 'text.stats')
  t.is(await named('text.text.stats'), 'text.stats', 'the same without the node')
  t.is(await named('stats'), 'text.stats')
  t.is(await named('text@gpu-box.text.do'), 'text@gpu-box.do')
  t.is(await named('text@gpu-box.text.stats'), undefined, 'no such capability there')
  t.is(await named('mcp-tool@gpu-box.run'), 'mcp-tool@gpu-box.mcp_mcp-tool_run')
  t.is(await named('mcp-tool_at_gpu-box__mcp_mcp-tool_run'), 'mcp-tool@gpu-box.mcp_mcp-tool_run', 'an earlier name')
  t.is(await named('run'), 'mcp-tool@gpu-box.mcp_mcp-tool_run')
})

test('an alias of tools of several agents is that of this node, and else of none', async (t: Assert) => {
  const world = new World(t)
  const here = echo('text', { capabilities: [capability('text.do')] })
  const owner = await world.owner({ agents: [here] })
  for (const name of ['b', 'c']) {
    const other = echo('more', { capabilities: [capability('more.do', { description: `of ${name}` })] })
    await world.link(owner, await world.member(name, { agents: [echo('text'), other] }))
  }
  const tools = toolsOn(owner, world)
  t.is((await tools.alias('text.do'))?.definition.name, 'text.do')
  t.is((await tools.alias('do'))?.definition.name, 'text.do')
  t.is(await tools.alias('more.do'), undefined)
  t.is((await tools.alias('more@c.do'))?.definition.name, 'more@c.do')
})

test('a toolset chooses tools by any of their names, in lists, calls and counts', async (t: Assert) => {
  const { world, owner } = await scene(t)
  const chosen = async (...globs: readonly string[]): Promise<string[]> =>
    await names(toolsOn(owner, world, {}, { chosen: globs }))
  t.alike(await chosen('text.*'), ['text.count', 'text.stats', 'text.text.count', 'text@gpu-box.do'])
  t.alike(await chosen('*@gpu-box.*'), ['mcp-tool@gpu-box.mcp_mcp-tool_run', 'text@gpu-box.do'])
  t.alike(await chosen('mcp-tool@gpu-box.run', 'stats'), ['mcp-tool@gpu-box.mcp_mcp-tool_run', 'text.stats'])
  t.alike(await chosen('nothing'), [])
  const tools = toolsOn(owner, world, {}, { chosen: ['text@owner.*'] })
  t.is(await tools.count(), 3)
  t.is(await tools.get('text@gpu-box.do'), undefined)
  t.ok(await tools.get('text.stats'))
})

test('favorites are tools by any of their names, offline ones too', async (t: Assert) => {
  const { world, owner, peer } = await scene(t)
  const chosen = async (...favorites: readonly string[]): Promise<string[]> =>
    (await toolsOn(owner, world, {}, { favorites }).favorites()).map(({ name }) => name).sort()
  t.alike(await chosen(), [])
  t.alike(await chosen('stats', 'mcp-tool@gpu-box.*'), ['mcp-tool@gpu-box.mcp_mcp-tool_run', 'text.stats'])
  world.net.disconnect(owner.id, peer.id)
  await world.pass(120_000, 1000)
  t.alike(await chosen('stats', 'mcp-tool@gpu-box.*'), ['mcp-tool@gpu-box.mcp_mcp-tool_run', 'text.stats'])
})

test('a capability without a grant is not listed or counted, and a call says what is missing', async (t: Assert) => {
  const world = new World(t)
  const capabilities = [capability('files.read', { tags: ['files', NOT_GRANTED] }), capability('files.list')]
  const files = new FakeAgent(agentDefinition('files', { capabilities }), () => ({
    ok: false,
    code: 'TASK_FAILED',
    message: 'nothing is granted'
  }))
  const tools = toolsOn(await world.owner({ agents: [files] }), world)
  t.alike(await names(tools), ['files.list'])
  t.is(await tools.count(), 1)
  await failsWith(t, 'TASK_FAILED', async () => await (await tool(tools, 'files.read')).handler({}, toolContext()))
  const listed = (grants: readonly string[], writeGrants: readonly string[]): string[] =>
    createStarters({ grants, writeGrants, clock: world.clock })
      .flatMap(({ definition }) => definition.capabilities)
      .filter(({ tags = [] }) => !tags.includes(NOT_GRANTED))
      .map(({ id }) => id)
  t.alike(listed([], []), ['host.report', 'text.stats'])
  t.absent(listed(['/a'], []).includes('files.write'))
  t.ok(listed([], ['/a']).includes('files.append'))
  t.absent(listed([], ['/a']).includes('files.read'))
})

test('an alias never takes the name of a tool of the node', async (t: Assert) => {
  const { world, owner } = await scene(t)
  owner.source.set([echo('evil', { capabilities: [capability('admin__registerTool'), capability('health')] })])
  await world.pass(2000)
  const own = new ToolRegistry(createSchemaCompiler())
  for (const name of ['admin/registerTool', 'health'])
    own.register({ name, description: '', inputSchema: { type: 'object' } }, () => Promise.resolve(null))
  const catalog = new ToolCatalog([own, toolsOn(owner, world)])
  t.is((await catalog.find('admin__registerTool'))?.definition.name, 'admin/registerTool')
  t.is((await catalog.find('health'))?.definition.name, 'health')
  t.is((await catalog.find('evil@owner.health'))?.definition.name, 'evil.health')
})

test('a new agent appears in the list, an offline one disappears, and both changes are reported', async (t: Assert) => {
  const { world, owner, peer } = await scene(t)
  const tools = toolsOn(owner, world)
  let changes = 0
  const stop = tools.onChange(() => changes++)
  await world.settle()
  t.is(await tools.get('late.do'), undefined)
  owner.source.set([echo('late')])
  await world.pass(2000)
  t.ok(await tools.get('late.do'))
  t.is(changes, 1)
  world.net.disconnect(owner.id, peer.id)
  await world.pass(120_000, 1000)
  t.alike(await names(tools), ['late.do'])
  t.ok(changes > 1)
  stop()
  await world.settle()
})

test('a call of a tool of an absent node fails at once, says since when, and names tools for the same work', async (t: Assert) => {
  const { world, owner, peer } = await scene(t)
  const other = await world.member('nas', { agents: [echo('words', { capabilities: [capability('text.do')] })] })
  await world.link(owner, other)
  const tools = toolsOn(owner, world)
  const stop = tools.onChange(() => {})
  world.net.disconnect(owner.id, peer.id)
  await world.pass(120_000, 1000)
  const { peers } = await owner.api().call('peers.list', {})
  const since = peers.find(({ name }) => name === 'gpu-box')?.lastSeenAt ?? null
  t.ok(since !== null)
  const errorOf = async (found: RegisteredTool | undefined): Promise<ReturnType<typeof structuredErrorOf> | null> =>
    found === undefined
      ? null
      : await found.handler({}, toolContext()).then(
          () => null,
          (error: unknown) => structuredErrorOf(error)
        )
  for (const found of [
    await tools.get('text@gpu-box.do'),
    await tools.get('text_at_gpu-box__do'),
    await tools.alias('text@gpu-box.text.do')
  ]) {
    const error = await errorOf(found)
    t.is(error?.code, 'PEER_OFFLINE')
    t.is(error?.message, `gpu-box, the node of text@gpu-box, is offline since ${since}; call words_at_nas__text__do`)
    t.alike(error?.details?.['data'], { node: 'gpu-box', since, alternatives: ['words_at_nas__text__do'] })
  }
  const alone = await errorOf(await tools.get('mcp-tool@gpu-box.mcp_mcp-tool_run'))
  t.ok(alone?.message.endsWith('; no other agent offers this now'), alone?.message)
  const blind = await errorOf(await toolsOn(owner, world, { kind: 'mcp', agents: ['mcp-*'] }).get('run@gpu-box.do'))
  t.is(blind, null, 'a caller that does not see the agent learns nothing')
  stop()
  await world.settle()
})

test('a call is checked by the schema that the capability has now, though nobody listed the tools again', async (t: Assert) => {
  const { world, owner } = await scene(t)
  const takes = (key: string): FakeAgent => {
    const inputSchema = { type: 'object', required: [key], properties: { [key]: { type: 'string' } } }
    return echo('text', { capabilities: [capability('text.stats', { inputSchema })] })
  }
  const tools = toolsOn(owner, world)
  const stop = tools.onChange(() => {})
  const faultsOf = async (key: string): Promise<number> =>
    (await tool(tools, 'text.stats')).validator({ [key]: 'x' }).length
  for (const [now, before] of [
    ['a', 'z'],
    ['b', 'a']
  ] as const) {
    owner.source.set([takes(now)])
    await world.pass(2000)
    t.is(await faultsOf(now), 0)
    t.is(await faultsOf(before), 1)
  }
  stop()
  await world.settle()
})

test('an agent hidden from a caller is not offered, and a call beyond its rights is refused by the router', async (t: Assert) => {
  const world = new World(t)
  const secret = echo('secret', { sandboxId: 'lab' })
  const owner = await world.owner({ agents: [secret, echo('open')] })
  const peer = await world.member('peer', { agents: [echo('far')] })
  await world.link(owner, peer)
  t.alike(await names(toolsOn(owner, world, { kind: 'mcp', sandboxId: 'lab' })), ['secret.do'])
  const weak = toolsOn(owner, world, { kind: 'mcp', tier: 3 })
  const call = (await tool(weak, 'far@peer.do')).handler({}, toolContext())
  await failsWith(t, 'ESCALATION_REQUIRED', () => call)
  const reader = toolsOn(owner, world, { kind: 'mcp', scopes: ['read'] })
  await failsWith(t, 'FORBIDDEN', async () => await (await tool(reader, 'open.do')).handler({}, toolContext()))
})

test('a call that waits for a person says so on the way, and a denial is its error', async (t: Assert) => {
  const { world, owner, peer } = await approvalScene(t)
  const tools = toolsOn(owner, world)
  const context = toolContext()
  const allowed = (await tool(tools, 'text@peer.do')).handler({ n: 1 }, context)
  await world.settle()
  t.ok(
    context.told.some((line) => line.startsWith('waiting for approval')),
    context.told.join(' | ')
  )
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer) })
  await world.settle()
  t.alike(await allowed, { n: 1 })
  const asked = await tool(tools, 'text@peer.do')
  const deniedContext = toolContext()
  const denied = failsWith(t, 'POLICY_DENIED', () => asked.handler({ n: 2 }, deniedContext))
  await world.settle()
  await peer.api().call('approvals.deny', { id: await firstWaiting(peer) })
  await world.settle()
  await denied
  t.ok(deniedContext.told.at(-1)?.startsWith('waiting for approval'), 'a call that is denied was never under way')
})

test('a caller with the right to call agents and without the right to look at them has an empty list, and no error', async (t: Assert) => {
  const { world, owner } = await scene(t)
  t.alike(await names(toolsOn(owner, world, { scopes: ['send'] })), [])
})

test('reports of an agent reach the client as rising progress', async (t: Assert) => {
  const world = new World(t)
  const slow = new FakeAgent(agentDefinition('slow'), () => null)
  const owner = await world.owner()
  const peer = await world.member('peer', { agents: [slow] })
  await world.link(owner, peer)
  const reports: { readonly progress: number; readonly total?: number; readonly message?: string }[] = []
  const asked = await tool(toolsOn(owner, world), 'slow@peer.do')
  const call = asked.handler({}, { ...toolContext(), progress: (report) => void reports.push(report) })
  await world.settle()
  reports.length = 0
  for (const data of [
    { progress: 1, total: 4, message: 'one' },
    { progress: 1, total: 4 },
    { progress: 2 ** 52 },
    'a text',
    { progress: 3, total: 4 }
  ]) {
    slow.open[0]?.run.progress(data)
    await world.pass(500)
  }
  slow.finish('done')
  await world.settle()
  t.is(await call, 'done')
  t.alike(
    reports.map(({ progress, total, message }) => [Math.floor(progress), total, message]),
    [
      [1, 4, 'one'],
      [1, 4, undefined],
      [1, undefined, undefined],
      [1, undefined, 'a text'],
      [3, 4, undefined]
    ]
  )
  for (const [at, { progress }] of reports.entries()) t.ok(at === 0 || progress > (reports[at - 1]?.progress ?? 0))
})

test('a client is warned against a repeat when unrepeatable work has an unknown outcome', async (t: Assert) => {
  for (const idempotent of [true, false]) {
    const world = new World(t)
    const slow = new FakeAgent(
      agentDefinition('slow', { capabilities: [capability('slow.do', { idempotent })] }),
      () => null
    )
    const owner = await world.owner()
    const peer = await world.member('peer', { agents: [slow] })
    await world.link(owner, peer)
    const asked = await tool(toolsOn(owner, world), 'slow@peer.do')
    const failed = asked.handler({}, toolContext()).then(
      () => null,
      (error: unknown) => structuredErrorOf(error)
    )
    await world.settle()
    await world.pass(31_000, 1000)
    const error = await failed
    t.alike([error?.code, error?.details?.retryable], ['TIMEOUT', idempotent])
  }
})

test('a client that gives a call up has it canceled at the agent', async (t: Assert) => {
  const world = new World(t)
  const slow = new FakeAgent(agentDefinition('slow'), () => null)
  const owner = await world.owner()
  const peer = await world.member('peer', { agents: [slow] })
  await world.link(owner, peer)
  const context = toolContext()
  const asked = await tool(toolsOn(owner, world), 'slow@peer.do')
  const call = failsWith(t, 'CANCELED', () => asked.handler({}, context))
  await world.settle()
  t.is(slow.open.length, 1)
  context.abort.abort()
  await world.settle()
  t.is(slow.open.length, 0)
  await call
})

test('an input that can be no object is given as the argument `input`', async (t: Assert) => {
  const world = new World(t)
  const lines = echo('lines', { capabilities: [capability('lines.of', { inputSchema: { type: 'string' } })] })
  const owner = await world.owner({ agents: [lines] })
  const found = await tool(toolsOn(owner, world), 'lines.of')
  t.is(found.validator({ input: 'a' }).length, 0)
  t.is(found.validator({ input: 1 }).length, 1)
  t.is(await found.handler({ input: 'a' }, toolContext()), 'a')
})

test('references in the schema of an input that is no object lead where they led', async (t: Assert) => {
  const world = new World(t)
  const inputSchema = {
    type: 'array',
    items: { $ref: '#/definitions/point' },
    definitions: { point: { type: 'number' } }
  }
  const listed = echo('list', { capabilities: [capability('sum', { inputSchema }), capability('other')] })
  const owner = await world.owner({ agents: [listed] })
  const tools = toolsOn(owner, world)
  t.alike(await names(tools), ['list.other', 'list.sum'], 'one schema hides no tool')
  const { validator } = await tool(tools, 'list.sum')
  t.is(validator({ input: [1, 2] }).length, 0)
  t.is(validator({ input: ['x'] }).length, 1)
})

test('a schema of another node is not run here: that node checks by it, and says what does not fit', async (t: Assert) => {
  const world = new World(t)
  const inputSchema = { type: 'object', properties: { a: { type: 'string', pattern: '^(b+)+$' } } }
  const agent = (): FakeAgent => echo('text', { capabilities: [capability('text.do', { inputSchema })] })
  const owner = await world.owner({ agents: [agent()] })
  const peer = await world.member('peer', { agents: [agent()] })
  await world.link(owner, peer)
  const tools = toolsOn(owner, world)
  t.is((await tool(tools, 'text.do')).validator({ a: '!' }).length, 1)
  const far = await tool(tools, 'text@peer.do')
  t.alike(far.validator({ a: '!' }), [])
  const refused = failsWith(t, 'INVALID_INPUT', () => far.handler({ a: '!' }, toolContext()))
  await world.settle()
  await refused
})

test('text of others is shown without what a terminal obeys', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner()
  const peer = await world.member('peer', {
    agents: [echo('text', { capabilities: [capability('text.do', { description: 'red \u001b[31m' })] })]
  })
  await world.link(owner, peer)
  const [definition] = await toolsOn(owner, world).list()
  t.is(definition?.description, 'red [31m (text, text@peer)')
  const api = peer.api()
  await api.call('swarm.start', { goal: `long \u001b[31m${'x'.repeat(1000)}`, capability: 'text.do', strategy: 'each' })
  await world.settle()
  const resources = await new MeshResources({ api, clock: world.clock, toJson: (value) => value }).list()
  const { name = '' } = resources.find(({ uri }) => uri.startsWith('a2a://swarms/')) ?? {}
  t.ok(name.includes('long [31m') && !name.includes('\u001b') && name.length < 400, name)
})

test('arguments without the input that a capability of another node takes are refused before they are sent', async (t: Assert) => {
  const world = new World(t)
  const list = { ...capability('sum'), inputSchema: { type: 'array' } }
  const [here, there] = [echo('near', { capabilities: [list] }), echo('far', { capabilities: [list] })]
  const owner = await world.owner({ agents: [here] })
  await world.link(owner, await world.member('gpu-box', { agents: [there] }))
  const tools = toolsOn(owner, world)
  for (const name of ['near.sum', 'far@gpu-box.sum']) {
    const { validator } = await tool(tools, name)
    t.alike(validator({}), [{ path: '', message: 'must have "input"' }], name)
    t.alike(validator({ input: [1] }), [], name)
  }
})

test('a failure without effects that may succeed later is reported as such, here and from another node', async (t: Assert) => {
  const world = new World(t)
  const busy = (id: string): FakeAgent =>
    new FakeAgent(agentDefinition(id), () => ({
      ok: false,
      code: 'TASK_FAILED',
      message: 'busy',
      retryable: true,
      data: { retryAfter: 12 }
    }))
  const owner = await world.owner({ agents: [busy('near')] })
  await world.link(owner, await world.member('gpu-box', { agents: [busy('far')] }))
  const tools = toolsOn(owner, world)
  for (const name of ['near.do', 'far@gpu-box.do']) {
    const { handler } = await tool(tools, name)
    const ended = handler({}, toolContext()).then(
      () => null,
      (error: unknown) => structuredErrorOf(error)
    )
    await world.settle()
    const { code, retryable, data } = (await ended)?.details ?? {}
    t.alike([code, retryable, data], ['TASK_FAILED', true, { retryAfter: 12 }], name)
  }
})
