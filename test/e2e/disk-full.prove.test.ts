import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { StatusInfo } from '../../src/ports/node-api.js'
import { smallDisk } from '../support/small-disk.js'
import { testMesh, untilAgent, untilTrue } from '../support/nodes.js'

test('a node whose disk is full refuses new requests, reports it, and accepts them again when there is space', {
  timeout: 180_000
}, async (t) => {
  const disk = await smallDisk(t, 256)
  if (typeof disk === 'string') return t.comment(`skipped: ${disk}`)
  const mesh = await testMesh(t)
  const home = path.join(disk.dir, 'home')
  const node = await mesh.start('full', { home })
  await untilTrue(async () => (await sizeOf(path.join(home, 'ballast'))) > 0, 'the ballast is there')
  const queued = await node.api.call('message.send', { agent: 'text', text: 'before', wait: false })
  await disk.fill()
  const text = 'x'.repeat(50_000)
  const codes = new Set<string>()
  await untilTrue(async () => {
    const reply = await node.api.call('message.send', { agent: 'text', text }).catch((error: { code: string }) => error)
    if ('code' in reply) codes.add(reply.code)
    return codes.size > 0
  }, 'a request is refused')
  t.alike([...codes], ['DISK_FULL'])
  const result = await node.cli(['send', 'text', 'more'])
  t.not(result.code, 0)
  t.ok(result.stderr.includes('no space left'), result.stderr)
  const status = await node.json<StatusInfo>(['status'])
  const problem = status.problems.find(({ code }) => code === 'DISK_FULL')
  t.ok(problem?.message.includes('no space left') && problem.next.includes('df -h'), problem?.message)
  t.is(await sizeOf(path.join(home, 'ballast')), 0, 'the ballast was freed')
  t.is((await node.api.call('tasks.show', { id: queued.taskId ?? '' })).state, 'completed')
  await disk.free()
  await untilTrue(async () => (await node.api.call('node.status', {})).problems.length === 0, 'it takes requests again')
  t.is((await node.api.call('message.send', { agent: 'text', text: 'two words' })).outcome, 'COMPLETED')
  t.ok((await sizeOf(path.join(home, 'ballast'))) > 0, 'the ballast is there again')
})

test('others learn at once that a node with a full disk accepts nothing, swarms continue without it, its mesh changes are refused, and it comes back', {
  timeout: 180_000
}, async (t) => {
  const disk = await smallDisk(t, 48)
  if (typeof disk === 'string') return t.comment(`skipped: ${disk}`)
  const mesh = await testMesh(t)
  const home = path.join(disk.dir, 'home')
  const full = await mesh.start('full', { home })
  await fs.writeFile(path.join(home, 'agents', 'only.md'), ONLY)
  const b = await mesh.start('b', { join: (await full.api.call('invite.create', { trust: 'mine' })).code })
  await untilAgent(b, 'text@full')
  await untilAgent(b, 'only@full')
  t.ok((await sizeOf(path.join(home, 'ballast'))) > 0, 'a small disk has a small ballast')

  const isNoticed = async (): Promise<boolean> =>
    (await full.api.call('node.status', {})).problems.some(
      ({ code, message }) => code === 'DISK_FULL' && /once \d+ MiB are free/.test(message)
    )
  // The store of the node may free room after the disk was filled; the room of the ballast is its own.
  const isFull = async (): Promise<boolean> => (await isNoticed()) || (await disk.fill().then(isNoticed))
  await untilTrue(isFull, 'it notices by itself')
  const renamed = await full.cli(['peers', 'rename', 'b', 'other'])
  t.is(renamed.code, 78, renamed.stderr)
  t.ok(/DISK_FULL/.test(renamed.stderr), renamed.stderr)
  await untilTrue(isFull, 'it is full')
  const asked = await b.cli(['call', 'text@full', 'text.stats', '{"text":"one two"}', '--timeout', '60s'])
  t.is(asked.code, 1, asked.stderr)
  t.ok(/the disk of the node is full.*nothing was begun.*OVERLOADED/.test(asked.stderr), asked.stderr)
  const swarm = [
    'swarm',
    'run',
    'count',
    '--items',
    '-',
    '--input',
    '{"text":"{item}"}',
    '--deadline',
    '100s',
    '--capability'
  ]
  await untilTrue(isFull, 'it is full')
  const done = await b.cli([...swarm, 'text.stats'], 'one\ntwo\nthree\n')
  t.is(done.code, 0, done.stderr)
  t.ok(/text@full +rejected: the disk of the node is full/.test(done.stdout), done.stdout)
  await untilTrue(isFull, 'it is full')
  const nobody = await b.cli([...swarm, 'only.here', '--deadline', '5s'], 'one\ntwo\n')
  t.is(nobody.code, 1, nobody.stderr)
  t.ok(/the disk of the node is full/.test(nobody.stdout), nobody.stdout)

  const file = path.join(await mesh.dir(), 'node.backup')
  const backup = await full.cli(['backup', file])
  t.is(backup.code, 0, backup.stderr)
  await untilTrue(isFull, 'it is full')
  await disk.leave(16 * 1024 * 1024)
  await untilTrue(
    async () => (await full.api.call('node.status', {})).problems.every(({ code }) => code === 'DISK_LOW'),
    'it takes everything again, by itself'
  )
  t.is((await full.cli(['peers', 'rename', 'b', 'other'])).code, 0)
  t.is((await b.json<{ outcome: string }>(['call', 'text@full', 'text.stats', '{"text":"x"}'])).outcome, 'COMPLETED')
})

test('the home of a node that ended on a full disk is not called damaged: not by a backup, a start or doctor', async (t) => {
  const disk = await smallDisk(t, 48)
  if (typeof disk === 'string') return t.comment(`skipped: ${disk}`)
  const mesh = await testMesh(t)
  const home = path.join(disk.dir, 'home')
  const node = await mesh.start('full', { home })
  node.kill('SIGKILL')
  await node.exited
  await fs.rm(path.join(home, 'ballast'), { force: true })
  await disk.fill()
  const commands = [
    ['backup', path.join(await mesh.dir(), 'node.backup')],
    ['start', '--json'],
    ['doctor'],
    ['doctor', '--repair']
  ]
  for (const command of commands) {
    const { stdout, stderr } = await mesh.run(['--home', home, ...command])
    t.absent(/damaged/.test(stdout + stderr), stdout + stderr)
  }
  await disk.free()
  const again = await mesh.start('full', { home })
  t.is(again.info.node.id, node.info.node.id)
})

const ONLY =
  '---\nname: only\ndescription: Here alone.\na2a:\n  capabilities: [{ id: only.here, description: x }]\n  runtime: { type: command, command: [cat] }\n---\n'

async function sizeOf(file: string): Promise<number> {
  return (await fs.stat(file).catch(() => ({ size: 0 }))).size
}
