import test, { type Assert } from 'brittle'
import { failsWith } from '../../../support/fails.js'
import { forge } from '../../../support/forge.js'
import { actor } from '../../../support/membership.js'
import { type RequestScene, requestScene } from '../../../support/request-scene.js'

const scene = (t: Assert): Promise<RequestScene> => requestScene(t, { timeoutMs: 10_000 })

test('a request comes back with its result, and its task is completed', async (t) => {
  const { world, agent, ask, task } = await scene(t)
  const asked = await ask()
  await world.settle()
  t.is(task(asked)?.state, 'submitted')
  t.alike(agent.tasks[0]?.input, { a: 1 })
  t.is(agent.tasks[0]?.description, 'why')
  agent.finish({ b: 2 })
  t.alike(await asked.answer, { outcome: 'COMPLETED', result: { b: 2 } })
  t.is(task(asked)?.state, 'completed')
  t.alike(task(asked)?.result, { b: 2 })
})

test('a failure of the agent is the failure of the request', async (t) => {
  const { world, agent, ask, task } = await scene(t)
  const asked = await ask()
  await world.settle()
  agent.open[0]?.end({ ok: false, code: 'TASK_FAILED', message: 'no luck' })
  const answer = await asked.answer
  t.is(answer.outcome === 'FAILED' ? answer.error.message : '', 'no luck')
  t.is(task(asked)?.state, 'failed')
})

test('a refusal there is the failure of the request', async (t) => {
  const { ask } = await scene(t)
  const asked = await ask({ capability: 'slow.unknown' })
  const answer = await asked.answer
  t.is(answer.outcome === 'FAILED' ? answer.error.code : '', 'CAPABILITY_NOT_FOUND')
})

test('progress is noted and shows that the agent works', async (t) => {
  const { world, here, agent, ask, task } = await scene(t)
  const asked = await ask()
  await world.settle()
  agent.open[0]?.run.progress({ percent: 10 })
  await world.settle()
  t.is(task(asked)?.state, 'working')
  t.ok(here.core.tasks.events(asked.taskId ?? '').some((event) => event.type === 'progress'))
  agent.finish()
  await asked.answer
})

test('a heartbeat of its own peer shows that the request is worked on; of another it does not', async (t) => {
  const { world, here, peer, ask, task } = await scene(t)
  const other = await world.member('other')
  await world.link(here, other)
  const asked = await ask()
  await world.settle()
  const key = `${asked.requestId}#1`
  here.core.requests.reports.onHeartbeat(other.id, [key])
  t.is(task(asked)?.state, 'submitted')
  here.core.requests.reports.onHeartbeat(peer.id, [key])
  t.is(task(asked)?.state, 'working')
  asked.cancel()
})

test('without an answer in time the outcome is unknown, and a late one still counts', async (t) => {
  const { world, agent, ask, task } = await scene(t)
  const asked = await ask()
  await world.pass(10_000, 5000)
  const answer = await asked.answer
  t.is(answer.outcome === 'UNKNOWN' ? answer.error.code : '', 'TIMEOUT')
  t.is(task(asked)?.state, 'unknown')
  agent.finish('late')
  await world.settle()
  t.is(task(asked)?.state, 'completed')
  t.is(task(asked)?.result, 'late')
})

test('a late answer counts for a day, then the request is forgotten', async (t) => {
  const { world, here, agent, ask, task } = await scene(t)
  const asked = await ask()
  await world.pass(10_000, 5000)
  world.clock.advance(86_400_000)
  agent.finish('too late')
  await world.settle()
  t.is(task(asked)?.state, 'unknown')
  t.absent(here.core.requests.cancelTask(asked.taskId ?? ''))
})

test('cancelling stops the work there and ends the request here', async (t) => {
  const { world, peer, agent, ask, task } = await scene(t)
  const asked = await ask()
  await world.settle()
  t.is(agent.open.length, 1)
  asked.cancel()
  const answer = await asked.answer
  t.is(answer.outcome === 'FAILED' ? answer.error.code : '', 'CANCELED')
  t.is(task(asked)?.state, 'canceled')
  await world.settle()
  t.is(agent.open.length, 0)
  t.is(peer.counted('messages_sent', 'response'), 0, 'nobody waits for an answer')
})

test('a request can be canceled by its task, once', async (t) => {
  const { here, ask } = await scene(t)
  const asked = await ask()
  t.ok(here.core.requests.cancelTask(asked.taskId ?? ''))
  t.absent(here.core.requests.cancelTask(asked.taskId ?? ''))
})

test('cancelling never throws, in any state of the link', async (t) => {
  const { here, ask } = await scene(t)
  const asked = await ask()
  here.links.open[0].closed = true
  asked.cancel()
  t.is((await asked.answer).outcome, 'FAILED')
})

test('a request to a peer that is away fails at once', async (t) => {
  const { world, here, peer, ask } = await scene(t)
  world.net.disconnect(here.id, peer.id)
  await failsWith(t, 'PEER_OFFLINE', () => ask())
  t.is(here.core.tasks.list()[0]?.state, 'failed')
})

test('a request that may wait is sent when its peer is back', async (t) => {
  const { world, here, peer, agent, ask, task } = await scene(t)
  world.net.disconnect(here.id, peer.id)
  const asked = await ask({ mayQueue: true })
  t.is(task(asked)?.waitingFor, 'peer')
  t.is(here.core.requests.waitingCount(), 1)
  await world.link(here, peer)
  t.is(here.core.requests.waitingCount(), 0)
  t.is(task(asked)?.waitingFor, null)
  t.is(agent.tasks.length, 1)
  agent.finish('at last')
  t.alike(await asked.answer, { outcome: 'COMPLETED', result: 'at last' })
})

test('a request that waited in vain has failed: nothing was sent, and nothing will be', async (t) => {
  const { world, here, peer, agent, ask, task } = await scene(t)
  world.net.disconnect(here.id, peer.id)
  const asked = await ask({ mayQueue: true })
  world.clock.advance(10_000)
  const answer = await asked.answer
  t.is(answer.outcome === 'FAILED' ? answer.error.code : '', 'PEER_OFFLINE')
  t.is(task(asked)?.state, 'failed')
  await world.link(here, peer)
  t.is(agent.tasks.length, 0)
  t.is(here.core.requests.waitingCount(), 0)
})

test('a request that waits can be canceled and is then never sent', async (t) => {
  const { world, here, peer, agent, ask } = await scene(t)
  world.net.disconnect(here.id, peer.id)
  const asked = await ask({ mayQueue: true })
  asked.cancel()
  await world.link(here, peer)
  t.is(agent.tasks.length, 0)
})

test('a request that the rules refuse when the peer is back has failed', async (t) => {
  const { world, here, peer, ask } = await scene(t)
  world.net.disconnect(here.id, peer.id)
  const asked = await ask({ mayQueue: true })
  peer.source.set([])
  await world.settle()
  await world.link(here, peer)
  const answer = await asked.answer
  t.is(answer.outcome === 'FAILED' ? answer.error.code : '', 'AGENT_NOT_FOUND')
})

test('while the peer is away its task says what it waits for', async (t) => {
  const { world, here, peer, agent, ask, task } = await scene(t)
  const asked = await ask()
  await world.settle()
  world.net.disconnect(here.id, peer.id)
  t.is(task(asked)?.waitingFor, 'peer')
  await world.link(here, peer)
  await world.pass(1000)
  t.is(task(asked)?.waitingFor, null, 'a heartbeat reports that it continues')
  agent.finish()
  t.is((await asked.answer).outcome, 'COMPLETED')
})

test('nothing is expected of a peer that was put out', async (t) => {
  const { world, peer, ask } = await scene(t)
  const asked = await ask()
  await world.settle()
  world.log.model.revoke(actor('owner'), peer.actor)
  world.log.changed()
  const answer = await asked.answer
  t.alike([answer.outcome, answer.outcome === 'UNKNOWN' ? answer.error.code : ''], ['UNKNOWN', 'PEER_OFFLINE'])
})

test('an answer for another request on the thread does not count', async (t) => {
  const { world, here, peer, agent, ask } = await scene(t)
  const asked = await ask()
  await world.settle()
  const address = {
    type: 'response' as const,
    sender: `slow@${peer.id}`,
    recipient: `operator@${here.id}`,
    correlationId: asked.correlationId
  }
  for (const payload of [
    { requestId: 'other', attempt: 1, outcome: 'COMPLETED', result: 'forged', error: null },
    { requestId: asked.requestId, attempt: 2, outcome: 'COMPLETED', result: 'forged', error: null },
    { requestId: asked.requestId, attempt: 1, outcome: 'MAYBE' },
    null
  ])
    forge(peer, here, { ...address, payload })
  await world.settle()
  agent.finish('true')
  t.alike(await asked.answer, { outcome: 'COMPLETED', result: 'true' })
})

test('work that was canceled while its peer was away stops when the peer is back', async (t) => {
  const { world, here, peer, agent, ask } = await scene(t)
  const asked = await ask()
  await world.settle()
  world.net.disconnect(here.id, peer.id)
  asked.cancel()
  await world.settle()
  t.is(agent.open.length, 1)
  await world.link(here, peer)
  t.is(agent.open.length, 0)
})

test('a request canceled on its way out is stopped where it arrives', async (t) => {
  const { world, here, agent, ask } = await scene(t)
  const asking = ask()
  here.core.requests.cancelTask(here.core.tasks.list()[0]?.id ?? '')
  const asked = await asking
  t.is((await asked.answer).outcome, 'FAILED')
  await world.settle()
  t.is(agent.open.length, 0)
})

test('a waiting caller learns soon that its peer is gone; a late answer still counts', async (t) => {
  const { world, here, peer, agent, ask, task } = await scene(t)
  const asked = await ask({ timeoutMs: 600_000 })
  await world.settle()
  world.net.disconnect(here.id, peer.id)
  await world.pass(9000, 1000)
  t.is(task(asked)?.waitingFor, 'peer', 'a cut link heals within ten seconds')
  await world.pass(2000, 1000)
  const answer = await asked.answer
  t.is(answer.outcome === 'UNKNOWN' ? answer.error.code : '', 'PEER_OFFLINE')
  t.is(task(asked)?.state, 'unknown')
  await world.link(here, peer)
  agent.finish('late')
  await world.settle()
  t.is(task(asked)?.result, 'late')
})

test('a peer that is back in time is waited for as before', async (t) => {
  const { world, here, peer, agent, ask } = await scene(t)
  const asked = await ask({ timeoutMs: 600_000 })
  await world.settle()
  world.net.disconnect(here.id, peer.id)
  await world.pass(9000, 1000)
  await world.link(here, peer)
  await world.pass(9000, 1000)
  agent.finish('in time')
  await world.settle()
  t.alike(await asked.answer, { outcome: 'COMPLETED', result: 'in time' })
})

test('when its peer stops, a waiting caller gets an error at once, and a request that may wait is sent again when the peer is back', async (t) => {
  const { world, here, peer, agent, ask, task } = await scene(t)
  const [waiting, queued] = [await ask({ timeoutMs: 600_000 }), await ask({ timeoutMs: 600_000, mayQueue: true })]
  await world.settle()
  t.is(agent.tasks.length, 1)
  await peer.core.executor.stop()
  await world.settle()
  const answer = await waiting.answer
  t.is(answer.outcome === 'FAILED' ? answer.error.code : '', 'PEER_OFFLINE')
  t.alike([task(queued)?.state, task(queued)?.waitingFor], ['submitted', 'peer'])
  world.net.disconnect(here.id, peer.id)
  await world.pass(3000, 1000)
  await world.link(here, peer)
  await world.pass(2000, 1000)
  t.is(here.counted('messages_sent', 'request'), 3, 'once more')
})
