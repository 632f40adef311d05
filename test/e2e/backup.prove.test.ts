import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { type LocalNode, localMesh, testMesh, untilAgent, untilOnline, untilPeer, untilTrue } from '../support/nodes.js'
import { backupOf, calls, restored } from '../support/backups.js'

const POLICY = 'rules:\n  - name: asks\n    from: { tier: L3 }\n    decision: ask\n'

test('a node backed up while it runs and restored elsewhere is the same node: peers take it, its log, its agents and its rules go on', {
  timeout: 120_000
}, async (t) => {
  const mesh = await testMesh(t)
  const dir = await mesh.dir()
  const [a, b] = await mesh.meshOf('a', 'b')
  await fs.writeFile(path.join(a.home, 'policy.yaml'), POLICY)
  await fs.writeFile(path.join(a.home, 'agents', 'own.md'), agentFile('own'))
  await untilAgent(b, 'own@a')
  t.is(await calls(b, 'text@a'), 'COMPLETED')
  const file = await backupOf(a, dir)
  t.is((await fs.stat(file)).mode & 0o777, 0o600)
  t.alike(await fs.readdir(dir), ['node.backup'], 'nothing else is left')
  // What comes after the backup is known to the other node only.
  const late = await a.json<{ id: string }>(['invite', '--mine', '--uses', '2'])
  const hasLate = async ({ api }: LocalNode): Promise<boolean> =>
    (await api.call('invite.list', {})).invites.some((one) => one.id === late.id)
  await untilTrue(() => hasLate(b), 'the other node has it')
  a.kill('SIGKILL')
  await a.exited
  await untilPeer(b, 'a', 'offline')

  const home = path.join(dir, 'again')
  await restored(mesh, file, home)
  const again = await mesh.start('a', { home })
  t.alike([again.info.node.id, again.info.mesh.id, again.info.node.name], [a.info.node.id, a.info.mesh.id, 'a'])
  await Promise.all([untilOnline(again, 1), untilOnline(b, 1)])
  t.is(await calls(b, 'own@a'), 'COMPLETED')
  t.is(await calls(again, 'text@b'), 'COMPLETED')
  t.is((await again.json<{ rules: unknown[] }>(['policy', 'show'])).rules.length, 1)
  t.is((await again.cli(['audit', '--verify'])).code, 0)
  await untilTrue(() => hasLate(again), 'its edits after the backup came back from the other node')
  const c = await mesh.start('c', { join: (await again.api.call('invite.create', { trust: 'mine' })).code })
  await Promise.all([untilPeer(b, 'c', 'online'), untilPeer(again, 'c', 'online')])
  t.pass('it writes the log again, with nobody else who may')
  for (const node of [b, c, again]) t.absent(/conflict|diverged/i.test(node.errors()), node.errors())
})

test('of a node and its restored copy, started next to it, one goes on and the other one stops, and comes back by the command that it says, either of them', {
  timeout: 180_000
}, async (t) => {
  const mesh = await localMesh(t)
  const dir = await mesh.dir()
  const [a, b] = await mesh.meshOf('a', 'b')
  const file = await backupOf(b, dir)
  const home = path.join(dir, 'copy')
  await restored(mesh, file, home)
  const cores = ['', await coreOf(b)]
  let [runs, stops] = [await mesh.start('b', { home }), b]
  for (let turn = 0; turn < 2; turn++) {
    t.is((await stops.exited).code, 9, stops.errors())
    t.ok(/"CONFLICT"/.test(stops.errors()))
    await untilOnline(runs, 1)
    t.is(await calls(a, 'text@b'), 'COMPLETED')
    t.is((await a.api.call('peers.list', { all: true })).peers.length, 1)
    await untilTrue(async () => !cores.includes(await coreOf(runs)), 'it writes a core that none of them wrote')
    cores.push(await coreOf(runs))
    const back = await mesh.run(['--home', stops.home, 'start', '--json'])
    t.is(back.code, 9, 'it does not come back by itself')
    const { code, next } = errorOf(back.stderr)
    t.alike(
      [code, next],
      ['CONFLICT', ['--new-identity', '--repair'].map((how) => `a2a-node --home ${stops.home} doctor ${how}`)]
    )
    const found = await mesh.run(['--home', stops.home, 'doctor'])
    for (const step of next) t.ok(found.stdout.includes(`try: ${step}\n`), found.stdout)
    const repaired = await mesh.run((next[1] ?? '').split(' ').slice(1))
    t.is(repaired.code, 0, repaired.stderr)
    ;[runs, stops] = [await mesh.start('b', { home: stops.home }), runs]
    t.is(runs.info.node.id, b.info.node.id)
  }
  await stops.exited
  t.is((await runs.cli(['doctor'])).code, 0)
  for (const node of [a, runs]) t.absent(/diverged|quarantine/i.test(node.errors()), node.errors())
})

/** Key of the writer core of a home; of a node that just started perhaps still the former one. */
async function coreOf({ home }: LocalNode): Promise<string> {
  const text = await fs.readFile(path.join(home, 'core.json'), 'utf8').catch(() => '{"value":{"core":""}}')
  return (JSON.parse(text) as { value: { core: string } }).value.core
}

function errorOf(stderr: string): { readonly code: string; readonly next: readonly string[] } {
  const line = stderr.split('\n').find((one) => one.startsWith('{"error"')) ?? '{}'
  return (JSON.parse(line) as { error: { code: string; next: string[] } }).error
}

function agentFile(id: string): string {
  return `---\nname: ${id}\ndescription: Counts.\na2a:\n  capabilities: [{ id: text.stats, description: Counts. }]\n  runtime: { type: command, command: [cat] }\n---\n`
}
