import test, { type Assert } from 'brittle'
import { decodeControl, MAX_NAMED_AGENTS } from '../../../src/domain/channel/control.js'
import { CHECK_EVERY_MS } from '../../../src/node/agents/health.js'
import type { HealthFinding, HostedAgent } from '../../../src/ports/agent-runtime.js'
import { agentDefinition, capability, echo, FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'

const WELL: HealthFinding = { state: 'healthy', reason: null }
const ILL: HealthFinding = { state: 'unhealthy', reason: 'no module' }
const SKILL = 'shared.do'
/** Longer than findings of one round are collected. */
const COLLECTED_MS = 1000

/** An agent with a health that a test sets. */
class CheckedAgent extends FakeAgent implements HostedAgent {
  finding = ILL

  check(): Promise<HealthFinding> {
    return Promise.resolve(this.finding)
  }
}

function checked(id: string, finding: HealthFinding): CheckedAgent {
  const agent = new CheckedAgent(agentDefinition(id, { capabilities: [capability(SKILL)] }), () => ({
    ok: true,
    result: id
  }))
  agent.finding = finding
  return agent
}

/** Status and health of the agents of another node, by their ids. */
async function seenBy(node: FakeNode, of: FakeNode): Promise<Record<string, string>> {
  const { agents } = await node.api().call('agents.list', { origin: 'remote' })
  const own = agents.filter((one) => one.node.id === of.id)
  return Object.fromEntries(own.map(({ id, status, health }) => [id, `${status} ${health?.state ?? '-'}`]))
}

async function pair(t: Assert, agents: readonly HostedAgent[]) {
  const world = new World(t)
  const here = await world.member('here', { agents })
  const peer = await world.member('peer')
  await world.link(here, peer)
  await world.pass(COLLECTED_MS, 100)
  return { world, here, peer }
}

test('an agent that cannot work is unhealthy on other nodes too, until it can work again', async (t) => {
  const broken = checked('broken', ILL)
  const { world, here, peer } = await pair(t, [broken, checked('fine', WELL)])
  t.alike(await seenBy(peer, here), { broken: 'unhealthy unhealthy', fine: 'ready -' })
  broken.finding = WELL
  await world.pass(CHECK_EVERY_MS, 1000)
  t.alike(await seenBy(peer, here), { broken: 'ready -', fine: 'ready -' })
  broken.finding = ILL
  await world.pass(CHECK_EVERY_MS, 1000)
  t.is((await seenBy(peer, here))['broken'], 'unhealthy unhealthy')
})

test('a new version of an agent is checked at once, and other nodes see its health in time', async (t) => {
  const { world, here, peer } = await pair(t, [checked('one', WELL), echo('other')])
  t.is((await seenBy(peer, here))['one'], 'ready -')
  here.source.set([checked('one', ILL), echo('other')])
  await world.pass(COLLECTED_MS, 100)
  t.is((await seenBy(peer, here))['one'], 'unhealthy unhealthy')
  t.alike((await here.api().call('node.status', {})).agents.ready, ['other'])
  here.source.set([echo('one'), echo('other')])
  await world.pass(COLLECTED_MS, 100)
  t.is((await seenBy(peer, here))['one'], 'ready -', 'a version without a check is not unhealthy')
})

test('a node that links later learns of the agents that cannot work, and forgets them with the link', async (t) => {
  const { world, here } = await pair(t, [checked('broken', ILL)])
  const late = await world.member('late')
  await world.link(here, late)
  await world.pass(COLLECTED_MS, 100)
  t.is((await seenBy(late, here))['broken'], 'unhealthy unhealthy')
  t.ok(late.core.remoteCards.unableSince(here.id, 'broken') !== null)
  world.net.disconnect(here.id, late.id)
  await world.pass(COLLECTED_MS, 100)
  t.is(late.core.remoteCards.unableSince(here.id, 'broken'), null)
})

test('of agents of other nodes with a capability, one that can work is chosen', async (t) => {
  const { here, peer } = await pair(t, [checked('a-broken', ILL), checked('b-fine', WELL)])
  for (let i = 0; i < 3; i++) {
    const { agentId, nodeId } = peer.core.selector.pick({
      type: 'request',
      sender: { agentId: 'operator', nodeId: peer.id },
      capabilities: [SKILL]
    })
    t.alike([agentId, nodeId], ['b-fine', here.id])
  }
})

test('a report of agents that cannot work is bounded, and a message without one is understood', (t) => {
  const read = (unable: unknown): boolean => decodeControl('cards', { cards: [], all: null, unable }).ok
  t.ok(read(undefined))
  t.ok(read(Array.from({ length: MAX_NAMED_AGENTS }, (_, i) => `a${i}`)))
  for (const bad of [null, 'a', [1], [''], ['a'.repeat(65)], Array.from({ length: MAX_NAMED_AGENTS + 1 }, () => 'a')])
    t.absent(read(bad))
})
