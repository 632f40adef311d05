import test from 'brittle'
import { NodeError } from '../../../../src/kit/errors.js'
import { DurableScene, type MortalLedger } from '../../../support/durable-scene.js'
import { failsWith } from '../../../support/fails.js'
import type { FakeNode } from '../../../support/fake-node.js'
import { forge } from '../../../support/forge.js'

test('unrepeatable work does not begin before that is durable', async (t) => {
  const scene = await DurableScene.start(t)
  const { ledger } = scene.peer
  const commit = ledger.commit.bind(ledger)
  let go: () => void = () => {}
  let commits = 0
  // The first commit records that it came, the second that it begins.
  ledger.commit = async (changes) => {
    if (++commits === 2) await new Promise<void>((resolve) => (go = resolve))
    await commit(changes)
  }
  await scene.ask({ capability: 'slow.once' })
  await scene.world.settle()
  t.is(scene.begun.length, 0)
  go()
  await scene.world.settle()
  t.is(scene.begun.length, 1)
})

test('unrepeatable work finds no place while its node cannot record its start, and begins once it can', async (t) => {
  const scene = await DurableScene.start(t)
  const { ledger } = scene.peer
  const commit = ledger.commit.bind(ledger)
  let commits = 0
  ledger.commit = (changes) =>
    ++commits === 2 ? Promise.reject(new NodeError('DISK_FULL', 'no space left')) : commit(changes)
  const { taskId } = await scene.ask({ capability: 'slow.once' })
  await scene.world.settle()
  t.is(scene.begun.length, 0)
  await scene.world.pass(5000)
  t.is(scene.begun.length, 1)
  scene.finish()
  await scene.world.pass(1000)
  t.is((await scene.task(taskId)).state, 'completed')
})

test('a request is refused cleanly when its node cannot record it, and done when it can', async (t) => {
  const scene = await DurableScene.start(t)
  const { ledger } = scene.here
  const commit = ledger.commit.bind(ledger)
  ledger.commit = () => Promise.reject(new NodeError('DISK_FULL', 'no space left'))
  const failure = await scene.ask({ mayQueue: false }).catch((error: unknown) => error)
  t.is(failure instanceof NodeError ? failure.code : '', 'DISK_FULL')
  t.is(scene.begun.length, 0)
  ledger.commit = commit
  await scene.ask()
  await scene.world.settle()
  t.is(scene.begun.length, 1)
})

test('a node that cannot record what it is asked acknowledges nothing; it is done once when it can', async (t) => {
  const scene = await DurableScene.start(t)
  const { ledger } = scene.peer
  const commit = ledger.commit.bind(ledger)
  ledger.commit = () => Promise.reject(new NodeError('DISK_FULL', 'no space left'))
  const { taskId } = await scene.ask()
  await scene.world.pass(5000, 500)
  t.is(scene.begun.length, 0)
  t.is(scene.here.core.lanes.waiting, 1)
  ledger.commit = commit
  await scene.world.pass(120_000, 500)
  t.is(scene.begun.length, 1)
  scene.finish()
  await scene.world.settle()
  t.is((await scene.task(taskId)).state, 'completed')
})

test('an end that cannot be recorded now is recorded and reported when it can', async (t) => {
  const scene = await DurableScene.start(t)
  const { taskId } = await scene.ask()
  await scene.world.settle()
  const { ledger } = scene.peer
  const commit = ledger.commit.bind(ledger)
  ledger.commit = () => Promise.reject(new NodeError('DISK_FULL', 'no space left'))
  scene.finish()
  await scene.world.pass(10_000, 500)
  t.is((await scene.task(taskId)).state, 'working')
  ledger.commit = commit
  await scene.world.pass(120_000, 500)
  t.is((await scene.task(taskId)).state, 'completed')
  t.is(scene.begun.length, 1)
})

test('while the end of a request cannot be recorded no further copy of it is run, also when the clock says meanwhile that there is time', async (t) => {
  const scene = await DurableScene.start(t)
  const { taskId, requestId } = await scene.ask({ timeoutMs: 60_000 })
  await scene.world.pass(1000)
  scene.fill('peer', true)
  scene.peersSkewMs = 120_000
  await scene.crashPeer()
  await scene.link()
  await scene.world.pass(2000, 500)
  t.is(scene.agent.open.length, 0, 'its time seems to be over')
  t.alike(scene.peer.core.tasks.list(), [], 'which is not on disk yet, so it is not shown')
  scene.peersSkewMs = 0
  await scene.world.pass(20_000, 500)
  scene.fill('peer', false)
  for (let left = 60; left > 0; left--) {
    scene.finish()
    await scene.world.pass(1000)
  }
  t.is(scene.runsOf(requestId), 1)
  t.is((await scene.task(taskId)).state, 'unknown')
  t.is((await scene.peer.core.requestStore.lasting(1))[0]?.status, 'unknown')
})

test('a node may begin a bounded number of lanes: it cannot fill the ledger with them, and existing ones continue', async (t) => {
  const scene = await DurableScene.start(t)
  const { here, peer, world } = scene
  const before = await scene.ask()
  await world.settle()
  scene.finish()
  await world.settle()
  t.is((await scene.task(before.taskId)).state, 'completed')
  const greet = (from: number): void => {
    const lanes = Array.from({ length: 500 }, (_, at) => ({ source: `a${from + at}`, target: 'slow', base: 1 }))
    here.core.peers.send(peer.id, { kind: 'control', name: 'greet', body: { lanes } })
  }
  for (let round = 0; round < 12; round++) {
    greet(round * 500)
    await world.settle()
  }
  const refused = peer.counted('errors', 'lane')
  t.is(refused, 6000 - 4095)
  const { taskId } = await scene.ask()
  await world.settle()
  scene.finish()
  await world.settle()
  t.is((await scene.task(taskId)).state, 'completed')
})

test('work stopped while its start is recorded does not begin', async (t) => {
  const scene = await DurableScene.start(t)
  const { ledger } = scene.peer
  const commit = ledger.commit.bind(ledger)
  let go: () => void = () => {}
  let commits = 0
  ledger.commit = async (changes) => {
    if (++commits === 2) await new Promise<void>((resolve) => (go = resolve))
    await commit(changes)
  }
  const { answer } = await scene.ask({ capability: 'slow.once' })
  await scene.world.settle()
  const closed = scene.peer.core.close()
  await scene.world.settle()
  go()
  await scene.world.settle()
  await closed
  t.is(scene.begun.length, 0)
  await scene.here.core.requests.stop()
  t.is((await answer).outcome, 'UNKNOWN')
})

test('an answer that could not be recorded when it came is in the ledger when its caller reports it', async (t) => {
  const scene = await DurableScene.start(t)
  const { taskId, requestId } = await scene.ask()
  await scene.world.settle()
  const { ledger } = scene.here
  const commit = ledger.commit.bind(ledger)
  ledger.commit = () => Promise.reject(new NodeError('DISK_FULL', 'no space left'))
  scene.finish()
  await scene.world.pass(2000, 500)
  ledger.commit = commit
  await scene.world.pass(30_000, 500)
  t.is((await scene.task(taskId)).state, 'completed')
  await scene.crashHere()
  t.alike(await scene.task(taskId), { state: 'completed', result: `did ${requestId}`, error: null })
})

test('the end of work is not shown, nor reported as unknown by a stop, before it is recorded', async (t) => {
  const scene = await DurableScene.start(t)
  const { taskId, requestId } = await scene.ask({ capability: 'slow.once' })
  await scene.world.settle()
  const { ledger } = scene.peer
  const commit = ledger.commit.bind(ledger)
  ledger.commit = () => Promise.reject(new NodeError('DISK_FULL', 'no space left'))
  scene.finish()
  await scene.world.settle()
  t.is(scene.peer.core.tasks.list()[0]?.state, 'working')
  const closed = scene.peer.core.close()
  await scene.world.settle()
  ledger.commit = commit
  await scene.world.pass(5000, 500)
  await closed
  await scene.crashPeer()
  await scene.link()
  await scene.world.pass(30_000, 500)
  t.is((await scene.task(taskId)).result, `did ${requestId}`)
})

test('a node that stops after its disk was full for long records at once how work ended', async (t) => {
  const scene = await DurableScene.start(t)
  await scene.ask({ capability: 'slow.once' })
  await scene.world.settle()
  scene.fill('peer', true)
  scene.finish()
  await scene.world.pass(64_000, 500)
  scene.fill('peer', false)
  let isClosed = false
  const closed = scene.peer.core.close().then(() => (isClosed = true))
  await scene.world.pass(1500)
  t.ok(isClosed)
  await scene.world.pass(120_000, 1000)
  await closed
})

test('a request of this very node gets its late outcome, also when its time was over before a restart', async (t) => {
  const scene = await DurableScene.start(t)
  const { peer } = scene
  const own = {
    sender: { agentId: 'operator', nodeId: peer.id },
    target: { agentId: 'slow', nodeId: peer.id },
    capability: 'slow.again',
    input: {},
    description: '',
    timeoutMs: 1000,
    mayQueue: false
  }
  const stateOf = (taskId: string | null): string | undefined => scene.peer.core.tasks.get(taskId ?? '')?.state
  const late = await peer.core.requests.ask(own)
  await scene.world.pass(50_000, 500)
  t.is(stateOf(late.taskId), 'unknown')
  scene.finish()
  await scene.world.settle()
  t.is(stateOf(late.taskId), 'completed')
  const again = await peer.core.requests.ask(own)
  await scene.world.pass(2000, 500)
  await scene.crashPeer()
  await scene.world.settle()
  scene.finish()
  await scene.world.settle()
  t.is(stateOf(again.taskId), 'completed')
})

test('a full ledger refuses new requests, of this node and of others; recorded ones come to their end', async (t) => {
  const scene = await DurableScene.start(t)
  const { here, peer, world } = scene
  const taken = await scene.ask()
  await world.settle()
  const fill = (node: FakeNode, bytes: number): void => {
    node.ledger.size = () => Promise.resolve({ commits: 1, bytes })
  }
  fill(peer, 5 * 1024 ** 3)
  await world.pass(5000)
  t.is((await peer.api().call('node.status', {})).problems[0]?.code, 'OVERLOADED')
  const refused = await scene.ask({ mayQueue: false })
  t.is((await refused.answer).outcome, 'FAILED')
  scene.finish()
  await world.settle()
  t.is((await scene.task(taken.taskId)).state, 'completed')
  t.is(scene.begun.length, 1)
  fill(peer, 1024)
  fill(here, 5 * 1024 ** 3)
  await world.pass(5000)
  await failsWith(t, 'OVERLOADED', () => scene.ask())
  fill(here, 1024)
  await world.pass(5000)
  await scene.ask()
  await world.settle()
  t.is(scene.begun.length, 2)
})

test('a request that is queried before its node resumed it runs as first requested, once', async (t) => {
  const scene = await DurableScene.start(t, { concurrency: 1 })
  const { here, peer, world } = scene
  await scene.ask({ capability: 'slow.once' })
  const { requestId, correlationId, taskId } = await scene.ask({ capability: 'slow.once', input: { a: 2 } })
  await world.settle()
  // The next process reads what it was asked with slowly.
  const ledger = peer.ledger as MortalLedger
  const kill = ledger.kill.bind(ledger)
  let go: () => void = () => {}
  const wait = new Promise<void>((resolve) => (go = resolve))
  ledger.kill = () => {
    const next = kill()
    const { get } = next
    next.get = async (key) => {
      if (key.startsWith('request-in/')) await wait
      return await get(key)
    }
    return next
  }
  const started = scene.crashPeer()
  await world.settle()
  world.net.connect(here.id, peer.id)
  await world.settle()
  const payload = { requestId, attempt: 1, capability: 'slow.once', input: null, isQuery: true }
  forge(here, peer, { recipient: `slow@${peer.id}`, payload, correlationId })
  await world.settle()
  t.is(scene.runsOf(requestId), 0)
  go()
  await started
  await world.settle()
  t.alike(
    scene.begun.filter((one) => one.requestId === requestId).map(({ input }) => input),
    [{ a: 2 }]
  )
  scene.finish()
  await world.pass(10_000, 500)
  t.is((await scene.task(taskId)).state, 'completed')
})
