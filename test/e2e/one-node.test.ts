import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { type CommandResult, type TestNode, testMesh } from '../support/nodes.js'

function errorOf({ stderr }: CommandResult): { readonly code: string; readonly message: string } {
  const line = stderr.split('\n').find((one) => one.startsWith('{"error"')) ?? '{}'
  return (JSON.parse(line) as { error: { code: string; message: string } }).error
}

/** Takes away what tells others of a node that runs. */
async function hide(node: TestNode, pidFile: string): Promise<void> {
  await fs.rm(path.join(node.home, 'run', 'control.sock'))
  await fs.writeFile(path.join(node.home, 'run', 'node.pid'), pidFile)
}

test('a home whose node answers nobody and is named nowhere is still taken: for a start, a repair and a backup', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const a = await mesh.start('a')
  await hide(a, '{"pid":')
  const file = path.join(await mesh.dir(), 'a.backup')
  for (const args of [['start'], ['doctor', '--repair'], ['backup', file]]) {
    const refused = await mesh.run(['--home', a.home, '--json', ...args])
    t.is(refused.code, 9, args[0])
    t.is(errorOf(refused).code, 'STORE_LOCKED', args[0])
  }
  const found = await mesh.run(['--home', a.home, '--json', 'doctor'])
  const { checks } = JSON.parse(found.stdout) as { checks: readonly { name: string; result: string; text: string }[] }
  t.is(checks.find((one) => one.name === 'process')?.text, 'another process uses this home')
  t.is(checks.find((one) => one.name === 'socket')?.result, 'fail')
  t.ok(checks.find((one) => one.name === 'ledger')?.text.startsWith('in use by'))
})

test('a pid file of a living process does not hold a home: the node that was killed starts again, and doctor reads its stores', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const a = await mesh.start('a')
  a.kill('SIGKILL')
  await a.exited
  const socket = path.join(a.home, 'run', 'control.sock')
  const record = { pid: process.pid, startedAt: Date.now(), socket }
  await fs.writeFile(path.join(a.home, 'run', 'node.pid'), JSON.stringify(record))
  const found = await mesh.run(['--home', a.home, '--json', 'doctor'])
  const { ok, checks } = JSON.parse(found.stdout) as { ok: boolean; checks: readonly { name: string; text: string }[] }
  t.ok(ok, found.stdout)
  t.is(checks.find((one) => one.name === 'process')?.text, 'no node runs here')
  await fs.writeFile(path.join(a.home, 'run', 'node.pid'), JSON.stringify(record))
  const again = await mesh.start('a', { home: a.home })
  t.is(again.info.node.id, a.info.node.id)
  await again.stop()
  t.alike(await fs.readdir(path.join(a.home, 'run')), [], 'a stopped node leaves neither file')
})
