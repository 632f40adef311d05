import test, { type Assert } from 'brittle'
import { failsWith } from '../../support/fails.js'
import { type FakeNode, memoryAddresses, World } from '../../support/fake-node.js'
import type { PeerSight, ReachInfo } from '../../../src/ports/network/reach.js'
import type { PeerExam } from '../../../src/ports/peer-api.js'

const SINCE = '2030-01-02T03:04:05Z'
const REACH: ReachInfo = {
  dht: { state: 'answering', since: SINCE },
  nat: { kind: 'random', since: SINCE },
  address: '198.51.100.1'
}
const SIGHT: PeerSight = { isAnnounced: true, udp: null, webSockets: [], clockAheadMs: null }

/** Members `a` and `b` without a link, of which `a` sees the given. */
async function apart(t: Assert, sight: Partial<PeerSight>, reach: ReachInfo = REACH) {
  const world = new World(t)
  const below = { info: () => reach, examine: async () => ({ ...SIGHT, ...sight }) }
  const [a, b] = [await world.member('a', { parts: { reach: below } }), await world.member('b')]
  a.links.withoutPlace = [b.id]
  b.links.withoutPlace = [a.id]
  return { world, a, b }
}

async function examined({ world, a }: { world: World; a: FakeNode }): Promise<PeerExam> {
  const exam = a.api().call('peers.examine', { peer: 'b' })
  await world.pass(10_000)
  return await exam
}

test('a member that is not reached gets the cause in one sentence, with a next step', async (t) => {
  const end = { fault: 'not-punched', nats: null, isRandomHere: false } as const
  const silent: ReachInfo = { ...REACH, dht: { state: 'silent', since: SINCE } }
  const cases: [Partial<PeerSight>, string, string, ReachInfo?][] = [
    [{}, 'b is not found, since no node of the DHT answers here', 'status', silent],
    [{ udp: { ...end, isRandomHere: true } }, 'the NAT here is random', '--websocket'],
    [{ udp: end }, 'a NAT or a firewall lets no packet through', '--websocket'],
    [{ isAnnounced: false }, 'b is not announced in the DHT: its node is off', '# on the machine of b'],
    [{ udp: { ...end, fault: 'silent' } }, 'b was announced, but does not answer', '# on the machine of b'],
    [{}, 'no cause shows here', 'doctor']
  ]
  for (const [sight, words, next, reach] of cases) {
    const { verdict, path, sight: found } = await examined(await apart(t, sight, reach))
    t.alike([verdict.ok, path, found?.isAnnounced], [false, null, sight.isAnnounced ?? true])
    t.ok(verdict.text.includes(words) && verdict.next.includes(next), `${verdict.text} | ${verdict.next}`)
  }
})

test('a linked member is reported with its path, versions and rights', async (t) => {
  const world = new World(t)
  const [a, b] = [await world.member('a'), await world.member('b')]
  await world.link(a, b)
  const { verdict, path, version, ownVersion, policy, relayedBy } = await examined({ world, a })
  t.alike([verdict.ok, path !== null, relayedBy], [true, true, null], verdict.text)
  t.ok(verdict.text.startsWith('b is linked directly'), verdict.text)
  t.ok(version !== null && ownVersion.startsWith('a2a-node/'))
  t.alike(policy, { allow: [], ask: [], deny: [] }, 'no agent here')
})

test('a member behind another one is reported with the relay', async (t) => {
  const world = new World(t)
  const [a, b, c] = [await world.member('a'), await world.member('c'), await world.member('b')]
  a.links.withoutPlace = [c.id]
  await world.link(a, b)
  await world.link(b, c)
  await world.pass(5000)
  const { verdict, relayedBy } = await examined({ world, a })
  t.alike(
    [verdict.ok, relayedBy?.name, verdict.text],
    [true, 'c', 'b has no link to this node; c carries messages to it']
  )
})

test('this node itself is examined by doctor without a peer, and only an admin examines others', async (t) => {
  const world = new World(t)
  const [a] = [await world.member('a'), await world.member('b')]
  await failsWith(t, 'USAGE', () => a.api().call('peers.examine', { peer: 'a' }))
  await failsWith(t, 'FORBIDDEN', () => a.api({ scopes: ['read', 'send'] }).call('peers.examine', { peer: 'b' }))
})

test('the verdict on a member that is not reached names the addresses of peers add that failed', async (t) => {
  const world = new World(t)
  const list = () => [{ address: '10.0.0.5:7422', fault: 'connect ECONNREFUSED' }]
  const a = await world.member('a', { parts: { givenAddresses: { ...memoryAddresses(), list } } })
  const b = await world.member('b')
  a.links.withoutPlace = [b.id]
  b.links.withoutPlace = [a.id]
  const { verdict } = await examined({ world, a })
  t.ok(verdict.text.endsWith('; 10.0.0.5:7422: connect ECONNREFUSED'), verdict.text)
})
