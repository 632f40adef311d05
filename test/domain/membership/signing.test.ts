import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { isKeyText, keyFromText, keyToText, utf8 } from '../../../src/kit/ids.js'
import {
  isCanonicalKey,
  isJoinSealed,
  isSealed,
  joinBytes,
  seal,
  sealJoin,
  SIGNED_KINDS,
  signedBytes
} from '../../../src/domain/membership/signing.js'
import { actor, keyText, verify } from '../../support/membership.js'
import { holds } from '../../support/holds.js'

const ann = actor('ann')
const bob = actor('bob')

test('the signed bytes are the kind, a line feed and canonical JSON', (t: Assert) => {
  t.alike(signedBytes('card', { b: 1, a: [true, 'é'] }), utf8('a2a-node/card/1\n{"a":[true,"é"],"b":1}'))
  t.alike(
    joinBytes({ inviteId: 'i', nodeKey: 'n', coreKey: 'c', name: 'x' }),
    utf8('a2a-node/join/1\n{"coreKey":"c","inviteId":"i","name":"x","nodeKey":"n"}')
  )
})

test('sealed content is recognised, in any order of its keys, and under its own kind only', async (t: Assert) => {
  await holds(
    t,
    fc.property(
      fc.constantFrom(...SIGNED_KINDS),
      fc.constantFrom(...SIGNED_KINDS),
      fc.dictionary(fc.string(), fc.jsonValue()),
      (kind, other, body) => {
        const signed = seal(kind, body, ann)
        const turned = Object.fromEntries(Object.entries(body).reverse())
        return (
          isSealed(kind, { ...signed, body: turned }, verify) &&
          isSealed(other, signed, verify) === (other === kind) &&
          !isSealed(kind, { ...signed, by: bob.id }, verify) &&
          !isSealed(kind, { ...signed, body: { ...body, extra: 1 } }, verify)
        )
      }
    ),
    100
  )
})

test('checking a signature is total', (t: Assert) => {
  const signed = seal('card', { a: 1 }, ann)
  fc.assert(
    fc.property(fc.anything(), fc.anything(), fc.anything(), (body, by, sig) => {
      const forms = [{ body, by, sig }, { ...signed, body }, { ...signed, by }, { ...signed, sig }, body]
      return forms.every((one) => !isSealed('card', one as never, verify) || body === signed.body)
    }),
    { numRuns: 300 }
  )
  t.absent(isSealed('card', { ...signed, body: { a: Number.NaN } }, verify))
  t.absent(isJoinSealed('x', null as never, verify))
})

test('a key and a signature count in one spelling only', (t: Assert) => {
  const signed = seal('card', { a: 1 }, ann)
  const spellings = [...'ybndrfg8ejkmcpqxot1uwisza345h769'].map((last) => ann.id.slice(0, -1) + last)
  const same = spellings.filter((text) => isKeyText(text) && keyToText(keyFromText(text)) === ann.id)
  t.is(same.length, 16, 'z32 has sixteen spellings of each key')
  t.alike(same.filter(isCanonicalKey), [ann.id])
  t.alike(
    same.filter((by) => isSealed('card', { ...signed, by }, verify)),
    [ann.id]
  )
  const ends = [...'ybndrfg8ejkmcpqxot1uwisza345h769'].map((last) => ({
    ...signed,
    sig: signed.sig.slice(0, -1) + last
  }))
  t.is(ends.filter((one) => isSealed('card', one, verify)).length, 1)
})

test('a request to join is bound to its invite, key, core and name', (t: Assert) => {
  const join = { inviteId: keyText('invite'), nodeKey: ann.id, coreKey: ann.coreKey, name: 'ann' }
  const request = sealJoin(join, ann.sign)
  t.alike(Object.keys(request).sort(), ['coreKey', 'name', 'nodeKey', 'sig'])
  t.ok(isJoinSealed(join.inviteId, request, verify))
  t.absent(isJoinSealed(keyText('other'), request, verify))
  for (const change of [
    { nodeKey: bob.id },
    { coreKey: bob.coreKey },
    { name: 'bob' },
    { sig: sealJoin(join, bob.sign).sig }
  ]) {
    t.absent(isJoinSealed(join.inviteId, { ...request, ...change }, verify))
  }
})
