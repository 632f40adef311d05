import test, { type Assert } from 'brittle'
import type { TaskInfo } from '../../../src/ports/task-api.js'
import { taskIdOf } from '../../../src/domain/task/task-id.js'
import { echo } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { forge, request } from '../../support/forge.js'
import { hash } from '../../support/membership.js'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import type { Ledger } from '../../../src/ports/ledger.js'

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

/** Lets all commits of a ledger wait from now on, until `goOn`. */
function slowCommits(ledger: Ledger): { goOn(): void } {
  const commit = ledger.commit.bind(ledger)
  let goOn = (): void => {}
  const gate = new Promise<void>((resolve) => (goOn = resolve))
  ledger.commit = (changes, survives) => gate.then(() => commit(changes, survives))
  return { goOn }
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
  const victim = taskIdOf(hash, {
    source: `operator@${peer.id}`,
    target: `text@${here.id}`,
    requestId: 'req_known',
    attempt: 1
  })
  forge(thief, here, { payload: request('req_known') })
  await world.settle()
  t.absent((await tasksOf(here)).some(({ id }) => id === victim))
  forge(peer, here, { payload: request('req_known') })
  await world.settle()
  t.is((await tasksOf(here)).length, 2)
  t.is((await tasksOf(here))[0]?.id, victim)
})

test('requests of one id at once, to two agents or of two attempts, have a task each', async (t) => {
  const world = new World(t)
  const ledger = createMemoryLedger()
  const here = await world.member('here', { agents: [echo('text'), echo('other')], ledger })
  const peer = await world.member('peer')
  await world.link(here, peer)
  const commits = slowCommits(ledger)
  forge(peer, here, { payload: request('req_one') })
  forge(peer, here, { payload: request('req_one', { attempt: 2 }) })
  forge(peer, here, { payload: request('req_one', { capability: 'other.do' }), recipient: `other@${here.id}` })
  await world.settle()
  t.is((await tasksOf(here)).length, 0)
  commits.goOn()
  await world.settle()
  const agents = (await tasksOf(here)).map(({ agent }) => agent.slice(0, agent.indexOf('@')))
  t.alike(agents.sort(), ['other', 'text', 'text'])
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
