import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import type { SwarmInfo, SwarmResults } from '../../src/ports/swarm-api.js'
import { type TestNode, testMesh, until, untilTrue } from '../support/nodes.js'

/** An agent whose runs take their time. */
const WORKER = `---
name: worker
description: Takes its time.
a2a:
  version: 0.1.0
  capabilities:
    - id: work.slow
      description: Takes its time
      input: { type: object }
      idempotent: true
  runtime: { type: command, command: [node, -e, "setTimeout(() => console.log(JSON.stringify({ did: process.argv[1] })), 300)", "{input.item}"] }
  limits: { timeout: 1m, concurrency: 2 }
---
`
const ITEMS = 60

/** A launcher without agents of its own, and nodes with workers, all online for each other. */
async function scene(t: Assert, ...workers: readonly string[]): Promise<{ launcher: TestNode; others: readonly TestNode[] }> {
  const mesh = await testMesh(t)
  const agents = path.join(await mesh.dir(), 'agents')
  await fs.mkdir(agents)
  await fs.writeFile(path.join(agents, 'worker.md'), WORKER)
  const launcher = await mesh.start('a')
  const { code } = await launcher.api.call('invite.create', { uses: workers.length })
  const others = await Promise.all(workers.map((name) => mesh.start(name, { join: code, args: ['--agents', agents] })))
  for (const node of [launcher, ...others]) {
    await untilTrue(async () => {
      const { agents: known } = await node.api.call('agents.list', {})
      return known.filter(({ id, status }) => id === 'worker' && status !== 'offline').length === workers.length
    }, `${node.name} knows the workers`)
  }
  return { launcher, others }
}

async function launch(node: TestNode, args: readonly string[] = []): Promise<string> {
  const lines = Array.from({ length: ITEMS }, (_, index) => `item-${index}`).join('\n')
  const run = await node.cli(['swarm', 'run', 'work', '--capability', 'work.slow', '--items', '-', '--detach', '--json', ...args], lines)
  if (run.code !== 0) throw new Error(run.stderr)
  return (JSON.parse(run.stdout.trim().split('\n')[0] ?? '{}') as { id: string }).id
}

async function untilDone(node: TestNode, id: string, count: number): Promise<void> {
  let done = 0
  await until(node.api, 'swarm.watch', { id }, (event) => event.type === 'item' && ++done >= count)
}

test('the launcher is killed for good mid-swarm: within 15 s another node coordinates, and finishes; both that are left have the same results', async (t) => {
  const { launcher, others } = await scene(t, 'b', 'c')
  const [b, c] = others
  if (b === undefined || c === undefined) throw new Error('no workers')
  const id = await launch(launcher)
  await untilDone(launcher, id, 5)
  const told = await launcher.json<SwarmResults>(['swarm', 'results', id])
  launcher.kill('SIGKILL')
  await launcher.exited
  const killedAt = Date.now()
  const tookOver = (node: TestNode): Promise<unknown> =>
    until(
      node.api,
      'swarm.watch',
      { id },
      (event) => event.type === 'coordinator' && event.coordinator !== null && event.coordinator !== 'a'
    )
  await Promise.all([tookOver(b), tookOver(c)])
  t.comment(`another coordinated after ${Date.now() - killedAt} ms`)
  const watched = await b.cli(['swarm', 'watch', id, '--json'])
  t.is(watched.code, 0, watched.stderr)
  t.is((await c.cli(['swarm', 'watch', id])).code, 0)
  const [ofB, ofC] = await Promise.all([b, c].map((node) => node.json<SwarmResults>(['swarm', 'results', id])))
  t.is(ofB?.status, 'completed')
  t.is(ofB?.results.length, ITEMS)
  t.is(JSON.stringify(ofB), JSON.stringify(ofC))
  for (const one of told.results)
    t.alike(
      ofB?.results.find(({ item }) => item === one.item),
      one,
      'what was told stays'
    )
  const info = await b.json<SwarmInfo>(['swarm', 'show', id])
  t.alike(info.coordination?.participants.toSorted(), ['a', 'b', 'c'])
  t.ok((info.coordination?.epoch ?? 0) >= 2)
})
