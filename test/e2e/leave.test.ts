import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { type LocalMesh, type LocalNode, localMesh, untilOnline, untilPeer } from '../support/nodes.js'

interface Refusal {
  readonly code: string
  readonly message: string
  readonly next: readonly string[]
}

/** The error of a start of a stopped home with a code. */
async function refusedStart(mesh: LocalMesh, home: string, words: readonly string[]): Promise<Refusal> {
  const { code, stderr } = await mesh.run(['--home', home, 'start', '--json', ...words])
  if (code === 0) throw new Error('the start was not refused')
  const line = stderr.split('\n').find((one) => one.startsWith('{"error"')) ?? '{}'
  return (JSON.parse(line) as { error: Refusal }).error
}

async function inviteOf(node: LocalNode): Promise<string> {
  return (await node.api.call('invite.create', {})).code
}

async function formerNodes(home: string): Promise<string[]> {
  return (await fs.readdir(home)).filter((name) => name.startsWith('former-node'))
}

test('of two machines with a mesh each, one joins the other by --leave, under its name and with its agents and flags', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  const alone = await mesh.start('b', { args: ['--http', '0'] })
  await alone.cli(['agents', 'new', 'helper'])
  await alone.stop()
  const code = await inviteOf(a)

  const refusal = await refusedStart(mesh, alone.home, ['--join', code])
  t.is(refusal.code, 'ALREADY_IN_MESH')
  t.ok(refusal.message.includes('no other member and no work'), refusal.message)
  t.is(refusal.next[0], `a2a-node --home ${alone.home} start --join - --leave`)
  t.is((await refusedStart(mesh, alone.home, ['--join', 'x'.repeat(40), '--leave'])).code, 'INVITE_INVALID')
  t.alike(await formerNodes(alone.home), [], 'a mistyped code changes nothing')

  const joined = await mesh.start('b', { join: code, args: ['--leave'] })
  await untilOnline(a, 1)
  t.is(joined.info.mesh.id, a.info.mesh.id)
  t.is(joined.info.node.name, 'b')
  t.not(joined.info.node.id, alone.info.node.id, 'the key is a new one')
  t.ok(joined.info.http !== null, 'the flag --http goes on')
  t.ok((await fs.readdir(path.join(joined.home, 'agents'))).includes('helper.md'))
  const [former = ''] = await formerNodes(joined.home)
  t.ok((await fs.readdir(path.join(joined.home, former))).includes('seed.json'), 'nothing is deleted')
})

test('a node that another member or a shared document needs leaves by leave alone, and its data stays in the home', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await mesh.meshOf('a', 'b')
  if (a === undefined || b === undefined) throw new Error('no nodes')
  const c = await mesh.start('c')
  t.is((await c.cli(['doc', 'set', 'plan', 'text'])).code, 0)
  for (const node of [b, c]) await node.stop()
  const code = await inviteOf(a)
  const withMember = await refusedStart(mesh, b.home, ['--join', code, '--leave'])
  t.ok(withMember.message.endsWith('with 1 other member'), withMember.message)
  const withWork = await refusedStart(mesh, c.home, ['--join', code, '--leave'])
  t.ok(withWork.message.endsWith('with 1 shared document'), withWork.message)
  for (const { code: name, next } of [withMember, withWork])
    t.alike([name, next[0]?.endsWith(' leave --dry-run')], ['ALREADY_IN_MESH', true])

  const listed = await mesh.run(['--home', b.home, 'leave', '--dry-run'])
  t.is(listed.code, 0, listed.stderr)
  for (const text of ['members   a stay', 'moves     the key', `into      ${b.home}/former-node-`])
    t.ok(listed.stdout.includes(text), text)
  t.is((await mesh.run(['--home', b.home, 'leave'])).code, 2, 'without a terminal --yes is needed')
  t.alike(await formerNodes(b.home), [])
  const left = await mesh.run(['--home', b.home, 'leave', '--yes', '--json'])
  t.is(left.code, 0, left.stderr)
  const { movedTo, former } = JSON.parse(left.stdout) as { movedTo: string; former: { id: string } }
  t.is(former.id, b.info.node.id)
  t.ok((await fs.readdir(movedTo)).includes('mesh.json'))
  t.is((await mesh.run(['--home', b.home, 'leave', '--yes'])).code, 9, 'a home in no mesh has none to leave')
})

test('a revoked node joins again under a new key by the one command that its error names', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await mesh.meshOf('a', 'b')
  if (a === undefined || b === undefined) throw new Error('no nodes')
  await a.api.call('peers.revoke', { peer: 'b' })
  await b.exited
  const { code, next } = await refusedStart(mesh, b.home, [])
  t.alike([code, next], ['REVOKED', [`a2a-node --home ${b.home} start --join - --leave`]])
  const again = await mesh.start('b', { join: await inviteOf(a), args: ['--leave'] })
  await untilOnline(a, 1)
  t.not(again.info.node.id, b.info.node.id)
  await untilPeer(a, again.info.node.name, 'online')
})

test('leave and reset refuse a home whose node runs, and a directory without a node, and change nothing', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  const key = await fs.readFile(path.join(a.home, 'seed.json'), 'utf8')
  for (const command of ['leave', 'reset']) {
    const ran = await mesh.run(['--home', a.home, command, '--yes'])
    t.is(ran.code, 9, ran.stderr)
    t.ok(ran.stderr.includes('[ALREADY_RUNNING]'), ran.stderr)
    const elsewhere = path.join(await mesh.dir(), 'elsewhere')
    t.is((await mesh.run(['--home', elsewhere, command, '--yes'])).code, 9)
    await t.exception(fs.stat(elsewhere), /ENOENT/)
  }
  t.is(await fs.readFile(path.join(a.home, 'seed.json'), 'utf8'), key)
  t.alike(await formerNodes(a.home), [])
  t.is((await a.json<{ state: string }>(['status'])).state, 'running')
})

test('reset lists each path, removes the data of the node and no file of the user, and the next start makes a new node', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  await a.cli(['agents', 'new', 'helper'])
  await fs.writeFile(path.join(a.home, 'config.yaml'), 'node:\n  name: a\n')
  await fs.writeFile(path.join(a.home, 'notes.txt'), 'mine')
  await a.stop()
  const listed = await mesh.run(['--home', a.home, 'reset', '--dry-run'])
  t.is(listed.code, 0, listed.stderr)
  for (const name of ['store', 'ledger', 'audit', 'seed.json', 'mesh.json.copy'])
    t.ok(listed.stdout.includes(`removes   ${path.join(a.home, name)}\n`), name)
  t.ok(listed.stdout.includes(`keeps     ${path.join(a.home, 'config.yaml')}\n`), listed.stdout)
  t.is((await mesh.run(['--home', a.home, 'reset'])).code, 2)
  t.ok((await fs.readdir(a.home)).includes('seed.json'), 'nothing is removed without a yes')
  t.is((await mesh.run(['--home', a.home, 'reset', '--yes'])).code, 0)
  t.alike((await fs.readdir(a.home)).sort(), ['agents', 'config.yaml', 'notes.txt', 'policy.yaml'])
  t.is((await mesh.run(['--home', a.home, 'reset', '--yes'])).code, 9, 'there is nothing more to remove')
  const next = await mesh.start('a')
  t.not(next.info.node.id, a.info.node.id)
})
