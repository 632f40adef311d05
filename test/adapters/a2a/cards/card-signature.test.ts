import test, { type Assert } from 'brittle'
import { verifyAgentCardSignature, type AgentCard } from '@a2a-js/sdk'
import { DefaultAgentCardResolver } from '@a2a-js/sdk/client'
import fc from 'fast-check'
import { decodeProtectedHeader, flattenedVerify, importJWK } from 'jose'
import type { CardSignature } from '../../../../src/adapters/a2a/cards/card-signature.js'
import { agentSubject, type CardSubject } from '../../../../src/adapters/a2a/cards/card-subject.js'
import { canonicalJson } from '../../../../src/kit/json.js'
import { arbToldAgent, BASE, keyOf, signerOf } from '../../../support/a2a-cards.js'
import { holds } from '../../../support/holds.js'
import { actor } from '../../../support/membership.js'

const HOST = { base: BASE, pushNotifications: false }
const signer = signerOf('owner')
const key = importJWK(keyOf(signer.keySet()), 'EdDSA')

type Signed = { readonly signatures?: readonly CardSignature[] }

/** Does any signature fit the card as it is, without its signatures? */
async function fitsWhole(card: Signed): Promise<boolean> {
  const { signatures = [], ...rest } = card
  const payload = Buffer.from(canonicalJson(rest)).toString('base64url')
  const checks = signatures.map(async (one) => {
    await flattenedVerify({ ...one, payload }, await key)
  })
  return (await Promise.allSettled(checks)).some(({ status }) => status === 'fulfilled')
}

/** What the SDK's own check says of a card as it came, and of one that its resolver has parsed. */
async function fitsSdk(card: unknown): Promise<boolean> {
  const fetchImpl = (): Promise<Response> => Promise.resolve(Response.json(card))
  const parsed = await new DefaultAgentCardResolver({ fetchImpl }).resolve(BASE)
  const received = JSON.parse(JSON.stringify(card)) as AgentCard
  return (await isVerified(received)) && (await isVerified(parsed))
}

async function isVerified(received: AgentCard): Promise<boolean> {
  try {
    await verifyAgentCardSignature(() => key as Promise<never>)(received)
    return true
  } catch {
    return false
  }
}

/** The SDK prints every signature that does not fit. */
function quietly(t: Assert): void {
  const { debug } = console
  t.teardown(() => {
    console.debug = debug
  })
  console.debug = (): void => {}
}

const arbSubject = arbToldAgent().map(({ detail, original }): CardSubject => agentSubject(detail, original, HOST))

test('any card is signed for the SDK, which drops what is empty, and for readers that take it as it is', async (t: Assert) => {
  quietly(t)
  await holds(
    t,
    fc.asyncProperty(arbSubject, async (subject) => {
      const { one, hybrid } = signer.cards(subject)
      return (await fitsSdk(one)) && (await fitsSdk(hybrid)) && (await fitsWhole(one)) && (await fitsWhole(hybrid))
    }),
    120
  )
})

test('a card that was changed, or of another key, fits no signature', async (t: Assert) => {
  quietly(t)
  await holds(
    t,
    fc.asyncProperty(arbSubject, fc.constantFrom('name', 'version', 'skills'), async (subject, field) => {
      const { one, hybrid } = signer.cards(subject)
      const changed = [one, hybrid].map((card) => ({
        ...card,
        [field]: field === 'skills' ? [{ id: 'other' }] : `${subject.name} `
      }))
      const other = signerOf('b').cards(subject)
      const found = await Promise.all(
        [...changed, other.one, other.hybrid].flatMap((card) => [fitsSdk(card), fitsWhole(card)])
      )
      return found.every((fits) => !fits)
    }),
    100
  )
})

test('the protected header names algorithm, key and where the key is; the key is that of the node', (t: Assert) => {
  const [sample] = fc.sample(arbSubject, { numRuns: 1, seed: 1 }) as [CardSubject]
  const { one } = signer.cards(sample)
  const [signature] = one.signatures as readonly [CardSignature]
  t.alike(decodeProtectedHeader(signature), {
    alg: 'EdDSA',
    kid: actor('owner').id,
    typ: 'JOSE',
    jku: `${BASE}/.well-known/jwks.json`
  })
  const { keys } = signer.keySet()
  t.alike(
    keys.map(({ kty, crv, kid, use, alg }) => [kty, crv, kid, use, alg]),
    [['OKP', 'Ed25519', actor('owner').id, 'sig', 'EdDSA']]
  )
  t.alike(signer.cards(sample), signer.cards(sample), 'the same card has the same signatures, so its ETag stays')
})
