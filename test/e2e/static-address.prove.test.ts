import test from 'brittle'
import type { PeerDetail } from '../../src/ports/peer-api.js'
import { type LocalNode, untilOnline, untilTrue } from '../support/nodes.js'
import { type CutNetwork, cutNetwork, pathTo, stats } from '../support/websocket-network.js'

/** Starts both nodes anew: without WebSockets, and where no bootstrap node answers. */
async function restarted(net: CutNetwork, former: readonly LocalNode[]): Promise<readonly [LocalNode, LocalNode]> {
  await Promise.all(former.map((one) => one.stop()))
  return await Promise.all([net.start('a', ['--no-websocket']), net.start('b', ['--no-via'])])
}

test('members without a DHT meet at an address that peers add names, and after restarts, also at the last one', async (t) => {
  const net = await cutNetwork(t)
  const first = await net.start('a', net.serving)
  const { code } = await first.api.call('invite.create', { trust: 'mine' })
  const joined = await net.start('b', net.dialling, code)
  await untilOnline(joined, 1)
  const { tcp } = await first.api.call('node.status', {})
  let [a, b] = await restarted(net, [first, joined])
  t.is((await a.api.call('node.status', {})).tcp, tcp, 'the port stays')
  const wrong = await b.cli(['peers', 'add', 'a', '--address', '127.0.0.1:1'])
  t.is(wrong.stdout, 'a is dialled at 127.0.0.1:1 too\n')
  const show = (): Promise<PeerDetail> => b.json<PeerDetail>(['peers', 'show', 'a'])
  await untilTrue(async () => (await show()).addresses?.[0]?.fault !== null, 'the address fails')
  t.ok((await b.cli(['peers', 'show', 'a'])).stdout.includes('127.0.0.1:1: connect ECONNREFUSED'))
  t.is(await pathTo(b, 'a'), null)
  await b.cli(['peers', 'remove', 'a', '--address', '127.0.0.1:1'])
  await b.cli(['peers', 'add', 'a', '--address', String(tcp)])
  await untilOnline(b, 1)
  t.is(await pathTo(b, 'a'), 'tcp')
  t.is(await pathTo(a, 'b'), 'tcp')
  t.is(await stats(a, 'text@b'), 'COMPLETED')
  ;[a, b] = await restarted(net, [a, b])
  await untilOnline(b, 1)
  t.alike((await show()).addresses, [{ address: tcp, fault: null }])
  const removed = await b.cli(['peers', 'remove', 'a', '--address', String(tcp)])
  t.is(removed.stdout, `a is not dialled at ${tcp} any more\n`)
  ;[a, b] = await restarted(net, [a, b])
  await untilOnline(b, 1)
  t.is(await pathTo(b, 'a'), 'tcp', 'at the address of the last link')
  t.alike((await show()).addresses, [])
})
