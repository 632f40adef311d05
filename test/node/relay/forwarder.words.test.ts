import test from 'brittle'
import { relayedId } from '../../../src/domain/channel/relayed.js'
import { chain, put, relayed } from '../../support/chain.js'
import type { FakeNode } from '../../support/fake-node.js'
import { forgeControl } from '../../support/forge.js'

/** How many frames a node has sent to another. */
function sentTo(from: FakeNode, to: FakeNode): number {
  return from.links.open.find((one) => one.peer === to.id)?.sent.length ?? 0
}

test('reports about undelivered messages that a peer has relayed leave capacity for the messages of the node itself', async (t) => {
  const { world, a, b, c } = await chain(t)
  const before = sentTo(b, c)
  for (let i = 0; i < 4500; i++) {
    forgeControl(a, b, {
      name: 'undelivered',
      body: { origin: c.id, to: a.id, id: `x${i}`, code: 'FORBIDDEN', rule: 'r'.repeat(256), left: 8 }
    })
    if (i % 500 === 0) await world.settle()
  }
  await world.settle()
  t.is(sentTo(b, c), before, 'c sent none of these')
  t.is(b.counted('errors', 'undelivered'), 4500)
  const reply = b.api().call('message.call', { agent: 'text@c', capability: 'text.do', input: 1 })
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
})

test('such a word is relayed once, and only from whom the message was passed to', async (t) => {
  const { world, a, b, c } = await chain(t)
  const m = await world.member('m')
  await world.link(m, b)
  const frame = relayed(world, a, { to: c, firstHop: b, hops: [] })
  put(a, b, frame)
  await world.settle()
  const before = sentTo(b, a)
  const say = async (by: FakeNode, changes: object = {}): Promise<number> => {
    const body = { origin: a.id, to: c.id, id: relayedId(frame), code: 'PEER_OFFLINE', rule: 'no', left: 8, ...changes }
    forgeControl(by, b, { name: 'undelivered', body })
    await world.settle()
    return sentTo(b, a) - before
  }
  t.is(await say(m), 0, 'it did not get the message')
  t.is(await say(c, { to: m.id }), 0, 'it was not for that node')
  t.is(await say(c), 1)
  t.is(await say(c), 1, 'once')
})
