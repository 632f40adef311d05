import test from 'brittle'
import { testMesh, until, untilOnline, untilPeer, untilTrue, type TestMesh, type TestNode } from '../support/nodes.js'

/** A founder `a` and an admin `b`, who may invite and write. */
async function twoAdmins(mesh: TestMesh): Promise<[TestNode, TestNode]> {
  const a = await mesh.start('a')
  const { code } = await a.api.call('invite.create', { admin: true })
  const b = await mesh.start('b', { join: code })
  await Promise.all([untilOnline(a, 1), untilOnline(b, 1)])
  return [a, b]
}

test('one one-use invite, two joiners through two admins at once: one is in, the other has INVITE_USED and exits 5', async (t) => {
  const mesh = await testMesh(t)
  const [a, b] = await twoAdmins(mesh)
  const { code } = await a.api.call('invite.create', { uses: 1 })
  await untilTrue(async () => (await b.api.call('invite.list', {})).invites.some((one) => one.uses === 1 && !one.admin), 'b knows the invite')
  const outcomes = await Promise.allSettled([mesh.start('c', { join: code }), mesh.start('d', { join: code })])
  const refusedAtOnce = outcomes.filter((one) => one.status === 'rejected')
  for (const one of refusedAtOnce) t.ok(/INVITE_USED/.test(String(one.reason)), 'refused at once with its code')
  const started = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  if (started.length === 2) {
    const left = await Promise.race(started.map(async (node) => ({ node, ...(await node.exited) })))
    t.is(left.code, 5, left.node.errors())
    t.ok(/INVITE_USED/.test(left.node.errors()), 'cut when the admissions met')
  } else t.is(started.length, 1)
  const members = async (node: TestNode): Promise<string[]> =>
    (await node.api.call('peers.list', { all: true })).peers.map((one) => one.name).filter((name) => name === 'c' || name === 'd')
  await untilTrue(async () => (await members(a)).length === 1 && (await members(b)).length === 1, 'both admins know exactly one of them')
  t.alike(await members(a), await members(b), 'and the same one')
})

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
  const call = await c.json<{ outcome: string }>(['call', 'text@d', 'text.stats', '{"text":"one two"}'])
  t.is(call.outcome, 'COMPLETED')
  const run = await d.cli(['swarm', 'run', 'report', '--capability', 'host.report', '--json'])
  t.is(run.code, 0, run.stderr)
  const { agents } = await b.api.call('agents.list', { origin: 'remote' })
  t.ok(agents.some((one) => one.address === 'text@d'), 'the card of a node that may not write is known')

  const again = await mesh.start('a', { home: a.home })
  await untilPeer(again, 'd', 'online')
  t.ok((await again.api.call('agents.list', {})).agents.some((one) => one.address === 'text@d'), 'the owner caught up')
  const idle = await until(again.api, 'peers.list', {}, (now) => now.peers.every((one) => one.status === 'online'))
  t.alike(idle.peers.map((one) => one.name).toSorted(), ['b', 'c', 'd'])
})

test('a revoked node is cut, stops with REVOKED, and stays out after everybody restarted', async (t) => {
  const mesh = await testMesh(t)
  const [a, b, c] = await mesh.meshOf('a', 'b', 'c')
  t.is((await a.cli(['peers', 'revoke', 'c'])).code, 0)
  const { code } = await c.exited
  t.is(code, 5, c.errors())
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

test('each bad invite has its own code: garbled, expired, revoked, used', async (t) => {
  const mesh = await testMesh(t)
  const a = await mesh.start('a')
  const join = async (name: string, code: string): Promise<{ code: number | null; error: string }> => {
    const result = await mesh.run(['--home', `${await mesh.dir()}/${name}`, 'start', '--json', '--name', name, '--join', code])
    const line = result.stderr.trim().split('\n').find((one) => one.startsWith('{"error"')) ?? '{}'
    return { code: result.code, error: (JSON.parse(line) as { error?: { code: string } }).error?.code ?? result.stderr }
  }
  const good = await a.api.call('invite.create', {})
  const garbled = `${good.code.slice(0, 20)}${good.code[20] === 'y' ? 'b' : 'y'}${good.code.slice(21)}`
  t.alike(await join('g', garbled), { code: 5, error: 'INVITE_INVALID' })
  t.alike(await join('n', 'nonsense!'), { code: 5, error: 'INVITE_INVALID' })

  const expired = await a.api.call('invite.create', { ttlMs: 1000 })
  await untilTrue(async () => (await a.api.call('invite.list', {})).invites.some((one) => one.state === 'expired'), 'it has expired')
  t.alike(await join('e', expired.code), { code: 5, error: 'INVITE_EXPIRED' })

  const revoked = await a.api.call('invite.create', {})
  t.is((await a.cli(['invite', 'revoke', revoked.id.slice(0, 8)])).code, 0)
  t.alike(await join('r', revoked.code), { code: 5, error: 'INVITE_REVOKED' })

  const b = await mesh.start('b', { join: good.code })
  await untilOnline(b, 1)
  t.alike(await join('u', good.code), { code: 5, error: 'INVITE_USED' })
})

test('with no admin online a join gives up, says so, and leaves a home that behaves as a fresh one', { timeout: 90_000 }, async (t) => {
  const mesh = await testMesh(t)
  const a = await mesh.start('a')
  const { code } = await a.api.call('invite.create', {})
  await a.stop()
  const home = `${await mesh.dir()}/late`
  const result = await mesh.run(['--home', home, 'start', '--json', '--name', 'late', '--join', code])
  t.is(result.code, 6)
  t.ok(/NO_ADMIN_ONLINE/.test(result.stderr))
  const back = await mesh.start('a', { home: a.home })
  const late = await mesh.start('late', { home, join: code })
  await Promise.all([untilOnline(back, 1), untilOnline(late, 1)])
  t.is(late.info.mesh.id, back.info.mesh.id, 'the same code works when the admin is back')
})
