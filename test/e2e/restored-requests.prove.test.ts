import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { type TestNode, testMesh, untilAgent, untilOnline, untilPeer, untilTrue } from '../support/nodes.js'

/** Leaves a line when it begins, and ends when it is killed only. */
function endless(trace: string): string {
  const script = `require('fs').appendFileSync(process.argv[1], 'begun\\\\n'); setInterval(() => {}, 1000)`
  return `---
name: once
description: Does what must not be done twice.
a2a:
  capabilities: [{ id: pay.once, description: Pay, input: { type: object }, idempotent: false }]
  runtime: { type: command, command: [node, -e, "${script}", "${trace}"] }
  limits: { timeout: 10m }
---
`
}

interface Task {
  readonly state: string
  readonly error: { readonly message: string } | null
}

test('unrepeatable work that had begun before a backup ends as unknown after the restore, with the reason, and is not begun again', {
  timeout: 180_000
}, async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const dir = await mesh.dir()
  const [a, b] = await mesh.meshOf('a', 'b')
  const [trace, file, home] = ['trace', 'b.backup', 'again'].map((name) => path.join(dir, name)) as [
    string,
    string,
    string
  ]
  await fs.writeFile(trace, '')
  await fs.writeFile(path.join(b.home, 'agents', 'once.md'), endless(trace))
  await untilAgent(a, 'once@b')
  const { taskId } = await a.json<{ taskId: string }>(['call', 'once@b', 'pay.once', '{}', '--no-wait'])
  const begun = async (): Promise<number> => (await fs.readFile(trace, 'utf8')).split('\n').length - 1
  await untilTrue(async () => (await begun()) === 1, 'it has begun')
  t.is((await b.cli(['backup', file])).code, 0)
  b.kill('SIGKILL')
  await b.exited
  await untilPeer(a, 'b', 'offline')

  const { code, stderr } = await mesh.run(['--home', home, 'restore', file])
  t.is(code, 0, stderr)
  const again = await mesh.start('b', { home })
  await untilOnline(a, 1)
  const shown = async (node: TestNode, id: string): Promise<Task> => await node.json<Task>(['tasks', 'show', id])
  await untilTrue(async () => (await shown(a, taskId)).state === 'unknown', 'its caller learns the outcome')
  const { error } = await shown(a, taskId)
  t.ok(/not .*(begun|done|run|repeat)/i.test(error?.message ?? ''), error?.message)
  t.comment(error?.message ?? '')
  const text = await a.cli(['tasks', 'show', taskId])
  t.ok(/--allow-repeat/.test(text.stdout + text.stderr), text.stdout)
  await untilAgent(a, 'once@b')
  t.is(await begun(), 1, 'it was begun once')
  t.is((await again.cli(['status'])).code, 0)
})
