import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { type LocalMesh, type LocalNode, localMesh, testMesh, untilAgent, untilOnline, untilPeer, untilTrue } from '../support/nodes.js'

const WORDS = '{"text":"one two"}'
const POLICY = 'rules:\n  - name: asks\n    from: { tier: L3 }\n    decision: ask\n'

async function backupOf(node: LocalNode, dir: string, name = 'node.backup'): Promise<string> {
  const file = path.join(dir, name)
  const made = await node.cli(['backup', file])
  if (made.code !== 0) throw new Error(made.stderr)
  return file
}

async function restored(mesh: LocalMesh, file: string, home: string): Promise<void> {
  const { code, stderr } = await mesh.run(['--home', home, 'restore', file])
  if (code !== 0) throw new Error(stderr)
}

async function calls(from: LocalNode, to: string): Promise<string> {
  await untilAgent(from, to)
  return (await from.json<{ outcome: string }>(['call', to, 'text.stats', WORDS])).outcome
}

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
  const late = await a.json<{ id: string }>(['invite', '--uses', '2'])
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
  await untilTrue(() => hasLate(again), 'what it wrote after the backup came back from the other node')
  const c = await mesh.start('c', { join: (await again.api.call('invite.create', {})).code })
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
    t.alike([code, next], ['CONFLICT', [`a2a-node --home ${stops.home} doctor --repair`]])
    const found = await mesh.run(['--home', stops.home, 'doctor'])
    t.ok(found.stdout.includes(`try: ${next[0]}\n`), found.stdout)
    const repaired = await mesh.run((next[0] ?? '').split(' ').slice(1))
    t.is(repaired.code, 0, repaired.stderr)
    ;[runs, stops] = [await mesh.start('b', { home: stops.home }), runs]
    t.is(runs.info.node.id, b.info.node.id)
  }
  await stops.exited
  t.is((await runs.cli(['doctor'])).code, 0)
  for (const node of [a, runs]) t.absent(/diverged|quarantine/i.test(node.errors()), node.errors())
})

test('the home of a founder without peers, backed up while it is stopped, is whole elsewhere', { timeout: 120_000 }, async (t) => {
  const mesh = await localMesh(t)
  const dir = await mesh.dir()
  const a = await mesh.start('a')
  await a.api.call('invite.create', {})
  await a.stop()
  const file = await backupOf(a, dir)
  const home = path.join(dir, 'again')
  await restored(mesh, file, home)
  const again = await mesh.start('a', { home })
  t.is(again.info.node.id, a.info.node.id)
  t.is((await again.api.call('invite.list', {})).invites.length, 1)
  const b = await mesh.start('b', { join: (await again.api.call('invite.create', {})).code })
  await untilOnline(b, 1)
  t.is(await calls(again, 'text@b'), 'COMPLETED')
})

test('a backup replaces no file and no home; a damaged one is refused before anything is written', { timeout: 120_000 }, async (t) => {
  const mesh = await localMesh(t)
  const dir = await mesh.dir()
  const a = await mesh.start('a')
  const file = await backupOf(a, dir)
  const again = await a.cli(['backup', file])
  t.is(again.code, 9, again.stderr)
  t.ok(/--force/.test(again.stderr))
  t.is((await a.cli(['backup', file, '--force'])).code, 0)
  const used = await a.cli(['restore', file])
  t.is(used.code, 9, used.stderr)
  const bytes = await fs.readFile(file)
  const home = path.join(dir, 'new')
  for (const damaged of [bytes.subarray(0, bytes.length - 1), flipped(bytes), Buffer.from('something else')]) {
    const other = path.join(dir, 'damaged')
    await fs.writeFile(other, damaged)
    const { code, stderr } = await mesh.run(['--home', home, 'restore', other])
    t.is(code, 78, stderr)
    t.ok(/STORE_DAMAGED/.test(stderr))
  }
  t.alike((await fs.readdir(dir)).sort(), ['damaged', 'node.backup'])
  t.is((await mesh.run(['--home', path.join(dir, 'none'), 'backup', path.join(dir, 'x')])).code, 9, 'nothing to back up')
  t.is((await mesh.run(['--home', home, 'restore', path.join(dir, 'missing')])).code, 2)
  for (const bad of [
    ['backup', '--force', dir],
    ['backup', '--force', '/dev/null'],
    ['backup', '-'],
    ['backup', path.join(a.home, 'store', 'x')]
  ]) {
    const { code, stderr } = await a.cli(bad)
    t.is(code, 2, `${bad.join(' ')}: ${stderr}`)
  }
  for (const bad of [dir, '-']) t.is((await mesh.run(['--home', home, 'restore', bad])).code, 2)
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

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  const place = Math.floor(copy.length / 2)
  copy[place] = (copy[place] ?? 0) ^ 1
  return copy
}

function agentFile(id: string): string {
  return `---\nname: ${id}\ndescription: Counts.\na2a:\n  capabilities: [{ id: text.stats, description: Counts. }]\n  runtime: { type: command, command: [cat] }\n---\n`
}

test('a backup holds the documents: what nobody else has is there again, and the restored node forks no stream', {
  timeout: 120_000
}, async (t) => {
  const mesh = await localMesh(t)
  const dir = await mesh.dir()
  const [a, b] = await mesh.meshOf('a', 'b')
  const set = async (node: LocalNode, document: string, text: string): Promise<void> => {
    const ran = await node.cli(['doc', 'set', document, text])
    if (ran.code !== 0) throw new Error(ran.stderr)
  }
  const reads = (node: LocalNode, document: string, text: string): Promise<void> =>
    untilTrue(async () => (await node.cli(['doc', 'get', document])).stdout === text, `${document} is ${text}`)
  await set(a, 'shared', 'one')
  await reads(b, 'shared', 'one')
  await set(b, 'shared', 'one two')
  await reads(a, 'shared', 'one two')
  await b.stop()
  await set(a, 'alone', 'nobody else has it')
  const file = await backupOf(a, dir)
  t.is((await a.cli(['doc', 'get', 'alone'])).stdout, 'nobody else has it', 'the node goes on')
  // Blocks at places of its stream at which a restored node must not write others.
  const back = await mesh.start('b', { home: b.home })
  await set(a, 'shared', 'one two three')
  await reads(back, 'shared', 'one two three')
  await a.stop()
  const cold = path.join(dir, 'cold.backup')
  const made = await mesh.run(['--home', a.home, 'backup', cold])
  t.is(made.code, 0, made.stderr)
  await back.stop()

  const home = path.join(dir, 'again')
  await restored(mesh, file, home)
  const again = await mesh.start('a', { home })
  t.is((await again.cli(['doc', 'get', 'alone'])).stdout, 'nobody else has it')
  t.is((await again.cli(['doc', 'get', 'shared'])).stdout, 'one two')
  await set(again, 'shared', 'zero one two')
  const b2 = await mesh.start('b', { home: b.home })
  for (const node of [again, b2]) await reads(node, 'shared', 'zero one two three')
  await reads(b2, 'alone', 'nobody else has it')
  for (const node of [again, b2]) {
    t.absent(/conflict/i.test(node.errors()), node.errors())
    const { problems } = await node.json<{ problems: unknown[] }>(['status'])
    t.alike(problems, [])
  }
  await again.stop()
  // It has told `b2` of its new core: another restored home that meets that may have to make room.
  await b2.stop()

  const other = path.join(dir, 'cold')
  await restored(mesh, cold, other)
  const third = await mesh.start('a', { home: other })
  const read = await third.cli(['doc', 'get', 'alone'])
  t.alike([read.code, read.stdout], [0, 'nobody else has it'], `one of a stopped node holds them too: ${read.stderr}`)
})
