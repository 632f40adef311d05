import test from 'brittle'
import type { SwarmEvent } from '../../../../src/ports/swarm-api.js'
import { type CommittedResults, CommittedRecords } from '../../../../src/node/swarms/consensus/committed-results.js'
import { FollowerSync } from '../../../../src/node/swarms/consensus/follower.js'
import { RECORDS } from '../../../../src/domain/swarm/record-index.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor } from '../../../support/membership.js'
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

test('a follower that has the end and not all outcomes gets those of a node with as many records', (t) => {
  const [self, other] = [actor('a').id, actor('b').id]
  const syncOf = (index: number, tell: (have: number, items: number) => void): FollowerSync => {
    const records = new CommittedRecords(2)
    const names = [index, RECORDS.end(2)].map((one) => ({ index: one, digest: `of ${one}` }))
    records.add(names, { total: 2, epoch: 1 })
    const accepted = { records, hasEnd: true, take: () => {} } as unknown as CommittedResults
    return new FollowerSync(
      {
        clock: new ManualClock(),
        self,
        tell: (_to, { body }) => {
          if (body.kind === 'follow') tell(body.have, 0)
          if (body.kind === 'accepted') tell(0, body.items.length)
        }
      },
      { swarm: 'swarm_1', voters: [self, other], accepted, cancelRequest: { isOpen: false } }
    )
  }
  const got: number[] = []
  const there = syncOf(1, (_have, items) => void got.push(items))
  const here = syncOf(0, (have) => there.answer(self, { kind: 'follow', swarm: 'swarm_1', have, from: 0 }))
  here.ask(null)
  t.alike(got, [2])
})
