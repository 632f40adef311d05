import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { SwarmResults } from '../../src/ports/swarm-api.js'
import { testMesh, until, untilAgent } from '../support/nodes.js'
import { job } from '../support/swarm-agents.js'

test('the launcher is killed in the middle of a plan: after its restart the plan continues from its records, each item once', async (t) => {
  const mesh = await testMesh(t)
  const [a, b] = await mesh.meshOf('a', 'b')
  await fs.writeFile(
    path.join(b.home, 'agents', 'step.md'),
    job('step', '({sum:(input.values||[]).reduce((x,y)=>x+y,input.n||0)})', 300)
  )
  await untilAgent(a, 'step@b')
  const plan = path.join(await mesh.dir(), 'plan.yaml')
  await fs.writeFile(
    plan,
    `tasks:
  - { id: first, capability: job.step, input: { n: 1 } }
  - { id: many, capability: job.step, needs: [first], items: [10, 20, 30, 40], input: { n: "{item}", values: ["{first/sum}"] } }
  - { id: race, capability: job.step, strategy: race, input: { values: ["{many/0/sum}", "{many/3/sum}"] } }
  - { id: last, capability: job.step, input: { values: ["{race/sum}", "{many/1/sum}"] }, when: "{race/sum} == 52" }
`
  )
  const id = (await a.cli(['swarm', 'run', 'sum', '--plan', plan, '--detach'])).stdout.trim()
  await until(a.api, 'swarm.watch', { id }, (event) => event.type === 'item' && event.stage === 'many')
  a.kill('SIGKILL')
  await a.exited
  const again = await mesh.start('a', { home: a.home })
  const watch = await again.cli(['swarm', 'watch', id, '--json'])
  t.is(watch.code, 0, watch.stderr)
  const { results, status, result } = await again.json<SwarmResults>(['swarm', 'results', id])
  t.alike([status, result], ['completed', { sum: 73 }])
  t.alike(
    results.map(({ item, result: one }) => [item, (one as { sum: number }).sum]),
    [
      ['first', 1],
      ['many: 1', 11],
      ['many: 2', 21],
      ['many: 3', 31],
      ['many: 4', 41],
      ['race 1', 52],
      ['last', 73]
    ]
  )
})
