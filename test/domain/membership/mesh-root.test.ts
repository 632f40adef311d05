import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { toBase64 } from '../../../src/kit/bytes.js'
import { verifyChain } from '../../../src/domain/membership/chain.js'
import type { MeshInfo } from '../../../src/domain/membership/codec.js'
import {
  type MeshRoot,
  ROOT_FINGERPRINT_BYTES,
  rootFault,
  rootFingerprint,
  SHORT_ROOT_BYTES
} from '../../../src/domain/membership/mesh-root.js'
import type { Tier } from '../../../src/domain/routing/tier.js'
import { firstView } from '../../../src/domain/membership/view.js'
import { type Actor, actor, certificate, founded, hash, keyText, MESH, verify } from '../../support/membership.js'
import { holds } from '../../support/holds.js'

const owner = actor('owner')
const INFO: MeshInfo = { v: 1, owner: owner.id, name: 'home', mesh: MESH }
const ROOT: MeshRoot = { info: INFO, encryptionKey: new Uint8Array(32).fill(3) }
const FINGERPRINT = rootFingerprint(ROOT, hash)

const arbKey = fc.nat(1000).map((seed) => keyText(`key ${seed}`))
const arbRoot: fc.Arbitrary<MeshRoot> = fc.record({
  info: fc.record({
    v: fc.constant(1 as const),
    owner: arbKey,
    mesh: arbKey,
    name: fc.string({ minLength: 1, maxLength: 64 })
  }),
  encryptionKey: fc.uint8Array({ minLength: 32, maxLength: 32 })
})

test('a fingerprint is 128 bits, and the same for the same root in every version', (t: Assert) => {
  t.is(ROOT_FINGERPRINT_BYTES, 16)
  t.is(toBase64(FINGERPRINT), 'pKWlPvZhpV+CZHDABBd7mA==')
})

test('a root is that of its own fingerprint only: another owner, mesh, name or key is refused', async (t: Assert) => {
  await holds(
    t,
    fc.property(arbRoot, arbRoot, (root, other) => {
      const fingerprint = rootFingerprint(root, hash)
      const changed: MeshRoot[] = [
        { ...root, encryptionKey: other.encryptionKey },
        ...(['owner', 'mesh', 'name'] as const).map((part) => ({
          ...root,
          info: { ...root.info, [part]: other.info[part] }
        }))
      ]
      const differs = (one: MeshRoot): boolean =>
        JSON.stringify(one.info) !== JSON.stringify(root.info) ||
        toBase64(one.encryptionKey) !== toBase64(root.encryptionKey)
      return [fingerprint, fingerprint.slice(0, SHORT_ROOT_BYTES)].every(
        (part) =>
          rootFault(root, part, hash) === null &&
          changed.every((one) => (rootFault(one, part, hash) !== null) === differs(one))
      )
    }),
    200
  )
})

test('no changed bit of a fingerprint, no shorter or longer one, and no encryption key of another length is taken', (t: Assert) => {
  for (let bit = 0; bit < 8 * ROOT_FINGERPRINT_BYTES; bit++) {
    const bent = FINGERPRINT.map((byte, at) => (at === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte))
    if (rootFault(ROOT, bent, hash) === null) t.fail(`bit ${bit}`)
  }
  for (const length of [0, 11, 13, 15]) t.ok(rootFault(ROOT, FINGERPRINT.subarray(0, length), hash))
  t.ok(rootFault(ROOT, Uint8Array.of(...FINGERPRINT, 0), hash))
  t.ok(rootFault({ ...ROOT, encryptionKey: new Uint8Array(31) }, FINGERPRINT, hash))
})

test('a root whose keys are malformed is refused', (t: Assert) => {
  for (const change of [{ owner: 'x' }, { mesh: '' }])
    t.is(
      rootFault({ ...ROOT, info: { ...INFO, ...change } }, FINGERPRINT, hash),
      'it is malformed',
      JSON.stringify(change)
    )
})

test('members without the right to invite prove nothing to a newcomer, for any common signatures and any owner that they name', async (t: Assert) => {
  const log = founded()
  const impostors = ['ann', 'bob'].map(actor)
  for (const one of impostors) log.join(owner, one)
  const newcomer = actor('newcomer')
  const theirs = impostors.map(({ id }) => log.view().members.get(id)?.certificate ?? [])
  const arbIssuer = fc.constantFrom<Actor[]>(...impostors, actor('stranger'))
  const arbLink = fc.record({
    issuer: arbIssuer,
    maxTier: fc.constantFrom<Tier[]>(0, 1, 2, 3),
    mayInvite: fc.boolean(),
    mayWrite: fc.boolean(),
    inviteId: fc.constant(keyText('i'))
  })
  await holds(
    t,
    fc.property(fc.array(arbLink, { minLength: 1, maxLength: 4 }), fc.nat(2), arbIssuer, (links, last, claimed) => {
      const holders = [newcomer, ...links.map(({ issuer }) => issuer)]
      const made = links.map((link, at) => certificate({ ...link, node: holders[at] }))
      const chain = [...made, ...[theirs[last] ?? []].flat()]
      const trusts = (owned: Actor): boolean => {
        const info = { ...INFO, owner: owned.id }
        const view = firstView(info)
        const trust = { mesh: MESH, owner: owned.id, leaf: newcomer.id, now: 2000, verify, view }
        return rootFault({ ...ROOT, info }, FINGERPRINT, hash) === null && verifyChain(chain, trust).ok
      }
      return !trusts(owner) && !trusts(claimed)
    }),
    500
  )
})
