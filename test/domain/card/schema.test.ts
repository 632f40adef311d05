import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import {
  CARD_MAX_BYTES,
  CARD_MAX_LABELS,
  cardBodyOf,
  checkSignedCard,
  validateCard
} from '../../../src/domain/card/schema.js'
import { seal } from '../../../src/domain/membership/signing.js'
import { weakest } from '../../../src/domain/routing/tier.js'
import { arbAgentCard } from '../../../src/testing.js'
import { actor, cardBody, certificateBody, signedCard, verify } from '../../support/membership.js'
import { holds } from '../../support/holds.js'

const ann = actor('ann')
const eve = actor('eve')
const certificate = certificateBody({ issuer: actor('owner'), node: ann, maxTier: 1 })
const capability = { id: 'text.stats', name: 'Stats', description: '', inputSchema: {}, outputSchema: true }

const faults = (value: unknown) => {
  const checked = validateCard(value)
  return checked.ok ? [] : checked.faults
}
const refusal = (signed: unknown, trust = certificate) => {
  const checked = checkSignedCard(signed, { certificate: trust, verify })
  return checked.ok ? null : checked.reason
}

test('a valid card passes, as an AgentCard and as its signed body', (t: Assert) => {
  fc.assert(
    fc.property(arbAgentCard(), (card) => {
      const whole = validateCard(card)
      const body = validateCard(cardBodyOf(card))
      return (
        whole.ok &&
        body.ok &&
        JSON.stringify(whole.card) === JSON.stringify(cardBodyOf(card)) &&
        !('origin' in whole.card)
      )
    }),
    { numRuns: 200 }
  )
  t.alike(faults(cardBody('host', { capabilities: [capability] })), [])
})

test('every missing field is named, and so is every incorrect one', (t: Assert) => {
  t.alike(
    [...faults({})].sort(),
    ['capabilities', 'description', 'endpoints', 'id', 'name', 'protocols', 'revision', 'tier', 'version'].map(
      (field) => `${field}: missing`
    )
  )
  const { inputSchema: _, ...bare } = capability
  t.alike(faults(cardBody('host', { capabilities: [bare as typeof capability] })), [
    'capabilities.0.inputSchema: missing'
  ])
  const wrong: [object, string][] = [
    [{ id: 'Host' }, 'id'],
    [{ id: 'a@b' }, 'id'],
    [{ id: '__proto__' }, 'id'],
    [{ id: 'x'.repeat(65) }, 'id'],
    [{ name: 'a\u001b[31m' }, 'name'],
    [{ version: '1' }, 'version'],
    [{ tier: 4 }, 'tier'],
    [{ tier: 'L1' }, 'tier'],
    [{ revision: -1 }, 'revision'],
    [{ revision: 0.5 }, 'revision'],
    [{ sandboxId: 'a b' }, 'sandboxId'],
    [{ labels: ['a b'] }, 'labels.0'],
    [{ labels: [] }, 'labels'],
    [{ labels: ['gpu', 'gpu'] }, 'labels'],
    [{ labels: [...Array(CARD_MAX_LABELS + 1).keys()].map(String) }, 'labels'],
    [{ labels: ['x'.repeat(65)] }, 'labels.0'],
    [{ endpoints: [{ transport: 'pigeon' }] }, 'endpoints.0.transport'],
    [{ capabilities: [capability, capability] }, 'capabilities'],
    [{ capabilities: [{ ...capability, id: 'a b' }] }, 'capabilities.0.id'],
    [{ capabilities: [{ ...capability, inputSchema: 5 }] }, 'capabilities.0.inputSchema'],
    [{ capabilities: [{ ...capability, sideEffect: 'boom' }] }, 'capabilities.0.sideEffect'],
    [{ protocols: 'a2a/1.0' }, 'protocols'],
    [{ lastSeenAt: 'now' }, 'lastSeenAt'],
    [{ extra: 1 }, 'card']
  ]
  for (const [change, field] of wrong) {
    const found = faults({ ...cardBody('host'), ...change })
    t.is(found.length, 1, JSON.stringify(change))
    t.is(found[0]?.split(':')[0], field, found[0])
  }
})

test('a card is bounded in bytes, depth and keys', (t: Assert) => {
  const deep = (levels: number): unknown => (levels === 0 ? {} : { x: deep(levels - 1) })
  const withSchema = (inputSchema: unknown) => cardBody('host', { capabilities: [{ ...capability, inputSchema }] })
  t.is(faults(withSchema(deep(10))).length, 0)
  t.is(faults(withSchema(deep(30))).length, 1)
  t.is(faults(withSchema(Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`k${i}`, 1])))).length, 1)
  t.alike(faults(withSchema({ title: 'x'.repeat(CARD_MAX_BYTES - 100) })), [
    `card: larger than ${CARD_MAX_BYTES} bytes`
  ])
  t.alike(faults(JSON.parse('{"__proto__": 1}')), ['card: the key __proto__ is not allowed'])
  t.alike(faults(withSchema({ minimum: Number.POSITIVE_INFINITY })), ['card: a number that is not finite'])
})

test('anything at all gets an answer', async (t: Assert) => {
  await holds(
    t,
    fc.property(fc.anything(), fc.anything(), (junk, part) => {
      const signed = { ...signedCard(ann, cardBody('host')), body: junk }
      return (
        faults(junk).length > 0 &&
        refusal(junk) !== null &&
        refusal(signed) !== null &&
        faults({ ...cardBody('host'), tier: part }).length ===
          (part === 0 || part === 1 || part === 2 || part === 3 ? 0 : 1)
      )
    }),
    300
  )
})

test('a signed card is taken from its node only, as it was signed', (t: Assert) => {
  const body = cardBody('host', { capabilities: [capability] })
  const signed = signedCard(ann, body)
  const checked = checkSignedCard(signed, { certificate, verify })
  t.alike(checked.ok && checked.card, body)
  t.ok(refusal(signedCard(eve, body)), 'signed by another node')
  t.ok(refusal({ ...signedCard(eve, body), by: ann.id }), 'under its name')
  t.ok(refusal({ ...signed, body: { ...body, revision: 2 } }), 'changed since')
  t.ok(refusal(seal('entry', body, ann)), 'signed as something else')
  t.ok(refusal({ ...signed, body: { ...body, origin: 'local', lastSeenAt: 1 } }), 'with fields of a reader')
  t.ok(refusal(signedCard(ann, { ...body, id: 'Bad Id' })), 'an invalid body')
})

test('a signed card claims no more than the certificate of its node', async (t: Assert) => {
  await holds(
    t,
    fc.property(
      arbAgentCard(),
      fc.constantFrom(0 as const, 1 as const, 2 as const, 3 as const),
      fc.constantFrom(undefined, 'ci', 'lab'),
      (card, maxTier, sandboxId) => {
        const trust = { ...certificate, maxTier, ...(sandboxId === undefined ? {} : { sandboxId }) }
        const isWithin =
          weakest(card.tier, maxTier) === card.tier && (sandboxId === undefined || card.sandboxId === sandboxId)
        return (refusal(signedCard(ann, cardBodyOf(card)), trust) === null) === isWithin
      }
    ),
    200
  )
})
