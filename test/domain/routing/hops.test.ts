import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { effectiveParty } from '../../../src/domain/routing/effective.js'
import { chooseRoute, pathFault, weakened, type RouteOffer } from '../../../src/domain/routing/hops.js'
import { TIERS } from '../../../src/domain/routing/tier.js'
import { holds } from '../../support/holds.js'

const arbNode = fc.constantFrom('a', 'b', 'c', 'd', 'e')
const arbPower = fc.record({ maxTier: fc.constantFrom(...TIERS), sandboxId: fc.constantFrom(null, 'x', 'y') })
const arbOffer = fc.record({ via: arbNode, further: fc.nat(7), power: arbPower })

test('a way is sound if and only if nobody stands on it twice and its last node brought the message', async (t) => {
  const property = fc.property(
    arbNode,
    arbNode,
    fc.array(arbNode, { maxLength: 4 }),
    arbNode,
    arbNode,
    (origin, target, hops, peer, self) => {
      const isSound = pathFault({ origin, target, hops, peer, self }) === null
      // One line of nodes: whom it is from, whom it passed, who reads it, whom it is for (who may be the reader).
      const line = [origin, ...hops, self, ...(target === self ? [] : [target])]
      const isBrought = [origin, ...hops].at(-1) === peer
      assert.equal(isSound, new Set(line).size === line.length && isBrought)
    }
  )
  await holds(t, property, 2000)
})

test('no node on a way makes a message more powerful, and their order does not count', async (t) => {
  const property = fc.property(
    arbPower,
    fc.array(arbPower, { maxLength: 8 }),
    arbPower,
    ({ maxTier: tier, sandboxId }, hops, another) => {
      const party = { address: 'a@n', tier, sandboxId }
      const weaker = weakened(party, hops)
      assert.equal(weaker.tier, Math.max(tier, ...hops.map((hop) => hop.maxTier)))
      assert.ok(weakened(party, [...hops, another]).tier >= weaker.tier)
      assert.deepEqual(weakened(party, hops.toReversed()), weaker)
      assert.equal(weaker.address, 'a@n')
      assert.deepEqual(weakened(weakened(party, hops), [another]), weakened(party, [...hops, another]))
    }
  )
  await holds(t, property, 500)
  const party = { tier: 1, sandboxId: null } as const
  t.is(weakened(party, []), party)
})

test('the way that weakens least is taken, of those the shortest, always the same', async (t) => {
  const property = fc.property(arbPower, fc.uniqueArray(arbOffer, { selector: ({ via }) => via }), (own, offers) => {
    const best = chooseRoute(own, offers)
    assert.equal(best === null, offers.length === 0)
    if (best === null) return
    const after = ({ power }: RouteOffer) => effectiveParty({ certificate: own, card: null, hops: [power] })
    const stays = (offer: RouteOffer): boolean => after(offer).sandboxId === own.sandboxId
    for (const offer of offers) {
      if (stays(offer) !== stays(best)) assert.ok(stays(best), 'in its own sandbox rather than in another')
      else if (stays(best)) {
        assert.ok(after(best).tier <= after(offer).tier)
        if (after(best).tier === after(offer).tier) assert.ok(best.further <= offer.further)
      }
    }
    assert.deepEqual(chooseRoute(own, offers.toReversed()), best)
  })
  await holds(t, property, 1000)
})
