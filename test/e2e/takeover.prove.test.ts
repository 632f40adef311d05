import test from 'brittle'
import type { SwarmInfo, SwarmResults } from '../../src/ports/swarm-api.js'
import type { TaskInfo } from '../../src/ports/node-api.js'
import { type TestNode, untilTrue } from '../support/nodes.js'
import { ITEMS, launch, takeoverScene, untilCoordinated, untilDone } from '../support/takeover-scene.js'

test('the launcher is killed for good mid-swarm: another node coordinates, and finishes; both that are left have the same results', {
  timeout: 180_000
}, async (t) => {
  const { launcher, b, c } = await takeoverScene(t)
  const id = await launch(launcher)
  await untilDone(launcher, id, 5)
  const told = await launcher.json<SwarmResults>(['swarm', 'results', id])
  launcher.kill('SIGKILL')
  await launcher.exited
  const killedAt = performance.now()
  await Promise.all([b, c].map((node) => untilCoordinated(node, id, (by) => by !== 'a')))
  t.comment(`both know who coordinates ${Math.round(performance.now() - killedAt)} ms after the launcher was killed`)
  const watched = await b.cli(['swarm', 'watch', id, '--json'])
  t.is(watched.code, 0, watched.stderr)
  t.is((await c.cli(['swarm', 'watch', id])).code, 0)
  const [ofB, ofC] = await Promise.all([b, c].map((node) => node.json<SwarmResults>(['swarm', 'results', id])))
  t.is(ofB?.status, 'completed')
  t.is(ofB?.results.length, ITEMS)
  t.is(JSON.stringify(ofB), JSON.stringify(ofC))
  for (const one of told.results)
    t.alike(
      ofB?.results.find(({ item }) => item === one.item),
      one,
      'reported text stays'
    )
  const info = await b.json<SwarmInfo>(['swarm', 'show', id])
  t.alike(info.coordination?.participants.toSorted(), ['a', 'b', 'c'])
  t.ok((info.coordination?.epoch ?? 0) >= 2)
})

test('the launcher is killed for good while others do what may not be repeated: they go on, all of it is done, each once', {
  timeout: 180_000
}, async (t) => {
  const { launcher, b, c } = await takeoverScene(t, 3000, false)
  const id = await launch(launcher, [], 12)
  const tasksOf = async (node: TestNode): Promise<readonly TaskInfo[]> =>
    (await node.api.call('tasks.list', {})).tasks.filter(
      ({ role, capability }) => role === 'callee' && capability === 'work.slow'
    )
  // What is leased but has not got to its agent yet when the launcher dies ends as unknown.
  await untilTrue(async () => {
    const states = (await Promise.all([b, c].map(tasksOf))).flat().map(({ state }) => state)
    return states.length > 4 && states.filter((state) => state === 'working').length === 4
  }, 'all places of the agents are taken for the second time')
  launcher.kill('SIGKILL')
  await launcher.exited
  const watched = await b.cli(['swarm', 'watch', id, '--json'])
  t.is(watched.code, 0, watched.stderr)
  t.is((await c.cli(['swarm', 'watch', id])).code, 0)
  const [ofB, ofC] = await Promise.all([b, c].map((node) => node.json<SwarmResults>(['swarm', 'results', id])))
  t.alike(
    ofB?.results.map(({ status }) => status),
    Array.from({ length: 12 }, () => 'completed')
  )
  t.is(JSON.stringify(ofB), JSON.stringify(ofC))
  t.is((await Promise.all([b, c].map(tasksOf))).flat().length, 12)
})

test('--no-takeover: nobody else ever coordinates; the swarm goes on when its launcher is back', {
  timeout: 180_000
}, async (t) => {
  const { launcher, b, c, mesh } = await takeoverScene(t)
  const id = await launch(launcher, ['--no-takeover'])
  await untilDone(launcher, id, 3)
  t.is((await launcher.json<SwarmInfo>(['swarm', 'show', id])).coordination, undefined)
  launcher.kill('SIGKILL')
  await launcher.exited
  for (const node of [b, c]) t.alike((await node.api.call('swarm.list', {})).swarms, [], 'it is no swarm of theirs')
  const again = await mesh.start('a', { home: launcher.home })
  t.is((await again.cli(['swarm', 'watch', id])).code, 0)
})
