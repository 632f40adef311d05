import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { AgentDetail, AgentInfo } from '../../src/ports/node-api.js'
import type { SwarmPreview, SwarmResults } from '../../src/ports/swarm-api.js'
import { type LocalMesh, type LocalNode, localMesh, untilAgent, untilOnline } from '../support/nodes.js'
import { job } from '../support/swarm-agents.js'

/** Nodes a, b and c; b is marked `gpu` and `zone=eu`. */
async function labelledMesh(mesh: LocalMesh): Promise<LocalNode[]> {
  const [a] = await mesh.meshOf('a')
  const nodes: LocalNode[] = [a]
  for (const [name, labels] of [
    ['b', 'gpu,zone=eu'],
    ['c', '']
  ] as const) {
    const { code } = await a.json<{ code: string }>(['invite', '--mine'])
    nodes.push(await mesh.start(name, { join: code, env: labels === '' ? {} : { A2A_NODE_NODE_LABELS: labels } }))
  }
  await untilOnline(a, 2)
  await Promise.all(['text@b', 'text@c', 'host@b', 'host@c'].map((address) => untilAgent(a, address)))
  return nodes
}

test('labels of the config stand on the cards that other nodes hold', async (t) => {
  const [a] = await labelledMesh(await localMesh(t))
  const { agents } = await a.json<{ agents: AgentInfo[] }>(['agents'])
  const labels = (address: string): readonly string[] | undefined =>
    agents.find((one) => one.address === address)?.labels
  t.alike([labels('text@a'), labels('text@b'), labels('text@c')], [[], ['gpu', 'zone=eu'], []])
  t.alike((await a.json<AgentDetail>(['agents', 'show', 'host@b'])).labels, ['gpu', 'zone=eu'])
  t.ok((await a.cli(['agents', 'show', 'host@b'])).stdout.includes('gpu, zone=eu'))
})

interface Done {
  readonly status: string
  readonly result?: unknown
  readonly id: string
}

/** Runs a swarm to its end. */
async function run(
  node: LocalNode,
  args: readonly string[]
): Promise<{ code: number | null; done: Done; results: SwarmResults }> {
  const { code, stdout, stderr } = await node.cli(['swarm', 'run', ...args, '--json'])
  const last = stdout.trim().split('\n').at(-1) ?? ''
  if (last === '') throw new Error(stderr)
  const done = JSON.parse(last) as Done
  return { code, done, results: await node.json<SwarmResults>(['swarm', 'results', done.id]) }
}

test('pipeline, race, vote and plan over three nodes: results build on each other, and are reported and kept', async (t) => {
  const mesh = await localMesh(t)
  const [a, b, c] = await labelledMesh(mesh)
  const files = [
    [a, 'add', job('add', '({n:input.n+1})')],
    [b, 'double', job('double', '({n:input.n*2})')],
    [a, 'guess', job('guess', '({say:"left"})')],
    [b, 'guess', job('guess', '({say:"right"})')],
    [c, 'guess', job('guess', '({say:"right"})')]
  ] as const
  for (const [node, name, text] of files) await fs.writeFile(path.join(node.home, 'agents', `${name}.md`), text)
  await Promise.all(['add@a', 'double@b', 'guess@a', 'guess@b', 'guess@c'].map((address) => untilAgent(a, address)))

  const pipeline = await run(a, [
    'sum',
    '--strategy',
    'pipeline',
    '--capability',
    'job.add,job.double',
    '--capability',
    'job.add',
    '--input',
    '{"n":1}'
  ])
  t.is(pipeline.code, 0)
  t.alike([pipeline.done.status, pipeline.done.result, pipeline.results.result], ['completed', { n: 5 }, { n: 5 }])

  const vote = await run(a, ['which', '--strategy', 'vote', '--capability', 'job.guess'])
  t.alike([vote.code, vote.done.result], [0, { say: 'right' }])
  const race = await run(a, ['quick', '--strategy', 'race', '--capability', 'job.guess', '--label', 'gpu'])
  t.alike([race.code, race.done.result], [0, { say: 'right' }], 'only b is marked')

  const plan = path.join(await mesh.dir(), 'plan.yaml')
  await fs.writeFile(
    plan,
    `tasks:
  - { id: first, capability: job.add, input: { n: 1 } }
  - { id: twice, capability: job.double, labels: [gpu] , needs: [first] }
  - { id: more, capability: job.add, input: { n: "{twice/n}" }, when: "{twice/n} > 3" }
  - { id: never, capability: job.add, input: { n: "{twice/n}" }, when: "{twice/n} > 4" }
output: { sum: "{more/n}" }
`
  )
  const planned = await run(a, ['count', '--plan', plan])
  t.alike([planned.code, planned.done.status, planned.done.result], [0, 'completed', { sum: 5 }])
  t.alike(
    planned.results.results.map(({ item, status }) => [item, status]),
    [
      ['first', 'completed'],
      ['twice', 'completed'],
      ['more', 'completed'],
      ['never', 'skipped']
    ]
  )
  await fs.writeFile(
    plan,
    'tasks:\n  - id: one\n    capability: job.add\n    needs:\n      - nothing\n  - id: two\n    capabilty: job.add\n    input: "{thre}"\n'
  )
  const faulty = await a.cli(['swarm', 'run', 'x', '--plan', plan])
  t.is(faulty.code, 2)
  t.ok(faulty.stderr.includes(`${plan}:5: tasks.0.needs.0: there is no sub-task nothing`), faulty.stderr)
  for (const line of [6, 7, 8]) t.ok(faulty.stderr.includes(`  ${plan}:${line}:`), faulty.stderr)
})

test('a dry run shows the agent of each item and the agents left out, and begins nothing; several capabilities are sub-tasks, reducers make one result', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await labelledMesh(mesh)
  const each = ['report', '--capability', 'host.report']
  const dry = await a.json<SwarmPreview>(['swarm', 'run', ...each, '--label', 'gpu', '--dry-run'])
  const [stage] = dry.stages
  t.alike([dry.error, stage?.items, stage?.isPinned, stage?.agents], [null, 1, true, ['host@b']])
  const rule = 'label: its node is not marked gpu'
  t.alike(
    stage?.leftOut.toSorted((x, y) => x.agent.localeCompare(y.agent)),
    [
      { agent: 'host@a', rule },
      { agent: 'host@c', rule }
    ]
  )
  const none = await a.cli(['swarm', 'run', ...each, '--label', 'tpu', '--dry-run'])
  t.is(none.code, 4, 'it exits as the launch would')
  t.ok(none.stdout.includes('its node is not marked tpu') && none.stdout.includes('nobody'), none.stdout)
  t.alike((await a.json<{ swarms: unknown[] }>(['swarm', 'ls'])).swarms, [])
  const entries = (await b.json<{ tasks: unknown[] }>(['tasks'])).tasks
  t.alike(entries, [], 'nobody was asked')

  const goal = await run(a, ['look', '--capability', 'host.report,host.report'])
  t.alike(
    [goal.code, goal.results.results.map(({ item, status }) => [item, status])],
    [
      0,
      [
        ['task-1', 'completed'],
        ['task-2', 'completed']
      ]
    ]
  )
  const counted = await run(a, [...each, '--reduce', 'count'])
  t.alike([counted.code, counted.done.result, counted.results.result], [0, 3, 3])
  await fs.writeFile(path.join(a.home, 'agents', 'sum.md'), job('sum', '({sum:input.results.length,goal:input.goal})'))
  await untilAgent(a, 'sum@a')
  const summed = await run(a, [...each, '--reduce', 'job.sum'])
  t.alike([summed.code, summed.done.result], [0, { sum: 3, goal: 'report' }])
})

test('a stage of a pipeline that refuses its input shows that input: the result before it, not the input of the swarm', async (t) => {
  const mesh = await localMesh(t)
  const [a] = await mesh.meshOf('a')
  const strict = job('strict', 'input').replace('input: { type: object }', 'input: { type: object, required: [m] }')
  await fs.writeFile(path.join(a.home, 'agents', 'add.md'), job('add', '({n:input.n+1})'))
  await fs.writeFile(path.join(a.home, 'agents', 'strict.md'), strict)
  await Promise.all(['add@a', 'strict@a'].map((address) => untilAgent(a, address)))
  const asked = ['go', '--strategy', 'pipeline', '--capability', 'job.add,job.strict', '--input', '{"n":1}']
  const text = await a.cli(['swarm', 'run', ...asked])
  t.ok(text.stdout.includes('\n  given: {"n":2}\n'), text.stdout)
  t.absent(text.stdout.includes('try: a2a-node swarm run go --strategy pipeline'), text.stdout)
  const { results } = await run(a, asked)
  t.alike((results.results[1]?.error?.data as { given?: unknown } | undefined)?.given, '{"n":2}')
})

test('an unknown placeholder of --input is refused before anything begins', async (t) => {
  const mesh = await localMesh(t)
  const [a] = await mesh.meshOf('a')
  const items = path.join(await mesh.dir(), 'items.txt')
  await fs.writeFile(items, 'one\ntwo\n')
  const map = ['swarm', 'run', 'count', '--capability', 'text.stats', '--items', items, '--input']
  const wrong = await a.cli([...map, '{"text":"{itme}"}'])
  t.is(wrong.code, 2)
  const [, next = ''] = /^ {2}try: (.*)$/m.exec(wrong.stderr) ?? []
  t.ok(next.endsWith(`--input '{"text":"{item}"}'`), wrong.stderr)
  t.is((await a.cli(['swarm', 'run', 'x', '--capability', 'host.report', '--input', '"{gaol}"'])).code, 2)
  t.alike((await a.json<{ swarms: unknown[] }>(['swarm', 'ls'])).swarms, [])
  t.is((await a.cli([...map, '{"text":"{item}"}'])).code, 0, 'the suggested template is taken')
})
