import test from 'brittle'
import { localMesh, untilOnline, untilPeer } from '../support/nodes.js'

test('a revoked node is cut, stops with REVOKED, and stays out after everybody restarted', async (t) => {
  const mesh = await localMesh(t)
  const [a, b, c] = await mesh.meshOf('a', 'b', 'c')
  const from = Date.now()
  t.is((await a.cli(['peers', 'revoke', 'c'])).code, 0)
  const { code } = await c.exited
  t.is(code, 5, c.errors())
  t.ok(Date.now() - from < 5000, `cut and ended after ${Date.now() - from} ms, the command included`)
  t.ok(/REVOKED/.test(c.errors()))
  await untilPeer(b, 'c', 'revoked')
  await Promise.all([a.stop(), b.stop()])
  const [a2, b2] = await Promise.all([mesh.start('a', { home: a.home }), mesh.start('b', { home: b.home })])
  await Promise.all([untilOnline(a2, 1), untilOnline(b2, 1)])
  const back = await mesh.run(['--home', c.home, 'start', '--json'])
  t.is(back.code, 5, back.stderr)
  t.ok(/REVOKED/.test(back.stderr))
  const joined = await mesh.run([
    '--home',
    c.home,
    'start',
    '--json',
    '--join',
    (await a2.api.call('invite.create', { trust: 'mine' })).code
  ])
  t.ok(joined.code === 5 || joined.code === 9, 'nor by a new invite in the same home')
  for (const node of [a2, b2]) {
    const { peers } = await node.api.call('peers.list', { all: true })
    t.is(peers.find((one) => one.name === 'c')?.status, 'revoked')
    t.is((await node.api.call('peers.list', {})).peers.length, 1, 'not listed without --all')
  }
})
