import test from 'brittle'
import type { SwarmInfo, SwarmResults } from '../../src/ports/swarm-api.js'
import { launch, resultsOf, takeoverScene, untilCoordinated, untilDone } from '../support/takeover-scene.js'

test('the launcher is stopped for 60 s mid-swarm and continued: another carries on, and in the end all nodes have the same bytes, each item once', {
  timeout: 300_000
}, async (t) => {
  const count = 280
  const { launcher, b, c } = await takeoverScene(t, 1000)
  const id = await launch(launcher, [], count)
  await untilDone(launcher, id, 5)
  launcher.kill('SIGSTOP')
  const continued = new Promise<void>((resolve) => setTimeout(resolve, 60_000))
  await untilCoordinated(b, id, (by) => by !== 'a')
  await continued
  launcher.kill('SIGCONT')
  const codes = await Promise.all(
    [launcher, b, c].map(async (node) => (await node.cli(['swarm', 'watch', id, '--json'])).code)
  )
  t.alike(codes, [0, 0, 0])
  const [ofA = '', ofB, ofC] = await Promise.all([launcher, b, c].map((node) => resultsOf(node, id)))
  t.is(ofA, ofB)
  t.is(ofB, ofC)
  const { status, results } = JSON.parse(ofA) as SwarmResults
  t.is(status, 'completed')
  t.is(results.length, count)
  t.is(new Set(results.map(({ item }) => item)).size, count, 'each item once')
  const info = await launcher.json<SwarmInfo>(['swarm', 'show', id])
  t.is(info.status, 'completed')
})
