import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { SwarmEvent, SwarmResults } from '../../src/ports/swarm-api.js'
import { processesWith } from '../support/processes.js'
import { testMesh, until, untilTrue } from '../support/nodes.js'
import { slowAgent } from '../support/swarm-agents.js'

test('a node is killed mid-run: all 60 items have one result each and none of its agent processes survives', async (t) => {
  const mesh = await testMesh(t)
  const mark = `mark-${mesh.port}`
  const agents = path.join(await mesh.dir(), 'agents')
  await fs.mkdir(agents)
  await fs.writeFile(path.join(agents, 'worker.md'), slowAgent(mark, 300))
  const [a, , c] = await mesh.meshWith({ args: ['--agents', agents] }, 'a', 'b', 'c')
  const items = Array.from({ length: 60 }, (_, i) => `item-${i}`)
  const run = a.cli(['swarm', 'run', 'work', '--capability', 'work.slowly', '--items', '-', '--json'], items.join('\n'))
  await untilTrue(async () => (await a.api.call('swarm.list', {})).swarms.length > 0, 'the swarm is launched')
  const { swarms } = await a.api.call('swarm.list', {})
  const id = swarms[0]?.id ?? ''
  await until(a.api, 'swarm.watch', { id }, (event) => event.type === 'item' && event.agent === 'worker@c')
  let children: number[] = []
  await untilTrue(async () => {
    children = await processesWith(mark, c.info.pid)
    return children.length > 0
  }, 'it has agent processes')
  const killedAt = Date.now()
  c.kill('SIGKILL')
  await untilTrue(async () => (await processesWith(mark, null, children)).length === 0, 'its agent processes are gone')
  t.ok(children.length > 0, 'it had agent processes, and they are gone')
  t.ok(Date.now() - killedAt < 5000, `after ${Date.now() - killedAt} ms`)

  const { code, stdout, stderr } = await run
  t.is(code, 0, stderr)
  const events = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SwarmEvent)
  const done = events.filter((one) => one.type === 'item')
  t.is(done.length, 60)
  t.alike(new Set(done.map((one) => one.item)).size, 60, 'each once')
  t.ok(done.every((one) => one.status === 'completed'))
  const results = await a.json<SwarmResults>(['swarm', 'results', id])
  t.is(results.results.length, 60)
  t.is(results.status, 'completed')
})
