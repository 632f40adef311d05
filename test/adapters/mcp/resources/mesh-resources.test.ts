import test, { type Assert } from 'brittle'
import { MeshResources } from '../../../../src/adapters/mcp/resources/mesh-resources.js'
import type { NodeApi, WatchName } from '../../../../src/ports/node-api.js'
import { echo } from '../../../support/fake-agents.js'
import { World } from '../../../support/fake-node.js'

/** Counts the watches of an API that are open. */
function counted(api: NodeApi): { readonly api: NodeApi; readonly open: Map<WatchName, number> } {
  const open = new Map<WatchName, number>()
  const watch: NodeApi['watch'] = (name, params, options) => {
    open.set(name, (open.get(name) ?? 0) + 1)
    options?.signal?.addEventListener('abort', () => open.set(name, (open.get(name) ?? 0) - 1))
    return api.watch(name, params, options)
  }
  return { api: { call: (name, params, options) => api.call(name, params, options), watch }, open }
}

test('changes of cards, documents and swarms are reported, by one watch for each list, while a client listens', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner({ agents: [echo('text')] })
  const { api, open } = counted(owner.api())
  const resources = new MeshResources({ api, clock: world.clock, toJson: (value) => value })
  const told: (string | null)[] = []
  const heard = async (work: () => unknown): Promise<(string | null)[]> => {
    told.length = 0
    const done = work()
    await world.settle()
    await done
    await world.pass(3000)
    return [...new Set(told)]
  }
  t.is(open.size, 0)
  const stops = [resources.onChange((uri) => told.push(uri)), resources.onChange(() => {})]
  t.alike(await heard(() => {}), [])
  t.alike([...open.values()], [1, 1, 1])
  t.alike(await heard(() => owner.source.set([echo('text'), echo('late')])), [null])
  t.alike(await heard(() => owner.source.set([echo('text', { description: 'another' }), echo('late')])), [
    'a2a://agents/text%40owner'
  ])
  t.ok((await heard(() => api.call('documents.create', { name: 'notes' }))).includes(null))
  const edit = { type: 'text', text: 'hello' } as const
  t.alike(await heard(() => api.call('documents.edit', { document: 'notes', edit })), ['a2a://documents/notes'])
  const swarm = await heard(() => api.call('swarm.start', { goal: 'echo', capability: 'text.do', strategy: 'each' }))
  t.ok(swarm.includes(null) && swarm.some((uri) => uri?.startsWith('a2a://swarms/swarm_')))
  for (const stop of stops) stop()
  t.alike([...open.values()], [0, 0, 0])
  t.alike(await heard(() => owner.source.set([])), [])
})

test('a document of which something is not taken says so beside its text', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner()
  const api = owner.api()
  await api.call('documents.create', { name: 'notes' })
  const skipped = [{ node: { id: 'b', name: 'bob' }, reason: 'its member signed two different blocks at one place' }]
  const call = async (name: string, params: object): Promise<unknown> => {
    const result = await api.call(name as 'documents.read', params as { document: string; type: 'text' })
    return name === 'documents.read' ? { ...result, skipped } : result
  }
  const forked: NodeApi = {
    call: call as NodeApi['call'],
    watch: (name, params, options) => api.watch(name, params, options)
  }
  const resources = new MeshResources({ api: forked, clock: world.clock, toJson: (value) => value })
  const read = await resources.read('a2a://documents/notes')
  t.alike(
    read?.map((one) => ('text' in one ? one.text : '')),
    ['', 'not all that bob wrote is in this document: its member signed two different blocks at one place']
  )
})

test('a resource is there when it can be read', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner({ agents: [echo('text')] })
  const api = owner.api()
  const resources = new MeshResources({ api, clock: world.clock, toJson: (value) => value })
  await api.call('documents.create', { name: 'notes' })
  const { id } = await api.call('swarm.start', { goal: 'echo', capability: 'text.do', strategy: 'each' })
  await world.settle()
  for (const uri of [
    `a2a://agents/${encodeURIComponent('text@owner')}`,
    'a2a://documents/notes',
    `a2a://swarms/${id}`
  ]) {
    t.is(await resources.nameOf(uri), uri)
    t.ok(await resources.read(uri), uri)
  }
  for (const uri of ['a2a://agents/text@owner', 'a2a://agents/text', 'a2a://agents/%74ext%40owner'])
    t.is(await resources.nameOf(uri), 'a2a://agents/text%40owner', 'the one that reports its changes')
  for (const uri of [
    'a2a://agents/none',
    'a2a://documents/none',
    'a2a://swarms/swarm_none',
    'a2a://agents/',
    'a2a://agents/%',
    'other'
  ]) {
    t.is(await resources.nameOf(uri), undefined, uri)
    t.is(await resources.read(uri), undefined, uri)
  }
})
