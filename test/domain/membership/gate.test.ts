import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { chainOf } from '../../../src/domain/membership/chain.js'
import { judge } from '../../../src/domain/membership/gate.js'
import type { CertificateChain, MembershipView } from '../../../src/domain/membership/types.js'
import { EMPTY_VIEW, firstView } from '../../../src/domain/membership/view.js'
import {
  type Actor,
  actor,
  admission,
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
const eve = actor('eve')

const at = (view: MembershipView, node: Actor, chain: CertificateChain | null = null, now = 2000) =>
  judge(view, { remote: node.id, chain, now, verify })
const say = (verdict: ReturnType<typeof judge>) => (verdict.verdict === 'refuse' ? verdict.code : verdict.verdict)

test('members of the view pass with the certificate of the view, for any certificate that they show', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { tier: 2 })
  const old = chainOf(log.view(), ann.id)
  log.recertify(owner, { ...log.certificateOf(ann), maxTier: 3, serial: 2 })
  for (const chain of [null, old, [], [certificate({ issuer: eve, node: ann })]]) {
    const verdict = at(log.view(), ann, chain)
    t.is(verdict.verdict === 'pass' && verdict.certificate.body.maxTier, 3)
  }
})

test('revoked keys are refused, for any proof that they show', (t: Assert) => {
  const log = founded()
  log.join(owner, ann)
  const chain = chainOf(log.view(), ann.id)
  log.revoke(owner, ann)
  t.is(say(at(log.view(), ann)), 'REVOKED')
  t.is(say(at(log.view(), ann, chain)), 'REVOKED')
})

test('strangers wait, those with a wrong chain are refused', (t: Assert) => {
  const log = founded()
  t.is(say(at(log.view(), eve)), 'wait')
  t.is(
    say(at(log.view(), eve, [certificate({ issuer: eve, node: eve, maxTier: 0, mayInvite: true, mayWrite: true })])),
    'FORBIDDEN'
  )
  t.is(say(at(log.view(), eve, [])), 'FORBIDDEN')
})

test('a member that this view does not show yet passes by its chain', (t: Assert) => {
  const log = founded()
  const behind = log.view()
  log.join(owner, ann, { admin: true })
  log.join(ann, bob)
  t.is(say(at(behind, bob, chainOf(log.view(), bob.id))), 'pass')
  t.is(say(at(behind, eve, chainOf(log.view(), bob.id))), 'FORBIDDEN', 'somebody else with that chain')
})

test('a newcomer lets the owner and members pass by the root that its invite names', (t: Assert) => {
  const log = founded()
  log.join(owner, ann)
  const first = firstView({ mesh: MESH, name: 'home', owner: owner.id })
  t.is(say(at(first, owner, chainOf(log.view(), owner.id))), 'pass')
  t.is(say(at(first, ann, chainOf(log.view(), ann.id))), 'pass')
  t.is(say(at(first, owner)), 'wait')
  t.is(say(at(EMPTY_VIEW, owner, chainOf(log.view(), owner.id))), 'wait', 'without a root nobody can be judged')
})

test('the loser of a race for an invite is refused with its code, also with a chain of that invite', (t: Assert) => {
  const log = founded()
  const terms = inviteTerms('one')
  log.invite(owner, terms)
  log.admit(owner, ann, terms)
  log.admit(owner, bob, terms)
  const lost = admission(owner, bob, { terms })
  for (const chain of [null, [lost.certificate]]) {
    const verdict = at(log.view(), bob, chain)
    t.is(say(verdict), 'INVITE_USED')
    t.is(verdict.verdict === 'refuse' && verdict.inviteId, terms.id)
  }
  const other = certificate({ issuer: owner, node: bob, inviteId: keyText('later') })
  t.is(say(at(log.view(), bob, [other])), 'pass', 'a later invite is another matter')
})

test('an expired certificate is no longer a pass', (t: Assert) => {
  const log = founded()
  const terms = inviteTerms('a')
  log.invite(owner, terms)
  log.write(owner, admission(owner, ann, { terms, changes: { expiresAt: 5000 } }))
  t.is(say(at(log.view(), ann, null, 5000)), 'pass')
  t.is(say(at(log.view(), ann, null, 5001)), 'FORBIDDEN')
  t.is(say(at(log.view(), ann, chainOf(log.view(), ann.id), 5001)), 'FORBIDDEN')
})

test('the gate never throws and admits only members, for any proof', async (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  const known = chainOf(log.view(), ann.id) ?? []
  const arbLink = fc.oneof(
    fc.anything(),
    fc.constantFrom(...known),
    fc.record({ body: fc.anything(), by: fc.anything(), sig: fc.anything() })
  )
  const arbChain = fc.oneof(fc.constant(null), fc.array(arbLink, { maxLength: 9 }), fc.anything())
  await holds(
    t,
    fc.property(arbChain, (chain) => {
      const remembered = [log.view(), EMPTY_VIEW, firstView({ mesh: MESH, name: 'home', owner: owner.id })]
      return remembered.every((view) => at(view, eve, chain as CertificateChain).verdict !== 'pass')
    }),
    300
  )
})
