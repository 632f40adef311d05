import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import type { SwarmEvent, SwarmResults } from '../../src/ports/swarm-api.js'
import { type TestMesh, type TestNode, testMesh, until, untilTrue } from '../support/nodes.js'

/** An agent whose runs write a line into a file when they begin, then take their time. */
function witness(file: string, isRepeatable: boolean): string {
  const script = `require('fs').appendFileSync(process.argv[1], process.argv[2] + '\\\\n'); setTimeout(() => console.log(JSON.stringify({ did: process.argv[2] })), 500)`
  return `---
name: worker
description: Leaves a trace, takes its time.
a2a:
  version: 0.1.0
  capabilities:
    - id: work.traced
      description: Leaves a trace
      input: { type: object }
      idempotent: ${isRepeatable}
  runtime: { type: command, command: [node, -e, "${script}", "${file}", "{input.item}"] }
  limits: { timeout: 1m, concurrency: 2 }
---
`
}

interface Scene {
  readonly mesh: TestMesh
  readonly nodes: readonly TestNode[]
  /** Items in the order in which they were begun, anywhere. */
  begun(): Promise<string[]>
}

/** A launcher without agents of its own, and two workers. */
async function scene(t: Assert, isRepeatable: boolean): Promise<Scene> {
  const mesh = await testMesh(t)
  const dir = await mesh.dir()
  const agents = path.join(dir, 'agents')
  const file = path.join(dir, 'trace')
  await fs.mkdir(agents)
  await fs.writeFile(path.join(agents, 'worker.md'), witness(file, isRepeatable))
  await fs.writeFile(file, '')
  const launcher = await mesh.start('a')
  const nodes = [launcher]
  for (const name of ['b', 'c']) {
    const { stdout } = await launcher.cli(['invite', '--mine', '--json'])
    nodes.push(
      await mesh.start(name, { join: (JSON.parse(stdout) as { code: string }).code, args: ['--agents', agents] })
    )
  }
  await untilTrue(async () => {
    const { agents: known } = await launcher.api.call('agents.list', { origin: 'remote' })
    return known.filter(({ id, status }) => id === 'worker' && status === 'ready').length === 2
  }, 'the launcher knows both workers')
  return { mesh, nodes, begun: async () => (await fs.readFile(file, 'utf8')).split('\n').filter((line) => line !== '') }
}

function items(count: number): string {
  return Array.from({ length: count }, (_, index) => `item-${index}`).join('\n')
}

function eventsOf(stdout: string): SwarmEvent[] {
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SwarmEvent)
}

test('the launcher is killed mid-run: `swarm watch` goes on after its restart, each item has one result; the key finds the swarm', async (t) => {
  const { mesh, nodes, begun } = await scene(t, true)
  const [a] = nodes
  if (a === undefined) throw new Error('no launcher')
  const args = [
    'swarm',
    'run',
    'work',
    '--capability',
    'work.traced',
    '--items',
    '-',
    '--idempotency-key',
    'nightly',
    '--json'
  ]
  const run = a.cli(args, items(30))
  await untilTrue(async () => (await a.api.call('swarm.list', {})).swarms.length > 0, 'the swarm is launched')
  const id = (await a.api.call('swarm.list', {})).swarms[0]?.id ?? ''
  await until(a.api, 'swarm.watch', { id }, (event) => event.type === 'item')
  a.kill('SIGKILL')
  const cut = await run
  t.is(cut.code, 3, 'the command that followed it says that the node is gone')
  const { error } = JSON.parse(cut.stderr.trim().split('\n').at(-1) ?? '{}') as { error: { next: string[] } }
  t.ok(
    error.next.some((one) => one.includes(`swarm watch ${id}`)),
    'and how to go on'
  )
  await a.exited
  const before = eventsOf(cut.stdout).filter((event) => event.type === 'item')
  t.ok(before.length < 30, 'it was under way')

  const again = await mesh.start('a', { home: a.home })
  const watch = await again.cli(['swarm', 'watch', id, '--json'])
  t.is(watch.code, 0, watch.stderr)
  const { results, status } = await again.json<SwarmResults>(['swarm', 'results', id])
  t.is(status, 'completed')
  t.is(new Set(results.map(({ item }) => item)).size, 30)
  t.is(results.length, 30, 'each item has one result')
  for (const one of before) {
    const kept = results.find(({ item }) => item === one.item)
    t.alike([kept?.agent, kept?.attempt, kept?.result], [one.agent, one.attempt, one.result], 'reported text stays')
  }
  const count = (await begun()).length
  const second = await again.cli(args, items(30))
  t.is(second.code, 0, second.stderr)
  const last = eventsOf(second.stdout).at(-1)
  t.is(last?.type === 'done' && last.id, id, 'the same swarm')
  t.is((await begun()).length, count, 'nothing was done again')
  const other = await again.cli(args, items(31))
  t.is(other.code, 9)
  t.ok(other.stderr.includes(id))
})

test('a worker is killed at what may not be repeated: those items end as unknown and are begun once; the swarm is partly done', async (t) => {
  const { nodes, begun } = await scene(t, false)
  const [a, , c] = nodes
  if (a === undefined || c === undefined) throw new Error('no nodes')
  const run = a.cli(['swarm', 'run', 'work', '--capability', 'work.traced', '--items', '-', '--json'], items(30))
  await untilTrue(async () => (await a.api.call('swarm.list', {})).swarms.length > 0, 'the swarm is launched')
  const id = (await a.api.call('swarm.list', {})).swarms[0]?.id ?? ''
  await until(a.api, 'swarm.watch', { id }, (event) => event.type === 'item' && event.agent === 'worker@c')
  c.kill('SIGKILL')
  const { code, stdout, stderr } = await run
  t.is(code, 8, stderr)
  const outcomes = eventsOf(stdout).filter((event) => event.type === 'item')
  t.is(outcomes.length, 30)
  const unknown = outcomes.filter(({ status }) => status === 'unknown')
  t.ok(unknown.length >= 1 && unknown.length <= 2, `${unknown.length} were under way at it`)
  t.ok(unknown.every((one) => one.agent === 'worker@c' && one.error?.message.includes('allows repeats') === true))
  t.ok(outcomes.every(({ status }) => status === 'completed' || status === 'unknown'))
  const traces = await begun()
  t.is(new Set(traces).size, traces.length, 'none was begun twice')
})
