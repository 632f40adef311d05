import test, { type Assert } from 'brittle'
import { amendCertificate, considerJoin } from '../../../src/domain/membership/admit.js'
import { seal } from '../../../src/domain/membership/signing.js'
import type { InviteTerms } from '../../../src/domain/membership/types.js'
import {
  type Actor,
  actor,
  admission,
  founded,
  inviteTerms,
  joinRequest,
  keyText,
  type LogModel,
  MESH,
  verify
} from '../../support/membership.js'

const owner = actor('owner')
const ann = actor('ann')
const bob = actor('bob')
const eve = actor('eve')

const ask = (
  log: LogModel,
  self: Actor,
  { node, terms, now = 2000 }: { node: Actor; terms: InviteTerms; now?: number }
) => considerJoin(log.view(), { self: self.id, inviteId: terms.id, request: joinRequest(node, terms.id), now, verify })
const say = (answer: ReturnType<typeof considerJoin>) => (answer.answer === 'deny' ? answer.code : answer.answer)

test('an admin answers an open invite with a certificate that the log then accepts', (t: Assert) => {
  const log = founded()
  for (const terms of [inviteTerms('a', { tier: 3, sandboxId: 'ci' }), inviteTerms('b', { tier: 0, admin: true })]) {
    const node = actor(`for ${terms.id}`)
    log.invite(owner, terms)
    const answer = ask(log, owner, { node, terms })
    if (answer.answer !== 'admit') throw new Error(answer.answer)
    t.is(answer.certificate.issuedAt, 2000)
    t.is(answer.certificate.serial, 1)
    const certificate = seal('certificate', answer.certificate, owner)
    const body = { ...admission(owner, node, { terms }), certificate }
    t.is(log.write(owner, body).skipped, null)
    t.is(say(ask(log, owner, { node, terms })), 'confirm', 'asked again by the same node')
  }
})

test('a name that no node may take, or that looks like that of a member, is denied; the invite stays good', (t: Assert) => {
  const log = founded()
  log.join(owner, actor('ape'))
  const terms = inviteTerms('open')
  log.invite(owner, terms)
  const named = (name: string): string => say(ask(log, owner, { node: actor(name), terms }))
  for (const name of ['bo\u200bss', 'bo\u3164ss', 'b\u043ess', 'me@home', '\uff42oss'])
    t.is(named(name), 'INVALID_INPUT', name)
  t.is(named('аре'), 'AMBIGUOUS_NAME')
  t.is(named('Пётр'), 'admit')
  t.is(
    say(ask(log, owner, { node: { ...bob, name: 'ape' }, terms })),
    'admit',
    'the same name is distinguished by its key'
  )
})

test('each reason to deny has its own code', (t: Assert) => {
  const log = founded()
  const used = log.join(owner, ann)
  const gone = inviteTerms('gone')
  const open = inviteTerms('open', { expiresAt: 3000 })
  log.invite(owner, gone)
  log.invite(owner, open)
  log.write(owner, { kind: 'invite-revoked', mesh: MESH, inviteId: gone.id, at: 1 })
  t.is(say(ask(log, owner, { node: bob, terms: used })), 'INVITE_USED')
  t.is(say(ask(log, owner, { node: bob, terms: gone })), 'INVITE_REVOKED')
  t.is(say(ask(log, owner, { node: bob, terms: open, now: 3001 })), 'INVITE_EXPIRED')
  t.is(say(ask(log, owner, { node: bob, terms: open, now: 3000 })), 'admit')
  const request = { ...joinRequest(bob, open.id), name: 'changed' }
  t.is(
    say(considerJoin(log.view(), { self: owner.id, inviteId: open.id, request, now: 2000, verify })),
    'INVITE_INVALID'
  )
  log.revoke(owner, ann)
  t.is(say(ask(log, owner, { node: ann, terms: open })), 'REVOKED')
})

test('a member that asks by another invite is confirmed as it is', (t: Assert) => {
  const log = founded()
  log.join(owner, ann)
  const terms = inviteTerms('second')
  log.invite(owner, terms)
  t.is(say(ask(log, owner, { node: ann, terms })), 'confirm')
})

test('an admin without the right to grant it leaves the answer to others', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { admin: true, tier: 2 })
  log.join(owner, bob)
  const terms = inviteTerms('wide', { tier: 1 })
  log.invite(owner, terms)
  t.is(say(ask(log, ann, { node: eve, terms })), 'silent', 'an L2 admin, an L1 invite')
  t.is(say(ask(log, bob, { node: eve, terms })), 'silent', 'no admin')
  t.is(say(ask(log, bob, { node: eve, terms: inviteTerms(`${owner.name}/${bob.name}`) })), 'silent', 'nor does it deny')
  t.is(say(ask(log, owner, { node: eve, terms: inviteTerms('unknown') })), 'silent', 'an invite that is not known yet')
  t.is(say(ask(log, owner, { node: eve, terms })), 'admit')
})

test('codes that a revoked admin kept are revoked with it', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  const kept = inviteTerms('kept')
  log.invite(ann, kept)
  log.revoke(owner, ann)
  t.is(say(ask(log, owner, { node: eve, terms: kept })), 'INVITE_REVOKED')
})

test('nobody becomes an admin with the core of a writer', (t: Assert) => {
  const log = founded()
  const terms = inviteTerms('a', { admin: true })
  log.invite(owner, terms)
  t.is(say(ask(log, owner, { node: { ...eve, coreKey: owner.coreKey }, terms })), 'INVITE_INVALID')
})

test('a certificate issued by an admin with an end ends no later', (t: Assert) => {
  const log = founded()
  const terms = inviteTerms('a', { admin: true })
  log.invite(owner, terms)
  log.write(owner, admission(owner, ann, { terms, changes: { expiresAt: 9000 } }))
  const next = inviteTerms('b')
  log.invite(ann, next)
  const answer = ask(log, ann, { node: bob, terms: next })
  t.is(answer.answer === 'admit' && answer.certificate.expiresAt, 9000)
})

test('an amended certificate is accepted and changes nothing but what was asked', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { tier: 2, sandboxId: 'ci' })
  const before = log.certificateOf(ann)
  const renamed = amendCertificate(log.view(), { self: owner.id, nodeKey: ann.id, name: 'anna', now: 7000 })
  t.alike(renamed, { ...before, name: 'anna', serial: 2, issuedAt: 7000, issuer: owner.id })
  if (renamed !== null) t.is(log.recertify(owner, renamed).skipped, null)
  const lowered = amendCertificate(log.view(), { self: owner.id, nodeKey: ann.id, tier: 3, now: 8000 })
  if (lowered !== null) t.is(log.recertify(owner, lowered).skipped, null)
  t.is(log.certificateOf(ann).maxTier, 3)
  const own = amendCertificate(log.view(), { self: owner.id, nodeKey: owner.id, name: 'boss', now: 8000 })
  if (own !== null) t.is(log.recertify(owner, own).skipped, null)
  t.is(log.certificateOf(owner).name, 'boss')
  t.is(amendCertificate(log.view(), { self: owner.id, nodeKey: keyText('nobody'), now: 1 }), null)
})
