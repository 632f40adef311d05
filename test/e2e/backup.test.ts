import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { type LocalNode, localMesh, untilOnline, untilTrue } from '../support/nodes.js'
import { backupOf, calls, restored } from '../support/backups.js'

test('the home of a founder without peers, backed up while it is stopped, is whole elsewhere', {
  timeout: 120_000
}, async (t) => {
  const mesh = await localMesh(t)
  const dir = await mesh.dir()
  const a = await mesh.start('a')
  await a.api.call('invite.create', { trust: 'mine' })
  await a.stop()
  const file = await backupOf(a, dir)
  const home = path.join(dir, 'again')
  await restored(mesh, file, home)
  const again = await mesh.start('a', { home })
  t.is(again.info.node.id, a.info.node.id)
  t.is((await again.api.call('invite.list', {})).invites.length, 1)
  const b = await mesh.start('b', { join: (await again.api.call('invite.create', { trust: 'mine' })).code })
  await untilOnline(b, 1)
  t.is(await calls(again, 'text@b'), 'COMPLETED')
})

test('a backup replaces no file and no home; a damaged one is refused before anything is written', {
  timeout: 120_000
}, async (t) => {
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
  t.is(
    (await mesh.run(['--home', path.join(dir, 'none'), 'backup', path.join(dir, 'x')])).code,
    9,
    'nothing to back up'
  )
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

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  const place = Math.floor(copy.length / 2)
  copy[place] = (copy[place] ?? 0) ^ 1
  return copy
}

test('a backup contains the documents: content that no other node has is there again, and the restored node forks no stream', {
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
