import test from 'brittle'
import type { EnvelopeHeader } from '../../../src/domain/envelope/codec.js'
import type { ReplyHandler } from '../../../src/node/messaging/exchange-table.js'
import type { OutboundDraft } from '../../../src/node/messaging/outbound.js'
import { type OfferedRecruit, SwarmOffers, type SwarmOffersDeps } from '../../../src/node/swarms/offers.js'
import { countingIds } from '../../support/counting-ids.js'
import { ManualClock } from '../../support/manual-clock.js'
import { agentDefinition, capability, echo, FakeAgent } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { actor } from '../../support/membership.js'

const AGENT = `text@${actor('ann').id}`

/** Offers of a swarm over an outbox that only keeps who gets the replies. */
function offersOf(): {
  offers: SwarmOffers
  handlers: ReplyHandler[]
  told: string[]
  recruited: (readonly OfferedRecruit[])[]
} {
  const handlers: ReplyHandler[] = []
  const [told, recruited]: [string[], (readonly OfferedRecruit[])[]] = [[], []]
  const parts = {
    clock: new ManualClock(),
    ids: countingIds(),
    self: actor('owner').id,
    directory: { shownAddress: (agent: string) => agent },
    exchanges: { end: () => {} },
    outbound: {
      send: ({ replies }: OutboundDraft) => {
        if (replies !== undefined) handlers.push(replies.handler)
        return Promise.resolve()
      }
    }
  } as unknown as SwarmOffersDeps
  const offers = new SwarmOffers(parts, {
    request: { goal: 'a goal', capability: 'text.do', strategy: 'map' },
    capabilities: ['text.do'],
    itemCount: 1,
    leftOut: [],
    onRecruited: (recruits) => void recruited.push(recruits),
    onAccepted: ({ agent }) => void told.push(`accepted ${agent}`),
    onLeft: ({ agent, leftOut }) => void told.push(`left ${agent}: ${leftOut.rule}`)
  })
  return { offers, handlers, told, recruited }
}

function answer(handler: ReplyHandler | undefined, type: 'task-accept' | 'task-reject'): void {
  const payload =
    type === 'task-accept'
      ? { proposalId: 'p', acceptedBy: 'text', estimatedCompletionMs: 1, slots: 2 }
      : { proposalId: 'p', rejectionReason: 'no' }
  handler?.({ type } as EnvelopeHeader, payload)
}

test('an agent that was asked twice has one answer: the first counts, on whichever thread it comes', (t) => {
  const { offers, handlers, told, recruited } = offersOf()
  offers.offer([AGENT])
  t.alike(offers.lost(actor('ann').id), [AGENT])
  offers.offer([AGENT])
  t.is(handlers.length, 2)
  answer(handlers[1], 'task-accept')
  t.alike(recruited, [[{ agent: AGENT, slots: 2 }]])
  answer(handlers[0], 'task-reject')
  answer(handlers[1], 'task-accept')
  t.alike(told, [], 'a late word neither puts it out nor takes it twice')
  t.is(offers.leftOut.length, 0)
})

test('an agent whose node refuses the offer is left out with code and rule of that node, under the name of the node', async (t) => {
  const capabilities = [capability('x.do')]
  const world = new World(t)
  const owner = await world.owner()
  const agents = [new FakeAgent(agentDefinition('closed', { capabilities }))]
  const closed = await world.member('closed', {
    agents,
    policy: 'rules:\n  - type: task-proposal\n    decision: deny\n'
  })
  const open = await world.member('open', { agents: [echo('open', { capabilities })] })
  await world.link(owner, closed, open)
  const left = { agent: 'closed@closed', rule: 'policy.yaml:2: deny', code: 'POLICY_DENIED' }
  for (const strategy of ['each', 'map'] as const) {
    const items = strategy === 'map' ? { items: [{ item: 'a', input: 1 }] } : {}
    const id = await owner.core.swarms.launch({ goal: 'g', capability: 'x.do', strategy, ...items })
    await world.pass(2000)
    const { past } = owner.core.swarms.get(id).follow(() => {})
    t.alike(
      past.filter(({ type }) => type === 'left-out'),
      [{ type: 'left-out', ...left }]
    )
    const { leftOut, status } = owner.core.swarms.get(id).info()
    t.alike([leftOut, status], [[left], strategy === 'map' ? 'completed' : 'partial'])
    const failed = owner.core.swarms
      .get(id)
      .results()
      .results.filter((one) => one.status === 'failed')
    t.alike(
      failed.map(({ item, error }) => [item, error?.code, error?.retryable, error?.message]),
      strategy === 'map'
        ? []
        : [['closed@closed', 'POLICY_DENIED', false, 'closed@closed does not take part: policy.yaml:2: deny']]
    )
  }
})
