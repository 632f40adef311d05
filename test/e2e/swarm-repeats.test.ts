import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { SwarmResults } from '../../src/ports/swarm-api.js'
import { localMesh } from '../support/nodes.js'

/** An agent that notes each run as a line of `notes`, and then does what `end` says. */
function agentFile(
  id: string,
  { notes, end, isIdempotent }: { notes: string; end: string; isIdempotent: boolean }
): string {
  return `---
name: ${id}
description: Notes that it runs.
a2a:
  version: 0.1.0
  capabilities:
    - { id: ${id}.do, description: Notes that it runs, input: { type: object }, idempotent: ${isIdempotent}, sideEffect: exec }
  runtime: { type: command, command: [node, ${path.join(path.dirname(notes), 'run.cjs')}, "${notes}", "{input.item}", ${end}] }
  limits: { timeout: 3s, concurrency: 2 }
---
`
}

const RUN = `const [notes, item, end] = process.argv.slice(2)
require('node:fs').appendFileSync(notes, item + '\\n')
if (end === 'fail') process.exit(1)
setInterval(() => {}, 1000)
`

test('a swarm runs a command that fails, or is killed at its timeout, once, unless it may be repeated', async (t) => {
  const mesh = await localMesh(t)
  const dir = await mesh.dir()
  const notes = path.join(dir, 'notes')
  const agents = path.join(dir, 'agents')
  await fs.mkdir(agents)
  await fs.writeFile(path.join(dir, 'run.cjs'), RUN)
  const kinds = {
    once: { end: 'fail', isIdempotent: false },
    hung: { end: 'hang', isIdempotent: false },
    again: { end: 'fail', isIdempotent: true }
  }
  for (const [id, kind] of Object.entries(kinds))
    await fs.writeFile(path.join(agents, `${id}.md`), agentFile(id, { notes, ...kind }))
  const [node] = await mesh.meshWith({ args: ['--agents', agents] }, 'a')
  const rows: [string, readonly string[], runs: number, code: string][] = [
    ['once', [], 1, 'TASK_FAILED'],
    ['hung', [], 1, 'TIMEOUT'],
    ['once', ['--allow-repeat'], 3, 'TASK_FAILED'],
    ['again', [], 3, 'TASK_FAILED'],
    ['again', ['--retries', '0'], 1, 'TASK_FAILED']
  ]
  for (const [id, options, runs, code] of rows) {
    await fs.rm(notes, { force: true })
    const run = await node.cli(
      ['swarm', 'run', 'work', '--capability', `${id}.do`, '--items', '-', ...options, '--json'],
      'one'
    )
    t.is(run.code, 1, run.stderr)
    const { id: swarm } = JSON.parse(run.stdout.trim().split('\n').at(-1) ?? '') as { readonly id: string }
    const [row] = (await node.json<SwarmResults>(['swarm', 'results', swarm])).results
    const lines = (await fs.readFile(notes, 'utf8')).trim().split('\n')
    t.alike(
      [row?.status, row?.error?.code, row?.attempt, lines.length],
      ['failed', code, runs, runs],
      `${id} ${options.join(' ')}`
    )
  }
})
