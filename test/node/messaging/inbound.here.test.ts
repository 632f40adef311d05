import test, { type Assert } from 'brittle'
import type { A2ALogEvent } from '../../../src/node/observe/observability.js'
import type { OutboundDraft } from '../../../src/node/messaging/outbound.js'
import { ASK, waitingOf } from '../../support/approval-scene.js'
import { isOpen } from '../../support/exchanges.js'
import { failsWith } from '../../support/fails.js'
import { echo, type FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'

async function scene(t: Assert, policy = ''): Promise<{ world: World; here: FakeNode; agent: FakeAgent }> {
  const world = new World(t)
  const agent = echo('text')
  return { world, agent, here: await world.member('here', { agents: [agent, echo('other')], policy }) }
}

/** What was told of the decisions on requests. */
function decisions({ core }: FakeNode): (boolean | undefined)[] {
  const isDecision = ({ type, messageType }: A2ALogEvent): boolean =>
    type === 'routing-decision' && messageType === 'request'
  return core.observability
    .getRecentEvents()
    .filter((one) => isDecision(one))
    .map((one) => one.success)
}

function ask(here: FakeNode): Promise<{ error: { code: string } | null; outcome: string }> {
  return here.api().call('message.call', { agent: 'text', capability: 'text.do', input: 1 })
}

/** A request from one agent of the node to another. */
function draft(here: FakeNode): OutboundDraft {
  const of = (agentId: string): OutboundDraft['sender'] => ({ agentId, nodeId: here.id })
  return {
    sender: of('other'),
    recipient: of('text'),
    type: 'request',
    payload: {},
    correlationId: 'thr',
    replies: { ttlMs: 1000, handler: () => {} }
  }
}

test('a call within the node that a person denies is one decision and one line', async (t) => {
  const { world, here, agent } = await scene(t, ASK)
  const reply = ask(here)
  await world.settle()
  t.alike(decisions(here), [], 'nobody has decided yet')
  await here.api().call('approvals.deny', { id: (await waitingOf(here))[0]?.id ?? '' })
  await world.settle()
  t.is((await reply).error?.code, 'POLICY_DENIED')
  t.is(agent.tasks.length, 0)
  t.alike(decisions(here), [false])
  t.is(here.counted('messages_refused', 'POLICY_DENIED'), 1)
  t.alike(
    here.audit.events.map(({ kind, code }) => [kind, code]),
    [['approval', 'POLICY_DENIED']]
  )
})

test('one that a person allows is one decision as well, and one that needs nobody', async (t) => {
  const { world, here, agent } = await scene(t, ASK)
  const reply = ask(here)
  await world.settle()
  await here.api().call('approvals.allow', { id: (await waitingOf(here))[0]?.id ?? '' })
  await world.settle()
  t.is((await reply).outcome, 'COMPLETED')
  t.alike([agent.tasks.length, decisions(here)], [1, [true]])
  const free = await scene(t)
  await Promise.all([ask(free.here), free.world.settle()])
  t.alike(decisions(free.here), [true])
})

test('a message refused for lack of space on its way in is one decision and one line', async (t) => {
  const { world, here } = await scene(t)
  here.core.exchanges.letIn = () => false
  const sent = here.core.outbound.send(draft(here))
  await world.settle()
  await sent
  t.alike(decisions(here), [false])
  t.alike(here.audit.rules(), ['exchanges: bounded'])
})

test('a message whose sender disappears meanwhile is refused to its sender, on record once', async (t) => {
  const { world, here, agent } = await scene(t)
  const { exchanges: conversations, outbound: outbox, registry } = here.core
  const sentOut = conversations.sentOut.bind(conversations)
  // Once it is on its way, and before it is in.
  conversations.sentOut = (...exchange) => {
    registry.unregister(`other@${here.id}`)
    return sentOut(...exchange)
  }
  await failsWith(t, 'FORBIDDEN', () => outbox.send(draft(here)))
  await world.settle()
  t.is(agent.tasks.length, 0)
  t.alike(decisions(here), [false])
  t.alike(here.audit.rules(), ['sender: a signed card'])
  t.is(here.counted('messages_refused', 'FORBIDDEN'), 1)
  t.absent(isOpen(here, { peer: here.id, correlationId: 'thr', own: 'other', other: 'text' }))
})
