import test from 'brittle'
import { failsWith } from '../../support/fails.js'
import { echo } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'

test('the common beginning of all ids of a kind is no name of the only task, or of the only swarm', async (t) => {
  const world = new World(t)
  const owner = await world.owner({ agents: [echo('text')] })
  const api = owner.api()
  const task = owner.core.tasks.open({
    kind: 'request',
    role: 'caller',
    agent: 'text',
    capability: '',
    description: ''
  })
  for (const id of ['task', 'task_', task.slice(0, 8)])
    for (const verb of ['show', 'cancel'] as const)
      await failsWith(t, 'TASK_NOT_FOUND', () => api.call(`tasks.${verb}`, { id }))
  t.is((await api.call('tasks.show', { id: task.slice(0, 9) })).id, task)
  const { id: swarm } = await api.call('swarm.start', { goal: 'g', capability: 'text.do', strategy: 'each' })
  await world.settle()
  for (const id of ['swarm_', swarm.slice(0, 9)])
    await failsWith(t, 'SWARM_NOT_FOUND', () => api.call('swarm.results', { id }))
  t.is((await api.call('swarm.results', { id: swarm.slice(0, 10) })).results.length, 1)
})
