import test, { type Assert } from 'brittle'
import { failsWith } from '../../support/fails.js'
import { echo } from '../../support/fake-agents.js'
import { type FakeNode, SETTINGS, World } from '../../support/fake-node.js'

interface Scene {
  readonly world: World
  readonly plain: FakeNode
  readonly ci: FakeNode
  readonly prod: FakeNode
}

/** A node in no sandbox, with an agent that is in one, and two nodes in a sandbox each; nothing gets into the log. */
async function scene(t: Assert, allow: readonly string[] = []): Promise<Scene> {
  const world = new World(t)
  world.log.isWritable = false
  const sandbox = { enforced: true, crossSandboxAllowList: [...allow] }
  const settings = { rules: { ...SETTINGS.rules, sandbox } }
  const plain = await world.member('plain', { agents: [echo('text'), echo('boxed', { sandboxId: 'ci' })], settings })
  const ci = await world.member('ci', { agents: [echo('built')], terms: { sandboxId: 'ci' }, settings })
  const prod = await world.member('prod', { agents: [echo('shop')], terms: { sandboxId: 'prod' }, settings })
  await world.link(plain, ci, prod)
  return { world, plain, ci, prod }
}

async function listed(node: FakeNode): Promise<string[]> {
  return (await node.api().call('agents.list', {})).agents.map((one) => one.address).sort()
}

test('the operator of a sandboxed node finds the agents of its sandbox alone; one outside finds all', async (t) => {
  const { plain, ci, prod } = await scene(t)
  t.alike(await listed(ci), ['boxed@plain', 'built@ci'])
  t.alike(await listed(prod), ['shop@prod'])
  t.alike(await listed(plain), ['boxed@plain', 'built@ci', 'shop@prod', 'text@plain'])
  t.is((await ci.api().call('agents.show', { agent: 'boxed@plain' })).id, 'boxed')
  await failsWith(t, 'AGENT_NOT_FOUND', () => ci.api().call('agents.show', { agent: 'text@plain' }))
  t.alike(
    (await ci.api({ sandboxId: 'prod' }).call('agents.list', {})).agents,
    [],
    'a caller of another sandbox than its node finds nobody'
  )
})

test('an agent on the allow list is found across sandboxes', async (t) => {
  const { ci } = await scene(t, ['text'])
  t.alike(await listed(ci), ['boxed@plain', 'built@ci', 'text@plain'])
})

test('a node sends a sandboxed peer no agent of another sandbox, and every peer the agents that it may write to', async (t) => {
  const { world, plain, ci, prod } = await scene(t)
  const known = (of: FakeNode, to: FakeNode): string[] =>
    to.core.registry
      .ofNode(of.id)
      .map((card) => card.id)
      .sort()
  t.alike(known(prod, ci), [])
  t.alike(known(plain, prod), ['operator', 'text'])
  t.alike(known(plain, ci), ['boxed', 'operator', 'text'])
  t.alike(known(prod, plain), ['operator', 'shop'])
  prod.source.set([echo('shop', { description: 'new' }), echo('till')])
  await world.settle()
  t.alike(known(prod, ci), [], 'nor of changes')
  t.alike(known(prod, plain), ['operator', 'shop', 'till'])
  const reply = plain.api().call('message.send', { agent: 'built@ci', text: 'x' })
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
})

test('a query for agents is answered with the agents that the asking peer may find', async (t) => {
  const { world, plain, ci } = await scene(t)
  async function finds(asking: FakeNode, id: string): Promise<boolean> {
    const address = `${id}@${plain.id}`
    asking.core.registry.unregister(address)
    const asked = asking.core.agentLookup.ask(id)
    await world.settle()
    await asked
    return asking.core.registry.getByAddress(address) !== undefined
  }
  t.is(await finds(ci, 'boxed'), true)
  t.is(await finds(ci, 'text'), false)
})

test('a sandboxed caller gets no names of agents that it does not see: neither as candidates, nor as left out', async (t) => {
  const { ci } = await scene(t)
  const boxed = ci.api()
  for (const call of [
    () => boxed.call('agents.show', { agent: 'txt' }),
    () => boxed.call('message.send', { agent: 'txt', text: 'x' }),
    () => boxed.call('message.call', { agent: 'txt@plain', capability: 'text.do', input: 1 })
  ])
    t.absent(/text|plain/.test((await failsWith(t, 'AGENT_NOT_FOUND', call)).message.replace('txt@plain', '')))
  const near = await failsWith(t, 'AGENT_NOT_FOUND', () => boxed.call('message.send', { agent: 'bilt', text: 'x' }))
  t.ok(near.message.includes('did you mean built@ci'), 'a visible agent is still named')
  await failsWith(t, 'AGENT_NOT_FOUND', () =>
    boxed.call('message.call', { agent: 'text@plain', capability: 'no.such', input: 1 })
  )
  const swarm = { goal: 'g', capability: 'text.do', strategy: 'each' } as const
  t.absent((await failsWith(t, 'NO_CAPABLE_AGENT', () => boxed.call('swarm.start', swarm))).message.includes('plain'))
})

test('for a sandboxed caller what it does not see is not there; each refusal is on record', async (t) => {
  const { world, ci } = await scene(t)
  const boxed = ci.api()
  const refused = (): string[] => ci.audit.events.flatMap(({ code }) => (code === 'SANDBOX_VIOLATION' ? [code] : []))
  const call = { capability: 'text.do', input: 1 }
  const asks = [
    () => boxed.call('message.call', { agent: 'text@plain', ...call }),
    () => boxed.call('message.send', { agent: 'text@plain', text: 'x', type: 'notification' as const })
  ]
  for (const [place, ask] of asks.entries()) {
    const { message, next, data } = await failsWith(t, 'AGENT_NOT_FOUND', ask)
    const nobody = await failsWith(t, 'AGENT_NOT_FOUND', () =>
      boxed.call('message.call', { agent: 'tixt@plain', ...call })
    )
    t.alike(
      [message, next, data],
      [nobody.message.replace('tixt', 'text'), nobody.next, nobody.data],
      'as for an agent that is not'
    )
    t.is(refused().length, place + 1)
  }
  const capable = await failsWith(t, 'CAPABILITY_NOT_FOUND', () => boxed.call('message.call', { agent: null, ...call }))
  const none = await failsWith(t, 'CAPABILITY_NOT_FOUND', () =>
    boxed.call('message.call', { agent: null, ...call, capability: 'tixt.do' })
  )
  t.is(capable.message, none.message.replace('tixt', 'text'))
  t.is(refused().length, 3)
  const sending = boxed.call('message.send', { agent: '*', text: 'x', all: true })
  await world.settle()
  t.alike(
    (await sending).targets?.map((one) => one.agent).sort(),
    ['boxed@plain', 'built@ci'],
    'a broadcast names nobody else'
  )
  t.is(refused().length, 5, 'text and the operator of the other node')
  const rows = (await boxed.call('peers.list', {})).peers.map(({ name, agents }) => [name, ...agents].join(' '))
  t.alike(rows.sort(), ['owner', 'plain boxed', 'prod'])
  t.alike((await boxed.call('peers.show', { peer: 'plain' })).agents, ['boxed'])
})

test('an agent that works for the operator alone is none for any other caller of its node, and does nothing for them', async (t) => {
  const world = new World(t)
  const owner = await world.owner({ agents: [echo('text')] })
  const ran: unknown[] = []
  const capability = { id: 'any.do', name: 'Any', description: '', inputSchema: {}, outputSchema: {} }
  await owner.core.attach({
    id: 'own',
    isReserved: true,
    capabilities: [capability],
    run: ({ input }) => ran.push(input)
  })
  const call = { agent: 'own', capability: 'any.do', input: 1 }
  const scopes = ['read', 'send', 'admin'] as const
  for (const kind of ['page', 'token', 'mcp', 'agent'] as const) {
    const other = owner.api({ kind, tier: 0, scopes, ...(kind === 'agent' ? { agentId: 'text' } : {}) })
    t.alike(
      (await other.call('agents.list', {})).agents.map(({ id }) => id),
      ['text']
    )
    await failsWith(t, 'AGENT_NOT_FOUND', () => other.call('agents.show', { agent: 'own' }))
    for (const agent of ['own', 'own@owner', `own@${owner.id}`]) {
      await failsWith(t, 'AGENT_NOT_FOUND', () => other.call('message.call', { ...call, agent }))
      await failsWith(t, 'AGENT_NOT_FOUND', () => other.call('message.send', { agent, text: 'x' }))
    }
    await failsWith(t, 'CAPABILITY_NOT_FOUND', () => other.call('message.call', { ...call, agent: null }))
    const swarm = { goal: 'g', capability: 'any.do', strategy: 'each' } as const
    t.absent((await failsWith(t, 'NO_CAPABLE_AGENT', () => other.call('swarm.start', swarm))).message.includes('own'))
    const sending = other.call('message.send', { agent: '*', text: 'x', all: true })
    await world.settle()
    t.alike(
      (await sending).targets?.map(({ agent }) => agent),
      ['text@owner']
    )
    await failsWith(t, 'FORBIDDEN', () => other.call('a2a.find', { card: 'http://127.0.0.1:1/' }))
  }
  t.alike(ran, [])
  const program = await owner.core.attach({ id: 'program', onMessage: () => {} })
  const message = { recipient: 'own', type: 'request', payload: {} } as const
  await failsWith(t, 'POLICY_DENIED', () => program.send(message))
  const asked = owner.api().call('message.call', call)
  await world.settle()
  t.alike([(await asked).outcome, ran], ['COMPLETED', [1]], 'the operator has it done')
})

test('of several agents that a name may mean, a sandboxed caller means the one it sees', async (t) => {
  const world = new World(t)
  const plain = await world.member('plain', { agents: [echo('text')] })
  const ci = await world.member('ci', { agents: [echo('text')], terms: { sandboxId: 'ci' } })
  await world.link(plain, ci)
  await failsWith(t, 'AMBIGUOUS_NAME', () => plain.api().call('agents.show', { agent: 'text' }))
  t.is((await ci.api().call('agents.show', { agent: 'text' })).address, 'text@ci')
})
