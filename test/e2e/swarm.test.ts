import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { SwarmEvent, SwarmInfo, SwarmResults } from '../../src/ports/swarm-api.js'
import { processesWith } from '../support/processes.js'
import { ROOT, type LocalNode, localMesh, untilPeer, untilTrue } from '../support/nodes.js'
import { slowAgent } from '../support/swarm-agents.js'

test('swarm each: every capable agent does it once, on every node', async (t) => {
  const mesh = await localMesh(t)
  const [a] = await mesh.meshOf('a', 'b', 'c')
  const run = await a.cli(['swarm', 'run', 'report yourselves', '--capability', 'host.report', '--json'])
  t.is(run.code, 0, run.stderr)
  const events = run.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SwarmEvent)
  t.alike(events.find((one) => one.type === 'swarm')?.agents.toSorted(), ['host@a', 'host@b', 'host@c'])
  const items = events.filter((one) => one.type === 'item')
  t.alike(items.map((one) => one.agent).toSorted(), ['host@a', 'host@b', 'host@c'])
  const done = events.at(-1)
  t.is(done?.type === 'done' && done.status, 'completed')
})

test('swarm map over files with their contents: results are those of the files, shared among the nodes', async (t) => {
  const mesh = await localMesh(t)
  const [a] = await mesh.meshOf('a', 'b', 'c')
  const dir = path.join(ROOT, 'src', 'kit')
  const run = await a.cli([
    'swarm',
    'run',
    'count words',
    '--capability',
    'text.stats',
    '--items',
    `${dir}/*.ts`,
    '--attach',
    '--json'
  ])
  t.is(run.code, 0, run.stderr)
  const done = JSON.parse(run.stdout.trim().split('\n').at(-1) ?? '') as Extract<SwarmEvent, { type: 'done' }>
  const results = await a.json<SwarmResults>(['swarm', 'results', done.id])
  const files = (await fs.readdir(dir)).filter((name) => name.endsWith('.ts'))
  t.is(results.results.length, files.length)
  for (const one of results.results) {
    const bytes = (await fs.stat(one.item)).size
    t.is((one.result as { bytes: number }).bytes, bytes, path.basename(one.item))
  }
  t.is(new Set(results.results.map((one) => one.agent)).size, 3, 'all three nodes took part')
})

test('nobody can, nobody may, all away: each its own error, at once', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await mesh.meshOf('a', 'b')
  const nobody = await a.cli(['swarm', 'run', 'x', '--capability', 'no.such', '--json'])
  t.is(nobody.code, 4)
  t.is(JSON.parse(nobody.stderr.trim().split('\n').at(-1) ?? '').error.code, 'NO_CAPABLE_AGENT')

  // L1 may not open to L3, and the owner (L0) keeps the others out by taking b's tier away.
  await a.api.call('peers.tier', { peer: 'b', tier: 3 })
  await untilTrue(async () => (await b.api.call('node.status', {})).node.tier === 'L3', 'b knows its tier')
  const run = await a.cli(['swarm', 'run', 'x', '--capability', 'host.report', '--json'])
  t.is(run.code, 0, 'L0 may open to all')
  const refused = await b.cli(['swarm', 'run', 'x', '--capability', 'host.report', '--json'])
  const first = JSON.parse(refused.stdout.trim().split('\n')[0] ?? '{}') as Extract<SwarmEvent, { type: 'swarm' }>
  t.alike(first.agents, ['host@b'], 'only its own agent')
  t.ok(first.leftOut[0]?.rule.includes('justification') || first.leftOut[0]?.rule.includes('L3'), 'the rule is named')
})

test('cancel ends a swarm and the processes that work for it', async (t) => {
  const mesh = await localMesh(t)
  const mark = `mark-${mesh.port}`
  const agents = path.join(await mesh.dir(), 'agents')
  await fs.mkdir(agents)
  await fs.writeFile(path.join(agents, 'worker.md'), slowAgent(mark, 600_000))
  const [a, b] = await mesh.meshWith({ args: ['--agents', agents] }, 'a', 'b')
  const run = a.cli(
    ['swarm', 'run', 'work', '--capability', 'work.slowly', '--items', '-', '--json'],
    'one\ntwo\nthree\nfour'
  )
  await untilTrue(async () => (await processesWith(mark, null)).length >= 4, 'four runs are under way')
  const { swarms } = await a.api.call('swarm.list', {})
  t.is((await a.cli(['swarm', 'cancel', swarms[0]?.id ?? ''])).code, 0)
  t.is((await run).code, 1, 'a canceled swarm exits 1')
  await untilTrue(async () => (await processesWith(mark, null)).length === 0, 'every run is killed')
  await untilPeer(a, 'b', 'online')
  await untilTrue(async () => (await b.api.call('node.status', {})).tasks.running === 0, 'b knows that its runs ended')
})

test('swarm show names the node that canceled a swarm on all its nodes, also when another one launched it', async (t) => {
  const mesh = await localMesh(t)
  const agents = path.join(await mesh.dir(), 'agents')
  await fs.mkdir(agents)
  await fs.writeFile(path.join(agents, 'worker.md'), slowAgent(`mark-${mesh.port}`, 600_000))
  const [a, b, c] = await mesh.meshWith({ args: ['--agents', agents] }, 'a', 'b', 'c')
  const run = a.cli(
    ['swarm', 'run', 'work', '--capability', 'work.slowly', '--items', '-', '--json'],
    'one\ntwo\nthree'
  )
  const idsOf = async (node: LocalNode): Promise<string[]> =>
    (await node.api.call('swarm.list', {})).swarms.map(({ id }) => id)
  for (const node of [a, b, c]) await untilTrue(async () => (await idsOf(node)).length === 1, 'it knows the swarm')
  const [id = ''] = await idsOf(b)
  t.is((await b.cli(['swarm', 'cancel', id])).code, 0)
  t.is((await run).code, 1)
  for (const node of [a, b, c]) {
    await untilTrue(async () => (await node.api.call('swarm.show', { id })).status === 'canceled', 'it is canceled')
    const { canceledBy } = await node.json<SwarmInfo>(['swarm', 'show', id])
    t.alike([canceledBy?.node.name, canceledBy?.caller], ['b', node === b ? 'operator' : null])
    const { stdout } = await node.cli(['swarm', 'show', id])
    t.ok(/canceled +by b(?: \(operator\))?, \d{4}-/.test(stdout), stdout)
  }
})

test('an item that an agent refuses fails with the reason, at once: no other agent could do it', async (t) => {
  const mesh = await localMesh(t)
  const [a] = await mesh.meshOf('a', 'b')
  const run = await a.cli(
    [
      'swarm',
      'run',
      'x',
      '--capability',
      'text.stats',
      '--items',
      '-',
      '--input',
      '{"text":{"not":"text"}}',
      '--retries',
      '1',
      '--json'
    ],
    'one'
  )
  t.is(run.code, 1, run.stderr)
  const events = run.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SwarmEvent)
  const item = events.find((one) => one.type === 'item')
  t.is(item?.error?.code, 'INVALID_INPUT')
  t.is(item?.attempt, 1, 'no retry is spent on it')
  t.absent(
    events.some((one) => one.type === 'released' && one.reason.includes('heartbeat')),
    'no lease aged out'
  )
})
