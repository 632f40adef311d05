import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { holds } from '../../support/holds.js'
import { SwarmScene } from '../../support/swarm-scene.js'
import { arbSwarmStep, performSwarmStep } from '../../support/swarm-steps.js'

const arbSwarm = fc.record({
  items: fc.integer({ min: 1, max: 6 }),
  retries: fc.nat(2),
  isOnce: fc.boolean(),
  steps: fc.array(arbSwarmStep, { minLength: 2, maxLength: 14 })
})

test('through kills of the launcher at any commit and of workers at any moment every item has exactly one outcome, and it stays', async (t) => {
  await holds(
    t,
    fc.asyncProperty(arbSwarm, async ({ items, retries, isOnce, steps }) => {
      const scene = await SwarmScene.start(t)
      const id = await scene.launch(items, { retries, capability: isOnce ? 'work.once' : 'work.again' })
      for (const step of steps) await performSwarmStep(scene, step)
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
