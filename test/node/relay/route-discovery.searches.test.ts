import test, { type Assert } from 'brittle'
import { echo } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { forgeControl } from '../../support/forge.js'

let questions = 0

/** Asks a node for a way, and has it ask its neighbours. */
function askFor(target: FakeNode, by: FakeNode, at: FakeNode): void {
  forgeControl(by, at, { name: 'way', body: { id: `w${questions++}`, to: target.id, isFurther: true } })
}

/** How often a node has asked another for a way. */
function asked(from: FakeNode, to: FakeNode): number {
  const frames = from.links.open.filter((one) => one.peer === to.id).flatMap((one) => one.sent)
  return frames.filter(
    (frame) => frame[0] === 4 && Buffer.from(frame.subarray(2, 2 + (frame[1] ?? 0))).toString() === 'way'
  ).length
}

async function members(t: Assert, ...names: readonly string[]): Promise<{ world: World; nodes: FakeNode[] }> {
  const world = new World(t)
  const nodes: FakeNode[] = []
  for (const name of names) nodes.push(await world.member(name, { agents: [echo('text')] }))
  return { world, nodes }
}

async function star(t: Assert): Promise<Record<'world', World> & Record<'b' | 'm' | 'x' | 'z', FakeNode>> {
  const { world, nodes } = await members(t, 'b', 'm', 'x', 'z')
  const [b, m, x, z] = nodes
  if (!b || !m || !x || !z) throw new Error('no member')
  await world.link(b, m)
  await world.link(b, x)
  return { world, b, m, x, z }
}

test('a search without a result is not repeated for any asking node, for a while', async (t) => {
  const { world, b, m, x, z } = await star(t)
  const other = await world.member('other')
  await world.link(b, other)
  for (let i = 0; i < 10; i++) {
    for (const one of [m, other]) askFor(z, one, b)
    await world.settle()
  }
  t.is(asked(b, x), 1)
  t.alike([asked(b, m), asked(b, other)], [1, 1], 'the asking nodes had not been asked')
  await world.pass(5000)
  askFor(z, m, b)
  await world.settle()
  t.is(asked(b, x), 2)
})

test('a newcomer is asked, and nodes without a route are not asked again', async (t) => {
  const { world, b, m, x, z } = await star(t)
  const found = b.core.routes.find(z.id)
  await world.settle()
  t.is(await found, false)
  const before = [asked(b, m), asked(b, x)]
  const young = await world.member('young')
  await world.link(young, z)
  await world.link(young, b)
  const again = b.core.routes.find(z.id)
  await world.settle()
  t.is(await again, true)
  t.alike([asked(b, m), asked(b, x)], before)
})

test('searches without a result hide no route: not their own, and not that of a slow neighbour', async (t) => {
  const { world, b, m, x, z } = await star(t)
  await world.link(x, z)
  for (const link of b.links.open) if (link.peer === x.id) link.isHeld = true
  askFor(z, m, b)
  await world.pass(500, 100)
  t.is(b.core.routes.next(z.id), null, 'the search for the other has ended')
  const found = b.core.routes.find(z.id)
  await world.pass(500, 100)
  for (const link of b.links.open) {
    link.isHeld = false
    link.deliver()
  }
  await world.settle()
  t.is(await found, true)
  world.net.disconnect(x.id, z.id)
  b.core.routes.drop(z.id, x.id)
  await world.pass(5000)
  askFor(z, m, b)
  await world.settle()
  await world.link(m, z)
  const through = b.core.routes.find(z.id)
  await world.settle()
  t.is(await through, true, 'the asking node was not asked itself')
})

test('a neighbour that was too slow for one search is asked by the next one of another neighbour', async (t) => {
  const { world, b, m, x, z } = await star(t)
  const other = await world.member('other')
  await world.link(b, other)
  await world.link(x, z)
  for (const link of b.links.open) if (link.peer === x.id) link.isHeld = true
  askFor(z, m, b)
  await world.pass(5000, 500)
  const before = asked(b, x)
  askFor(z, other, b)
  await world.settle()
  t.is(asked(b, x), before + 1)
})

test('many neighbours that ask for all kinds of nodes leave each other one its searches, and this node its answers', async (t) => {
  const { world, b, x } = await star(t)
  const a = await world.member('a')
  const c = await world.member('c', { agents: [echo('text')] })
  await world.link(a, b)
  await world.link(x, c)
  const colluding = await Promise.all(Array.from({ length: 12 }, (_, i) => world.member(`m${i}`)))
  const targets = await Promise.all(Array.from({ length: 60 }, (_, i) => world.member(`t${i}`)))
  for (const one of colluding) await world.link(one, b)
  let turn = 0
  const flood = (): void => {
    for (const one of colluding) for (let i = 0; i < 5; i++) askFor(targets[turn++ % targets.length] ?? b, one, b)
  }
  for (let i = 0; i < 20; i++) {
    flood()
    await world.pass(500, 500)
  }
  const before = asked(b, x)
  const reply = a.api().call('message.call', { agent: 'text@c', capability: 'text.do', input: 1 })
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
  for (let i = 0; i < 20; i++) {
    flood()
    await world.pass(500, 500)
  }
  t.ok(asked(b, x) - before < 10 * 8, 'less often than a neighbour answers')
})

test('a neighbour that asks a lot for ways does not take the searches that are made for others', async (t) => {
  const world = new World(t)
  const [a, b, x, m] = await Promise.all(['a', 'b', 'x', 'm'].map((name) => world.member(name)))
  const c = await world.member('c', { agents: [echo('text')] })
  if (!a || !b || !x || !m) throw new Error('no member')
  const z = await world.member('z') // a member that is not linked to anybody
  await world.link(a, b)
  await world.link(b, x)
  await world.link(x, c)
  await world.link(m, b)
  let n = 0
  const ask = (): void => forgeControl(m, b, { name: 'way', body: { id: `w${n++}`, to: z.id, isFurther: true } })
  for (let i = 0; i < 12; i++) ask()
  await world.settle()
  // a looks for c, two hops away, while m goes on with 10 questions a second.
  const reply = a
    .api()
    .call('message.call', { agent: 'text@c', capability: 'text.do', input: 1 })
    .then(
      (one) => one.error?.code ?? one.outcome,
      (e: { code?: string }) => e.code
    )
  let code: string | undefined
  void reply.then((one) => {
    code = one
  })
  for (let i = 0; i < 60 && code === undefined; i++) {
    ask()
    await world.pass(100, 100)
  }
  t.is(code, 'COMPLETED')
})
