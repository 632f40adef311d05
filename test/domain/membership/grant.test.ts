import test, { type Assert } from 'brittle'
import {
  grantFault,
  inviteFault,
  isGrantOf,
  isOwnerCertificate,
  termsFault
} from '../../../src/domain/membership/grant.js'
import type { Certificate, InviteTerms } from '../../../src/domain/membership/types.js'
import { actor, certificateBody, inviteTerms, keyText, MESH } from '../../support/membership.js'

const owner = actor('owner')
const ann = actor('ann')
const admin: Certificate = certificateBody({ issuer: owner, node: ann, maxTier: 1, mayInvite: true, mayWrite: true })
const child: Certificate = certificateBody({ issuer: ann, node: actor('bob'), maxTier: 2, issuedAt: 2000 })

test('an issuer grants what it has, and nothing more', (t: Assert) => {
  const may: [Partial<Certificate>, Partial<Certificate>][] = [
    [{}, {}],
    [{}, { maxTier: 1, mayInvite: true, mayWrite: true }],
    [{}, { sandboxId: 'ci', expiresAt: 2001 }],
    [{ sandboxId: 'ci' }, { sandboxId: 'ci' }],
    [{ expiresAt: 9000 }, { expiresAt: 9000 }]
  ]
  for (const [of, granted] of may)
    t.is(grantFault({ ...admin, ...of }, { ...child, ...granted }), null, JSON.stringify([of, granted]))
  const mayNot: [Partial<Certificate>, Partial<Certificate>][] = [
    [{}, { maxTier: 0 }],
    [{}, { mesh: keyText('other') }],
    [{}, { issuer: owner.id }],
    [{ mayInvite: false }, {}],
    [{ mayWrite: false }, { mayWrite: true }],
    [{ sandboxId: 'ci' }, {}],
    [{ sandboxId: 'ci' }, { sandboxId: 'lab' }],
    [{ expiresAt: 9000 }, {}],
    [{ expiresAt: 9000 }, { expiresAt: 9001 }],
    [{}, { expiresAt: 2000 }]
  ]
  for (const [of, granted] of mayNot)
    t.ok(grantFault({ ...admin, ...of }, { ...child, ...granted }), JSON.stringify([of, granted]))
})

test('an invite offers what its author has, and nothing more', (t: Assert) => {
  const fault = (of: Partial<Certificate>, terms: Partial<InviteTerms>) =>
    termsFault({ ...admin, ...of }, inviteTerms('a', terms))
  t.is(fault({}, {}), null)
  t.is(fault({}, { admin: true, sandboxId: 'ci' }), null)
  t.is(fault({ mayWrite: false }, {}), null)
  t.ok(fault({ mayInvite: false }, {}))
  t.ok(fault({ mayWrite: false }, { admin: true }))
  t.ok(fault({}, { tier: 0 }))
  t.ok(fault({ sandboxId: 'ci' }, {}))
  t.ok(fault({}, { expiresAt: 1000 }))
  t.ok(fault({ expiresAt: 999 }, {}))
})

test('a certificate is the grant of an invite when all of it agrees', (t: Assert) => {
  const terms = inviteTerms('a', { tier: 2, sandboxId: 'ci' })
  const granted = { ...child, inviteId: terms.id, sandboxId: 'ci' }
  t.ok(isGrantOf(granted, terms))
  t.ok(isGrantOf({ ...granted, mayInvite: true, mayWrite: true }, { ...terms, admin: true }))
  for (const change of [
    { maxTier: 3 as const },
    { mayInvite: true },
    { mayWrite: true },
    { sandboxId: 'lab' },
    { inviteId: keyText('b') }
  ]) {
    t.absent(isGrantOf({ ...granted, ...change }, terms), JSON.stringify(change))
  }
})

test('an owner’s certificate is its own, full and without end', (t: Assert) => {
  const own = certificateBody({ issuer: owner, node: owner, maxTier: 0, mayInvite: true, mayWrite: true })
  const mesh = { id: MESH, owner: owner.id }
  t.ok(isOwnerCertificate(own, mesh))
  const wrong: Partial<Certificate>[] = [
    { maxTier: 1 },
    { mayInvite: false },
    { mayWrite: false },
    { sandboxId: 'ci' },
    { inviteId: keyText('i') },
    { expiresAt: 1 },
    { issuer: ann.id },
    { nodeKey: ann.id },
    { mesh: keyText('m') }
  ]
  for (const change of wrong) t.absent(isOwnerCertificate({ ...own, ...change }, mesh), JSON.stringify(change))
})

test('an invite ends by revocation, use and time, in this order', (t: Assert) => {
  const record = { terms: inviteTerms('a', { expiresAt: 100 }), by: owner.id, admitted: [], revokedAt: null }
  t.is(inviteFault(record, 100), null)
  t.is(inviteFault(record, 101), 'INVITE_EXPIRED')
  t.is(inviteFault({ ...record, admitted: [ann.id] }, 101), 'INVITE_USED')
  t.is(inviteFault({ ...record, admitted: [ann.id], revokedAt: 5 }, 101), 'INVITE_REVOKED')
})
