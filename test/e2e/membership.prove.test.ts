import test from 'brittle'
import { testMesh, twoAdmins, until, untilOnline, untilAgent, untilPeer, type TestNode } from '../support/nodes.js'

test('the owner is away: an admin admits a third node, members continue to work, entries of a non-writer are appended; the owner catches up', async (t) => {
  const mesh = await testMesh(t)
  const [a, b] = await twoAdmins(mesh)
  const c = await mesh.start('c', { join: (await a.api.call('invite.create', { trust: 'mine' })).code })
  await Promise.all([untilOnline(b, 2), untilOnline(c, 2)])
  a.kill('SIGKILL')
  await a.exited
  await Promise.all([untilPeer(b, 'a', 'offline'), untilPeer(c, 'a', 'offline')])

  const invite = await b.json<{ code: string }>(['invite', '--mine'])
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
