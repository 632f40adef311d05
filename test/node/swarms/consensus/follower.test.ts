import test from 'brittle'
import type { SwarmEvent } from '../../../../src/ports/swarm-api.js'
import { type Member, VotersScene } from '../../../support/voters-scene.js'

test('a follower reports the coordinator, and the states of sub-tasks by the outcomes that it has; each state once', async (t) => {
  const scene = await VotersScene.start(t)
  const items = ['1', '2', '3', '4', '5', '6']
  const tasks = [
    { id: 's1', capability: 'work.again', items },
    { id: 's2', capability: 'work.again', items, needs: ['s1'] }
  ]
  const id = await scene
    .at(0)
    .node.core.swarms.launch({ goal: 'g', capability: 'work.again', strategy: 'plan', plan: { tasks } })
  const toldBy = async (member: Member): Promise<SwarmEvent[]> => {
    const { past, stop } = (await member.node.core.swarms.find(id)).follow(() => {})
    stop()
    return [...past]
  }
  await scene.pass(1500)
  await scene.kill(scene.at(0))
  await scene.pass(60_000, scene.rest(id))
  const [next, other] = await Promise.all(scene.rest(id).map(toldBy))
  for (const told of [next, other]) {
    const stages = (told ?? []).flatMap((event) => (event.type === 'stage' ? [`${event.stage} ${event.status}`] : []))
    t.alike(
      stages.filter((one) => !one.endsWith('open')),
      ['s1 completed', 's2 completed']
    )
    t.is(new Set(stages).size, stages.length)
    t.is(told?.at(-1)?.type, 'done')
  }
  const here = (told: readonly SwarmEvent[] = []): boolean[] =>
    told.flatMap((event) => (event.type === 'coordinator' && event.coordinator !== null ? [event.isHere === true] : []))
  t.alike([here(next).at(-1), here(other).includes(true)], [true, false])
})
