import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { expandPlan, graphStages } from '../../../src/domain/swarm/expand.js'
import {
  createGraph,
  type GraphMove,
  type GraphState,
  graphVerdict,
  settleItem,
  stageOf,
  stageValue,
  startGraph
} from '../../../src/domain/swarm/graph.js'
import { checkPlan, type PlanTask } from '../../../src/domain/swarm/plan.js'
import type { ItemOutcome } from '../../../src/domain/swarm/types.js'
import { holds } from '../../support/holds.js'

type Outcome = { readonly index: number; readonly status: ItemOutcome; readonly value?: unknown }

/** A graph at work: which items may be given out, which have their outcome. */
class Scene {
  readonly graph: GraphState
  readonly open = new Set<number>()
  readonly outcomes: Outcome[] = []
  readonly opened: string[] = []

  constructor(tasks: readonly PlanTask[], agents = 3) {
    const checked = checkPlan({ tasks })
    assert.ok(checked.ok, JSON.stringify(checked))
    this.graph = createGraph(
      graphStages(expandPlan(checked.plan, () => Array.from({ length: agents }, (_, n) => `a${n}@n`)).stages)
    )
    this.#take(startGraph(this.graph, (index) => this.value(index)))
  }

  value(index: number): unknown {
    const one = this.outcomes.find((outcome) => outcome.index === index)
    return one?.status === 'completed' ? one.value : undefined
  }

  settle(one: Outcome): void {
    assert.ok(!this.outcomes.some(({ index }) => index === one.index), 'one outcome an item')
    this.open.delete(one.index)
    this.outcomes.push(one)
    this.#take(settleItem(this.graph, one, (index) => this.value(index)))
  }

  #take(moves: readonly GraphMove[]): void {
    for (const move of moves) {
      const stage = this.graph.stages[move.stage]
      assert.ok(stage)
      const items = Array.from({ length: stage.count }, (_, at) => stage.from + at)
      if (move.type === 'open') this.opened.push(stage.id)
      for (const index of items) {
        if (move.type === 'open') this.open.add(index)
        else if (!this.outcomes.some((one) => one.index === index)) this.settle({ index, status: move.status })
      }
    }
  }

  status(id: string): string | undefined {
    return this.graph.states[this.graph.byName.get(id) ?? -1]?.status
  }

  get isDone(): boolean {
    return this.graph.states.every(({ status }) => status !== 'waiting' && status !== 'open')
  }

  valueOf(id: string): unknown {
    return stageValue(this.graph, this.graph.byName.get(id) ?? -1, (index) => this.value(index))
  }
}

const task = (id: string, rest: Partial<PlanTask> = {}): PlanTask => ({ id, capability: 'work.do', ...rest })

test('a sub-task opens when all that it needs is complete, and is skipped when one of that fails', (t) => {
  const scene = new Scene([
    task('a'),
    task('b'),
    task('c', { needs: ['a', 'b'] }),
    task('d', { needs: ['c'] }),
    task('e', { needs: ['a'] })
  ])
  t.alike(scene.opened, ['a', 'b'])
  scene.settle({ index: 0, status: 'completed', value: 1 })
  t.alike(scene.opened, ['a', 'b', 'e'])
  scene.settle({ index: 1, status: 'failed' })
  t.alike(
    ['c', 'd', 'e'].map((id) => scene.status(id)),
    ['skipped', 'skipped', 'open']
  )
  scene.settle({ index: 4, status: 'completed' })
  t.is(graphVerdict(scene.graph), 'partial')
})

test('a condition that is not met skips a sub-task and its dependents, and that is no failure', (t) => {
  const scene = new Scene([task('a'), task('b', { when: '{a/n} > 3' }), task('c', { needs: ['b'] })])
  scene.settle({ index: 0, status: 'completed', value: { n: 3 } })
  t.alike(
    ['b', 'c'].map((id) => scene.status(id)),
    ['skipped', 'skipped']
  )
  t.is(graphVerdict(scene.graph), 'completed')
})

test('a sub-task that asks how another ended is done also when that failed', (t) => {
  const tasks = [
    task('a'),
    task('mend', { when: '{a:status} == "failed"' }),
    task('praise', { when: '{a:status} == "completed"' })
  ]
  const failed = new Scene(tasks)
  failed.settle({ index: 0, status: 'failed' })
  t.alike(failed.opened, ['a', 'mend'])
  failed.settle({ index: 1, status: 'completed' })
  t.is(graphVerdict(failed.graph), 'completed')
  const fine = new Scene(tasks)
  fine.settle({ index: 0, status: 'completed' })
  t.alike(fine.opened, ['a', 'praise'])
})

test('race: the first good result wins and the others are canceled; bad ones do not win; all bad is failed', (t) => {
  const scene = new Scene([task('r', { strategy: 'race', answers: 4 })])
  scene.settle({ index: 2, status: 'failed' })
  t.is(scene.status('r'), 'open')
  scene.settle({ index: 3, status: 'completed', value: 'third' })
  t.alike(
    scene.outcomes.map(({ index, status }) => [index, status]),
    [
      [2, 'failed'],
      [3, 'completed'],
      [0, 'canceled'],
      [1, 'canceled']
    ]
  )
  t.is(scene.valueOf('r'), 'third')
  t.is(graphVerdict(scene.graph), 'completed')
  const bad = new Scene([task('r', { strategy: 'race', answers: 2 })])
  bad.settle({ index: 0, status: 'failed' })
  bad.settle({ index: 1, status: 'unknown' })
  t.is(graphVerdict(bad.graph), 'failed')
})

test('vote: the result is that of more than half, for any order of its keys; it is decided as soon as it can be', (t) => {
  const scene = new Scene([task('v', { strategy: 'vote', answers: 5 })])
  scene.settle({ index: 0, status: 'completed', value: { a: 1, b: 2 } })
  scene.settle({ index: 1, status: 'completed', value: { a: 1 } })
  scene.settle({ index: 2, status: 'completed', value: { b: 2, a: 1 } })
  t.is(scene.status('v'), 'open')
  scene.settle({ index: 3, status: 'completed', value: { a: 1, b: 2 } })
  t.alike([scene.status('v'), scene.valueOf('v')], ['completed', { a: 1, b: 2 }])
  const split = new Scene([task('v', { strategy: 'vote', answers: 4 })])
  split.settle({ index: 0, status: 'completed', value: 1 })
  split.settle({ index: 1, status: 'completed', value: 1 })
  t.is(split.status('v'), 'open', 'half is no majority')
  split.settle({ index: 2, status: 'failed' })
  split.settle({ index: 3, status: 'completed', value: 2 })
  t.alike([split.status('v'), split.valueOf('v')], ['failed', undefined])
})

test('a judge decides on the answers that came, also when some failed', (t) => {
  const scene = new Scene([
    task('v', { strategy: 'vote', answers: 3, judge: 'judge.it' }),
    task('after', { needs: ['v'] })
  ])
  scene.settle({ index: 0, status: 'failed' })
  scene.settle({ index: 1, status: 'completed', value: 'x' })
  scene.settle({ index: 2, status: 'completed', value: 'y' })
  t.alike(scene.opened, ['v_votes', 'v'])
  t.alike(scene.valueOf('v_votes'), ['x', 'y'])
  scene.settle({ index: 3, status: 'completed', value: 'y' })
  t.is(scene.valueOf('v'), 'y')
  const none = new Scene([task('v', { strategy: 'vote', answers: 1, judge: 'judge.it' })])
  none.settle({ index: 0, status: 'failed' })
  t.is(graphVerdict(none.graph), 'failed')
})

const arbTask = fc.record({
  needs: fc.array(fc.nat(5), { maxLength: 3 }),
  kind: fc.constantFrom('one', 'items', 'race', 'vote', 'judge', 'each'),
  when: fc.constantFrom('none', 'result', 'status')
})

function tasksOf(made: readonly { needs: readonly number[]; kind: string; when: string }[]): PlanTask[] {
  return made.map(({ needs, kind, when }, index) => {
    const before = needs.filter((need) => need < index).map((need) => `t${need}`)
    const [first] = before
    return task(`t${index}`, {
      needs: before,
      ...(kind === 'items' ? { items: [1, 2, 3] } : {}),
      ...(kind === 'race' || kind === 'vote' || kind === 'each' ? { strategy: kind } : {}),
      ...(kind === 'judge' ? { strategy: 'vote', judge: 'judge.it', answers: 2 } : {}),
      ...(first === undefined || when === 'none'
        ? {}
        : { when: when === 'result' ? `{${first}} != 0` : `{${first}:status} != "skipped"` })
    })
  })
}

test('Feature: a2a-mcp-protocols, Property 26: in every graph each item gets one outcome, all of it ends, and the same outcomes give the same graph at any point of them', async (t) => {
  const arbGraph = fc.record({
    made: fc.array(arbTask, { minLength: 1, maxLength: 6 }),
    picks: fc.array(
      fc.record({
        which: fc.nat(50),
        status: fc.constantFrom<ItemOutcome>('completed', 'completed', 'completed', 'failed', 'unknown'),
        value: fc.nat(2)
      }),
      { minLength: 60, maxLength: 60 }
    ),
    cut: fc.nat(60)
  })
  await holds(
    t,
    fc.property(arbGraph, ({ made, picks, cut }) => {
      const tasks = tasksOf(made)
      const scene = new Scene(tasks)
      for (const { which, status, value } of picks) {
        const open = [...scene.open].sort((a, b) => a - b)
        const index = open[which % Math.max(1, open.length)]
        if (index === undefined) break
        const stage = scene.graph.stages[stageOf(scene.graph, index)]
        assert.ok(stage && index >= stage.from && index < stage.from + stage.count)
        for (const need of stage.needs)
          assert.ok(!['waiting', 'open'].includes(scene.graph.states[need]?.status ?? ''), 'it opens behind its needs')
        scene.settle({ index, status, value })
      }
      assert.ok(scene.isDone, 'nothing is left that nobody may do')
      assert.equal(
        scene.outcomes.length,
        scene.graph.stages.reduce((sum, { count }) => sum + count, 0)
      )
      assert.ok(['completed', 'partial', 'failed'].includes(graphVerdict(scene.graph)))
      const again = new Scene(tasks)
      // What the graph itself drops comes of itself, as it does when a swarm is read from its ledger.
      for (const one of scene.outcomes.slice(0, cut)) if (again.open.has(one.index)) again.settle(one)
      for (const one of scene.outcomes) if (again.open.has(one.index)) again.settle(one)
      assert.deepEqual(again.graph.states, scene.graph.states)
      assert.deepEqual(new Set(again.outcomes), new Set(scene.outcomes))
    }),
    1000
  )
})
