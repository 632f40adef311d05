import test, { type Assert } from 'brittle'
import type { NodeApi, Principal, WatchName, Watches } from '../../../src/ports/node-api.js'
import { shortId } from '../../../src/kit/ids.js'
import { failsWith } from '../../support/fails.js'
import { capability, agentDefinition, echo, FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, type FakeNodeOptions, World } from '../../support/fake-node.js'

interface Scene {
  readonly world: World
  readonly owner: FakeNode
  readonly peer: FakeNode
}

/** An owner's node and a member's with an agent `text`. */
async function scene(t: Assert, options: FakeNodeOptions = { agents: [echo('text')] }): Promise<Scene> {
  const world = new World(t)
  const owner = await world.owner()
  const peer = await world.member('peer', options)
  await world.link(owner, peer)
  return { world, owner, peer }
}

/** What a watch gives while a body runs. */
async function watched<N extends WatchName>(
  api: NodeApi,
  [name, params]: readonly [N, Watches[N]['params']],
  body: () => Promise<void>
): Promise<Watches[N]['item'][]> {
  const items: Watches[N]['item'][] = []
  const abort = new AbortController()
  const reading = (async () => {
    for await (const item of api.watch(name, params, { signal: abort.signal })) items.push(item)
  })()
  await new Promise((resolve) => setImmediate(resolve))
  await body()
  await new Promise((resolve) => setImmediate(resolve))
  abort.abort()
  await reading
  return items
}

test('each call needs its scope, and each watch too', async (t) => {
  const { owner } = await scene(t)
  const reader = owner.api({ scopes: ['read'] })
  t.is((await reader.call('peers.list', {})).peers.length, 1)
  await failsWith(t, 'FORBIDDEN', () => reader.call('message.send', { agent: 'text@peer', text: 'x' }))
  await failsWith(t, 'FORBIDDEN', () => reader.call('swarm.start', { goal: 'g', capability: 'c', strategy: 'each' }))
  await failsWith(t, 'FORBIDDEN', () => reader.call('tasks.cancel', { id: 'task_1' }))
  await failsWith(t, 'FORBIDDEN', () => reader.call('invite.create', { trust: 'mine' }))
  const sender = owner.api({ scopes: ['send'] })
  await failsWith(t, 'FORBIDDEN', () => sender.call('node.status', {}))
  await failsWith(t, 'FORBIDDEN', () => sender.call('peers.revoke', { peer: 'peer' }))
  await failsWith(t, 'FORBIDDEN', () => sender.call('node.stop', {}))
  await failsWith(t, 'FORBIDDEN', async () => {
    for await (const _ of sender.watch('peers.list', {})) t.fail('nothing is shown')
  })
  const none = owner.api({ scopes: [] })
  for (const call of ['node.info', 'node.metrics', 'agents.list', 'swarm.list', 'tasks.list', 'invite.list'] as const)
    await failsWith(t, 'FORBIDDEN', () => none.call(call, {}))
})

test('calls and watches that do not exist are refused, those of the prototype too', async (t) => {
  const { owner } = await scene(t)
  const api = owner.api()
  for (const name of ['nothing', 'constructor', 'toString', '__proto__']) {
    await failsWith(t, 'USAGE', () => api.call(name as 'node.info', {}))
    await failsWith(t, 'USAGE', () => api.watch(name as 'node.status', {}))
  }
})

test('a caller weaker than the node acts as weak as it is', async (t) => {
  const { world, owner, peer } = await scene(t)
  const weak = owner.api({ kind: 'token', name: 'ci', tier: 3 })
  await failsWith(t, 'ESCALATION_REQUIRED', () => weak.call('message.send', { agent: 'text@peer', text: 'hi' }))
  await failsWith(t, 'ESCALATION_REQUIRED', () =>
    weak.call('message.call', { agent: null, capability: 'text.do', input: {} })
  )
  await failsWith(t, 'ESCALATION_REQUIRED', () =>
    weak.call('message.send', { agent: 'text@peer', text: 'hi', type: 'notification' })
  )
  const reply = weak.call('message.send', { agent: 'text@peer', text: 'hi', justification: 'asked to' })
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
  t.alike(peer.audit.events, [], 'the receiver sees a weak, honest claim')
  const broadcast = await weak.call('message.send', { agent: '*', text: 'hi', type: 'notification', all: true })
  t.ok(broadcast.targets?.every((one) => one.outcome === 'ESCALATION_REQUIRED'))
})

test('a caller cannot be more than the certificate of its node', async (t) => {
  const { world, peer } = await scene(t)
  await failsWith(t, 'NOT_ADMIN', () => peer.api({ tier: 0 }).call('invite.create', { trust: 'mine' }))
  const weakAgent = new FakeAgent(agentDefinition('weak', { tier: 3 }))
  peer.source.set([weakAgent])
  await world.settle()
  await failsWith(t, 'TIER_VIOLATION', () =>
    peer.api({ tier: 0 }).call('message.send', { agent: 'weak@peer', text: 'x' })
  )
})

test('nobody invites or promotes above itself', async (t) => {
  const { world, owner } = await scene(t)
  const weak = owner.api({ tier: 2 })
  await failsWith(t, 'FORBIDDEN', () => weak.call('invite.create', { tier: 1 }))
  t.is((await weak.call('invite.create', {})).tier, 'L2')
  await failsWith(t, 'FORBIDDEN', () => weak.call('peers.tier', { peer: 'peer', tier: 1 }))
  t.is((await weak.call('peers.tier', { peer: 'peer', tier: 3 })).tier, 'L3')
  await world.settle()
  const boxed = owner.api({ sandboxId: 'ci' })
  await failsWith(t, 'FORBIDDEN', () => boxed.call('invite.create', { sandboxId: 'other' }))
  await boxed.call('invite.create', {})
  const { invites } = await owner.api().call('invite.list', {})
  t.alike(new Set(invites.map((one) => one.sandboxId)), new Set([null, 'ci']))
})

test('a sandboxed caller sees and reaches its sandbox alone', async (t) => {
  const { world, owner } = await scene(t, { agents: [echo('text'), echo('boxed', { sandboxId: 'ci' })] })
  const boxed = owner.api({ sandboxId: 'ci' })
  t.alike(
    (await boxed.call('agents.list', {})).agents.map((one) => one.id),
    ['boxed']
  )
  t.is((await owner.api().call('agents.list', {})).agents.length, 2)
  await failsWith(t, 'AGENT_NOT_FOUND', () => boxed.call('agents.show', { agent: 'text@peer' }))
  await failsWith(t, 'AGENT_NOT_FOUND', () => boxed.call('message.send', { agent: 'text@peer', text: 'x' }))
  const reply = boxed.call('message.send', { agent: 'boxed@peer', text: 'x' })
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
})

test('send gives text to the default capability: an object as it is, other text as {text}', async (t) => {
  const note = capability('note', { default: true })
  const agent = new FakeAgent(agentDefinition('text', { capabilities: [capability('other'), note] }), (task) => ({
    ok: true,
    result: [task.capability, task.input]
  }))
  const { world, owner } = await scene(t, { agents: [agent] })
  for (const [text, input] of [
    ['hello', { text: 'hello' }],
    ['{"a":1}', { a: 1 }],
    ['[1]', { text: '[1]' }],
    ['{"a":', { text: '{"a":' }]
  ] as const) {
    const reply = owner.api().call('message.send', { agent: 'text@peer', text })
    await world.settle()
    t.alike((await reply).payload, ['note', input])
  }
})

test('call picks an agent that has the capability, may be asked and is there', async (t) => {
  const { world, owner, peer } = await scene(t)
  const call = (name: string): ReturnType<NodeApi['call']> =>
    owner.api().call('message.call', { agent: null, capability: name, input: 7 })
  await failsWith(t, 'CAPABILITY_NOT_FOUND', () => call('no.such'))
  const reply = call('text.do') as Promise<{ agent: string; payload: unknown }>
  await world.settle()
  t.is((await reply).agent, 'text@peer')
  owner.source.set([echo('text')])
  await world.settle()
  const here = call('text.do') as Promise<{ agent: string }>
  await world.settle()
  t.is((await here).agent, 'text@owner', 'this node first')
  owner.source.set([])
  await world.settle()
  world.net.disconnect(owner.id, peer.id)
  await failsWith(t, 'PEER_OFFLINE', () => call('text.do'))
})

test('a capability that the agent lacks is named, with those it has', async (t) => {
  const { owner } = await scene(t)
  const error = await failsWith(t, 'CAPABILITY_NOT_FOUND', () =>
    owner.api().call('message.call', { agent: 'text@peer', capability: 'text.undo', input: {} })
  )
  t.alike(error.data, { capabilities: ['text.do'] })
})

test('a call that nobody waits for is queued, here or for a peer that is away', async (t) => {
  const { world, owner, peer } = await scene(t)
  world.net.disconnect(owner.id, peer.id)
  const reply = await owner
    .api()
    .call('message.call', { agent: 'text@peer', capability: 'text.do', input: 1, wait: false })
  t.is(reply.outcome, 'QUEUED')
  const status = await owner.api().call('node.status', {})
  t.is(status.outbox.pending, 1)
  await world.link(owner, peer)
  const task = await owner.api().call('tasks.show', { id: reply.taskId ?? '' })
  t.is(task.state, 'completed')
  t.is(task.agent, 'text@peer')
  t.ok(task.events.length >= 3)
})

test('a broadcast lists every target with its result', async (t) => {
  const { world, owner, peer } = await scene(t, {
    agents: [echo('text'), new FakeAgent(agentDefinition('dumb', { capabilities: [] }))]
  })
  const away = await world.member('away', { agents: [echo('far')] })
  await world.link(away, peer)
  const asking = owner.api().call('message.send', { agent: '*', text: 'hello', all: true })
  await world.settle()
  const reply = await asking
  t.is(reply.outcome, 'FAILED')
  t.is(
    reply.error?.message,
    'partly done: it failed at 1 of 2 agents (1 offline); left out: 3 without a capability',
    'an agent without the capability was not left out by rules'
  )
  t.alike(Object.fromEntries((reply.targets ?? []).map((one) => [one.agent, one.outcome])), {
    'text@peer': 'COMPLETED',
    'dumb@peer': 'SKIPPED',
    'operator@peer': 'SKIPPED',
    'far@away': 'PEER_OFFLINE',
    'operator@away': 'SKIPPED'
  })
  world.net.connect(owner.id, away.id)
  await world.settle()
  const whole = owner.api().call('message.send', { agent: '*', text: 'hello', all: true })
  await world.settle()
  t.is((await whole).outcome, 'COMPLETED')
  const alone = new World(t)
  const lone = await alone.owner({ agents: [new FakeAgent(agentDefinition('dumb', { capabilities: [] }))] })
  t.is((await lone.api().call('message.send', { agent: '*', text: 'x', all: true })).outcome, 'FAILED')
})

test('tasks are found by a unique prefix and canceled on the side that asked', async (t) => {
  const agent = new FakeAgent(agentDefinition('slow'))
  const { world, owner, peer } = await scene(t, { agents: [agent] })
  const api = owner.api()
  const { taskId } = await api.call('message.send', { agent: 'slow@peer', text: 'x', wait: false })
  await api.call('message.send', { agent: 'slow@peer', text: 'y', wait: false })
  await world.settle()
  t.alike((await failsWith(t, 'AMBIGUOUS_NAME', () => api.call('tasks.show', { id: 'task' }))).next, ['a2a-node tasks'])
  const [first] = (await api.call('tasks.show', { id: taskId ?? '' })).events
  t.is(first === undefined ? '' : new Date(first.at).toISOString(), first?.at, 'its events have ISO times')
  await failsWith(t, 'TASK_NOT_FOUND', () => api.call('tasks.show', { id: 'tas_nobody' }))
  t.is((await api.call('tasks.cancel', { id: taskId ?? '' })).state, 'canceled')
  await failsWith(t, 'CONFLICT', () => api.call('tasks.cancel', { id: taskId ?? '' }))
  await world.settle()
  t.is(agent.open.length, 1, 'the other goes on')
  const all = (await api.call('tasks.list', {})).tasks
  t.alike(await api.call('tasks.list', { limit: 1 }), { tasks: all.slice(0, 1), more: 1 }, 'the newest')
  t.is(all[1]?.id, taskId)
  const [callee] = (await peer.api().call('tasks.list', {})).tasks
  t.is((await peer.api().call('tasks.cancel', { id: callee.id })).role, 'callee')
  await world.settle()
  t.is(agent.open.length, 0)
})

test('peers are shown as they are: online, offline, revoked, this node itself', async (t) => {
  const { world, owner, peer } = await scene(t)
  const api = owner.api()
  const self = await api.call('peers.show', { peer: 'owner' })
  t.alike([self.self, self.status], [true, 'online'])
  const [row] = (await api.call('peers.list', {})).peers
  t.alike([row.name, row.status, row.tier, row.path, row.agents], ['peer', 'online', 'L1', 'local', ['text']])
  world.net.disconnect(owner.id, peer.id)
  t.is((await api.call('peers.show', { peer: 'peer' })).status, 'offline')
  const revoked = await api.call('peers.revoke', { peer: 'peer', reason: 'lost' })
  t.alike([revoked.status, revoked.self, revoked.wasRevoked], ['revoked', false, false])
  world.clock.advance(60_000)
  const again = await api.call('peers.revoke', { peer: 'peer', reason: 'other' })
  t.alike([again.wasRevoked, again.revoked], [true, revoked.revoked], 'it was out before, and nothing changes')
  for (const asking of [
    () => api.call('peers.ping', { peer: 'peer' }),
    () => api.call('peers.tier', { peer: 'peer', tier: 2 }),
    () => api.call('peers.rename', { peer: 'peer', name: 'other' })
  ]) {
    const refused = await failsWith(t, 'REVOKED', asking)
    t.is(refused.next[0], `a2a-node peers show ${peer.id}`)
  }
  t.alike([revoked.revoked?.reason, revoked.revoked?.by.name], ['lost', 'owner'])
  t.is((await api.call('peers.list', {})).peers.length, 0)
  t.is((await api.call('peers.list', { all: true })).peers.length, 1)
  t.alike(
    owner.audit
      .of('membership')
      .slice(-1)
      .map((one) => [one.code, one.peer]),
    [['revoked', peer.id]]
  )
  await failsWith(t, 'FORBIDDEN', () => api.call('peers.revoke', { peer: 'owner' }))
  await failsWith(t, 'NOT_ADMIN', () => peer.api().call('peers.rename', { peer: 'owner', name: 'mine' }))
})

test('no node gets the name of another, or the one under which another is shown', async (t) => {
  const { world, owner, peer } = await scene(t)
  const api = owner.api()
  const third = await world.member('third')
  const refused = await failsWith(t, 'CONFLICT', () => api.call('peers.rename', { peer: 'third', name: 'peer' }))
  t.alike(refused.data, { candidates: [`peer (${shortId(peer.id)})`] })
  await failsWith(t, 'CONFLICT', () => api.call('peers.rename', { peer: 'peer', name: 'owner' }))
  const before = world.log.model.certificateOf(third.actor)
  world.log.model.recertify(owner.actor, { ...before, name: 'peer', serial: before.serial + 1, issuer: owner.id })
  world.log.changed()
  const twin = `peer-${third.id.slice(0, 4)}`
  await failsWith(t, 'CONFLICT', () => api.call('peers.rename', { peer: 'peer', name: twin }))
  t.is((await api.call('peers.rename', { peer: twin, name: 'tablet' })).name, 'tablet')
  t.is((await api.call('peers.rename', { peer: 'tablet', name: 'tablet' })).name, 'tablet', 'its own is no other')
  await api.call('peers.revoke', { peer: 'tablet' })
  const out = await failsWith(t, 'CONFLICT', () => api.call('peers.rename', { peer: 'peer', name: 'tablet' }))
  t.ok(out.message.includes('put out of the mesh'))
})

test('a watch of peers reports each change', async (t) => {
  const { world, owner, peer } = await scene(t)
  const items = await watched(owner.api(), ['peers.list', {}], async () => {
    world.net.disconnect(owner.id, peer.id)
    await world.settle()
    await world.link(owner, peer)
  })
  t.alike(
    items.map((item) => item.peers[0]?.status).filter((status, index, all) => status !== all[index - 1]),
    ['online', 'offline', 'online']
  )
})

test('a slow reader of events gets an event that says how many it lost', async (t) => {
  const { owner } = await scene(t)
  const events = owner.api().watch('node.events', { follow: true, types: ['swarm'] })
  const watch = events[Symbol.asyncIterator]()
  const first = watch.next()
  await new Promise((resolve) => setImmediate(resolve))
  for (let i = 0; i < 5000; i++) owner.core.events.add('swarm', 'a flood', { i })
  await first
  let seen = 1
  let lost = 0
  while (lost === 0) {
    const { value } = (await watch.next()) as { value: Watches['node.events']['item'] }
    if (value.type === 'gap') {
      t.alike(Object.keys(value), ['at', 'type', 'message', 'data'], 'it has the form of each other event')
      lost = Number(value.data['lost'])
    } else seen++
  }
  t.is(seen + lost, 5000)
  await watch.return?.()
})

test('a watch of tasks gathers changes, and ends with nothing left behind', async (t) => {
  const { world, owner } = await scene(t)
  // What the start left to be done soon.
  await world.pass(1000)
  const timers = world.clock.pending
  const items = await watched(owner.api(), ['tasks.list', {}], async () => {
    for (let i = 0; i < 5; i++) void owner.api().call('message.send', { agent: 'text@peer', text: 'x' })
    await world.settle()
    world.clock.advance(100)
  })
  t.is(items.length, 2, 'the snapshot, and five tasks with all their changes at once')
  t.alike(
    items.map((item) => item.tasks.length),
    [0, 5]
  )
  owner.core.tasks.open({ kind: 'request', role: 'caller', agent: 'a@b', capability: 'c', description: '' })
  t.is(world.clock.pending, timers)
})

test('a reader that is behind gets the newest status, peers and tasks, not one for every change', async (t) => {
  const { world, owner, peer } = await scene(t)
  const api = owner.api()
  for (const name of ['node.status', 'peers.list', 'tasks.list'] as const) {
    const stop = new AbortController()
    const reader = api.watch(name, {}, { signal: stop.signal })[Symbol.asyncIterator]()
    await reader.next()
    for (let i = 1; i <= 3; i++) {
      owner.core.tasks.open({ kind: 'request', role: 'caller', agent: 'a@b', capability: 'c', description: '' })
      world.net.disconnect(owner.id, peer.id)
      await world.settle()
      await world.link(owner, peer)
      await world.pass(1000)
    }
    const { value: newest } = await reader.next()
    stop.abort()
    t.is((await reader.next()).done, true, `${name} kept one`)
    if (name === 'node.status') t.is(newest.uptimeMs, 3000)
    else if (name === 'peers.list') t.is(newest.peers[0].status, 'online')
    else t.is(newest.tasks.length, owner.core.tasks.list().length)
  }
})

test('a watch of a swarm ends with the swarm, also when it began late', async (t) => {
  const { world, owner } = await scene(t)
  const { id } = await owner.api().call('swarm.start', { goal: 'g', capability: 'text.do', strategy: 'each' })
  await world.settle()
  const types: string[] = []
  for await (const event of owner.api().watch('swarm.watch', { id })) types.push(event.type)
  t.alike(types, ['swarm', 'lease', 'item', 'done'])
  t.is((await owner.api().call('swarm.results', { id: id.slice(0, 10) })).results.length, 1)
})

test('events follow what happens, refusals among it', async (t) => {
  const { owner } = await scene(t)
  const items = await watched(owner.api(), ['node.events', { follow: true }], async () => {
    await owner
      .api({ tier: 3 })
      .call('message.send', { agent: 'text@peer', text: 'x' })
      .catch(() => {})
  })
  t.ok(items.some(({ type }) => type === 'peer'))
  t.is(items.at(-1)?.type, 'refusal')
  t.is(items.at(-1)?.data['code'], 'ESCALATION_REQUIRED')
})

test('status counts what is there: members, links, work, faults', async (t) => {
  const { world, owner, peer } = await scene(t, { agents: [new FakeAgent(agentDefinition('slow'))] })
  const ask = (): Promise<unknown> => owner.api().call('message.send', { agent: 'slow@peer', text: 'x', wait: false })
  await ask()
  await ask()
  await world.settle()
  peer.source.set([], [{ file: '/agents/bad.md', line: 3, reason: 'broken' }])
  const before = await peer.api().call('node.status', {})
  t.alike([before.mesh.members, before.mesh.online], [2, 2])
  t.is(before.problems[0]?.message, '/agents/bad.md:3: broken')
  const gone = await owner.api().call('node.status', {})
  t.is(gone.state, 'running')
  t.alike(gone.tasks, { running: 0, queued: 0 }, 'work elsewhere is not work here')
})

test('an agent without a known card is looked up before it is unknown', async (t) => {
  const { world, owner, peer } = await scene(t)
  owner.core.registry.unregister(`text@${peer.id}`)
  const reply = owner.api().call('message.send', { agent: 'text@peer', text: 'x' })
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
})

test('a principal keeps its identity, for any claims of it', async (t) => {
  const { owner } = await scene(t)
  const principal: Partial<Principal> = { scopes: ['read'] }
  const api = owner.api(principal)
  await failsWith(t, 'FORBIDDEN', () => api.call('invite.create', { trust: 'mine', scopes: ['admin'] } as object))
})
