import fs from 'node:fs/promises'
import path from 'node:path'
import type { Assert } from 'brittle'
import { type TestMesh, type TestNode, testMesh, until, untilTrue } from './nodes.js'

/** An agent whose runs take so many milliseconds. */
const workerOf = (ms: number, mayRepeat: boolean): string => `---
name: worker
description: Takes its time.
a2a:
  version: 0.1.0
  capabilities:
    - id: work.slow
      description: Takes its time
      input: { type: object }
      idempotent: ${mayRepeat}
  runtime: { type: command, command: [node, -e, "setTimeout(() => console.log(JSON.stringify({ did: process.argv[1] })), ${ms})", "{input.item}"] }
  limits: { timeout: 1m, concurrency: 2 }
---
`
/** Items of a swarm, unless a test says otherwise. */
export const ITEMS = 60

/** Three nodes with a swarm. */
export interface TakeoverScene {
  readonly launcher: TestNode
  readonly b: TestNode
  readonly c: TestNode
  readonly mesh: TestMesh
  /** Where the agents of the workers are. */
  readonly agents: string
}

/** A launcher without agents of its own, and two nodes with workers, all online for each other. */
export async function takeoverScene(t: Assert, runMs = 300, mayRepeat = true): Promise<TakeoverScene> {
  const mesh = await testMesh(t)
  const agents = path.join(await mesh.dir(), 'agents')
  await fs.mkdir(agents)
  await fs.writeFile(path.join(agents, 'worker.md'), workerOf(runMs, mayRepeat))
  const launcher = await mesh.start('a')
  const { code } = await launcher.api.call('invite.create', { trust: 'mine', uses: 2 })
  const [b, c] = await Promise.all(
    ['b', 'c'].map((name) => mesh.start(name, { join: code, args: ['--agents', agents] }))
  )
  if (b === undefined || c === undefined) throw new Error('no workers')
  for (const node of [launcher, b, c]) {
    await untilTrue(async () => {
      const { agents: known } = await node.api.call('agents.list', {})
      return known.filter(({ id, status }) => id === 'worker' && status !== 'offline').length === 2
    }, `${node.name} knows the workers`)
  }
  return { launcher, b, c, mesh, agents }
}

/** Launches a swarm without waiting for it; its id. */
export async function launch(node: TestNode, args: readonly string[] = [], count = ITEMS): Promise<string> {
  const lines = Array.from({ length: count }, (_, index) => `item-${index}`).join('\n')
  const run = await node.cli(
    ['swarm', 'run', 'work', '--capability', 'work.slow', '--items', '-', '--detach', '--json', ...args],
    lines
  )
  if (run.code !== 0) throw new Error(run.stderr)
  return (JSON.parse(run.stdout.trim().split('\n')[0] ?? '{}') as { id: string }).id
}

/** Waits until so many items are done. */
export async function untilDone(node: TestNode, id: string, count: number): Promise<void> {
  let done = 0
  await until(node.api, 'swarm.watch', { id }, (event) => event.type === 'item' && ++done >= count)
}

/** Waits until the node says that somebody coordinates who fits. */
export async function untilCoordinated(node: TestNode, id: string, fits: (by: string) => boolean): Promise<void> {
  await until(
    node.api,
    'swarm.watch',
    { id },
    (event) => event.type === 'coordinator' && event.coordinator !== null && fits(event.coordinator)
  )
}

/** The results as a node has them, in bytes. */
export async function resultsOf(node: TestNode, id: string): Promise<string> {
  const { code, stdout, stderr } = await node.cli(['swarm', 'results', id, '--json'])
  if (code !== 0) throw new Error(stderr)
  return stdout
}
