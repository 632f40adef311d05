import test, { type Assert } from 'brittle'
import { createLayer } from '../../../src/node/sdk/layer.js'
import { agentDefinition, echo, FakeAgent } from '../../support/fake-agents.js'
import { chain, put, relayed } from '../../support/chain.js'
import { World } from '../../support/fake-node.js'
import { forge } from '../../support/forge.js'

const CI = { tier: 3 as const, sandboxId: 'ci' }

async function scene(t: Assert, policy = '') {
  const world = new World(t)
  const c = await world.member('c', { terms: { tier: 0 }, policy })
  const m = await world.member('m', { terms: CI, agents: [new FakeAgent(agentDefinition('text'))] })
  await world.link(c, m)
  const layer = createLayer(c.core)
  const heard: string[] = []
  await c.core.attach({ id: 'lobby', tier: 3, sandboxId: 'ci', capabilities: [] })
  await c.core.attach({ id: 'vault', tier: 0, capabilities: [] })
  layer.router.onReceive('lobby', (e) => heard.push(`lobby ${e.type}`))
  layer.router.onReceive('vault', (e) => heard.push(`vault ${e.type} ${JSON.stringify(e.payload)}`))
  await world.settle()
  return { world, c, m, heard }
}

test('a stream to one agent is no way into another one of the node (sandbox, tier)', async (t) => {
  const { world, c, m, heard } = await scene(t)
  const timestamp = world.clock.now()
  forge(m, c, { type: 'notification', recipient: `vault@${c.id}`, payload: { a: 0 }, metadata: CI, timestamp })
  await world.settle()
  t.alike(
    c.audit.events.map((one) => one.code),
    ['SANDBOX_VIOLATION'],
    'the direct way is refused'
  )
  forge(m, c, {
    type: 'stream-start',
    recipient: `lobby@${c.id}`,
    correlationId: 's1',
    payload: { a: 1 },
    metadata: CI,
    timestamp
  })
  await world.settle()
  forge(m, c, {
    type: 'stream-data',
    recipient: `vault@${c.id}`,
    correlationId: 's1',
    payload: { evil: 1 },
    metadata: CI,
    timestamp
  })
  await world.settle()
  t.alike(
    heard.filter((one) => one.startsWith('vault')),
    [],
    'the vault (L0, in no sandbox) got nothing'
  )
})

test('nor with a policy that denies everything to that agent', async (t) => {
  const { world, c, m, heard } = await scene(t, 'rules:\n  - decision: deny\n    to: {agent: vault}\n')
  const timestamp = world.clock.now()
  forge(m, c, {
    type: 'stream-start',
    recipient: `lobby@${c.id}`,
    correlationId: 's1',
    payload: { a: 1 },
    metadata: CI,
    timestamp
  })
  await world.settle()
  forge(m, c, {
    type: 'stream-data',
    recipient: `vault@${c.id}`,
    correlationId: 's1',
    payload: { evil: 1 },
    metadata: CI,
    timestamp
  })
  await world.settle()
  t.alike(
    heard.filter((one) => one.startsWith('vault')),
    []
  )
})

test('an outstanding request of the operator to the weak node is no way into another agent', async (t) => {
  const { world, c, m, heard } = await scene(t)
  let thread = ''
  createLayer(m.core).router.onReceive('text', (e) => {
    thread = e.correlationId ?? e.id
  })
  c.api()
    .call('message.call', { agent: 'text@m', capability: 'text.do', input: 1 })
    .catch(() => {})
  await world.settle()
  t.ok(thread)
  forge(m, c, {
    type: 'stream-data',
    sender: `text@${m.id}`,
    recipient: `vault@${c.id}`,
    correlationId: thread,
    payload: { evil: 2 },
    metadata: CI,
    timestamp: world.clock.now()
  })
  await world.settle()
  t.alike(
    heard.filter((one) => one.startsWith('vault')),
    []
  )
})

// a (L3) and c (L1) speak through b. a opens a stream to the weak `lobby` of c and then writes to `vault` along it.
test('a stream that is carried is no way into another agent either, at the hop and at the end', async (t) => {
  const { world, a, b, c } = await chain(t, { terms: { a: { tier: 3 }, c: { tier: 0 } }, agent: echo('text') })
  const layer = createLayer(c.core)
  const heard: string[] = []
  await c.core.attach({ id: 'lobby', tier: 3 })
  await c.core.attach({ id: 'vault', tier: 0 })
  layer.router.onReceive('lobby', (e) => heard.push(`lobby ${e.type}`))
  layer.router.onReceive('vault', (e) => heard.push(`vault ${e.type}`))
  await world.settle()
  const send = async (agent: string, type: 'stream-start' | 'stream-data' | 'notification'): Promise<void> => {
    put(
      a,
      b,
      relayed(world, a, {
        to: c,
        firstHop: b,
        hops: [],
        changes: { recipient: `${agent}@${c.id}`, type, correlationId: 's1', payload: 1, metadata: { tier: 3 } }
      })
    )
    await world.settle()
  }
  await send('vault', 'notification')
  t.is(b.audit.of('refusal').at(-1)?.code, 'ESCALATION_REQUIRED', 'the direct way is refused at the hop')
  await send('lobby', 'stream-start')
  await send('vault', 'stream-data')
  t.alike(heard, ['lobby stream-start'])
})
