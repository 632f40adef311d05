import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { CONFLICT_SANDBOX, effectiveParty } from '../../../src/domain/routing/effective.js'
import { TIERS } from '../../../src/domain/routing/tier.js'
import { holds } from '../../support/holds.js'

const arbTier = fc.constantFrom(...TIERS)
const arbSandbox = fc.constantFrom(null, null, 'ci', 'lab')
const arbPower = fc.record({ maxTier: arbTier, sandboxId: arbSandbox })
const arbCard = fc.option(fc.record({ tier: arbTier, sandboxId: arbSandbox }))

test('a party is as weak as the weakest of certificate, card and hops', async (t) => {
  await holds(
    t,
    fc.property(arbPower, arbCard, fc.array(arbPower, { maxLength: 8 }), (certificate, card, hops) => {
      const party = effectiveParty({ certificate, card, hops })
      const tiers = [certificate.maxTier, ...(card === null ? [] : [card.tier]), ...hops.map((hop) => hop.maxTier)]
      assert.equal(party.tier, Math.max(...tiers))
      const sandboxes = new Set(
        [certificate.sandboxId, card?.sandboxId ?? null, ...hops.map((hop) => hop.sandboxId)].filter(
          (one) => one !== null
        )
      )
      const expected = sandboxes.size > 1 ? CONFLICT_SANDBOX : ([...sandboxes][0] ?? null)
      assert.equal(party.sandboxId, expected)
    }),
    500
  )
})
