import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { chainOf, MAX_CHAIN, verifyChain } from '../../../src/domain/membership/chain.js'
import { grantFault } from '../../../src/domain/membership/grant.js'
import { seal } from '../../../src/domain/membership/signing.js'
import type { Certificate, CertificateChain, MembershipView } from '../../../src/domain/membership/types.js'
import { firstView } from '../../../src/domain/membership/view.js'
import type { Tier } from '../../../src/domain/routing/tier.js'
import {
  type Actor,
  actor,
  certificate,
  founded,
  inviteTerms,
  keyText,
  MESH,
  verify
} from '../../support/membership.js'
import { holds } from '../../support/holds.js'

const owner = actor('owner')
const ann = actor('ann')
const bob = actor('bob')
const cat = actor('cat')
const newcomer = firstView({ mesh: MESH, name: 'home', owner: owner.id })

const check = (chain: CertificateChain, leaf: Actor, view: MembershipView = newcomer, now = 2000) =>
  verifyChain(chain, { mesh: MESH, owner: owner.id, leaf: leaf.id, now, verify, view })
const code = (verdict: ReturnType<typeof verifyChain>) => (verdict.ok ? 'ok' : verdict.code)

/** Owner admits ann (admin), ann admits bob (admin), bob admits cat. */
function family() {
  const log = founded()
  log.join(owner, ann, { admin: true })
  log.join(ann, bob, { admin: true, tier: 2 })
  log.join(bob, cat, { tier: 3 })
  return log
}

test('the chain of a member leads from it up to, not including, the owner', (t: Assert) => {
  const view = family().view()
  const names = (node: Actor) => chainOf(view, node.id)?.map((link) => link.body.name) ?? null
  t.alike(names(cat), ['cat', 'bob', 'ann'])
  t.alike(names(ann), ['ann'])
  t.alike(names(owner), ['owner'])
  t.is(names(actor('eve')), null)
  t.is(chainOf(newcomer, ann.id), null)
})

test('a chain longer than eight is none', (t: Assert) => {
  const log = founded()
  let by = owner
  const line = Array.from({ length: MAX_CHAIN + 1 }, (_, i) => actor(`line${i}`))
  for (const node of line) {
    log.join(by, node, { admin: true })
    by = node
  }
  const view = log.view()
  t.is(chainOf(view, line[MAX_CHAIN - 1]?.id ?? '')?.length, MAX_CHAIN)
  t.is(chainOf(view, line[MAX_CHAIN]?.id ?? ''), null)
  const long = line.map((node) => view.members.get(node.id)?.certificate).reverse() as CertificateChain
  t.is(code(check(long, line[MAX_CHAIN])), 'FORBIDDEN')
})

test('a chain convinces a newcomer that knows only mesh and owner', (t: Assert) => {
  const view = family().view()
  for (const node of [owner, ann, bob, cat]) {
    const chain = chainOf(view, node.id) ?? []
    const verdict = check(chain, node)
    t.ok(verdict.ok && verdict.certificate.body.nodeKey === node.id, node.name)
    if (node !== owner)
      t.ok(
        check([...chain, view.members.get(owner.id)?.certificate as CertificateChain[0]], node).ok,
        'also with the owner at its end'
      )
  }
})

test('a chain is worth nothing for another key, mesh or owner, or without a link', (t: Assert) => {
  const chain = chainOf(family().view(), cat.id) ?? []
  t.is(code(check(chain, bob)), 'FORBIDDEN')
  t.is(code(check([], cat)), 'FORBIDDEN')
  t.is(code(check(chain.slice(1), cat)), 'FORBIDDEN')
  t.is(code(check(chain.slice(0, 2), cat)), 'FORBIDDEN')
  t.is(code(check([...chain].reverse(), cat)), 'FORBIDDEN')
  const trust = { mesh: MESH, owner: owner.id, leaf: cat.id, now: 2000, verify, view: newcomer }
  t.is(code(verifyChain(chain, { ...trust, mesh: keyText('other') })), 'FORBIDDEN')
  t.is(code(verifyChain(chain, { ...trust, owner: ann.id })), 'FORBIDDEN')
  const selfMade = certificate({ issuer: cat, node: cat, maxTier: 0, mayInvite: true, mayWrite: true })
  t.is(code(check([selfMade], cat)), 'FORBIDDEN', 'a self-signed certificate of another than the owner')
  t.is(
    code(check([certificate({ issuer: owner, node: owner, maxTier: 0 })], owner)),
    'FORBIDDEN',
    'an owner without its rights'
  )
})

test('a certificate without an invite, or not as the invite says, is INVITE_INVALID', (t: Assert) => {
  const log = founded()
  const terms = inviteTerms('a', { tier: 2, expiresAt: 1500 })
  log.invite(owner, terms)
  const issue = (changes: Partial<Certificate>) => {
    const { issuer: _, ...rest } = { inviteId: terms.id, maxTier: 2 as const, ...changes }
    return certificate({ issuer: owner, node: bob, ...rest })
  }
  t.is(code(check([certificate({ issuer: owner, node: bob })], bob)), 'INVITE_INVALID')
  t.is(code(check([issue({})], bob, log.view())), 'ok')
  t.is(code(check([issue({ maxTier: 1 })], bob, log.view())), 'INVITE_INVALID')
  t.is(code(check([issue({ issuedAt: 1501 })], bob, log.view())), 'INVITE_INVALID')
})

test('the receiver’s clock decides what has expired', (t: Assert) => {
  const leaf = certificate({ issuer: owner, node: bob, inviteId: keyText('i'), expiresAt: 5000 })
  t.is(code(check([leaf], bob, newcomer, 5000)), 'ok')
  t.is(code(check([leaf], bob, newcomer, 5001)), 'FORBIDDEN')
})

test('a revoked key spoils the chain, unless the leaf was admitted before', (t: Assert) => {
  const log = family()
  const chain = chainOf(log.view(), cat.id) ?? []
  const dan = actor('dan')
  const kept = inviteTerms('kept', { tier: 3, uses: 5 })
  log.invite(bob, kept)
  const late = [certificate({ issuer: bob, node: dan, inviteId: kept.id, maxTier: 3 }), ...chain.slice(1)]
  t.is(code(check(late, dan, log.view())), 'ok')
  log.revoke(owner, bob)
  t.is(code(check(chain, cat, log.view())), 'ok', 'cat stands in the view')
  t.is(code(check(late, dan, log.view())), 'REVOKED', 'dan does not')
  t.is(code(check(chain.slice(1), bob, log.view())), 'REVOKED')
})

test('the newer certificate wins: the view’s of leaf and issuers, or the chain’s', (t: Assert) => {
  const log = family()
  const chain = chainOf(log.view(), bob.id) ?? []
  const [first, ...above] = chain
  const lowered = { ...log.certificateOf(bob), maxTier: 3 as const, serial: 2, issuer: owner.id }
  log.recertify(owner, lowered)
  const verdict = check(chain, bob, log.view())
  t.is(verdict.ok && verdict.certificate.body.maxTier, 3)
  const renewed = seal('certificate', { ...first?.body, name: 'bobby', serial: 3 }, ann)
  const ahead = check([renewed, ...above], bob, log.view())
  t.is(ahead.ok && ahead.certificate.body.name, 'bobby')
  log.recertify(owner, { ...log.certificateOf(ann), maxTier: 3, serial: 2, issuer: owner.id })
  const fresh = [certificate({ issuer: ann, node: cat, inviteId: keyText('i'), maxTier: 2 }), ...above]
  t.is(
    code(
      check(fresh, actor('cat'), {
        ...log.view(),
        members: new Map([...log.view().members].filter(([id]) => id !== cat.id))
      })
    ),
    'FORBIDDEN',
    'its issuer is L3 by now'
  )
  const wrong = check([seal('certificate', { ...renewed.body, maxTier: 0, serial: 9 }, ann), ...above], bob, log.view())
  t.is(wrong.ok && wrong.certificate.body.maxTier, 3, 'a newer one beyond its grant does not count')
})

test('a chain passes if and only if every link is within the grant of the next', async (t: Assert) => {
  const actors = [owner, ann, bob, cat]
  const arbGrant = fc.record({
    maxTier: fc.constantFrom<Tier[]>(0, 1, 2, 3),
    mayInvite: fc.boolean(),
    mayWrite: fc.boolean(),
    sandboxId: fc.constantFrom(undefined, 'ci', 'lab'),
    expiresAt: fc.constantFrom(undefined, 3000, 4000)
  })
  const root: Certificate = certificate({
    issuer: owner,
    node: owner,
    maxTier: 0,
    mayInvite: true,
    mayWrite: true
  }).body
  await holds(
    t,
    fc.property(fc.array(arbGrant, { minLength: 1, maxLength: 3 }), (grants) => {
      let issuer = root
      let isSound = true
      const chain = grants.map(({ sandboxId, expiresAt, ...rest }, i) => {
        const [by, node] = [actors[i], actors[i + 1]]
        const limits = {
          ...(sandboxId === undefined ? {} : { sandboxId }),
          ...(expiresAt === undefined ? {} : { expiresAt })
        }
        const link = certificate({ issuer: by, node, inviteId: keyText('i'), ...rest, ...limits })
        isSound &&= grantFault(issuer, link.body) === null
        issuer = link.body
        return link
      })
      return check(chain.reverse(), actors[grants.length]).ok === isSound
    }),
    300
  )
})

test('any chain, however malformed, gets a verdict', async (t: Assert) => {
  const view = family().view()
  const chain = chainOf(view, cat.id) ?? []
  await holds(
    t,
    fc.property(fc.anything(), fc.nat(2), fc.constantFrom('body', 'by', 'sig'), (junk, place, part) => {
      const bent = chain.map((link, i) =>
        i === place ? { ...link, [part]: junk } : link
      ) as unknown as CertificateChain
      return !check(bent, cat).ok && !check(junk as CertificateChain, cat).ok
    }),
    300
  )
})
