import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { holds } from '../support/holds.js'
import { SwarmScene } from '../support/swarm-scene.js'

/** What happens to a swarm under way. */
type Step =
  /** Of the runs under way one ends by itself. */
  | { readonly type: 'end'; readonly which: number; readonly status: 'completed' | 'failed' }
  | { readonly type: 'kill'; readonly commits: number; readonly isWritten: boolean }
  | { readonly type: 'crash' | 'restart' | 'link' }
  | { readonly type: 'worker' | 'unlink'; readonly which: number }
  | { readonly type: 'pass'; readonly ms: number }

const arbStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constant('end' as const), which: fc.nat(7), status: fc.constant('completed' as const) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('end' as const), which: fc.nat(7), status: fc.constant('failed' as const) }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('kill' as const), commits: fc.nat(6), isWritten: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constantFrom('crash' as const, 'restart' as const) }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('link' as const) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constantFrom('worker' as const, 'unlink' as const), which: fc.nat(1) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('pass' as const), ms: fc.constantFrom(500, 2000, 6000, 12_000) }) }
)

async function perform(scene: SwarmScene, step: Step): Promise<void> {
  const worker = 'which' in step ? scene.workers[step.which % scene.workers.length] : undefined
  if (step.type === 'end') {
    const open = scene.open()
    const run = open[step.which % Math.max(1, open.length)]
    if (run !== undefined) scene.end(run, step.status)
  }
  if (step.type === 'kill') scene.killIn(step.commits, step.isWritten)
  if (step.type === 'crash') await scene.crash()
  if (step.type === 'restart') await scene.restart()
  if (step.type === 'link') {
    await scene.revive()
    await scene.link()
  }
  if (step.type === 'worker' && worker !== undefined) await scene.crashWorker(worker)
  if (step.type === 'unlink' && worker !== undefined) await scene.unlink(worker)
  if (step.type === 'pass') await scene.world.pass(step.ms, 500)
  await scene.world.settle()
}

const arbSwarm = fc.record({
  items: fc.integer({ min: 1, max: 6 }),
  retries: fc.nat(2),
  isOnce: fc.boolean(),
  steps: fc.array(arbStep, { minLength: 2, maxLength: 14 })
})

test('through kills of the launcher at any commit and of workers at any moment every item has exactly one outcome, and it stays', async (t) => {
  await holds(
    t,
    fc.asyncProperty(arbSwarm, async ({ items, retries, isOnce, steps }) => {
      const scene = await SwarmScene.start(t)
      const id = await scene.launch(items, { retries, capability: isOnce ? 'work.once' : 'work.again' })
      for (const step of steps) await perform(scene, step)
      await scene.finish(id)
      const rows = await scene.rows(id)
      assert.deepEqual(
        rows.map(({ item }) => item),
        Array.from({ length: items }, (_, index) => `item ${index}`)
      )
      assert.equal(scene.told.size, items)
      for (const [index, { status, attempt, result }] of rows.entries()) {
        const name = `${id}.${index}`
        if (status === 'completed') {
          assert.equal(result, `${name}#${attempt}`)
          assert.equal(scene.ended.get(`${name}#${attempt}`), 'completed', 'an agent did it')
        }
        const runs = scene.begun.filter((run) => run.startsWith(`${name}#`))
        if (status === 'failed') assert.equal(scene.ended.get(runs.at(-1) ?? ''), 'failed')
        if (!isOnce) assert.notEqual(status, 'unknown')
        else
          assert.ok(
            runs.slice(0, -1).every((run) => scene.ended.get(run) === 'failed'),
            `begun again: ${runs.join(' ')}`
          )
      }
      await scene.close()
    }),
    100
  )
})
