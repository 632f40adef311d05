import test from 'brittle'
import type { Problem } from '../../src/ports/node-api.js'
import { type LocalNode, untilAgent, untilOnline, untilTrue } from '../support/nodes.js'
import { cutNetwork, pathTo, stats } from '../support/websocket-network.js'

async function codes(node: LocalNode): Promise<string[]> {
  return (await node.json<{ problems: Problem[] }>(['status'])).problems.map(({ code }) => code)
}

test('where UDP does not pass, nodes join by a WebSocket, reach each other through its node, and come back after its restart', async (t) => {
  const net = await cutNetwork(t)
  const a = await net.start('a', net.serving)
  const { code } = await a.api.call('invite.create', { trust: 'mine', uses: 2 })
  const [b, c] = await Promise.all([net.start('b', net.dialling, code), net.start('c', net.dialling, code)])
  await Promise.all([untilOnline(b, 1), untilAgent(b, 'text@c')])
  t.is(await pathTo(b, 'a'), 'websocket')
  t.is(await stats(b, 'text@a'), 'COMPLETED')
  t.is(await stats(b, 'text@c'), 'COMPLETED')
  const { stdout } = await a.cli(['status'])
  t.ok(/websocket\s+ws:\/\/127\.0\.0\.1:\d+\/mesh \(this machine and its reverse proxy alone\)/.test(stdout), stdout)
  t.absent((await codes(b)).includes('WEBSOCKET_OFFLINE'))
  await a.stop()
  await untilTrue(async () => (await codes(b)).includes('WEBSOCKET_OFFLINE'), 'b misses the node at its URL')
  // The flags of the first start are those of the next.
  await net.start('a', [])
  await Promise.all([untilOnline(b, 1), untilOnline(c, 1)])
  await untilTrue(async () => !(await codes(b)).includes('WEBSOCKET_OFFLINE'), 'b reaches it again')
})
