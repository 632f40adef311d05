import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import type { Plan } from '../../../src/domain/swarm/plan.js'
import type { SwarmRequest, SwarmResults } from '../../../src/ports/swarm-api.js'
import { holds } from '../../support/holds.js'
import { SwarmScene } from '../../support/swarm-scene.js'
import { arbSwarmStep, performSwarmStep } from '../../support/swarm-steps.js'

const PLAN: Plan = {
  tasks: [
    { id: 'a', capability: 'work.again', input: { goal: '{goal}', given: '{input/n}' } },
    { id: 'list', capability: 'work.again', items: ['x', 'y'] },
    { id: 'b', capability: 'work.again', input: ['{a}', '{list}'] },
    { id: 'mend', capability: 'work.again', input: '{a:status}', when: '{a:status} == "failed"' },
    { id: 'race', capability: 'work.again', strategy: 'race', answers: 2, needs: ['a'] },
    { id: 'judged', capability: 'work.again', strategy: 'vote', answers: 2, judge: 'work.again' }
  ],
  output: { b: '{b}' }
}

const base = { goal: 'do it', capability: 'work.again', input: { n: 1 } } as const
const REQUESTS: readonly SwarmRequest[] = [
  { ...base, strategy: 'race', answers: 2 },
  { ...base, strategy: 'vote', answers: 2 },
  { ...base, strategy: 'pipeline', stages: ['work.again', 'work.again', 'work.again'] },
  { ...base, strategy: 'plan', plan: PLAN },
  { ...base, strategy: 'vote', answers: 2, judge: 'work.again', reduce: 'first' },
  {
    goal: 'do it',
    capability: 'work.again',
    strategy: 'map',
    items: [
      { item: 'x', input: 1 },
      { item: 'y', input: 2 }
    ],
    reduce: 'work.again'
  }
]

type Rows = SwarmResults['results']

/** What a run of an item has to be given, made of recorded results alone. */
function inputOf(request: SwarmRequest, rows: Rows, item: string): unknown {
  const result = (name: string): unknown => rows.find((row) => row.item === name && row.status === 'completed')?.result
  const list = (...names: string[]): unknown[] => names.map(result).filter((one) => one !== undefined)
  if (request.strategy === 'pipeline')
    return item === 'stage-1' ? request.input : result(`stage-${Number(item.slice(-1)) - 1}`)
  if (request.strategy === 'map')
    return item === 'reduce' ? { goal: 'do it', results: list('x', 'y') } : item === 'x' ? 1 : 2
  if (request.strategy === 'vote')
    return item === 'vote' ? { goal: 'do it', answers: list('vote 1', 'vote 2') } : request.input
  if (request.strategy === 'race') return request.input
  const inputs: Record<string, unknown> = {
    a: { goal: 'do it', given: 1 },
    'list: x': { item: 'x' },
    'list: y': { item: 'y' },
    b: [result('a'), list('list: x', 'list: y')],
    mend: 'failed',
    'race 1': result('a'),
    'race 2': result('a'),
    'judged 1': { n: 1 },
    'judged 2': { n: 1 },
    judged: { goal: 'do it', answers: list('judged 1', 'judged 2') }
  }
  return inputs[item]
}

const arbSwarm = fc.record({
  which: fc.nat(REQUESTS.length - 1),
  retries: fc.nat(1),
  same: fc.boolean(),
  steps: fc.array(arbSwarmStep, { maxLength: 12 })
})

test('Feature: a2a-mcp-protocols, Property 26: Swarm sub-task assignment and state consistency, for every strategy and through kills at any commit', async (t) => {
  await holds(
    t,
    fc.asyncProperty(arbSwarm, async ({ which, retries, same, steps }) => {
      const request = { ...(REQUESTS[which] ?? base), retries } as SwarmRequest
      const scene = await SwarmScene.start(t)
      if (same) scene.answer = () => ({ same: true })
      const id = await scene.run(request)
      for (const step of steps) await performSwarmStep(scene, step)
      await scene.finish(id)
      const rows = await scene.rows(id)
      const info = await scene.info(id)
      assert.equal(rows.length, info.counts.total, 'one outcome an item')
      assert.equal(new Set(rows.map(({ item }) => item)).size, rows.length)
      for (const [index, { item, status, attempt, result }] of rows.entries()) {
        const name = `${id}.${index}`
        const runs = scene.begun.filter((run) => run.startsWith(`${name}#`))
        for (const run of runs)
          assert.deepEqual(scene.inputs.get(run), inputOf(request, rows, item), `the input of ${item}`)
        if (status === 'completed') {
          assert.deepEqual(result, scene.answer(`${name}#${attempt}`))
          assert.equal(scene.ended.get(`${name}#${attempt}`), 'completed', 'an agent did it')
        }
        if (status === 'skipped') assert.deepEqual(runs, [], 'a skipped item is never begun')
      }
      const session = scene.launcher.core.swarms.inMemory(id)?.session()
      // One that ended before a restart is read from the ledger.
      if (session !== undefined) assert.equal(session.status, info.status === 'completed' ? 'completed' : 'failed')
      const { result } = (await scene.launcher.core.swarms.find(id)).results()
      const good = rows.filter((row) => row.status === 'completed')
      if (request.strategy === 'race') {
        assert.equal(info.status, good.length > 0 ? 'completed' : 'failed')
        if (good.length > 0) assert.ok(good.some((row) => JSON.stringify(row.result) === JSON.stringify(result)))
      }
      if (request.strategy === 'vote' && request.judge === undefined) {
        assert.equal(info.status, same && good.length === 2 ? 'completed' : 'failed')
        assert.deepEqual(result, same && good.length === 2 ? { same: true } : undefined)
      }
      if (request.strategy === 'pipeline') assert.equal(info.status, good.length === 3 ? 'completed' : 'failed')
      await scene.close()
    }),
    150
  )
})
