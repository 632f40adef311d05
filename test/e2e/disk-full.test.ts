import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { StatusInfo } from '../../src/ports/node-api.js'
import { smallDisk } from '../support/small-disk.js'
import { testMesh, untilTrue } from '../support/nodes.js'

test('a node whose disk is full refuses new requests, says so, and takes them again when there is room', {
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

async function sizeOf(file: string): Promise<number> {
  return (await fs.stat(file).catch(() => ({ size: 0 }))).size
}
