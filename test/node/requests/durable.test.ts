import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { MAX_CUTS } from '../../../src/domain/reliable/request.js'
import type { Asked } from '../../../src/node/requests/caller/requests.js'
import { NodeError } from '../../../src/kit/errors.js'
import { madeChanges } from '../../support/ledger-changes.js'
import { DurableScene } from '../../support/durable-scene.js'
import { forge } from '../../support/forge.js'
import { holds } from '../../support/holds.js'

test('a request to a node that is away waits through restarts of its caller, is done once, and its result outlives them', async (t) => {
  const scene = await DurableScene.start(t)
  await scene.unlink()
  const { taskId, requestId } = await scene.ask()
  t.is((await scene.task(taskId)).state, 'submitted')
  await scene.crashHere()
  t.is((await scene.task(taskId)).state, 'submitted')
  await scene.link()
  t.alike(
    scene.begun.map((one) => [one.requestId, one.attempt, one.input]),
    [[requestId, 1, { a: 1 }]]
  )
  scene.finish()
  await scene.world.settle()
  t.alike(await scene.task(taskId), { state: 'completed', result: `did ${requestId}`, error: null })
  await scene.crashHere()
  await scene.link()
  t.alike(await scene.task(taskId), { state: 'completed', result: `did ${requestId}`, error: null })
  t.is(scene.begun.length, 1)
})

test('a request that waits for a place when its node is killed is begun after the restart, once', async (t) => {
  const scene = await DurableScene.start(t, { concurrency: 1 })
  await scene.ask({ capability: 'slow.once' })
  const second = await scene.ask({ capability: 'slow.once' })
  await scene.world.settle()
  t.is(scene.begun.length, 1)
  await scene.crashPeer()
  t.is(scene.runsOf(second.requestId), 1)
  scene.finish()
  await scene.link()
  t.is((await scene.task(second.taskId)).state, 'completed')
})

test('unrepeatable work ends as unknown when its node is killed at it, with the reason; it is not begun again', async (t) => {
  const scene = await DurableScene.start(t)
  const { taskId, requestId, answer } = await scene.ask({ capability: 'slow.once', mayQueue: false })
  await scene.world.settle()
  await scene.crashPeer()
  await scene.link()
  await scene.world.pass(10_000, 1000)
  t.is((await answer).outcome, 'UNKNOWN')
  const { state, error } = await scene.task(taskId)
  t.is(state, 'unknown')
  t.ok(error?.message.includes('allow its repeat'))
  t.absent(error?.retryable, 'a caller that tries it again by itself would repeat it')
  t.alike(error?.next, ['a2a-node tasks', `a2a-node call slow@peer slow.once '{"a":1}' --allow-repeat`])
  await scene.world.pass(700_000, 10_000)
  t.is(scene.runsOf(requestId), 1)
})

test('repeatable work is begun again, under the same id, as a further attempt', async (t) => {
  const scene = await DurableScene.start(t)
  const again = await scene.ask()
  const allowed = await scene.ask({ capability: 'slow.once', allowRepeat: true })
  await scene.world.settle()
  await scene.crashPeer()
  await scene.link()
  // One after the other.
  await scene.world.pass(1000, 250)
  for (const { requestId } of [again, allowed])
    t.alike(
      scene.begun.filter((one) => one.requestId === requestId).map((one) => one.attempt),
      [1, 2]
    )
  scene.finish()
  scene.finish()
  await scene.world.settle()
  for (const { taskId } of [again, allowed]) t.is((await scene.task(taskId)).state, 'completed')
})

test('a caller that is killed while it waits learns the outcome after its restart', async (t) => {
  const scene = await DurableScene.start(t)
  const { taskId, requestId } = await scene.ask({ mayQueue: false })
  await scene.world.settle()
  await scene.crashHere()
  scene.finish()
  await scene.world.settle()
  t.is((await scene.task(taskId)).state, 'submitted')
  await scene.link()
  t.alike(await scene.task(taskId), { state: 'completed', result: `did ${requestId}`, error: null })
  t.is(scene.begun.length, 1)
})

test('a request of this very node ends with it: unrepeatable work is unknown, the rest begins anew', async (t) => {
  const scene = await DurableScene.start(t)
  const own = { sender: { agentId: 'operator', nodeId: scene.peer.id } }
  const [once, again] = [
    await scene.peer.core.requests.ask({ ...asking(scene, 'slow.once'), ...own }),
    await scene.peer.core.requests.ask({ ...asking(scene, 'slow.again'), ...own })
  ]
  await scene.world.settle()
  await scene.crashPeer()
  const stateOf = async ({ taskId }: Asked): Promise<string> =>
    (await scene.peer.api().call('tasks.show', { id: taskId ?? '' })).state
  t.is(await stateOf(once), 'unknown')
  t.alike([scene.runsOf(once.requestId), scene.runsOf(again.requestId)], [1, 2])
  scene.finish()
  await scene.world.settle()
  t.is(await stateOf(again), 'completed')
})

test('a request that was done is not done again after a restart of its node, for any sender of a copy: it gets the outcome', async (t) => {
  const scene = await DurableScene.start(t)
  const { requestId } = await scene.ask()
  await scene.world.settle()
  scene.finish()
  await scene.world.settle()
  await scene.crashPeer()
  await scene.link()
  const payload = { requestId, attempt: 1, capability: 'slow.again', input: { a: 1 } }
  forge(scene.here, scene.peer, { recipient: `slow@${scene.peer.id}`, payload })
  await scene.world.settle()
  t.is(scene.begun.length, 1)
})

test('the refusal of a full node is on record with its reply: the node that resumes the request sends it again', async (t) => {
  const scene = await DurableScene.start(t)
  const { taskId, correlationId } = await scene.ask({ capability: 'slow.once' })
  await scene.world.settle()
  const { requestStore: book, lanes, requests } = scene.here.core
  const asked = (await book.ofTasks(taskId ?? ''))[0]
  t.is(asked.tries, 1)
  const { source: recipient, target: sender } = asked
  const header = {
    id: 'msg_no',
    schemaVersion: 1,
    timestamp: 0,
    sender,
    recipient,
    correlationId,
    type: 'error' as const
  }
  const payload = new NodeError('OVERLOADED', 'no room').toBody()
  // The lane commits this with the receipt; the process may end right after.
  await lanes.commit(requests.recordReply({ peer: scene.peer.id, header, payload }).changes)
  const waits = (await book.ofTasks(taskId ?? ''))[0]
  t.is(waits.tries, 0)
  t.is(waits.status, 'pending')
})

test('a queued request whose time is over has failed, and is not sent when its node is there', async (t) => {
  const scene = await DurableScene.start(t)
  await scene.unlink()
  const { taskId } = await scene.ask({ timeoutMs: 60_000 })
  await scene.crashHere()
  await scene.world.pass(61_000, 1000)
  t.is((await scene.task(taskId)).error?.code, 'PEER_OFFLINE')
  await scene.link()
  t.is(scene.begun.length, 0)
})

test('a late outcome is recorded and can be read, also after a restart', async (t) => {
  const scene = await DurableScene.start(t)
  const { taskId, requestId } = await scene.ask({ timeoutMs: 1000, mayQueue: false })
  await scene.world.pass(2000)
  t.is((await scene.task(taskId)).state, 'unknown')
  await scene.crashHere()
  await scene.link()
  scene.finish()
  await scene.world.settle()
  t.is((await scene.task(taskId)).result, `did ${requestId}`)
  await scene.crashHere()
  t.is((await scene.task(taskId)).result, `did ${requestId}`)
  await scene.crashPeer()
  for (const node of [scene.here, scene.peer])
    t.alike(
      node.core.tasks.list().map(({ state, result }) => [state, result]),
      [['completed', `did ${requestId}`]],
      'a request that ended before a start is listed at both ends'
    )
})

test('a request that is canceled while it is on its way is never delivered', async (t) => {
  const scene = await DurableScene.start(t)
  const { here, world } = scene
  const { peers } = here.core
  const { send } = peers
  peers.send = (to, message) => {
    if (message.kind !== 'reliable') send.call(peers, to, message)
  }
  const asked = await scene.ask()
  t.is(here.core.lanes.waiting, 1)
  asked.cancel()
  await world.settle()
  peers.send = send
  await scene.crashHere()
  await scene.link()
  await world.pass(10_000, 1000)
  t.is(scene.begun.length, 0)
  t.is((await scene.task(asked.taskId)).state, 'canceled')
})

test('a request whose time is over while it is written on its way out may have been done: nothing says that it was not sent', async (t) => {
  const scene = await DurableScene.start(t)
  const release = scene.hold('here', 'now')
  const asked = scene.ask({ timeoutMs: 100, mayQueue: false })
  await scene.world.settle()
  await scene.world.pass(200)
  release()
  const { answer, taskId } = await asked
  const told = await answer
  assert(told.outcome === 'UNKNOWN')
  t.is(told.error.code, 'TIMEOUT')
  await scene.world.settle()
  t.is(scene.begun.length, 1, 'it was sent')
  scene.finish()
  await scene.world.settle()
  t.is((await scene.task(taskId)).state, 'completed')
})

test('the outcome of a lease whose time ends while its message is written is unknown: the message may still leave', async (t) => {
  const scene = await DurableScene.start(t)
  const { ledger } = scene.here
  const commit = ledger.commit.bind(ledger)
  let release = (): void => {}
  const written = new Promise<void>((resolve) => (release = resolve))
  ledger.commit = async (given) => {
    const changes = madeChanges(given)
    if (changes.some(({ key }) => key.startsWith('out/'))) await written
    await commit(changes)
  }
  const lease = { swarm: 'swarm_1', requestId: 'swarm_1.0', attempt: 1, isQuery: false, changes: () => [] }
  const asked = scene.ask({ timeoutMs: 100, lease })
  await scene.world.settle()
  await scene.world.pass(200)
  release()
  const { answer } = await asked
  const end = await answer
  assert(end.outcome === 'UNKNOWN', end.outcome)
  t.is(end.error.code, 'TIMEOUT')
  await scene.world.settle()
  t.is(scene.begun.length, 1, 'the message left')
})

test('a lease that its full lane refuses makes no ledger changes', async (t) => {
  const scene = await DurableScene.start(t)
  const { lanes } = scene.here.core
  let refused = 0
  lanes.record = () => {
    refused++
    return Promise.reject(new NodeError('OVERLOADED', 'too many messages wait for this node'))
  }
  let made = 0
  const changes = (): [] => {
    made++
    return []
  }
  const lease = { swarm: 'swarm_1', requestId: 'swarm_1.0', attempt: 1, isQuery: false, changes }
  scene.ask({ lease, mayQueue: false }).catch(() => {})
  await scene.world.settle()
  t.ok(refused > 0)
  t.is(made, 0)
})

test('a request that is canceled while its node looks it up is not begun', async (t) => {
  const scene = await DurableScene.start(t)
  const release = scene.hold('peer', 'next commit')
  const { taskId, cancel } = await scene.ask()
  await scene.world.settle()
  cancel()
  await scene.world.settle()
  release()
  await scene.world.settle()
  t.is(scene.begun.length, 0)
  t.is((await scene.task(taskId)).state, 'canceled')
  t.alike(scene.peer.core.executor.counts(), { running: 0, queued: 0 })
})

function asking(
  scene: DurableScene,
  capability: string
): Parameters<DurableScene['peer']['core']['requests']['ask']>[0] {
  return {
    sender: { agentId: 'operator', nodeId: scene.here.id },
    target: { agentId: 'slow', nodeId: scene.peer.id },
    capability,
    input: { a: 1 },
    description: '',
    timeoutMs: 600_000,
    mayQueue: true
  }
}

test('every request ends with one outcome, none runs twice at once, after its end, or against its record, for any kills and cuts', async (t) => {
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant('ask' as const), isOnce: fc.boolean(), isAwaited: fc.boolean() })
    },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('finish' as const) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constantFrom('crashHere' as const, 'crashPeer' as const, 'link' as const, 'unlink' as const)
      })
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 30_000 }) }) }
  )
  const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
    const scene = await DurableScene.start(t, { concurrency: 2 })
    const asked: (Asked & { isOnce: boolean })[] = []
    for (const one of steps) {
      if (one.do === 'ask') {
        const changes = { capability: one.isOnce ? 'slow.once' : 'slow.again', mayQueue: !one.isAwaited }
        // One that nobody may queue fails at once while its node is away.
        if (scene.isLinked || !one.isAwaited) asked.push({ ...(await scene.ask(changes)), isOnce: one.isOnce })
        // Not settled: what comes next hits it on its way.
      } else if (one.do === 'finish') {
        await scene.world.settle()
        scene.finish()
      } else if (one.do === 'pass') await scene.world.pass(one.ms, 1000)
      else await scene[one.do]()
      assertOnce(scene)
    }
    await quiesce(scene)
    for (const { taskId, requestId, isOnce } of asked) {
      const { state, result } = await scene.task(taskId)
      const runs = scene.runsOf(requestId)
      assert.ok(
        state === 'completed' || (state === 'unknown' && (isOnce || runs >= MAX_CUTS)),
        `${requestId} is ${state}`
      )
      // The first may have got not to disk.
      assert.ok(runs <= MAX_CUTS + 1, `${requestId} ran ${runs} times`)
      if (state === 'completed') assert.equal(result, `did ${requestId}`)
      if (isOnce) assert.ok(scene.runsOf(requestId) <= 1, `${requestId} ran more than once`)
    }
    await Promise.all([scene.here.core.close(), scene.peer.core.close()])
  })
  await holds(t, property, 150)
})

/** No request has two runs open at once, and none is open that has ended by itself. */
function assertOnce({ agent }: DurableScene): void {
  const open = agent.open.map(({ task }) => task.requestId)
  assert.equal(new Set(open).size, open.length, 'a request runs twice at once')
}

/** All are linked, and every agent does what it is asked, until nothing is open. */
async function quiesce(scene: DurableScene): Promise<void> {
  await scene.link()
  for (let round = 0; round < 120; round++) {
    await scene.world.pass(10_000, 1000)
    while (scene.agent.open.length > 0) {
      scene.finish()
      await scene.world.settle()
      assertOnce(scene)
    }
  }
}

for (const decision of ['ask', 'deny']) {
  test(`unrepeatable work that had begun ends as unknown after a restart, also when a rule says ${decision} by then`, async (t) => {
    const scene = await DurableScene.start(t)
    const { taskId, requestId } = await scene.ask({ capability: 'slow.once' })
    await scene.world.settle()
    t.is(scene.runsOf(requestId), 1)
    await scene.crashPeer(`rules:\n  - capability: slow.*\n    decision: ${decision}\n`)
    await scene.link()
    t.alike((await scene.peer.api().call('approvals.list', {})).approvals, [], 'nobody is asked about what was begun')
    await scene.world.pass(400_000, 5000)
    t.is((await scene.task(taskId)).state, 'unknown', 'it is not reported as not done')
    t.is(scene.runsOf(requestId), 1)
  })
}

test('a node that lost its disk does not begin unrepeatable work again after it had acknowledged it', async (t) => {
  const scene = await DurableScene.start(t)
  const { taskId } = await scene.ask({ capability: 'slow.once' })
  await scene.world.pass(1000)
  t.is((await scene.task(taskId)).state, 'working')
  scene.losePeersDisk()
  await scene.crashPeer()
  await scene.link()
  await scene.world.pass(30_000)
  t.is(scene.begun.length, 1)
  const { state, error } = await scene.task(taskId)
  t.is(state, 'unknown')
  t.ok(error?.message.includes('no record'))
})

test('that a request may be repeated by the word of its caller outlives its caller', async (t) => {
  const scene = await DurableScene.start(t)
  await scene.unlink()
  const { taskId } = await scene.ask({ capability: 'slow.once', allowRepeat: true })
  await scene.crashHere()
  await scene.link()
  await scene.world.pass(1000)
  t.is(scene.begun.length, 1)
  await scene.crashPeer()
  await scene.link()
  await scene.world.pass(2000)
  t.is(scene.begun.length, 2)
  scene.finish()
  await scene.world.pass(1000)
  t.is((await scene.task(taskId)).state, 'completed')
})

test('an end that a caller decides by itself while its disk is full is shown when it is durable, and outlives it then', async (t) => {
  const scene = await DurableScene.start(t)
  await scene.unlink()
  const queued = await scene.ask({ timeoutMs: 5000 })
  const canceled = await scene.ask()
  scene.fill('here', true)
  canceled.cancel()
  await scene.world.pass(10_000)
  t.alike(
    await queued.answer,
    { outcome: 'FAILED', error: ((await queued.answer) as { error: unknown }).error },
    'the waiting caller is notified'
  )
  t.is((await scene.task(queued.taskId)).state, 'submitted')
  t.is((await scene.task(canceled.taskId)).state, 'canceled', 'its caller sees that it canceled it')
  scene.fill('here', false)
  await scene.world.pass(60_000)
  t.is((await scene.task(queued.taskId)).state, 'failed')
  await scene.crashHere()
  await scene.link()
  await scene.world.pass(5000)
  t.is((await scene.task(queued.taskId)).state, 'failed')
  t.is((await scene.task(canceled.taskId)).state, 'canceled')
  t.is(scene.begun.length, 0)
})

test('a request that is canceled while the answer to it is not taken by a full disk is canceled on disk as well', async (t) => {
  const scene = await DurableScene.start(t)
  const asked = await scene.ask()
  await scene.world.pass(1000)
  const { ledger } = scene.here
  const commit = ledger.commit.bind(ledger)
  let refuse: () => void = () => {}
  ledger.commit = () =>
    new Promise((_resolve, reject) => (refuse = () => reject(new NodeError('DISK_FULL', 'no space left'))))
  scene.finish()
  await scene.world.settle()
  asked.cancel()
  ledger.commit = commit
  refuse()
  await scene.world.pass(60_000)
  t.is((await scene.here.core.requestStore.ofTasks(asked.taskId ?? ''))[0]?.error?.code, 'CANCELED')
})

test('a try that the disk of the caller did not take does not count', async (t) => {
  const scene = await DurableScene.start(t)
  scene.fill('peer', true)
  const { taskId } = await scene.ask({ timeoutMs: 1000, mayQueue: false })
  await scene.world.pass(3000)
  t.is((await scene.task(taskId)).state, 'unknown')
  scene.fill('here', true)
  scene.fill('peer', false)
  await scene.world.pass(300_000, 1000)
  t.is(scene.begun.length, 0)
  scene.fill('here', false)
  await scene.world.pass(60_000)
  t.is(scene.begun.length, 1)
})

test('a request that waits for a place is not sent before the time that its node names, nor after a restart of its caller', async (t) => {
  for (const isKilled of [false, true]) {
    const scene = await DurableScene.start(t)
    const { agents } = scene.peer.core
    const { run } = agents
    const full = {
      ok: false,
      code: 'OVERLOADED',
      message: 'too many tasks wait for this agent',
      data: { retryAfter: 20 }
    } as const
    agents.run = () => Promise.resolve(full)
    const { requestId } = await scene.ask({ mayQueue: true })
    await scene.world.pass(1000)
    agents.run = run
    if (isKilled) await scene.crashHere()
    await scene.link()
    await scene.world.pass(18_500, 500)
    t.is(scene.runsOf(requestId), 0, `killed: ${isKilled}`)
    await scene.world.pass(3000, 500)
    t.is(scene.runsOf(requestId), 1, `killed: ${isKilled}`)
    scene.finish()
    await scene.world.settle()
  }
})
