import test, { type Assert } from 'brittle'
import type { TaskInfo } from '../../../src/ports/task-api.js'
import { taskIdOf } from '../../../src/domain/task/task-id.js'
import { echo } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { forge, request } from '../../support/forge.js'
import { hash } from '../../support/membership.js'

interface Pair {
  readonly world: World
  readonly here: FakeNode
  readonly peer: FakeNode
}

/** A node with the agent `text`, and a member that calls it. */
async function pair(t: Assert): Promise<Pair> {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('text')] })
  const peer = await world.member('peer')
  await world.link(here, peer)
  return { world, here, peer }
}

async function tasksOf(node: FakeNode): Promise<readonly TaskInfo[]> {
  return (await node.api().call('tasks.list', {})).tasks
}

test('a task has one id at its caller and at its callee, which each one finds by a prefix', async (t) => {
  const { world, here, peer } = await pair(t)
  const asked = peer
    .api()
    .call('message.call', { agent: 'text@here', capability: 'text.do', input: {}, timeoutMs: 5000 })
  await world.settle()
  const { taskId } = await asked
  t.ok(taskId)
  t.alike(
    (await tasksOf(here)).map(({ id, role }) => [id, role]),
    [[taskId, 'callee']]
  )
  const prefix = (taskId ?? '').slice(0, 'task_'.length + 6)
  t.is((await here.api().call('tasks.show', { id: prefix })).state, 'completed')
  t.is((await peer.api().call('tasks.show', { id: prefix })).role, 'caller')
})

test('a node can make no task with the id of a request of another one', async (t) => {
  const { world, here, peer } = await pair(t)
  const thief = await world.member('thief')
  await world.link(here, thief)
  const victim = taskIdOf(hash, { source: `operator@${peer.id}`, requestId: 'req_known' })
  forge(thief, here, { payload: request('req_known') })
  await world.settle()
  t.absent((await tasksOf(here)).some(({ id }) => id === victim))
  forge(peer, here, { payload: request('req_known') })
  await world.settle()
  t.is((await tasksOf(here)).length, 2)
  t.is((await tasksOf(here))[0]?.id, victim)
})

test('a request within one node has a task for each end', async (t) => {
  const { world, here } = await pair(t)
  const asked = here.api().call('message.call', { agent: 'text', capability: 'text.do', input: {}, timeoutMs: 5000 })
  await world.settle()
  const { taskId } = await asked
  const tasks = await tasksOf(here)
  t.is(tasks.find(({ id }) => id === taskId)?.role, 'caller')
  t.is(new Set(tasks.map(({ id }) => id)).size, tasks.length)
})
