import test, { type Assert } from 'brittle'
import type { SwarmRequest } from '../../../src/ports/swarm-api.js'
import { failsWith } from '../../support/fails.js'
import { SwarmScene } from '../../support/swarm-scene.js'

test('a name that is neither a reducer nor a capability is refused with the reducers, before any work', async (t: Assert) => {
  const scene = await SwarmScene.start(t)
  const api = scene.launcher.api()
  const request: SwarmRequest = { goal: 'do it', strategy: 'each', capability: 'work.again' }
  for (const reduce of ['sum', 'Merge', 'work.none']) {
    const { message } = await failsWith(t, 'NO_CAPABLE_AGENT', () => api.call('swarm.start', { ...request, reduce }))
    t.ok(message.startsWith(`${reduce} is none of the reducers concat, merge, count, first, and no`), message)
    t.is((await api.call('swarm.preview', { ...request, reduce })).error?.message, message)
  }
  for (const { agent } of scene.workers) t.is(agent.tasks.length, 0)
  t.is((await api.call('swarm.preview', { ...request, reduce: 'work.again' })).error, null)
})
