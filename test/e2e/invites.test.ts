import test from 'brittle'
import { localMesh, twoAdmins, untilOnline, untilTrue, type LocalNode } from '../support/nodes.js'

test('one one-use invite, two joiners through two admins at once: one is in, the other has INVITE_USED and exits 5', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await twoAdmins(mesh)
  const { code } = await a.api.call('invite.create', { trust: 'mine', uses: 1 })
  await untilTrue(
    async () => (await b.api.call('invite.list', {})).invites.some((one) => one.uses === 1 && !one.admin),
    'b knows the invite'
  )
  const outcomes = await Promise.allSettled([mesh.start('c', { join: code }), mesh.start('d', { join: code })])
  const refusedAtOnce = outcomes.filter((one) => one.status === 'rejected')
  for (const one of refusedAtOnce) t.ok(/INVITE_USED/.test(String(one.reason)), 'refused at once with its code')
  const started = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const settledAt = Date.now()
  if (started.length === 2) {
    const left = await Promise.race(started.map(async (node) => ({ node, ...(await node.exited) })))
    t.is(left.code, 5, left.node.errors())
    t.ok(/INVITE_USED/.test(left.node.errors()), 'cut when the admissions met')
  } else t.is(started.length, 1)
  const members = async (node: LocalNode): Promise<string[]> =>
    (await node.api.call('peers.list', { all: true })).peers
      .map((one) => one.name)
      .filter((name) => name === 'c' || name === 'd')
  await untilTrue(
    async () => (await members(a)).length === 1 && (await members(b)).length === 1,
    'both admins know exactly one of them'
  )
  t.ok(Date.now() - settledAt < 5000, `after ${Date.now() - settledAt} ms`)
  t.alike(await members(a), await members(b), 'and the same one')
})

test('each bad invite has its own code: garbled, expired, revoked, used', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  const join = async (name: string, code: string): Promise<{ code: number | null; error: string }> => {
    const result = await mesh.run([
      '--home',
      `${await mesh.dir()}/${name}`,
      'start',
      '--json',
      '--name',
      name,
      '--join',
      code
    ])
    const line =
      result.stderr
        .trim()
        .split('\n')
        .find((one) => one.startsWith('{"error"')) ?? '{}'
    return { code: result.code, error: (JSON.parse(line) as { error?: { code: string } }).error?.code ?? result.stderr }
  }
  const good = await a.api.call('invite.create', { trust: 'mine' })
  const garbled = `${good.code.slice(0, 20)}${good.code[20] === 'y' ? 'b' : 'y'}${good.code.slice(21)}`
  t.alike(await join('g', garbled), { code: 5, error: 'INVITE_INVALID' })
  t.alike(await join('n', 'nonsense!'), { code: 5, error: 'INVITE_INVALID' })

  const expired = await a.api.call('invite.create', { trust: 'mine', ttlMs: 1000 })
  await untilTrue(
    async () => (await a.api.call('invite.list', {})).invites.some((one) => one.state === 'expired'),
    'it has expired'
  )
  t.alike(await join('e', expired.code), { code: 5, error: 'INVITE_EXPIRED' })

  const revoked = await a.api.call('invite.create', { trust: 'mine' })
  t.is((await a.cli(['invite', 'revoke', revoked.id.slice(0, 8)])).code, 0)
  t.alike(await join('r', revoked.code), { code: 5, error: 'INVITE_REVOKED' })

  const b = await mesh.start('b', { join: good.code })
  await untilOnline(b, 1)
  t.alike(await join('u', good.code), { code: 5, error: 'INVITE_USED' })
})

test('with no admin online a join gives up, says so, and leaves a home that behaves as a fresh one', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  await a.stop()
  const home = `${await mesh.dir()}/late`
  const result = await mesh.run(['--home', home, 'start', '--json', '--name', 'late', '--join', code], {
    env: { A2A_NODE_NETWORK_JOIN_TIMEOUT_MS: '2000' }
  })
  t.is(result.code, 6)
  t.ok(/NO_ADMIN_ONLINE/.test(result.stderr))
  const back = await mesh.start('a', { home: a.home })
  const late = await mesh.start('late', { home, join: code })
  await Promise.all([untilOnline(back, 1), untilOnline(late, 1)])
  t.is(late.info.mesh.id, back.info.mesh.id, 'the same code works when the admin is back')
})
