import test, { type Assert } from 'brittle'
import { decodeControl } from '../../../src/domain/channel/control.js'
import { FRESH_READER, readFrame } from '../../../src/domain/channel/frames.js'
import { echo } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { actor } from '../../support/membership.js'

/** Control messages that a node sent so far, by name. */
function sent(node: FakeNode, name: string): number {
  let count = 0
  for (const link of node.links.open)
    for (const frame of link.sent) {
      const { message } = readFrame(FRESH_READER, frame)
      if (message?.kind === 'control' && decodeControl(message.name, message.body).ok && message.name === name) count++
    }
  return count
}

/** What a node shows of another. */
async function row(node: FakeNode, name: string) {
  const { peers } = await node.api().call('peers.list', { all: true })
  return peers.find((one) => one.name === name)
}

/** `a` has a link to `b` only, and no place for `c`, to which `b` has a link. */
async function beyond(t: Assert) {
  const world = new World(t)
  const a = await world.member('a')
  const b = await world.member('b')
  const c = await world.member('c', { agents: [echo('text')] })
  a.links.withoutPlace = [c.id]
  await world.link(a, b)
  await world.link(b, c)
  return { world, a, b, c }
}

test('where all members have places nobody is asked for anybody in an idle minute', async (t) => {
  const world = new World(t)
  const nodes = [await world.member('a'), await world.member('b'), await world.member('c')]
  await world.link(...nodes)
  const before = nodes.map((one) => one.links.open.map((link) => link.sent.length))
  await world.pass(60_000)
  t.alike(
    nodes.map((one) => one.links.open.map((link) => link.sent.length)),
    before,
    'not one frame'
  )
})

test('a member beyond the places is online while a neighbour has a link to it, and offline a minute after', async (t) => {
  const { world, a, b, c } = await beyond(t)
  t.is((await row(a, 'c'))?.status, 'offline', 'no node has reported it yet')
  await world.pass(5000)
  t.alike(
    [(await row(a, 'c'))?.status, (await row(a, 'c'))?.path, (await row(a, 'c'))?.rttMs],
    ['online', 'relayed', null]
  )
  t.is((await a.api().call('node.status', {})).mesh.online, 3)
  t.is((await a.api().call('agents.list', {})).agents.find((one) => one.address === 'text@c')?.status, 'ready')
  await world.pass(120_000)
  t.is((await row(a, 'c'))?.status, 'online')
  world.net.disconnect(b.id, c.id)
  t.is((await row(b, 'c'))?.status, 'offline', 'a lost link is offline at once')
  await world.pass(66_000)
  t.alike([(await row(a, 'c'))?.status, (await row(a, 'c'))?.path], ['offline', null])
  t.is((await a.api().call('node.status', {})).mesh.online, 2)
})

test('a probe is one question to some neighbours, twice a minute, however many members it is about', async (t) => {
  const { world, a, c } = await beyond(t)
  await world.pass(5000)
  const before = sent(a, 'linked')
  t.is(before, 1)
  a.links.withoutPlace = [
    c.id,
    ...(await Promise.all(['d', 'e', 'f'].map((name) => world.member(name)))).map((one) => one.id)
  ]
  await world.pass(5000)
  t.is(sent(a, 'linked') - before, 1, 'new ones are asked for soon')
  await world.pass(300_000)
  t.is(sent(a, 'linked') - before, 11)
})

test('the first eight neighbours are asked, others only for those whom these do not know', async (t) => {
  const world = new World(t)
  const a = await world.member('a')
  const c = await world.member('c')
  for (let at = 0; at < 20; at++) {
    const one = await world.member(`n${at}`)
    world.net.connect(a.id, one.id)
    if (at === 3) world.net.connect(one.id, c.id)
  }
  a.links.withoutPlace = [c.id]
  await world.pass(5000)
  t.is(sent(a, 'linked'), 8)
  t.is((await row(a, 'c'))?.status, 'online')
})

test('whom no neighbour knows is dialled, two with each probe and not the same ones first again', async (t) => {
  const { world, a } = await beyond(t)
  const gone = await Promise.all(['d', 'e', 'f', 'g', 'h'].map((name) => world.member(name)))
  a.links.withoutPlace = gone.map((one) => one.id)
  await world.pass(5000)
  t.is(a.links.dialled.length, 2)
  await world.pass(60_000)
  t.is(a.links.dialled.length, 6)
  t.is(new Set(a.links.dialled).size, 5, 'each had its turn')
  const [last] = gone.slice(-1) as [FakeNode]
  a.links.reachable.add(last.id)
  await world.pass(90_000)
  t.is((await row(a, 'h'))?.path, 'local', 'one that was cut off is linked')
})

test('a link closed for another leaves its peer online, a lost one does not', async (t) => {
  const world = new World(t)
  const [a, b, c] = [await world.member('a'), await world.member('b'), await world.member('c')]
  await world.link(a, b, c)
  const [rested] = a.links.open.filter((one) => one.peer === b.id)
  if (rested !== undefined) world.net.rest(rested)
  await world.settle()
  t.alike([(await row(a, 'b'))?.status, (await row(a, 'b'))?.path], ['online', 'relayed'])
  t.alike([(await row(b, 'a'))?.status, (await row(b, 'a'))?.path], ['online', 'relayed'])
  world.net.disconnect(a.id, c.id)
  t.is((await row(a, 'c'))?.status, 'offline')
  await world.link(a, b)
  world.net.disconnect(a.id, b.id)
  t.is((await row(a, 'b'))?.status, 'offline', 'the earlier proof counts no more')
})

test('a removed member is out at once, also without a link', async (t) => {
  const { world, a, c } = await beyond(t)
  await world.pass(5000)
  t.is((await row(a, 'c'))?.status, 'online')
  world.log.model.revoke(actor('owner'), c.actor)
  world.log.changed()
  t.alike([(await row(a, 'c'))?.status, (await row(a, 'c'))?.path], ['revoked', null])
  t.is((await a.api().call('node.status', {})).mesh.online, 2)
})

test('a neighbour that asks too often is not answered, and an answer that nobody asked for counts for nothing', async (t) => {
  const { world, a, b, c } = await beyond(t)
  for (let at = 0; at < 30; at++) b.core.peers.send(a.id, { kind: 'control', name: 'linked', body: { id: `q${at}` } })
  b.core.peers.send(a.id, { kind: 'control', name: 'linked-to', body: { id: 'q', nodes: [c.id] } })
  await world.settle()
  t.is(sent(a, 'linked-to'), 10)
  t.is((await row(a, 'c'))?.status, 'offline')
})
