import test from 'brittle'
import { SwarmTree } from '../../../src/cli/swarm/tree.js'
import type { SwarmStage } from '../../../src/ports/swarm-api.js'

const stage = (id: string, items: number, needs: readonly string[] = []): SwarmStage => ({
  id,
  items,
  needs,
  capability: 'c',
  labels: id === 'b' ? ['gpu'] : []
})

test('a swarm is drawn as its sub-tasks and the items under way, with node, attempt, rate and time left', (t) => {
  const tree = new SwarmTree(null)
  tree.take({ type: 'swarm', id: 's', agents: ['w@x'], leftOut: [], stages: [stage('a', 2), stage('b', 10, ['a'])] }, 0)
  tree.take({ type: 'lease', stage: 'a', item: 'a 1', agent: 'w@x', attempt: 2 }, 0)
  tree.take({ type: 'lease', stage: 'a', item: 'a\u001b[31m 2', agent: 'w@y', attempt: 1 }, 500)
  t.alike(tree.lines(2000), [
    '[........................] 0 of 12 done, 2 running on 2 agents',
    '  a  open  0/2',
    '    a 1  w@x  attempt 2  2 s',
    '    a[31m 2  w@y  1.5 s',
    '  b  waiting after a  0/10  [gpu]'
  ])
  const result = { type: 'item', stage: 'a', attempt: 1, result: 1, error: null } as const
  tree.take({ ...result, item: 'a 1', agent: 'w@x', status: 'completed' }, 2500)
  tree.take({ ...result, item: 'a\u001b[31m 2', agent: 'w@y', status: 'failed' }, 2500)
  tree.take({ type: 'stage', stage: 'a', status: 'partial', reason: '' }, 2500)
  tree.take({ type: 'stage', stage: 'b', status: 'skipped', reason: 'it needs a, which failed' }, 2500)
  t.alike(tree.lines(4000), [
    '[####....................] 1 of 12 done, 1 failed, 0 running on 0 agents, 1.0/s, about 10 s left',
    '  a  partial  1/2, 1 failed',
    '  b  skipped  0/10  [gpu]: it needs a, which failed'
  ])
})

test('where the line is too wide for the terminal whole parts are left out: the rate, then the time left', (t) => {
  const tree = new SwarmTree(40)
  tree.take({ type: 'lease', item: 'x', agent: 'w@x', attempt: 1 }, 0)
  tree.lines(0)
  for (let n = 0; n < 6; n++) {
    tree.take(
      { type: 'item', item: String(n), agent: 'w@x', attempt: 1, status: 'completed', result: 1, error: null },
      1000
    )
  }
  const head = '[####....................] 6 of 40 done, 1 running on 1 agent'
  const line = (columns: number): string | undefined => tree.lines(10_000, columns)[0]
  t.is(line(Number.POSITIVE_INFINITY), `${head}, 0.6/s, about 57 s left`)
  t.is(line(`${head}, 0.6/s, about 57 s left`.length), `${head}, 0.6/s, about 57 s left`)
  t.is(line(79), `${head}, about 57 s left`)
  t.is(line(77), head)
  t.is(line(20), head, 'counted blocks stay')
  tree.take({ type: 'status', status: 'stalled' }, 1000)
  t.is(line(79), `${head}, stalled`)
})

test('items that ended before the first drawing are no rate; a stalled tree and one that waits for a person say so', (t) => {
  const tree = new SwarmTree(4)
  tree.take({ type: 'swarm', id: 's', agents: ['w@x'], leftOut: [], stages: [] }, 0)
  for (const item of ['1', '2'])
    tree.take({ type: 'item', item, agent: 'w@x', attempt: 1, status: 'completed', result: 1, error: null }, 0)
  tree.take({ type: 'lease', item: '3', agent: 'w@x', attempt: 1 }, 0)
  tree.take({ type: 'waiting', item: '3', agent: 'w@x', attempt: 1, waitingFor: 'approval' }, 0)
  tree.take({ type: 'status', status: 'stalled' }, 0)
  tree.lines(10)
  t.alike(tree.lines(9000), [
    '[############............] 2 of 4 done, 0 running on 0 agents, 1 waiting for approval, stalled: no agent for the remaining items',
    '    3  w@x  waiting for approval'
  ])
})

test('running items are not printed where another node coordinates, since they are not known there', (t) => {
  const tree = new SwarmTree(4)
  tree.take({ type: 'coordinator', coordinator: 'b', epoch: 1 }, 0)
  const there = '  coordinated by b: running items are shown there'
  t.alike(
    new SwarmTree(4).lines(0),
    ['[........................] 0 of 4 done'],
    'nor before anybody is known to coordinate'
  )
  t.alike(tree.lines(0), ['[........................] 0 of 4 done', there])
  tree.take({ type: 'coordinator', coordinator: null, epoch: 1 }, 0)
  t.alike(tree.lines(0), ['[........................] 0 of 4 done'])
  tree.take({ type: 'coordinator', coordinator: 'a', epoch: 2, isHere: true }, 0)
  t.alike(tree.lines(0), ['[........................] 0 of 4 done, 0 running on 0 agents'])
  tree.take({ type: 'lease', item: '3', agent: 'w@x', attempt: 1 }, 0)
  t.is(tree.lines(0)[0], '[........................] 0 of 4 done, 1 running on 1 agent')
  tree.take({ type: 'coordinator', coordinator: 'b', epoch: 3 }, 0)
  t.alike(tree.lines(0), ['[........................] 0 of 4 done', there])
})

test('a wide swarm is drawn within bounds, active items first', (t) => {
  const tree = new SwarmTree(null)
  tree.take(
    {
      type: 'swarm',
      id: 's',
      agents: [],
      leftOut: [],
      stages: Array.from({ length: 40 }, (_, n) => stage(`t${n}`, 20, ['x']))
    },
    0
  )
  for (let n = 0; n < 20; n++) tree.take({ type: 'lease', stage: 't39', item: `i${n}`, agent: 'w@x', attempt: 1 }, 0)
  const lines = tree.lines(0)
  t.ok(lines.length < 15, String(lines.length))
  t.ok(lines.includes('    and 12 more') && lines.at(-1) === '  and 39 more sub-tasks', lines.join('\n'))
})
