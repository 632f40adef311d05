import test from 'brittle'
import type { EnvelopeHeader } from '../../src/domain/envelope/codec.js'
import type { ReplyHandler } from '../../src/node/conversations.js'
import type { Draft } from '../../src/node/outbox.js'
import { type Recruit, SwarmOffers, type SwarmOffersParts } from '../../src/node/swarm-offers.js'
import { countingIds } from '../support/counting-ids.js'
import { ManualClock } from '../support/manual-clock.js'
import { actor } from '../support/membership.js'

const AGENT = `text@${actor('ann').id}`

/** Offers of a swarm over an outbox that only keeps who gets the replies. */
function offersOf(): { offers: SwarmOffers; handlers: ReplyHandler[]; told: string[]; recruited: (readonly Recruit[])[] } {
  const handlers: ReplyHandler[] = []
  const [told, recruited]: [string[], (readonly Recruit[])[]] = [[], []]
  const parts = {
    clock: new ManualClock(),
    ids: countingIds(),
    self: actor('owner').id,
    directory: { shownAddress: (agent: string) => agent },
    conversations: { end: () => {} },
    outbox: {
      send: ({ replies }: Draft) => {
        if (replies !== undefined) handlers.push(replies.handler)
        return Promise.resolve()
      }
    }
  } as unknown as SwarmOffersParts
  const offers = new SwarmOffers(parts, {
    request: { goal: 'a goal', capability: 'text.do', strategy: 'map' },
    capabilities: ['text.do'],
    itemCount: 1,
    leftOut: [],
    onRecruited: (recruits) => void recruited.push(recruits),
    onAccepted: ({ agent }) => void told.push(`accepted ${agent}`),
    onLeft: (agent, reason) => void told.push(`left ${agent}: ${reason}`)
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
