import test, { type Assert } from 'brittle'
import { NO_CONTEXT } from '../../../../src/adapters/mcp/imported/context-index.js'
import { MeshContext } from '../../../../src/adapters/mcp/resources/mesh-context.js'
import { ServerPrompts } from '../../../../src/adapters/mcp/resources/server-prompts.js'
import { ServerResources } from '../../../../src/adapters/mcp/resources/server-resources.js'
import { SeenLinks } from '../../../../src/adapters/mcp/resources/seen-links.js'
import { NO_CLIENT } from '../../../../src/adapters/mcp/tools/client-ask.js'
import { failsWith } from '../../../support/fails.js'
import { capability, echo, FakeAgent } from '../../../support/fake-agents.js'
import { type FakeNode, World } from '../../../support/fake-node.js'
import { contentsAnswer, serverAgent } from '../../../support/mcp/server-agent.js'

const NEVER = new AbortController().signal
const ONE = { uri: 'notes://one', name: 'one' }
const DENY = 'rules:\n  - capability: notes.context\n    decision: deny\n'

interface Sources {
  readonly resources: ServerResources
  readonly prompts: ServerPrompts
}

function sourcesOf(
  node: FakeNode,
  world: World,
  { links = new SeenLinks(), chosen = null }: { links?: SeenLinks; chosen?: readonly string[] | null } = {}
): Sources {
  const context = new MeshContext({ api: node.api(), clock: world.clock, toJson: (value) => value, chosen })
  return { resources: new ServerResources({ context, links, clock: world.clock }), prompts: new ServerPrompts(context) }
}

/** Resolves with the result while time passes. */
async function meanwhile<T>(world: World, given: Promise<T>, ms = 6000): Promise<T> {
  given.catch(() => {})
  await world.pass(ms, 500)
  return await given
}

const methodsOf = ({ tasks }: FakeAgent): unknown[] => tasks.map(({ input }) => (input as { method: string }).method)

test('lists of servers are fetched once for all lists, until their card names others', async (t: Assert) => {
  const world = new World(t)
  const notes = serverAgent('notes', { resources: [ONE], prompts: [{ name: 'greet' }] })
  const owner = await world.owner()
  const peer = await world.member('peer', { agents: [notes, echo('text')] })
  await world.link(owner, peer)
  const { resources, prompts } = sourcesOf(owner, world)
  const [listed, named] = await meanwhile(world, Promise.all([resources.list(), prompts.list()]))
  t.alike(
    listed.map(({ uri, name, description, _meta }) => [uri, name, description, _meta]),
    [['a2a://resources/notes%40peer/notes://one', 'one', '(notes@peer)', { 'a2a-node/uri': 'notes://one' }]]
  )
  t.alike(
    named.map(({ name }) => name),
    ['notes_at_peer__greet']
  )
  await meanwhile(world, resources.templates())
  t.alike(methodsOf(notes), ['list'])
  const next = serverAgent('notes', { resources: [ONE, { uri: 'notes://two', name: 'two' }] })
  peer.source.set([next, echo('text')])
  await world.pass(3000)
  t.is((await meanwhile(world, resources.list())).length, 2)
  t.alike([methodsOf(notes), methodsOf(next)], [['list'], ['list']])
})

test('a server none of whose tools is chosen gives no resources and prompts', async (t: Assert) => {
  const world = new World(t)
  const given = { resources: [ONE], prompts: [{ name: 'greet' }] }
  const [notes, mail] = [serverAgent('notes', given), serverAgent('mail', given)]
  const owner = await world.owner({ agents: [mail] })
  await world.link(owner, await world.member('peer', { agents: [notes, echo('text')] }))
  const of = async (...chosen: readonly string[]): Promise<readonly [string[], string[]]> => {
    const { resources, prompts } = sourcesOf(owner, world, { chosen })
    const [listed, named] = await meanwhile(world, Promise.all([resources.list(), prompts.list()]))
    return [listed.map(({ description = '' }) => description), named.map(({ name }) => name)]
  }
  t.alike(await of('text.*'), [[], []])
  t.alike(await of('notes@peer.*', 'text.*'), [['(notes@peer)'], ['notes_at_peer__greet']])
  t.alike(await of('mail.*'), [['(mail@owner)'], ['mail__greet']])
  t.is((await of('*'))[0].length, 2)
})

test('an index that is slow and always another delays a fifth of the time at most', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner()
  const peer = await world.member('peer', { agents: [] })
  await world.link(owner, peer)
  const { resources } = sourcesOf(owner, world)
  const begin = world.clock.monotonic()
  let waited = 0
  for (let i = 0; i < 30; i++) {
    const index = { resources: [{ uri: `slow://${i}`, name: 'one' }] }
    const agent = new FakeAgent(serverAgent('slow', index).definition)
    peer.source.set([agent])
    await world.pass(1000, 500)
    const from = world.clock.monotonic()
    let listed: readonly unknown[] | null = null
    void resources.list().then((all) => (listed = all))
    await world.settle()
    while (listed === null) {
      await world.pass(500, 500)
      const isDue = world.clock.monotonic() - from >= 3000
      if (isDue && agent.open.length > 0) agent.finish({ ...NO_CONTEXT, ...index })
      await world.settle()
    }
    waited += world.clock.monotonic() - from
    t.is((listed as readonly unknown[]).length, 1)
  }
  const all = world.clock.monotonic() - begin
  t.ok(waited >= 3000 && waited < all / 4, `${waited} of ${all} ms`)
})

test('a member with many servers hides none of others', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner({ agents: [serverAgent('own', { resources: [ONE] })] })
  const many = Array.from({ length: 140 }, (_, at) => serverAgent(`a${at}`, { resources: [ONE] }))
  const noisy = await world.member('noisy', { agents: many })
  const quiet = await world.member('quiet', { agents: [serverAgent('z', { resources: [ONE] })] })
  await world.link(owner, noisy)
  await world.link(owner, quiet)
  const { resources } = sourcesOf(owner, world)
  const listed = await meanwhile(world, resources.list(), 20_000)
  const of = (node: string): number => listed.filter(({ uri }) => uri.includes(`%40${node}/`)).length
  t.alike([of('owner'), of('quiet')], [1, 1], `${listed.length} in all`)
  t.ok(listed.length <= 128)
})

test('changes of other agents are no changes of resources or prompts', async (t: Assert) => {
  const world = new World(t)
  const notes = serverAgent('notes', { resources: [ONE] })
  const owner = await world.owner({ agents: [notes] })
  const { resources, prompts } = sourcesOf(owner, world)
  const changes = { resources: 0, prompts: 0 }
  const ends = [resources.onChange(() => changes.resources++), prompts.onChange(() => changes.prompts++)]
  await world.pass(3000)
  owner.source.set([notes, echo('text')])
  await world.pass(3000)
  t.alike(changes, { resources: 0, prompts: 0 })
  owner.source.set([serverAgent('notes', { resources: [{ ...ONE, name: 'first' }] })])
  await world.pass(3000)
  t.alike(changes, { resources: 1, prompts: 0 })
  for (const end of ends) end()
  owner.source.set([notes])
  await world.pass(3000)
  t.alike(changes, { resources: 1, prompts: 0 })
})

test('rules of the caller or of the server forbid resources as they do tools, and a refused list is not asked for', async (t: Assert) => {
  const world = new World(t)
  const notes = serverAgent('notes', { resources: [ONE] })
  const owner = await world.owner({ policy: DENY })
  const [open, closed] = [
    await world.member('open', { agents: [notes] }),
    await world.member('closed', { agents: [serverAgent('notes', { resources: [ONE] })], policy: DENY })
  ]
  const reader = await world.member('reader')
  await world.link(owner, open, closed, reader)
  const own = sourcesOf(owner, world).resources
  t.alike(await meanwhile(world, own.list()), [])
  await failsWith(t, 'POLICY_DENIED', () =>
    meanwhile(world, own.read('a2a://resources/notes%40open/notes://one', NEVER))
  )
  t.is(notes.tasks.length, 0)
  t.is(owner.audit.events.length, 1, 'only the reading is a refusal')
  const theirs = sourcesOf(reader, world).resources
  const list = await meanwhile(world, theirs.list())
  t.alike(
    list.map(({ uri }) => uri),
    ['a2a://resources/notes%40open/notes://one'],
    'nothing of the closed one'
  )
  await failsWith(t, 'POLICY_DENIED', () =>
    meanwhile(world, theirs.read('a2a://resources/notes%40closed/notes://one', NEVER))
  )
})

test('a list that a person would have to allow is not shown, and asks no person twice', async (t: Assert) => {
  const world = new World(t)
  const notes = serverAgent('notes', { resources: [ONE] })
  const owner = await world.owner()
  const peer = await world.member('peer', { agents: [notes], policy: DENY.replace('deny', 'ask') })
  await world.link(owner, peer)
  const { resources } = sourcesOf(owner, world)
  const end = resources.onChange(() => {})
  t.alike(await meanwhile(world, resources.list()), [])
  await world.pass(1_200_000, 10_000)
  t.alike(await meanwhile(world, resources.list()), [])
  const { tasks } = await owner.api().call('tasks.list', {})
  t.is(tasks.length, 1, 'it is asked for once')
  t.is(notes.tasks.length, 0)
  end()
})

test('a peer that lies about lists or contents is found out, and hides no other server', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner({ agents: [serverAgent('good', { resources: [{ uri: 'good://one', name: 'g' }] })] })
  const lies: readonly unknown[] = ['nothing', { resources: 7 }, { resources: [{ uri: 7 }, null], prompts: 'x' }]
  for (const [at, lie] of lies.entries()) {
    const liar = serverAgent('notes', { resources: [ONE] }, (method) => (method === 'list' ? lie : undefined))
    await world.link(owner, await world.member(`liar-${at}`, { agents: [liar] }))
  }
  const answers: unknown[] = ['text', { content: [{ type: 'text', text: 'x' }] }, { contents: [] }]
  const broken = serverAgent('broken', { resources: [ONE], prompts: [{ name: 'p' }] }, (method) =>
    method === 'list' ? undefined : answers[0]
  )
  await world.link(owner, await world.member('breaks', { agents: [broken] }))
  const { resources, prompts } = sourcesOf(owner, world)
  const listed = await meanwhile(world, resources.list())
  t.alike(listed.map(({ name }) => name).sort(), ['g', 'one'])
  for (const answer of [...answers]) {
    answers[0] = answer
    await failsWith(t, 'INVALID_OUTPUT', () => meanwhile(world, resources.read(ONE.uri, NEVER)))
    await failsWith(t, 'INVALID_OUTPUT', () =>
      meanwhile(world, prompts.get('p', {}, { signal: NEVER, client: NO_CLIENT }))
    )
  }
})

test('a bare URI means the only server with it, one of this node first, and several are refused by name', async (t: Assert) => {
  const world = new World(t)
  const answer = (text: string) => (method: string) =>
    method === 'read' ? contentsAnswer({ uri: ONE.uri, text }) : undefined
  const owner = await world.owner()
  for (const name of ['east', 'west'])
    await world.link(
      owner,
      await world.member(name, { agents: [serverAgent('notes', { resources: [ONE] }, answer(name))] })
    )
  const { resources } = sourcesOf(owner, world)
  await t.exception(
    meanwhile(world, resources.read(ONE.uri, NEVER)),
    /a2a:\/\/resources\/notes%40east\/notes:\/\/one, a2a:\/\/resources\/notes%40west/
  )
  owner.source.set([serverAgent('notes', { resources: [ONE] }, answer('here'))])
  await world.pass(3000)
  t.alike(await meanwhile(world, resources.read(ONE.uri, NEVER)), [{ uri: ONE.uri, text: 'here' }])
  t.is(await meanwhile(world, resources.read('notes://other', NEVER)), undefined)
})

test('a list that failed is asked for again, and its arrival is a change', async (t: Assert) => {
  const world = new World(t)
  let isSilent = true
  const notes = serverAgent('notes', { resources: [ONE] }, (method) =>
    method === 'list' && isSilent ? { ok: false, code: 'TASK_FAILED', message: 'not now' } : undefined
  )
  const owner = await world.owner({ agents: [notes] })
  const { resources } = sourcesOf(owner, world)
  let changes = 0
  const end = resources.onChange(() => changes++)
  t.alike(await meanwhile(world, resources.list(), 1000), [])
  isSilent = false
  await world.pass(12_000, 500)
  t.is(changes, 1)
  t.is((await resources.list()).length, 1)
  end()
})

test('followed resources are asked for while clients follow them, and changes between two questions are one', async (t: Assert) => {
  const world = new World(t)
  let revision = 1
  const notes = serverAgent('notes', { resources: [ONE], watches: true }, (method, { uris }) =>
    method === 'watch'
      ? { revisions: (uris as string[]).map((uri) => (uri === ONE.uri ? `r${revision}` : null)) }
      : undefined
  )
  const owner = await world.owner({ agents: [notes] })
  const { resources } = sourcesOf(owner, world)
  const name = 'a2a://resources/notes%40owner/notes://one'
  const followed = new Set<string>()
  const changed: (string | null)[] = []
  const end = resources.onChange(
    (uri) => changed.push(uri),
    () => followed
  )
  await world.pass(10_000, 500)
  t.absent(methodsOf(notes).includes('watch'), 'nothing is asked while nothing is followed')
  t.is(await meanwhile(world, resources.nameOf(ONE.uri), 1000), name)
  await failsWith(t, 'INVALID_INPUT', () => meanwhile(world, resources.nameOf(`${name}/none`), 1000))
  followed.add(name)
  revision += 2
  await world.pass(10_000, 500)
  t.alike(changed, [name])
  const before = methodsOf(notes).length
  await world.pass(600_000, 3000)
  const idle = methodsOf(notes).length - before
  t.ok(idle >= 20 && idle <= 40, `an idle resource is asked for less often: ${idle} times in ten minutes`)
  revision++
  await world.pass(33_000, 3000)
  t.alike(changed, [name, name], 'but is still followed')
  followed.add(`${name}/none`)
  const asked = methodsOf(notes).length
  await world.pass(60_000, 3000)
  t.ok(methodsOf(notes).length - asked <= 25, 'one whose changes are not reported costs little')
  followed.clear()
  await world.pass(10_000, 500)
  const last = methodsOf(notes).length
  revision++
  await world.pass(40_000, 500)
  t.alike([changed.length, methodsOf(notes).length], [2, last], 'and nothing when it is followed no more')
  end()
})

test('a link in a tool result is read from the server that gave it, and no other agent is called by a URI', async (t: Assert) => {
  const world = new World(t)
  const notes = serverAgent('notes', { resources: [ONE] }, (method, { uri }) =>
    method === 'read' ? contentsAnswer({ uri, text: 'linked' }) : undefined
  )
  const shell = echo('shell', { capabilities: [capability('shell.context')] })
  const owner = await world.owner({ agents: [notes, shell] })
  const links = new SeenLinks()
  const { resources } = sourcesOf(owner, world, { links })
  const uri = 'notes://unlisted'
  t.is(await meanwhile(world, resources.read(uri, NEVER)), undefined)
  links.note('notes@owner', [{ type: 'resource_link', uri, name: 'x' }, { type: 'text', text: uri }, null])
  t.alike(await meanwhile(world, resources.read(uri, NEVER)), [{ uri, text: 'linked' }])
  links.note('shell@owner', [{ type: 'resource_link', uri: 'shell://x', name: 'x' }])
  for (const one of ['shell://x', 'a2a://resources/shell%40owner/x:y', 'a2a://resources/nobody/x:y'])
    t.is(await meanwhile(world, resources.read(one, NEVER)), undefined, one)
  t.is(shell.tasks.length, 0)
})

test('a silent server delays no reading of another, and is asked no sooner for naming other lists', async (t: Assert) => {
  const world = new World(t)
  const notes = serverAgent('notes', { resources: [ONE] }, (method, { uri }) =>
    method === 'read' ? contentsAnswer({ uri, text: 'read' }) : undefined
  )
  const silent = (name: string): FakeAgent =>
    new FakeAgent(serverAgent('silent', { resources: [{ uri: `silent://${name}`, name }] }).definition, () => null)
  const owner = await world.owner({ agents: [notes, silent('one')] })
  const { resources } = sourcesOf(owner, world)
  t.is((await meanwhile(world, resources.list())).length, 1)
  const next = silent('two')
  owner.source.set([notes, next])
  await world.pass(3000)
  const uri = 'a2a://resources/notes%40owner/notes://one'
  let isRead = false
  void resources.read(uri, NEVER).then(() => (isRead = true))
  await world.settle()
  t.ok(isRead, 'without a look at the lists')
  t.is((await meanwhile(world, resources.list(), 1000)).length, 1)
  t.is(next.tasks.length, 0)
})

test('lists of many silent servers are waited for together, and warn of no leak', async (t: Assert) => {
  const warnings: string[] = []
  const warned = (warning: Error): void => void warnings.push(warning.message)
  process.on('warning', warned)
  t.teardown(() => process.off('warning', warned))
  const world = new World(t)
  const names = Array.from({ length: 12 }, (_, at) => `silent-${at}`)
  const agents = names.map((name) => new FakeAgent(serverAgent(name, { resources: [ONE] }).definition, () => null))
  const owner = await world.owner({ agents: [...agents, serverAgent('notes', { resources: [ONE] })] })
  const { resources } = sourcesOf(owner, world)
  t.is((await meanwhile(world, resources.list(), 5500)).length, 1)
  t.is((await meanwhile(world, resources.list(), 500)).length, 1, 'the next list does not wait')
  t.alike(warnings, [])
})
