import test, { type Assert } from 'brittle'
import { PeerLinks } from '../../src/adapters/mesh/links/links.js'
import { MESSAGE_TYPES, OPENING_TYPES, type A2AEnvelope, type MessageType } from '../../src/domain/envelope/envelope.js'
import { TIERS, type Tier, weakest } from '../../src/domain/routing/tier.js'
import { eventually } from '../support/agents/eventually.js'
import { scene, type Scene } from '../support/hostile.js'

/** The table of the specification, in words of its own. */
const MAY_OPEN: Readonly<Record<Tier, readonly Tier[]>> = { 0: [0, 1, 2, 3], 1: [0, 1], 2: [0, 1, 2], 3: [0, 1, 2, 3] }
/** Messages whose decisions are looked at together: the node keeps its newest thousand events. */
const BATCH = 160

/** Every type, and those that open once more with a justification. */
const KINDS: readonly (readonly [MessageType, boolean])[] = [
  ...MESSAGE_TYPES.map((type) => [type, false] as const),
  ...[...OPENING_TYPES].map((type) => [type, true] as const)
]

interface Case {
  readonly certified: Tier
  readonly card: Tier
  readonly claimed: Tier
  readonly target: Tier
  readonly type: MessageType
  readonly isJustified: boolean
}

/** May it pass, without an exchange that it answers? */
function passes({ certified, card, claimed, target, type, isJustified }: Case): boolean {
  const isKnown = card >= certified
  // The weaker one of card and claim counts. A stronger claim is no forgery so soon after a change of the certificate.
  const counted = weakest(claimed, card)
  const needsJustification = counted >= 2 && target <= 1 && !isJustified
  return isKnown && OPENING_TYPES.has(type) && MAY_OPEN[counted].includes(target) && !needsJustification
}

/** Sends a message for each case; what the victim decided, by message id. */
async function decide({ eve, victim }: Scene, cases: readonly Case[]): Promise<Map<string, boolean>> {
  const decisions = new Map<string, boolean>()
  const sent = cases.map(({ card, claimed, target, type, isJustified }): Partial<A2AEnvelope> => {
    const { id } = eve.envelope()
    const ends = { sender: `card${card}@${eve.member.id}`, recipient: `target${target}@${victim.id}` }
    return {
      id,
      ...ends,
      type,
      correlationId: `${id}_thread`,
      payload: { hello: 1 },
      metadata: { tier: claimed, ...(isJustified ? { justification: 'ticket 42' } : {}) }
    }
  })
  for (const one of sent) await eve.send(one)
  await eventually(() => {
    for (const { type, envelopeId, success } of victim.node.observability.getRecentEvents())
      if (type === 'routing-decision' && envelopeId !== undefined) decisions.set(envelopeId, success === true)
    return sent.every(({ id }) => decisions.has(id ?? ''))
  })
  return new Map(cases.map((_, place) => [String(place), decisions.get(sent[place]?.id ?? '') === true]))
}

test('claimed, card, certified and target tier, type, and with a justification: the whole matrix through two real nodes', {
  timeout: 120_000
}, async (t: Assert) => {
  const { strike } = PeerLinks.prototype
  // Who forges as often as this test does is cut off, which other tests show.
  PeerLinks.prototype.strike = () => {}
  t.teardown(() => {
    PeerLinks.prototype.strike = strike
  })
  const at = await scene(t)
  const { eve, victim } = at
  for (const tier of TIERS) await victim.node.attach({ id: `target${tier}`, tier, onMessage: () => {} })
  let [decided, passed] = [0, 0]
  const wrong: Case[] = []
  // From the weakest certificate up: a card that was beyond it is told once the certificate allows it.
  for (const certified of TIERS.toReversed()) {
    await victim.api.call('peers.tier', { peer: 'eve', tier: certified })
    await eve.cards(...TIERS.map((tier) => eve.card(`card${tier}`, { tier, revision: 10 - certified })))
    const cases = TIERS.flatMap((card) =>
      TIERS.flatMap((claimed) =>
        TIERS.flatMap((target) =>
          KINDS.map(([type, isJustified]) => ({ certified, card, claimed, target, type, isJustified }))
        )
      )
    )
    for (let from = 0; from < cases.length; from += BATCH) {
      const batch = cases.slice(from, from + BATCH)
      const results = await decide(at, batch)
      for (const [place, one] of batch.entries()) {
        const isPassed = results.get(String(place)) === true
        decided++
        if (isPassed) passed++
        if (isPassed !== passes(one)) wrong.push(one)
      }
    }
  }
  t.alike(wrong.slice(0, 5), [])
  t.is(decided, 4 ** 4 * KINDS.length)
  t.comment(`${passed} of ${decided} passed`)
  t.ok(passed > 100 && passed < decided / 2)
})
