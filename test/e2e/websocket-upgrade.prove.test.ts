import test from 'brittle'
import HyperDHT from 'hyperdht'
import { type LocalNode, untilAgent, untilTrue } from '../support/nodes.js'
import { cutNetwork, pathTo, stats } from '../support/websocket-network.js'

/** Calls that are under way at once. */
const LANES = 6

test('a link over a WebSocket moves to UDP when that passes later, under load, and no call is lost or run twice', async (t) => {
  const net = await cutNetwork(t)
  const a = await net.start('a', net.serving)
  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  const b = await net.start('b', net.dialling, code)
  await Promise.all([untilAgent(a, 'text@b'), untilAgent(b, 'text@a')])
  t.is(await pathTo(b, 'a'), 'websocket')
  const outcomes: string[] = []
  let isOver = false
  const lane = async (node: LocalNode, agent: string): Promise<void> => {
    while (!isOver) outcomes.push(await stats(node, agent).catch(String))
  }
  const lanes = Array.from({ length: LANES }, (_, n) => (n % 2 === 0 ? lane(b, 'text@a') : lane(a, 'text@b')))
  const { host, port } = net.bootstrap
  const bootstrap = HyperDHT.bootstrapper(port, host, { host })
  t.teardown(() => bootstrap.destroy({ force: true }))
  for (const [node, peer] of [
    [b, 'a'],
    [a, 'b']
  ] as const)
    await untilTrue(async () => (await pathTo(node, peer)) === 'local', `${node.name} has a link by UDP`)
  const enough = outcomes.length + 5 * LANES
  await untilTrue(async () => outcomes.length >= enough, 'calls go on')
  isOver = true
  await Promise.all(lanes)
  t.alike([...new Set(outcomes)], ['COMPLETED'])
})
