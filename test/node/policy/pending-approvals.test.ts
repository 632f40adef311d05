import test from 'brittle'
import type { Reply } from '../../../src/ports/node-api.js'
import { approvalScene, callText, firstWaiting, waitingOf } from '../../support/approval-scene.js'
import { echo } from '../../support/fake-agents.js'
import { forge, request } from '../../support/forge.js'

test('waiting messages are bounded for a peer and in all, also in bytes', async (t) => {
  const { world, owner, peer } = await approvalScene(t)
  for (let i = 0; i < 65; i++) forge(owner, peer, { payload: request(`r${i}`) })
  await world.settle()
  t.is((await waitingOf(peer)).length, 64)
  t.is(peer.audit.events.at(-1)?.rule, 'approvals: bounded')
  t.is(peer.audit.events.at(-1)?.code, 'OVERLOADED')
  for (const name of ['m1', 'm2', 'm3', 'm4']) {
    const member = await world.member(name)
    await world.link(member, peer)
    for (let i = 0; i < 60; i++) forge(member, peer, { payload: request(`r${i}`), metadata: { tier: 1 } })
    await world.settle()
  }
  t.is((await waitingOf(peer)).length, 256)
})

test('bytes that wait are bounded for a peer', async (t) => {
  const { world, owner, peer } = await approvalScene(t)
  for (let i = 0; i < 3; i++) void callText(owner, { wait: false })
  const big = new Uint8Array(9 * 1024 * 1024)
  const ask = (): Promise<Reply> =>
    owner.api().call('message.call', { agent: 'text@peer', capability: 'text.do', input: { big } })
  const first = ask()
  // Two at once would be more than may wait for the channel.
  await world.settle()
  const second = ask()
  await world.settle()
  t.is((await second).error?.code, 'OVERLOADED')
  t.is((await waitingOf(peer)).length, 4)
  for (const { id } of await waitingOf(peer)) await peer.api().call('approvals.deny', { id })
  await world.settle()
  t.is((await first).error?.code, 'POLICY_DENIED')
  const third = ask()
  await world.settle()
  t.is((await waitingOf(peer)).length, 1, 'there is capacity again')
  await peer.api().call('approvals.deny', { id: await firstWaiting(peer) })
  await third
})

test('an item of a swarm whose lease waits for approval keeps its lease; allowed it completes, denied another agent does it', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  const other = echo('text')
  const free = await world.member('free', { agents: [other] })
  await world.link(owner, free)
  const launch = (): Promise<string> =>
    owner.core.swarms.launch({
      goal: 'g',
      capability: 'text.do',
      strategy: 'map',
      items: [
        { item: 'a', input: 1 },
        { item: 'b', input: 2 }
      ]
    })
  const first = await launch()
  await world.pass(1000)
  t.is((await waitingOf(peer)).length, 1)
  await world.pass(20_000, 500)
  t.is(owner.core.swarms.get(first).info().status, 'running', 'far longer than a lease without a heartbeat lasts')
  t.is((await waitingOf(peer)).length, 1)
  await peer.api().call('approvals.allow', { id: await firstWaiting(peer) })
  await world.pass(2000)
  t.is(owner.core.swarms.get(first).info().status, 'completed')
  t.is(agent.tasks.length, 1)
  const second = await launch()
  await world.pass(1000)
  await peer.api().call('approvals.deny', { id: await firstWaiting(peer) })
  await world.pass(3000)
  t.is(owner.core.swarms.get(second).info().status, 'completed')
  t.is(agent.tasks.length, 1)
  t.is(other.tasks.length, 3)
})

test('an item that a person did not allow is not asked of the same agent again, whether denied or left', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  const launch = (strategy: 'each' | 'map'): Promise<string> =>
    owner.core.swarms.launch({
      goal: 'g',
      capability: 'text.do',
      strategy,
      ...(strategy === 'map' ? { items: [{ item: 'a', input: 1 }] } : {}),
      deadlineMs: 900_000
    })
  for (const strategy of ['map', 'each'] as const) {
    const id = await launch(strategy)
    await world.pass(1000)
    await peer.api().call('approvals.deny', { id: await firstWaiting(peer) })
    await world.pass(10_000, 500)
    t.alike(await waitingOf(peer), [], 'nobody is asked again')
    const { status, results } = owner.core.swarms.get(id).results()
    t.alike([status, results[0]?.attempt], ['failed', 1])
    t.is(results[0]?.error?.message, 'refused by peer: a person denied it (policy.yaml:3: ask)')
  }
  const left = await launch('map')
  await world.pass(1000)
  await world.pass(310_000, 500)
  const { status, results } = owner.core.swarms.get(left).results()
  t.alike([status, results[0]?.attempt, results[0]?.error?.code], ['failed', 1, 'APPROVAL_TIMEOUT'])
  t.is(agent.tasks.length, 0)
})

test('a swarm that ends takes back what still waits', async (t) => {
  const { world, owner, peer, agent } = await approvalScene(t)
  const id = await owner.core.swarms.launch({ goal: 'g', capability: 'text.do', strategy: 'each' })
  await world.pass(1000)
  t.is((await waitingOf(peer)).length, 1)
  await owner.core.swarms.cancel(id)
  await world.settle()
  t.alike(await waitingOf(peer), [])
  t.is(agent.tasks.length, 0)
})
