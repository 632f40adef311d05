import test from 'brittle'
import { encodeMessage } from '../../../src/domain/channel/frames.js'
import { chain } from '../../support/chain.js'
import type { FakeNode } from '../../support/fake-node.js'
import { sendFrames } from '../../support/forge.js'
import { actor } from '../../support/membership.js'

/** Control messages of a name that a node has sent to another, over every link they have. */
function sent(from: FakeNode, to: FakeNode, name: string): number {
  const frames = from.links.open.filter((one) => one.peer === to.id).flatMap((one) => one.sent)
  return frames.filter(
    (frame) => frame[0] === 4 && Buffer.from(frame.subarray(2, 2 + (frame[1] ?? 0))).toString() === name
  ).length
}

test('of several neighbours the one that weakens least is asked to carry, then the one nearest', async (t) => {
  const { world, a, b, c } = await chain(t, { terms: { b: { tier: 3 } } })
  const strong = await world.member('strong')
  await world.link(a, strong)
  await world.link(strong, c)
  const found = a.core.routes.find(c.id)
  await world.settle()
  t.is(await found, true)
  t.is(a.core.routes.next(c.id), strong.id)
  t.is(sent(a, b, 'way'), 1)
})

test('searches for the same node are one, and a search in vain is not repeated for a while', async (t) => {
  const { world, a, b, c } = await chain(t)
  world.net.disconnect(b.id, c.id)
  const searches = [1, 2, 3].map(() => a.core.routes.find(c.id))
  await world.settle()
  t.alike(await Promise.all(searches), [false, false, false])
  t.is(sent(a, b, 'way'), 2, 'one neighbour long, then two')
  t.is(await a.core.routes.find(c.id), false)
  t.is(sent(a, b, 'way'), 2)
  await world.link(b, c)
  t.is(await a.core.routes.find(c.id), false, 'it does not know of the new link')
  await world.pass(5000, 1000)
  const again = a.core.routes.find(c.id)
  await world.settle()
  t.is(await again, true)
})

test('a neighbour that does not answer is waited for only so long', async (t) => {
  const { world, a, b, c } = await chain(t)
  for (const link of b.links.open) if (link.peer === a.id) link.isHeld = true
  const found = a.core.routes.find(c.id)
  await world.pass(2000)
  t.is(await found, false)
})

test('a route goes with its neighbour, with its time, and when there is a link', async (t) => {
  const { world, a, b, c } = await chain(t)
  const find = async (): Promise<void> => {
    const found = a.core.routes.find(c.id)
    await world.settle()
    t.is(await found, true)
  }
  await find()
  world.net.disconnect(a.id, b.id)
  t.is(a.core.routes.next(c.id), null)
  await world.link(a, b)
  await find()
  await world.pass(300_000, 100_000)
  t.is(a.core.routes.next(c.id), null)
  await find()
  await world.link(a, c)
  t.is(a.core.routes.next(c.id), null)
})

test('only the answer of an asked neighbour counts, once; strangers and floods of questions get no route', async (t) => {
  const { world, a, b, c } = await chain(t)
  const other = await world.member('other')
  await world.link(a, other)
  const found = a.core.routes.find(actor('owner').id)
  for (const from of [other, b])
    for (const id of ['way_1_a', 'guessed'])
      from.core.peers.send(a.id, { kind: 'control', name: 'way-found', body: { id, further: null } })
  await world.settle()
  t.is(await found, false)
  const answers = sent(b, a, 'way-found')
  for (const to of [actor('stranger').id, a.id])
    a.core.peers.send(b.id, { kind: 'control', name: 'way', body: { id: 'q', to, isFurther: true } })
  for (let i = 0; i < 100; i++)
    sendFrames(
      a,
      b,
      encodeMessage({ kind: 'control', name: 'way', body: { id: `q${i}`, to: c.id, isFurther: false } }, () => 1)
    )
  await world.settle()
  const told = b.links.open
    .filter((one) => one.peer === a.id)
    .flatMap((one) => one.sent.map((frame) => Buffer.from(frame).toString()))
  t.is(sent(b, a, 'way-found') - answers, 102, 'each is answered')
  const yes = told.filter((text) => text.includes('"further":0')).length
  t.ok(yes > 40 && yes <= 50, `${yes} of a flood of 100 got a way`)
})
