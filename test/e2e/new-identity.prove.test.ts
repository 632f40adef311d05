import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { doctor, failing } from '../support/doctor.js'
import { testMesh, type TestMesh, untilAgent, untilPeer } from '../support/nodes.js'

const AGENT = `---
name: counter
description: Counts.
a2a:
  capabilities: [{ id: text.count, description: Counts. }]
  runtime: { type: command, command: [cat] }
---
`

interface Refusal {
  readonly code: string
  readonly message: string
  readonly next: readonly string[]
}

function errorOf(stderr: string): Refusal {
  const line = stderr.split('\n').find((one) => one.startsWith('{"error"')) ?? '{}'
  return (JSON.parse(line) as { error: Refusal }).error
}

async function startError(mesh: TestMesh, home: string): Promise<Refusal> {
  return errorOf((await mesh.run(['--home', home, 'start', '--json'])).stderr)
}

function choices(home: string): string[] {
  return ['--new-identity', '--repair'].map((how) => `a2a-node --home ${home} doctor ${how}`)
}

/**
 * Copies the home of a running node. Begins again when a file of it, such as one being written, was gone before its
 * turn.
 */
async function copyWhileRunning(home: string, to: string): Promise<void> {
  try {
    await fs.cp(home, to, { recursive: true, filter: (file) => !file.endsWith('.sock') })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    await fs.rm(to, { recursive: true, force: true })
    await copyWhileRunning(home, to)
  }
}

test('a copied home becomes a node of its own beside the original, joins by an invite, and both see each other', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const [a, b] = await mesh.meshOf('a', 'b')
  if (a === undefined || b === undefined) throw new Error('no nodes')
  await fs.writeFile(path.join(b.home, 'agents', 'counter.md'), AGENT)
  await fs.writeFile(path.join(b.home, 'config.yaml'), 'node:\n  name: b\n')
  await b.api.call('token.create', { name: 'ci', scopes: ['read'] })
  await untilAgent(a, 'counter@b')
  const copy = path.join(await mesh.dir(), 'copy')
  await copyWhileRunning(b.home, copy)

  const refusal = await startError(mesh, copy)
  t.is(refusal.code, 'STORE_DAMAGED')
  t.ok(refusal.message.includes('was copied or moved from elsewhere'), refusal.message)
  t.alike(refusal.next, choices(copy))
  const found = await doctor(mesh, copy)
  t.alike(failing(found), ['store'])
  t.alike(found.checks.find(({ name }) => name === 'store')?.next, choices(copy))
  const unasked = await mesh.run(['--home', copy, 'doctor', '--new-identity'])
  t.is(unasked.code, 2, unasked.stderr)
  for (const text of [
    'keeps     settings',
    'keeps     agent files',
    'drops     the key',
    'drops     access tokens',
    'drops     the audit log'
  ])
    t.ok(unasked.stdout.includes(text), text)
  t.alike(failing(await doctor(mesh, copy)), ['store'], 'nothing changes without a yes')

  const changed = await mesh.run(['--home', copy, 'doctor', '--new-identity', '--name', 'c', '--yes', '--json'])
  t.is(changed.code, 0, changed.stderr)
  const { identity } = JSON.parse(changed.stdout) as {
    identity: { name: string; movedTo: string; former: { id: string; name: string } }
  }
  t.alike([identity.name, identity.former.id, identity.former.name], ['c', b.info.node.id, 'b'])
  t.is((await fs.stat(identity.movedTo)).mode & 0o777, 0o700)

  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  const joined = await mesh.run(['--home', copy, 'start', '--detach', '--join', code, '--json'])
  t.is(joined.code, 0, joined.stderr)
  t.teardown(() => mesh.run(['--home', copy, 'stop']))
  const node = (JSON.parse(joined.stdout) as { node: { id: string; name: string } }).node
  t.is(node.name, 'c', 'not the name of the settings, which the original has')
  t.not(node.id, b.info.node.id)
  for (const one of [a, b]) await untilPeer(one, 'c', 'online')
  await untilPeer(b, 'a', 'online')
  t.is((await a.api.call('peers.list', { all: true })).peers.length, 2)
  await Promise.all([untilAgent(a, 'counter@c'), untilAgent(a, 'counter@b')])
  for (const agent of ['counter@b', 'counter@c'])
    t.is((await a.json<{ outcome: string }>(['call', agent, 'text.count', '{}'])).outcome, 'COMPLETED')
  t.alike(JSON.parse((await mesh.run(['--home', copy, 'a2a', 'token', 'ls', '--json'])).stdout).tokens, [])
  t.is((await b.api.call('token.list', {})).tokens.length, 1)
  for (const one of [a, b]) t.absent(/conflict|diverged|quarantine/i.test(one.errors()), one.errors())
})

test('a new identity is refused where a node runs, without a node, and without --force where nothing shows a copy', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const a = await mesh.start('a')
  const change = (home: string, ...more: string[]) =>
    mesh.run(['--home', home, 'doctor', '--new-identity', '--yes', '--json', ...more])
  t.is(errorOf((await change(a.home, '--force')).stderr).code, 'ALREADY_RUNNING')
  t.is((await a.api.call('node.status', {})).node.id, a.info.node.id)
  await a.stop()
  const only = errorOf((await change(a.home)).stderr)
  t.alike([only.code, only.next.at(-1)], ['CONFLICT', `a2a-node --home ${a.home} doctor --new-identity --force`])
  t.is((await mesh.run(['--home', a.home, 'doctor', '--new-identity', '--repair'])).code, 2)
  t.is((await mesh.run(['--home', a.home, 'doctor', '--yes'])).code, 2, 'it is an option of --new-identity')
  const empty = await mesh.dir()
  t.is(errorOf((await change(empty)).stderr).code, 'CONFLICT')
  t.alike(await fs.readdir(empty), [], 'nothing is made')
  const again = await mesh.start('a', { home: a.home })
  t.is(again.info.node.id, a.info.node.id, 'the refused home is as before')
  await again.stop()
  // A cloned disk has the inodes of the original.
  t.is((await change(a.home, '--force')).code, 0)
  t.not((await mesh.start('a', { home: a.home })).info.node.id, a.info.node.id)
})
