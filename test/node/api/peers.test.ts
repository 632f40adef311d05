import { checkedApi } from '../../../src/adapters/control/contract.js'
import { MAX_PINGS } from '../../../src/adapters/control/terms.js'
import test, { type Assert } from 'brittle'
import { failsWith } from '../../support/fails.js'
import { type FakeNode, type FakeNodeOptions, World } from '../../support/fake-node.js'

/** `a` has no place for `c`, which has a link to `b` alone, as `a` does. */
async function beyond(
  t: Assert,
  options: FakeNodeOptions = {}
): Promise<{ world: World; a: FakeNode; b: FakeNode; c: FakeNode }> {
  const world = new World(t)
  const [a, b, c] = [await world.member('a'), await world.member('b', options), await world.member('c')]
  a.links.withoutPlace = [c.id]
  await world.link(a, b)
  await world.link(b, c)
  await world.pass(5000)
  return { world, a, b, c }
}

test('a ping of a member behind another one names the relay, and the messages that pass', async (t) => {
  const { world, a } = await beyond(t)
  t.is((await a.api().call('peers.list', {})).peers.find((one) => one.name === 'c')?.path, 'relayed')
  const failing = failsWith(t, 'PEER_OFFLINE', () => a.api().call('peers.ping', { peer: 'c' }))
  await world.settle()
  const { message, next } = await failing
  t.is(message, 'c has no direct link; it is reached by way of b (relayed), which carries messages but no pings')
  t.alike(next, ['a2a-node agents --remote', 'a2a-node call <agent> <capability> <json>'])
})

test('a ping of a member to which others have links and carry nothing says that', async (t) => {
  const { world, a } = await beyond(t, { settings: { forward: false } })
  const failing = failsWith(t, 'PEER_OFFLINE', () => a.api().call('peers.ping', { peer: 'c' }))
  await world.settle()
  t.is(
    (await failing).message,
    'c has no direct link; another had one to it within the last minute (relayed), but none carries anything to it now'
  )
})

test('a ping that nobody answers names the member, the time and the answers before it', async (t) => {
  const world = new World(t)
  const [a, b] = [await world.member('a'), await world.member('b')]
  const [, there] = world.net.connect(a.id, b.id)
  await world.settle()
  there.isHeld = true
  const failing = failsWith(t, 'TIMEOUT', () => a.api().call('peers.ping', { peer: 'b', count: 3 }))
  await world.settle()
  await world.pass(5000)
  const { message, next } = await failing
  t.is(message, 'b: no answer to the ping within 5 s, after 0 of 3 answers; no further ping is sent')
  t.alike(next, ['a2a-node peers show b'])
})

test('a remembered route that leads nowhere by now is not reported as one', async (t) => {
  const { world, a, b, c } = await beyond(t)
  const ping = async (): Promise<string> => {
    const failing = failsWith(t, 'PEER_OFFLINE', () => a.api().call('peers.ping', { peer: 'c' }))
    await world.settle()
    return (await failing).message
  }
  t.ok((await ping()).includes('by way of b'))
  world.net.disconnect(b.id, c.id)
  t.is(
    await ping(),
    'c has no direct link; another had one to it within the last minute (relayed), but none carries anything to it now'
  )
  t.is(a.core.routes.next(c.id), null)
})

test('a ping of a member that nobody reaches says no more than that it is offline', async (t) => {
  const { world, a, b, c } = await beyond(t)
  world.net.disconnect(b.id, c.id)
  await world.pass(66_000)
  const failing = failsWith(t, 'PEER_OFFLINE', () => a.api().call('peers.ping', { peer: 'c' }))
  await world.settle()
  t.absent((await failing).message.includes('relayed'))
})

test('a ping makes a link where it can, and measures it', async (t) => {
  const { world, a, c } = await beyond(t)
  a.links.reachable.add(c.id)
  const pinging = a.api().call('peers.ping', { peer: 'c', count: 2 })
  await world.settle()
  const { peer, rttMs } = await pinging
  t.alike([peer.name, rttMs.length], ['c', 2])
})

test('a ping has as many answers as were asked for, up to the most that the control API takes', async (t) => {
  const { world, a, c } = await beyond(t)
  a.links.reachable.add(c.id)
  const pinging = checkedApi(a.api()).call('peers.ping', { peer: 'c', count: MAX_PINGS })
  await world.settle()
  t.is((await pinging).rttMs.length, MAX_PINGS)
})

test('a member that this node keeps out for its strikes is a problem in status and peers until it may come back', async (t) => {
  const world = new World(t)
  const [a, b] = [await world.member('a'), await world.member('b')]
  await world.link(a, b)
  const keptOut = async (): Promise<unknown[]> => {
    const { problems } = await a.api().call('node.status', {})
    const { peers } = await a.api().call('peers.list', {})
    return [...problems, ...peers.flatMap(({ problem }) => problem ?? [])].map(({ code, next }) => [code, next])
  }
  t.alike(await keptOut(), [])
  a.links.keptOut.add(b.id)
  const problem = ['PEER_KEPT_OUT', 'a2a-node audit --peer b']
  t.alike(await keptOut(), [problem, problem])
  a.links.keptOut.delete(b.id)
  t.alike(await keptOut(), [])
})
