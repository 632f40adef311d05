import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import test from 'brittle'
import type { Assert } from 'brittle'
import { connect } from '../../src/client.js'
import { failsWith } from '../support/fails.js'
import { ROOT, testMesh, untilOnline } from '../support/nodes.js'
import { tempDir } from '../support/tmp.js'

const IS_LINUX = process.platform === 'linux'

test('an invite code is not among the arguments of the node that joins by it', { skip: !IS_LINUX }, async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const a = await mesh.start('a')
  const { code } = await a.api.call('invite.create', { trust: 'mine', uses: 1 })
  const b = await mesh.start('b', { join: code })
  const shown = await fs.readFile(`/proc/${b.process.pid}/cmdline`, 'latin1')
  t.absent(shown.includes(code), 'every user of the machine can read them')
  t.ok(shown.startsWith('a2a-node start'), shown)
})

test('A2A_NODE_JOIN joins a home that is in no mesh, and says nothing to one that is', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const a = await mesh.start('a')
  const { code } = await a.api.call('invite.create', { trust: 'mine', uses: 1 })
  const env = { A2A_NODE_JOIN: code }
  const b = await mesh.start('b', { env })
  await untilOnline(b, 1)
  await b.stop()
  const again = await mesh.start('b', { home: b.home, env })
  t.is(again.info.node.id, b.info.node.id)
  await untilOnline(again, 1)
  const c = await mesh.dir()
  const { code: another } = await a.api.call('invite.create', { trust: 'mine', uses: 1 })
  const started = await mesh.run(['--home', c, 'start', '--detach', '--json'], { env: { A2A_NODE_JOIN: another } })
  t.is(started.code, 0, started.stderr)
  const same = await mesh.run(['--home', c, 'start', '--detach', '--json'], { env: { A2A_NODE_JOIN: another } })
  t.is(same.code, 0, same.stderr)
  t.is((await mesh.run(['--home', c, 'stop'])).code, 0)
  const bad = await mesh.run(['--home', await mesh.dir(), 'start'], { env: { A2A_NODE_JOIN: 'nonsense' } })
  t.is(bad.code, 5, bad.stderr)
  t.ok(bad.stderr.includes('INVITE_INVALID'), bad.stderr)
})

test('a socket, or its directory, of another user is not connected to, for any caller', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const a = await mesh.start('a')
  const own = process.getuid
  t.teardown(() => Object.assign(process, { getuid: own }))
  const isRefused = (): Promise<unknown> =>
    failsWith(t, 'NO_PERMISSION', () => connect({ home: a.home }).call('peers.list', {}))
  for (const uid of [4242, 0]) {
    if (own?.() === uid) continue
    process.getuid = () => uid
    await isRefused()
  }
  Object.assign(process, { getuid: own })
  if (own?.() !== 0) return
  // Only root may give a file away.
  const run = path.join(a.home, 'run')
  for (const file of [path.join(run, 'control.sock'), run]) {
    await fs.chown(file, 4242, 4242)
    await isRefused()
    await fs.chown(file, 0, 0)
  }
  t.alike((await a.api.call('peers.list', {})).peers, [])
})

/** Files of compiled code below a home after the program ran once; the environment says nothing else. */
async function compiled(home: string): Promise<string[]> {
  const env = { PATH: process.env['PATH'], HOME: home, TMPDIR: home }
  await promisify(execFile)(process.execPath, [path.join(ROOT, 'bin/a2a-node.js'), '--version'], { env })
  return (await fs.readdir(home, { recursive: true })).filter(
    (name) => name.includes('compile') || name.includes('cache')
  )
}

test('compiled code is kept in a directory of this user alone, and nowhere when others could write to it', async (t: Assert) => {
  const [own, open, link] = [await tempDir(t), await tempDir(t), await tempDir(t)]
  await fs.mkdir(path.join(open, '.cache'))
  await fs.chmod(path.join(open, '.cache'), 0o777)
  await fs.mkdir(path.join(open, 'elsewhere'), { mode: 0o777 })
  await fs.chmod(path.join(open, 'elsewhere'), 0o777)
  await fs.symlink(path.join(open, 'elsewhere'), path.join(link, '.cache'))
  const isKept = 'enableCompileCache' in process.getBuiltinModule('module')
  const files = (name: string): boolean => name.includes(path.join('compiled', 'v'))
  t.is((await compiled(own)).some(files), isKept)
  if (isKept) t.is((await fs.stat(path.join(own, '.cache/a2a-node/compiled'))).mode & 0o077, 0)
  t.absent((await compiled(open)).some(files))
  t.absent((await compiled(link)).some(files))
})
