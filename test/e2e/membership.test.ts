import test from 'brittle'
import { localMesh, testMesh, twoAdmins, until, untilOnline, untilAgent, untilPeer, type TestNode } from '../support/nodes.js'

test('the owner is away: an admin lets a third node in, members work on, a non-writer is heard; the owner catches up', async (t) => {
  const mesh = await testMesh(t)
  const [a, b] = await twoAdmins(mesh)
  const c = await mesh.start('c', { join: (await a.api.call('invite.create', {})).code })
  await Promise.all([untilOnline(b, 2), untilOnline(c, 2)])
  a.kill('SIGKILL')
  await a.exited
  await Promise.all([untilPeer(b, 'a', 'offline'), untilPeer(c, 'a', 'offline')])

  const invite = await b.json<{ code: string }>(['invite'])
  const d = await mesh.start('d', { join: invite.code })
  await Promise.all([untilPeer(b, 'd', 'online'), untilPeer(c, 'd', 'online'), untilPeer(d, 'c', 'online')])
  await untilAgent(c, 'text@d')
  const call = await c.json<{ outcome: string }>(['call', 'text@d', 'text.stats', '{"text":"one two"}'])
  t.is(call.outcome, 'COMPLETED')
  const run = await d.cli(['swarm', 'run', 'report', '--capability', 'host.report', '--json'])
  t.is(run.code, 0, run.stderr)
  await untilAgent(b, 'text@d')
  t.pass('the card of a node that may not write is known')

  const again = await mesh.start('a', { home: a.home })
  await untilPeer(again, 'd', 'online')
  await untilAgent(again, 'text@d')
  t.pass('the owner caught up')
  const idle = await until(again.api, 'peers.list', {}, (now) => now.peers.every((one) => one.status === 'online'))
  t.alike(idle.peers.map((one) => one.name).toSorted(), ['b', 'c', 'd'])
})

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
  const joined = await mesh.run(['--home', c.home, 'start', '--json', '--join', (await a2.api.call('invite.create', {})).code])
  t.ok(joined.code === 5 || joined.code === 9, 'nor by a new invite in the same home')
  for (const node of [a2, b2]) {
    const { peers } = await node.api.call('peers.list', { all: true })
    t.is(peers.find((one) => one.name === 'c')?.status, 'revoked')
    t.is((await node.api.call('peers.list', {})).peers.length, 1, 'not listed without --all')
  }
})

test('a stopped process is offline within 8 s, and nobody logs anything for it', async (t) => {
  const mesh = await testMesh(t)
  const [a, b] = await mesh.meshOf('a', 'b')
  const before = await logged(a)
  const from = Date.now()
  b.kill('SIGSTOP')
  await untilPeer(a, 'b', 'offline')
  t.ok(Date.now() - from < 8000, `noticed after ${Date.now() - from} ms`)
  t.is(await logged(a), before, 'presence is no log entry')
  b.kill('SIGCONT')
  await untilPeer(a, 'b', 'online')
})

async function logged(node: TestNode): Promise<number> {
  const { counters } = await node.api.call('node.metrics', {})
  return counters.filter((one) => one.name === 'log_entries_submitted').reduce((sum, one) => sum + one.value, 0)
}
