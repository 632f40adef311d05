import test from 'brittle'
import { carried, chain, put } from '../support/chain.js'
import { agentDefinition, echo, FakeAgent } from '../support/fake-agents.js'

const MINUTE_MS = 60_000

test('what a node has asked in vain gives way to what it asks later; what it still waits for does not', async (t) => {
  const agent = new FakeAgent(agentDefinition('text', { concurrency: 2000 }))
  const { world, a, b, c } = await chain(t, { agent, settings: { c: { maxInFlightPerPeer: 2000 } } })
  const d = await world.member('d', { agents: [echo('text')] })
  await world.link(b, d)
  for (let i = 0; i < 1023; i++) {
    if (i % 50 === 49) await world.pass(1000, 1000)
    put(a, b, carried(world, a, { to: c, firstHop: b, hops: [] }))
  }
  await world.pass(1000)
  const slow = a.api().call('message.call', { agent: 'text@c', capability: 'text.do', input: 'slow', timeoutMs: 100 * MINUTE_MS })
  await world.settle()
  const ask = async (input: number): Promise<string> => {
    const reply = a.api().call('message.call', { agent: 'text@d', capability: 'text.do', input })
    await world.settle()
    const { error, outcome } = await reply
    return error?.code ?? outcome
  }
  t.is(await ask(1), 'OVERLOADED', 'any of them may be answered yet')
  t.ok(b.core.passing.isOpenWith(c.id))
  await world.pass(10 * MINUTE_MS, MINUTE_MS)
  t.absent(b.core.passing.isOpenWith(c.id), 'so long without a word they keep no link')
  for (let i = 0; i < 50; i++) t.is(await ask(i), 'COMPLETED')
  await world.pass(60 * MINUTE_MS, MINUTE_MS)
  while (agent.open.length > 0) agent.finish('done')
  await world.pass(MINUTE_MS, 1000)
  t.is((await slow).outcome, 'COMPLETED', 'an answer may take as long as its work')
})

test('progress keeps the exchange of long work in use', async (t) => {
  const agent = new FakeAgent(agentDefinition('text'))
  const { world, a, b, c } = await chain(t, { agent })
  const reply = a.api().call('message.call', { agent: 'text@c', capability: 'text.do', input: 1, timeoutMs: 100 * MINUTE_MS })
  await world.settle()
  for (let i = 0; i < 4; i++) {
    await world.pass(4 * MINUTE_MS, MINUTE_MS)
    for (let n = 0; n < 2; n++) {
      agent.open[0]?.run.progress({ step: i })
      await world.settle()
    }
    t.ok(b.core.passing.isOpenWith(c.id))
  }
  agent.finish()
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
})
