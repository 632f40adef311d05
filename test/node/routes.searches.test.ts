import test from 'brittle'
import { echo } from '../support/fake-agents.js'
import { World } from '../support/fake-node.js'
import { forgeControl } from '../support/forge.js'

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
