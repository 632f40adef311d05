import v8 from 'node:v8'
import vm from 'node:vm'
import test from 'brittle'
import type { SwarmRequest } from '../../../src/ports/swarm-api.js'
import { agentDefinition, capability, FakeAgent, type Script } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { forge } from '../../support/forge.js'
import { isOpen } from '../../support/exchanges.js'

function worker(script?: Script, concurrency = 2): FakeAgent {
  return new FakeAgent(agentDefinition('w', { capabilities: [capability('work.do')], concurrency }), script)
}

function map(count: number, changes: Partial<SwarmRequest> = {}): SwarmRequest {
  const items = Array.from({ length: count }, (_, index) => ({ item: `item ${index}`, input: index }))
  return { goal: 'do it', capability: 'work.do', strategy: 'map', items, ...changes }
}

/** Collects what nobody holds any more. */
function collectGarbage(): void {
  v8.setFlagsFromString('--expose-gc')
  vm.runInNewContext('gc')()
}

test('results that take too much memory end their items; ended swarms are dropped first', async (t) => {
  const world = new World(t)
  const big = Array.from({ length: 15 }, () => 'x'.repeat(1024 * 1024))
  const owner = await world.owner({ agents: [worker(() => ({ ok: true, result: big }))] })
  const { swarms } = owner.core
  const first = await swarms.launch(map(20))
  await world.settle()
  const { status, results } = swarms.get(first).results()
  t.is(status, 'partial')
  t.is(results.filter((one) => one.status === 'completed').length, 8, '8 of 15 MiB')
  t.alike([...new Set(results.flatMap((one) => one.error?.code ?? []))], ['PAYLOAD_TOO_LARGE'])
  t.ok(
    results.every((one) => one.attempt === 1),
    'no retry is spent on a result that can only be too large again'
  )
  const second = await swarms.launch(map(8))
  await world.settle()
  t.is(swarms.get(second).results().status, 'completed')
  t.alike(
    swarms.list().map((one) => one.id),
    [second]
  )
})

test('the failure data of a peer is left out when it would take too much memory', async (t) => {
  const world = new World(t)
  const owner = await world.owner()
  const peer = await world.member('b', { agents: [worker()] })
  await world.link(owner, peer)
  const id = await owner.core.swarms.launch(map(10, { retries: 0 }))
  await world.settle()
  const data = Array.from({ length: 15 }, () => 'x'.repeat(1024 * 1024))
  /** Answers what the peer has been asked with an error of 15 MiB. */
  async function fail(): Promise<void> {
    const asked = Array.from({ length: 400 }, (_, n) => `thr_${n}_owner`).filter((one) =>
      isOpen(owner, { peer: peer.id, correlationId: one, own: 'operator', other: 'w' })
    )
    const payload = { code: 'TASK_FAILED', message: 'no', data }
    const reply = { type: 'error', sender: `w@${peer.id}`, recipient: `operator@${owner.id}`, payload } as const
    for (const correlationId of asked) {
      forge(peer, owner, { ...reply, correlationId })
      await world.settle()
      // A link carries no more than 64 MiB at once.
      world.clock.advance(500)
    }
  }
  for (let round = 0; round < 5; round++) await fail()
  const { results } = owner.core.swarms.get(id).results()
  t.is(results.length, 10)
  t.is(results.filter((one) => one.error?.data !== undefined).length, 8, '8 of 15 MiB')
})

test('the failure data of a peer is left out when it exceeds the limit of the item, or of the whole swarm', async (t) => {
  for (const { message, count, isKept } of [
    { message: 'x'.repeat(4000), count: 522_200, isKept: false },
    { message: 'no', count: 519_000, isKept: true }
  ]) {
    const world = new World(t)
    const owner = await world.owner()
    const peer = await world.member('b', { agents: [worker()] })
    await world.link(owner, peer)
    const id = await owner.core.swarms.launch(map(1, { retries: 0, goal: 'g'.repeat(16_000) }))
    await world.settle()
    const correlationId = Array.from({ length: 400 }, (_, n) => `thr_${n}_owner`).find((one) =>
      isOpen(owner, { peer: peer.id, correlationId: one, own: 'operator', other: 'w' })
    )
    const payload = { code: 'TASK_FAILED', message, data: Array.from({ length: count }, () => 1) }
    forge(peer, owner, {
      type: 'error',
      sender: `w@${peer.id}`,
      recipient: `operator@${owner.id}`,
      payload,
      correlationId: correlationId ?? ''
    })
    await world.settle()
    const { status, results } = owner.core.swarms.get(id).results()
    t.is(status, 'failed')
    t.is(results[0]?.error?.message, message)
    t.is(results[0]?.error?.data !== undefined, isKept)
    const end = owner.core.swarms
      .get(id)
      .follow(() => {})
      .past.at(-1)
    t.alike(end?.type === 'done' ? [end.error?.message, end.error?.data] : end, [message, undefined])
  }
})

test('the inputs of a swarm are let go at its end, though the swarm is kept', async (t) => {
  const world = new World(t)
  const owner = await world.owner()
  await world.link(owner, await world.member('b', { agents: [worker()] }))
  async function launched(): Promise<{ id: string; inputs: WeakRef<object>[] }> {
    const inputs = [{ one: 1 }, { one: 2 }]
    const id = await owner.core.swarms.launch({
      ...map(0),
      items: inputs.map((input, index) => ({ item: `${index}`, input }))
    })
    await world.settle()
    return { id, inputs: inputs.map((input) => new WeakRef(input)) }
  }
  const { id, inputs } = await launched()
  collectGarbage()
  t.ok(
    inputs.every((one) => one.deref() !== undefined),
    'taken while it runs'
  )
  await owner.core.swarms.cancel(id)
  await world.pass(1000)
  collectGarbage()
  t.alike(
    inputs.map((one) => one.deref()),
    [undefined, undefined]
  )
  t.is(owner.core.swarms.list().length, 1)
})

test('a member that claims many places and only heartbeats holds few items, and not for long', async (t) => {
  const world = new World(t)
  const owner = await world.owner()
  const mal = worker(undefined, 1024)
  await world.link(
    owner,
    await world.member('mal', { agents: [mal] }),
    await world.member('honest', { agents: [worker(() => ({ ok: true, result: 'done' }), 4)] })
  )
  const id = await owner.core.swarms.launch(map(60))
  await world.pass(5000)
  t.is(mal.tasks.length, 4)
  t.is(owner.core.swarms.get(id).results().results.length, 56)
  await world.pass(60_000, 500)
  const { status, results } = owner.core.swarms.get(id).results()
  t.is(status, 'completed')
  t.alike([...new Set(results.map((one) => one.agent))], ['w@honest'])
  t.alike(mal.open, [], 'it gets the order to stop')
})
