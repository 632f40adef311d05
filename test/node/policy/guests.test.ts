import { ManualClock } from '../../support/manual-clock.js'
import test, { type Assert } from 'brittle'
import { FIRST_RULES } from '../../../src/adapters/storage/policy/policy-file.js'
import { memberPrincipal } from '../../../src/node/gateway/resolve-agent.js'
import { echo, type FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { failsWith } from '../../support/fails.js'
import { gatewayOf } from '../../support/gateway.js'
import { waitingOf } from '../../support/approval-scene.js'

interface Scene {
  readonly world: World
  /** Has the first rules and the agent `text`, whose capability declares no side effect. */
  readonly owner: FakeNode
  readonly agent: FakeAgent
  readonly guest: FakeNode
  /** A machine of the owner's person. */
  readonly second: FakeNode
}

async function sceneOf(t: Assert): Promise<Scene> {
  const world = new World(t)
  const agent = echo('text')
  const owner = await world.owner({ agents: [agent], policy: FIRST_RULES })
  const guest = await world.member('guest', { agents: [echo('helper')] })
  const second = await world.member('second', { terms: { trust: 'mine' } })
  return { world, owner, agent, guest, second }
}

const CALL = { agent: 'text@owner', capability: 'text.do', input: { n: 1 }, wait: false } as const

test('work of a guest waits for the owner by any path: as its operator, a weaker caller, a message without a capability, a broadcast', async (t) => {
  const { world, owner, agent, guest } = await sceneOf(t)
  await world.link(owner, guest)
  const [strong, weak] = [guest.api(), guest.api({ tier: 2 })]
  await strong.call('message.call', CALL)
  await weak.call('message.call', { ...CALL, justification: 'the report is due' })
  await strong.call('message.send', { agent: 'text@owner', text: 'x', wait: false })
  await strong.call('message.send', { agent: '*', text: 'all', all: true, wait: false })
  await world.settle()
  t.is(agent.tasks.length, 0)
  t.is((await waitingOf(owner)).length, 4)
  t.ok((await waitingOf(owner)).every(({ rule }) => rule.includes('guests-ask')))
})

test('a guest that calls over A2A is refused, as nobody is asked there, and so is each of its agents', async (t) => {
  const { world, owner, agent, guest } = await sceneOf(t)
  await world.link(owner, guest)
  const gateway = await gatewayOf(t, owner)
  for (const claims of [{}, { tier: 3 as const }, { agent: 'helper' }])
    await failsWith(t, 'POLICY_DENIED', () =>
      gateway.send(memberPrincipal({ directory: owner.core.directory, clock: new ManualClock() }, guest.id, claims), {
        skill: null,
        mayAnswer: false,
        wait: false,
        agent: 'text',
        message: {
          messageId: JSON.stringify(claims),
          role: 'user',
          parts: [{ text: 'x' }],
          metadata: { justification: 'the report is due' }
        }
      })
    )
  await world.settle()
  t.is(agent.tasks.length, 0)
})

test('a machine of the person that passes the work of a guest on lends it nothing, and works itself at once', async (t) => {
  const { world, owner, agent, guest, second } = await sceneOf(t)
  await world.link(guest, second)
  await world.link(second, owner)
  await world.settle()
  await guest.api().call('message.call', CALL)
  await world.settle()
  t.alike([agent.tasks.length, (await waitingOf(owner)).length], [0, 1])
  await second.api().call('message.call', CALL)
  await world.settle()
  t.is(agent.tasks.length, 1)
  await owner.api().call('peers.trust', { peer: 'guest', trust: 'mine' })
  await guest.api().call('message.call', { ...CALL, input: { n: 2 } })
  await world.settle()
  t.is(agent.tasks.length, 2, 'after a word of the owner')
})
