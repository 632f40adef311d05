import test from 'brittle'
import type { SwarmEvent } from '../../../../src/ports/swarm-api.js'
import { mapOf } from '../../../support/swarm-scene.js'
import { type Member, VotersScene } from '../../../support/voters-scene.js'

/** What a member is told of who coordinates from now on. */
async function newsOf(member: Member, id: string): Promise<SwarmEvent[]> {
  const news: SwarmEvent[] = []
  const isNews = ({ type }: SwarmEvent): boolean => type === 'coordinator' || type === 'status'
  ;(await member.node.core.swarms.find(id)).follow((event) => void (isNews(event) && news.push(event)))
  return news
}

test('two of four participants are no majority: both say that it is stalled, and name nobody who only stands', async (t) => {
  const scene = await VotersScene.start(t, ['b', 'c', 'd'])
  const [a] = scene.members as [Member]
  const id = await a.node.core.swarms.launch(mapOf(60))
  await scene.pass(2000)
  const { voters = [] } = a.node.core.swarms.inMemory(id)?.head ?? {}
  t.is(voters.length, 4)
  const [next, , last] = voters.slice(1).flatMap((voter) => scene.members.filter(({ node }) => node.id === voter))
  if (next === undefined || last === undefined) throw new Error('they do not vote')
  const left = [a, last]
  const news = await Promise.all(left.map((one) => newsOf(one, id)))
  for (const one of scene.members.filter((member) => !left.includes(member))) await scene.kill(one)
  await scene.pass(15_000, left)
  for (let half = 0; half < 120; half++) {
    await scene.pass(500, left)
    for (const one of left) {
      const { status, coordination } = await scene.info(one, id)
      if (status !== 'stalled' || coordination?.coordinator !== null) {
        return t.fail(
          `${one.node.name} says ${status}, coordinator ${coordination?.coordinator}, after ${half} halves of a second`
        )
      }
    }
  }
  for (const told of news) {
    const words = told.map((event) =>
      event.type === 'coordinator' ? event.coordinator : event.type === 'status' && event.status
    )
    t.alike(words, [null, 'stalled'], 'reported once')
  }
  await scene.restart(next)
  await scene.pass(90_000, [...left, next])
  t.is((await scene.same(id, [...left, next])).status, 'completed', 'it goes on with a majority')
})

test('a follower of an idle swarm knows its coordinator, also after its next start', async (t) => {
  const scene = await VotersScene.start(t, ['b', 'c', 'd'])
  const [a, b] = scene.members as [Member, Member]
  const id = await a.node.core.swarms.launch(mapOf(4))
  const pass = async (ms: number): Promise<void> => scene.world.pass(ms, 500)
  await pass(3000)
  for (const member of scene.members)
    t.is((await scene.info(member, id)).coordination?.coordinator, 'owner', member.node.name)
  await scene.kill(b)
  await scene.restart(b)
  await pass(3000)
  t.is((await scene.info(b, id)).coordination?.coordinator, 'owner')
  t.is((await scene.info(b, id)).status, 'running')
})

test('no coordinator is named before one coordinated', async (t) => {
  const scene = await VotersScene.start(t)
  const [a] = scene.members as [Member]
  const id = await a.node.core.swarms.launch(mapOf(6))
  await scene.pass(10_000)
  for (const member of scene.members) {
    const { past, stop } = (await member.node.core.swarms.find(id)).follow(() => {})
    stop()
    const named = past.flatMap((event) => (event.type === 'coordinator' ? [event.coordinator] : []))
    t.is(named[0], 'owner', member.node.name)
  }
})
