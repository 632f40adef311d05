import test from 'brittle'
import { failsWith } from '../../support/fails.js'
import { mapOf } from '../../support/swarm-scene.js'
import { type Member, VotersScene } from '../../support/voters-scene.js'

const BAD = new Set([1, 5, 9])

/** Ends all runs for a time; the items of {@link BAD} fail. */
async function passFailing(scene: VotersScene, ms: number, members: readonly Member[]): Promise<void> {
  for (let left = ms; left > 0; left -= 500) {
    for (const { agent } of members)
      for (const run of [...agent.open]) {
        const { n } = run.task.input as { n: number }
        run.end(BAD.has(n) ? { ok: false, code: 'TASK_FAILED', message: 'no' } : { ok: true, result: n })
      }
    await scene.world.pass(500)
  }
}

for (const isBackEarly of [true, false])
  test(`after a takeover its launcher, back ${isBackEarly ? 'before' : 'after'} the end, tries the failed items again with their inputs`, async (t) => {
    const scene = await VotersScene.start(t)
    const [a, b, c] = [scene.at(0), scene.at(1), scene.at(2)]
    const items = Array.from({ length: 40 }, (_, n) => ({ item: `item ${n}`, input: { n } }))
    const id = await a.node.core.swarms.launch({ ...mapOf(0), items, retries: 0 })
    await passFailing(scene, 1000, scene.members)
    await scene.kill(a)
    const rest = [b, c]
    await passFailing(scene, isBackEarly ? 8000 : 60_000, rest)
    t.is((await scene.info(b, id)).status, isBackEarly ? 'running' : 'partial')
    await scene.restart(a)
    await passFailing(scene, 60_000, scene.members)
    for (const member of scene.members) t.is((await scene.info(member, id)).status, 'partial')
    const error = await failsWith(t, 'CONFLICT', () => b.node.api().call('swarm.retry', { id }))
    t.alike(error.next, [`a2a-node swarm retry ${id}   # on owner`])
    const again = await a.node.api().call('swarm.retry', { id })
    await scene.pass(30_000)
    const { status, results } = await scene.same(again.id)
    t.is(status, 'completed')
    const inputs = new Map(results.map(({ item, result }) => [item, result]))
    t.alike(
      [...BAD].map((n) => inputs.get(`item ${n}`)),
      [...BAD].map((n) => ({ n }))
    )
    t.is(inputs.size, BAD.size)
  })
