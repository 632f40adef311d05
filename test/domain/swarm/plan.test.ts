import test from 'brittle'
import fc from 'fast-check'
import assert from 'node:assert/strict'
import { checkPlan, PLAN_MAX_TASKS, type PlanTask } from '../../../src/domain/swarm/plan.js'
import { holds } from '../../support/holds.js'

const task = (id: string, rest: Partial<PlanTask> = {}): PlanTask => ({ id, capability: 'work.do', ...rest })

function faults(...tasks: readonly object[]): string[] {
  const found = checkPlan({ tasks })
  return found.ok ? [] : found.faults.map(({ path, reason }) => `${path.join('.')}: ${reason}`)
}

test('a sub-task depends on the sub-tasks that its input and its condition name', (t) => {
  const found = checkPlan({
    tasks: [
      task('a'),
      task('b'),
      task('c', { needs: ['b'], input: { x: ['{a/n}'], goal: '{goal}' }, when: '{d:status} == "failed"' }),
      task('d')
    ]
  })
  assert.ok(found.ok)
  t.alike(
    found.plan.tasks.map((one) => one.needs),
    [[], [], ['b', 'd', 'a'], []]
  )
})

test('every fault of a plan is reported with its path, before any of it runs', (t) => {
  t.alike(faults(task('a', { needs: ['b'] })), ['tasks.0.needs.0: there is no sub-task b'])
  t.alike(faults(task('a', { needs: ['a'] })), ['tasks.0.needs.0: it needs itself'])
  t.alike(faults(task('a'), task('a')), ['tasks.1.id: a is there twice'])
  t.alike(faults(task('a', { strategy: 'vote', judge: 'j' }), task('a_votes')), ['tasks.1.id: a_votes is there twice'])
  t.alike(faults(task('goal')), ['tasks.0.id: goal is a name that every template knows already'])
  t.alike(faults(task('a', { when: '{b} == ' })), ['tasks.0.when: something is missing at its end'])
  t.alike(faults(task('a', { when: '{b}' })), [
    'tasks.0.when: {b}: there is no sub-task b; for the text itself write {{b}}'
  ])
  t.alike(faults(task('a', { input: { deep: ['{a/x}'] } })), ['tasks.0.input.deep.0: {a/x} is its own result'])
  t.alike(faults(task('a', { input: '{item}' })), ['tasks.0.input: {item} needs items, and there are none here'])
  t.alike(faults(task('a', { answers: 3 })), ['tasks.0.answers: only a race or a vote has answers'])
  t.alike(faults(task('a', { strategy: 'race', judge: 'j' })), ['tasks.0.judge: only a vote has a judge'])
  t.alike(faults(task('a', { strategy: 'each', items: [1] })), ['tasks.0.items: each takes no items'])
  t.alike(faults(task('a', { strategy: 'race', answers: -1e300 })), [
    'tasks.0.answers: must be at least -9007199254740991',
    'tasks.0.answers: must be at least 1'
  ])
  t.alike(faults({ id: 'a' }), ['tasks.0.capability: capability is missing'])
  t.ok(faults({ ...task('a'), neds: [] })[0]?.startsWith('tasks.0.neds: '))
  t.alike(faults(), ['tasks: must not be empty'])
  t.is(faults(...Array.from({ length: PLAN_MAX_TASKS + 1 }, (_, n) => task(`t${n}`))).length, 1)
  t.alike(faults(task('a', { input: { __proto__: 1, ['constructor']: 2 } })), [': the key constructor is not allowed'])
  t.alike(faults(task('a', { input: 'x'.repeat(262_144) })), [': a plan has at most 262144 bytes'])
  t.alike(faults({ ...task('a'), neds: [], imput: 1 }), [
    'tasks.0.neds: there is no key neds here',
    'tasks.0.imput: there is no key imput here'
  ])
  const output = checkPlan({ tasks: [task('a')], output: { n: '{b}' } })
  t.alike(output.ok ? [] : output.faults, [{ path: ['output', 'n'], reason: 'there is no sub-task b' }])
})

test('a plan that is no mapping is refused in plain words', (t) => {
  for (const value of [[1], 'text', 7, null]) {
    const found = checkPlan(value)
    t.alike(found.ok ? [] : found.faults, [{ path: [], reason: 'must be a mapping (lines of the form "key: value")' }])
  }
})

test('a circle is reported with the path around it', (t) => {
  const all = [
    task('start'),
    task('a', { needs: ['c', 'start'] }),
    task('b', { input: '{a}' }),
    task('c', { when: '{b}' }),
    task('behind', { needs: ['c'] })
  ]
  t.alike(faults(...all), ['tasks.1: it needs itself: a -> c -> b -> a'])
})

test('faults in the form of a plan hide no others, and are reported with them in the order of its sub-tasks', (t) => {
  const all = [
    task('a', { needs: ['c', 'nothing'] }),
    { id: 'b', input: '{a}', needs: [1, 'nobody'] },
    task('c', { when: '{b}' }),
    task('d', { input: '{dd}' }),
    { id: 'not good', capability: 'x', answers: 0, strategy: 'each' },
    task('e', { needs: ['f', 'not good'] }),
    task('f', { needs: ['e'] }),
    task('f')
  ]
  const found = checkPlan({ tasks: all, output: '{x}', outpt: 1 })
  assert.ok(!found.ok)
  t.alike(
    found.faults.map(({ path, reason }) => `${path.join('.')}: ${reason}`),
    [
      'tasks.0.needs.1: there is no sub-task nothing',
      'tasks.0: it needs itself: a -> c -> b -> a',
      'tasks.1.capability: capability is missing',
      'tasks.1.needs.0: must be a text',
      'tasks.1.needs.1: there is no sub-task nobody',
      'tasks.3.input: {dd}: there is no sub-task dd; for the text itself write {{dd}}',
      'tasks.4.id: must be 1 to 64 letters, digits, _ and -, a letter first',
      'tasks.4.answers: must be at least 1',
      'tasks.4.answers: only a race or a vote has answers',
      'tasks.7.id: f is there twice',
      'outpt: there is no key outpt here',
      'output: there is no sub-task x'
    ]
  )
})

test('every circle is reported; one that another path through the same sub-tasks closes too', (t) => {
  const two = [
    task('a', { needs: ['b'] }),
    task('b', { needs: ['a'] }),
    task('c', { needs: ['d', 'a'] }),
    task('d', { needs: ['c'] })
  ]
  t.alike(faults(...two), ['tasks.0: it needs itself: a -> b -> a', 'tasks.2: it needs itself: c -> d -> c'])
  const through = [task('a', { needs: ['b', 'c'] }), task('b', { needs: ['a'] }), task('c', { needs: ['a'] })]
  t.alike(faults(...through), ['tasks.0: it needs itself: a -> b -> a', 'tasks.0: it needs itself: a -> c -> a'])
})

test('a consequence of a fault in the form is not reported as another fault', (t) => {
  t.alike(faults({ ...task('a'), strategy: 'votes', judge: 'j', answers: 2, items: [1] }).length, 1)
  t.alike(faults({ ...task('a'), items: 'x', input: '{item}' }).length, 1)
  t.alike(faults({ ...task('a'), when: '' }).length, 1)
  t.alike(faults({ ...task('no good') }, task('b', { needs: ['no good'] })).length, 1)
  const unnamed = faults({ capability: 'x' }, task('b', { needs: ['a'] }))
  t.alike(unnamed, ['tasks.0.id: id is missing', 'tasks.1.needs.0: there is no sub-task a (one has no id)'])
})

test('of many faults the first are reported, and the number of others', (t) => {
  const found = checkPlan({ tasks: Array.from({ length: 40 }, (_, n) => task(`t${n}`, { needs: ['x'] })) })
  t.alike(found.ok ? null : [found.faults.length, found.more], [32, 8])
})

test('checking never throws for any plan, and a valid one has no circle and no unknown name', async (t) => {
  const id = fc.constantFrom('a', 'b', 'c', 'd', 'goal', 'x y')
  const made = fc.record(
    {
      id,
      capability: fc.constantFrom('work.do', '', 'a b'),
      needs: fc.array(id, { maxLength: 2 }),
      input: fc.oneof(
        fc.jsonValue(),
        id.map((one) => `{${one}/n}`)
      ),
      when: fc.oneof(
        fc.string(),
        id.map((one) => `{${one}}`)
      ),
      strategy: fc.constantFrom('each', 'race', 'vote'),
      answers: fc.integer({ min: 0, max: 70 })
    },
    { requiredKeys: ['id', 'capability'] }
  )
  await holds(
    t,
    fc.property(
      fc.oneof(
        fc.jsonValue(),
        fc.record({
          tasks: fc.array(fc.oneof({ weight: 9, arbitrary: made }, { weight: 1, arbitrary: fc.jsonValue() }), {
            maxLength: 5
          })
        })
      ),
      (value) => {
        const found = checkPlan(value)
        if (!found.ok) return assert.ok(found.faults.length > 0)
        const done = new Set<string>()
        for (let round = 0; round < found.plan.tasks.length; round++)
          for (const one of found.plan.tasks) if ((one.needs ?? []).every((need) => done.has(need))) done.add(one.id)
        assert.equal(done.size, found.plan.tasks.length)
      }
    ),
    2000
  )
})

test('text in braces that begins with a known name but is no placeholder is a fault, in inputs and in the output', (t) => {
  const planOf = (input: unknown): object => ({
    tasks: [
      { id: 'a', capability: 'x' },
      { id: 'b', capability: 'x', input }
    ]
  })
  const faultsOf = (plan: unknown): string[] => {
    const found = checkPlan(plan)
    return found.ok ? [] : found.faults.map(({ path, reason }) => `${path.join('.')}: ${reason}`)
  }
  for (const text of ['{a.text}', '{ a }', '{a[0]}', '{a:size}', '{goal.x}', '{input.n}', '{item.n}']) {
    const [fault = '', ...others] = faultsOf(planOf({ deep: [`see ${text}`] }))
    t.ok(fault.startsWith(`tasks.1.input.deep.0: ${text} is no placeholder`), fault)
    t.is(others.length, 0)
    t.alike(faultsOf(planOf({ deep: [`see {${text}}`] })), [], 'doubled braces are text')
  }
  const [output = ''] = faultsOf({ tasks: [{ id: 'a', capability: 'x' }], output: { n: '{a.n}' } })
  t.ok(output.startsWith('output.n: {a.n} is no placeholder'), output)
  t.alike(faultsOf(planOf('{ "a": 1 } {} {c.d} {a = 1}')), [], 'other braces are text')
})
