import test, { type Assert } from 'brittle'
import { createMemoryLedger } from '../../../support/memory-ledger.js'
import { restoredValue } from '../../../../src/domain/reliable/restored.js'
import type { Asked } from '../../../../src/node/requests/caller/requests.js'
import { DurableScene, MortalLedger } from '../../../support/durable-scene.js'
import { agentDefinition, capability, FakeAgent } from '../../../support/fake-agents.js'
import { type FakeNode, World } from '../../../support/fake-node.js'
import { ALICE, gatewayOf } from '../../../support/gateway.js'
import { actor } from '../../../support/membership.js'
import { NodeClock } from '../../../simulation/node-clock.js'

const ONCE = capability('slow.once', { idempotent: false })
const DAY_MS = 86_400_000

async function problemCodes(node: FakeNode): Promise<string[]> {
  return (await node.api().call('node.status', {})).problems.map(({ code }) => code)
}

function putOut({ world, peer }: DurableScene): void {
  world.log.model.revoke(actor('owner'), peer.actor)
  world.log.changed()
}

/** One node asks an agent, which may be its own, and waits as long as it takes. */
async function ask(here: FakeNode, peer: FakeNode, agentId: string, named: string): Promise<Asked> {
  const [sender, target] = [
    { agentId: 'operator', nodeId: here.id },
    { agentId, nodeId: peer.id }
  ]
  const what = { capability: named, input: { a: 1 }, description: '', timeoutMs: DAY_MS, mayQueue: true }
  return await here.core.requests.ask({ sender, target, ...what })
}

test('a request that is being recorded when its node stops is begun by the next start', async (t: Assert) => {
  for (const named of ['slow.again', 'slow.once']) {
    const scene = await DurableScene.start(t)
    const { world } = scene
    await ask(scene.here, scene.peer, 'slow', 'slow.again')
    await world.settle()
    const release = scene.hold('peer', 'now')
    const asked = await ask(scene.here, scene.peer, 'slow', named)
    await world.settle()
    const restarted = scene.restartPeer()
    await world.settle()
    release()
    await restarted
    await scene.link()
    await world.pass(60_000, 1000)
    t.is(scene.runsOf(asked.requestId), 1, named)
    while (scene.agent.open.length > 0) scene.finish()
    await world.pass(2000)
    t.is((await scene.task(asked.taskId)).state, 'completed', named)
  }
})

test('a request to an agent of its own node, which waited when a backup was made, is not done twice by a restore', async (t: Assert) => {
  const world = new World(t)
  const make = (): FakeAgent => new FakeAgent(agentDefinition('slow', { capabilities: [ONCE], concurrency: 4 }))
  const [agent, ledger, copy] = [make(), new MortalLedger(), createMemoryLedger()]
  const node = await world.owner({ agents: [agent], ledger, settings: { maxInFlightPerPeer: 1 } })
  await ask(node, node, 'slow', 'slow.once')
  await world.pass(500)
  const second = await ask(node, node, 'slow', 'slow.once')
  await world.pass(500)
  const entries = await ledger.list({ from: '!', to: '~', limit: 10_000 })
  await copy.commit(entries.map(({ key, value }) => ({ key, value: restoredValue(key, value) })))
  for (let round = 0; round < 2; round++) {
    agent.finish()
    await world.pass(5000)
  }
  t.is(node.core.tasks.get(second.taskId ?? '')?.state, 'completed')
  await node.core.close()
  const young = make()
  const again = await world.start(node.actor, { store: node.store, ledger: copy, agents: [young] })
  await world.pass(10_000)
  t.is(young.tasks.length, 0)
  t.is(again.core.tasks.get(second.taskId ?? '')?.state, 'unknown')
})

test('an A2A task ends when nobody will ever learn its outcome: its node was put out of the mesh, or lost its disk', async (t: Assert) => {
  for (const named of ['slow.once', 'slow.again'])
    for (const how of ['revoked', 'disk'] as const) {
      const scene = await DurableScene.start(t)
      const { world } = scene
      const gateway = await gatewayOf(t, scene.here)
      const message = { messageId: 'm1', role: 'user', parts: [{ data: { a: 1 } }] } as const
      const reply = await gateway.send(ALICE, {
        message,
        agent: 'slow@peer',
        skill: named,
        mayAnswer: false,
        wait: false
      })
      await world.pass(3000, 1000)
      if (how === 'revoked') {
        await scene.unlink()
        putOut(scene)
      } else {
        scene.losePeersDisk()
        await scene.crashPeer()
        await scene.link()
      }
      await world.pass(600_000, 10_000)
      while (scene.agent.open.length > 0) scene.finish()
      await world.pass(60_000, 10_000)
      const { state } = (await gateway.get(ALICE, reply.kind === 'task' ? reply.snapshot.task.id : '')).task
      t.is(state, how === 'disk' && named === 'slow.again' ? 'completed' : 'failed', `${named} ${how}`)
    }
})

test('a peer that is put out while its answer is being recorded has answered', async (t: Assert) => {
  const scene = await DurableScene.start(t)
  const { world } = scene
  await scene.ask()
  await world.pass(1000)
  scene.finish()
  await world.pass(1000)
  const asked = await scene.ask({ capability: 'slow.once' })
  await world.pass(1000)
  const release = scene.hold('here', 'now')
  scene.finish()
  await world.settle()
  putOut(scene)
  await world.settle()
  release()
  await world.pass(2000)
  t.is((await asked.answer).outcome, 'COMPLETED')
  t.is((await scene.task(asked.taskId)).state, 'completed')
  t.is((await scene.here.core.requestStore.asked(asked.requestId))?.status, 'completed')
})

test('work that a removed peer may have begun is no orphan: it is unknown for good, over a restart too', async (t: Assert) => {
  const scene = await DurableScene.start(t)
  const { world } = scene
  const begun = await scene.ask({ capability: 'slow.once' })
  await world.settle()
  await scene.unlink()
  putOut(scene)
  await world.pass(200_000, 5000)
  t.alike(await problemCodes(scene.here), [])
  await scene.crashHere()
  await world.pass(200_000, 5000)
  t.alike(await problemCodes(scene.here), [])
  t.is((await scene.task(begun.taskId)).state, 'unknown')
  t.absent(scene.here.core.requests.knows(begun.requestId), 'nobody takes it up again')
})

test('requests for an agent that a program attaches wait for it after a start', async (t: Assert) => {
  const world = new World(t)
  const capabilities = [capability('prog.again'), capability('prog.once', { idempotent: false })]
  const never = new Promise<string>(() => {})
  const ledger = new MortalLedger()
  const here = await world.member('here')
  const peer = await world.member('peer', { ledger })
  await peer.core.attach({ id: 'prog', capabilities, run: () => never })
  await world.link(here, peer)
  await world.settle()
  const running = await ask(here, peer, 'prog', 'prog.again')
  await world.pass(2000)
  const waiting = await ask(here, peer, 'prog', 'prog.once')
  await world.pass(2000)
  const left = ledger.kill()
  world.net.disconnect(here.id, peer.id)
  await peer.core.close()
  const young = await world.start(peer.actor, { store: peer.store, ledger: left })
  await world.pass(2000)
  await young.core.attach({ id: 'prog', capabilities, run: () => 'done' })
  await world.link(here, young)
  await world.pass(60_000, 1000)
  for (const { taskId } of [running, waiting]) t.is(here.core.tasks.get(taskId ?? '')?.state, 'completed')
})

test('a request accepted before a start waits for a place after it, and is not given up for later ones', async (t: Assert) => {
  const world = new World(t)
  const make = (): FakeAgent => new FakeAgent(agentDefinition('slow', { capabilities: [ONCE], concurrency: 1 }))
  const ledger = new MortalLedger()
  const here = await world.member('here')
  const peer = await world.member('peer', { agents: [make()], ledger })
  await world.link(here, peer)
  const asked = [await ask(here, peer, 'slow', 'slow.once'), await ask(here, peer, 'slow', 'slow.once')]
  await world.pass(1000)
  asked.push(await ask(here, peer, 'slow', 'slow.once'))
  await world.pass(1000)
  const left = ledger.kill()
  world.net.disconnect(here.id, peer.id)
  await peer.core.close()
  const agent = make()
  const young = await world.start(peer.actor, {
    store: peer.store,
    ledger: left,
    agents: [agent],
    settings: { maxInFlightPerPeer: 1 }
  })
  await world.settle()
  let open = 0
  for await (const record of young.core.requestStore.pending()) if (record.status === 'pending') open++
  t.is(open, 1, 'a request without a place is not lost')
  await world.link(here, young)
  for (let round = 0; round < 20; round++) {
    await world.pass(10_000, 1000)
    while (agent.open.length > 0) agent.finish('done')
  }
  const states = asked.map(({ taskId }) => here.core.tasks.get(taskId ?? '')?.state)
  t.alike(states, ['unknown', 'completed', 'completed'])
})

test('a wall clock that is ahead for a moment gives up nothing that waits on a lane', async (t: Assert) => {
  const world = new World(t)
  let skewMs = 0
  const ledger = new MortalLedger()
  const agent = new FakeAgent(agentDefinition('slow', { capabilities: [ONCE] }))
  const here = await world.member('here', { parts: { clock: new NodeClock(world.clock, () => skewMs) } })
  const peer = await world.member('peer', { agents: [agent], ledger })
  await world.link(here, peer)
  const release = ledger.hold('now')
  const asked = await ask(here, peer, 'slow', 'slow.once')
  await world.pass(1000)
  world.net.disconnect(here.id, peer.id)
  await world.settle()
  skewMs = 2 * DAY_MS
  await world.pass(2000)
  skewMs = 0
  await world.pass(2000)
  release()
  await world.settle()
  await world.link(here, peer)
  await world.pass(60_000, 1000)
  while (agent.open.length > 0) agent.finish('done')
  await world.pass(2000)
  t.is(here.core.tasks.get(asked.taskId ?? '')?.state, 'completed')
})

test('a result that fits no message has failed at both ends and in their ledgers, over a restart too', async (t: Assert) => {
  const nearly = 'x'.repeat(16 * 1_048_576 - 200)
  for (const [named, result] of [
    ['slow.once', nearly],
    ['slow.once', `${nearly}${nearly}`],
    ['slow.again', nearly]
  ] as const) {
    const scene = await DurableScene.start(t)
    const { world, peer } = scene
    const asked = await scene.ask({ capability: named })
    await world.pass(1000)
    scene.agent.finish(result)
    await world.pass(3000, 500)
    const failed = ['failed', 'PAYLOAD_TOO_LARGE']
    const shown = async (): Promise<unknown> => {
      const { state, error } = await scene.task(asked.taskId)
      return [state, error?.code]
    }
    t.alike(await shown(), failed)
    const { tasks } = await peer.api().call('tasks.list', {})
    t.alike([tasks[0]?.state, tasks[0]?.error?.code], failed, 'as the node of its agent lists it')
    t.alike(
      (await peer.core.requestStore.lasting(5)).map(({ status, error }) => [status, error?.code]),
      [failed]
    )
    await scene.crashPeer()
    await scene.link()
    await world.pass(10_000, 1000)
    t.alike(await shown(), failed)
    t.is(scene.runsOf(asked.requestId), 1)
  }
})

test('the reason of an agent of this node for an unknown outcome stays the same over a restart', async (t: Assert) => {
  const scene = await DurableScene.start(t)
  const asked = await ask(scene.peer, scene.peer, 'slow', 'slow.once')
  await scene.world.settle()
  scene.agent.open[0]?.end({ ok: false, code: 'TASK_FAILED', message: 'the server was lost', isUnknown: true })
  await scene.world.settle()
  const shown = async (): Promise<unknown> => {
    const { state, error } = await scene.peer.api().call('tasks.show', { id: asked.taskId ?? '' })
    return [state, error?.code, error?.message]
  }
  t.alike(await shown(), ['unknown', 'TASK_FAILED', 'the server was lost'])
  await scene.crashPeer('', 5000)
  await scene.world.pass(3000)
  t.alike(await shown(), ['unknown', 'TASK_FAILED', 'the server was lost'])
})
