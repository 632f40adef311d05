import test from 'brittle'
import { testMesh, untilOnline, untilPeer, untilTrue } from '../support/nodes.js'

test('a private network: one node serves the bootstrap, others join by the code alone and come back by their home', async (t) => {
  const mesh = await testMesh(t)
  const serve = ['--network', 'private', '--serve-bootstrap', `127.0.0.1:${mesh.port}`]
  const env = { A2A_NODE_NETWORK_KIND: undefined, A2A_NODE_LOCAL_PORT: undefined }
  const a = await mesh.start('a', { args: serve, env })
  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  const b = await mesh.start('b', { join: code, env })
  await Promise.all([untilOnline(a, 1), untilOnline(b, 1)])
  t.is((await b.api.call('node.status', {})).network, 'private')
  await Promise.all([a.stop(), b.stop()])
  // The member is there before its bootstrap: it keeps looking.
  const b2 = await mesh.start('b', { home: b.home, env })
  const a2 = await mesh.start('a', { home: a.home, args: serve, env })
  await Promise.all([untilOnline(a2, 1), untilOnline(b2, 1)])
  t.is((await b2.json<{ outcome: string }>(['call', 'text@a', 'text.stats', '{"text":"x"}'])).outcome, 'COMPLETED')
})

test('on the local network a survivor takes the bootstrap over, and a newcomer still gets in', async (t) => {
  const mesh = await testMesh(t)
  const a = await mesh.start('a')
  const b = await mesh.start('b', { join: (await a.api.call('invite.create', { trust: 'mine', admin: true })).code })
  await Promise.all([untilOnline(a, 1), untilOnline(b, 1)])
  await untilTrue(
    async () => (await b.api.call('invite.list', {})).invites.some((one) => one.used === 1),
    'b has the log'
  )
  a.kill('SIGKILL')
  await untilPeer(b, 'a', 'offline')
  const c = await mesh.start('c', { join: (await b.api.call('invite.create', { trust: 'mine' })).code })
  await Promise.all([untilPeer(b, 'c', 'online'), untilPeer(c, 'b', 'online')])
  t.is((await c.json<{ peer: { name: string } }>(['ping', 'b'])).peer.name, 'b')
})
