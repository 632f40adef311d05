import test from 'brittle'
import type { SwarmInfo, SwarmResults } from '../../src/ports/swarm-api.js'
import { until } from '../support/nodes.js'
import { ITEMS, launch, takeoverScene, untilDone } from '../support/takeover-scene.js'

test('without a majority a swarm says that it is stalled, and goes on when one is back', {
  timeout: 180_000
}, async (t) => {
  const { launcher, b, c, mesh, agents } = await takeoverScene(t)
  const id = await launch(launcher)
  await untilDone(launcher, id, 3)
  for (const node of [b, c]) node.kill('SIGKILL')
  await Promise.all([b.exited, c.exited])
  const stalled = await until(
    launcher.api,
    'swarm.watch',
    { id },
    (event) => event.type === 'status' && event.status === 'stalled'
  )
  t.ok(stalled.type === 'status' && stalled.reason?.includes('majority'))
  const cut = await launcher.json<SwarmInfo>(['swarm', 'show', id])
  t.is(cut.status, 'stalled')
  t.is(cut.coordination?.coordinator, null)
  await mesh.start('b', { home: b.home, args: ['--agents', agents] })
  t.is((await launcher.cli(['swarm', 'watch', id])).code, 0)
  t.is((await launcher.json<SwarmResults>(['swarm', 'results', id])).results.length, ITEMS)
})

test('a swarm that is canceled while it is stalled says when it will be, and is then', {
  timeout: 180_000
}, async (t) => {
  const { launcher, b, c, mesh, agents } = await takeoverScene(t)
  const id = await launch(launcher)
  await untilDone(launcher, id, 3)
  for (const node of [b, c]) node.kill('SIGKILL')
  await Promise.all([b.exited, c.exited])
  await until(launcher.api, 'swarm.watch', { id }, (event) => event.type === 'status' && event.status === 'stalled')
  const { code, stdout } = await launcher.cli(['swarm', 'cancel', id])
  t.alike([code, stdout], [0, `swarm ${id} is stalled: it will be canceled when a majority is back\n`])
  t.is((await launcher.json<SwarmInfo>(['swarm', 'show', id])).willBeCanceled, true, 'nobody alone may end it')
  await mesh.start('b', { home: b.home, args: ['--agents', agents] })
  t.is((await launcher.cli(['swarm', 'watch', id])).code, 1)
  t.is((await launcher.json<SwarmInfo>(['swarm', 'show', id])).status, 'canceled')
})
