import test, { type Assert } from 'brittle'
import { fold, reads } from '../../../../src/domain/membership/fold/fold.js'
import { memberKey } from '../../../../src/domain/membership/keys.js'
import { seal } from '../../../../src/domain/membership/signing.js'
import type { Entry } from '../../../../src/domain/membership/types.js'
import {
  type Actor,
  actor,
  admission,
  certificate,
  founded,
  inviteTerms,
  keyText,
  LogModel,
  MESH,
  verify
} from '../../../support/membership.js'

const owner = actor('owner')
const ann = actor('ann')
const bob = actor('bob')
const eve = actor('eve')

const founding = (changes: object = {}, by = owner): Entry =>
  seal(
    'entry',
    {
      kind: 'founding',
      mesh: MESH,
      name: 'home',
      certificate: certificate({ issuer: by, node: by, maxTier: 0, mayInvite: true, mayWrite: true, ...changes }),
      coreKey: by.coreKey,
      at: 1000
    },
    by
  )

test('the founding makes its author the owner and first writer', (t: Assert) => {
  const log = new LogModel()
  const result = log.found()
  t.is(result.skipped, null)
  t.alike(result.addWriters, [], 'the bootstrap core is a writer already')
  const view = log.view()
  t.alike(view.mesh, { id: MESH, name: 'home', owner: owner.id, foundedAt: 1000 })
  t.is(view.members.get(owner.id)?.order, 0)
  t.alike(view.writers, { eligible: [{ nodeKey: owner.id, coreKey: owner.coreKey }], active: [owner.coreKey] })
})

test('a founding counts once, from the bootstrap core only, with a full owner certificate', (t: Assert) => {
  const log = new LogModel()
  t.ok(log.apply(founding()).skipped, 'from another core')
  t.ok(log.apply(founding({ maxTier: 1 }), true).skipped, 'not L0')
  t.ok(log.apply(founding({ mayInvite: false }), true).skipped, 'may not invite')
  t.ok(log.apply(founding({ mayWrite: false }), true).skipped, 'may not write')
  t.ok(log.apply(founding({ sandboxId: 'ci' }), true).skipped, 'in a sandbox')
  t.ok(log.apply(founding({ expiresAt: 9000 }), true).skipped, 'expires')
  t.ok(log.apply(founding({ mesh: keyText('other') }), true).skipped, 'certificate of another mesh')
  const foreign = {
    ...founding().body,
    certificate: certificate({ issuer: eve, node: owner, maxTier: 0, mayInvite: true, mayWrite: true })
  } as Entry['body']
  t.ok(log.apply(seal('entry', foreign, owner), true).skipped, 'issued by another')
  t.is(log.records.size, 0)
  t.is(log.apply(founding(), true).skipped, null)
  t.ok(log.apply(founding({}, eve), true).skipped, 'a second one')
  t.is(log.view().mesh?.owner, owner.id)
})

test('a founding is signed twice by its owner: as an entry and as a certificate', (t: Assert) => {
  const log = new LogModel()
  const entry = founding()
  t.ok(log.apply({ ...entry, sig: seal('entry', { x: 1 }, owner).sig }, true).skipped)
  const body = entry.body as Entry['body'] & { kind: 'founding' }
  const unsigned = { ...body, certificate: { ...body.certificate, sig: entry.sig } }
  t.ok(log.apply(seal('entry', unsigned, owner), true).skipped)
  t.is(log.records.size, 0)
})

test('nothing counts before the founding, from strangers, for another mesh, or with a wrong signature', (t: Assert) => {
  const terms = inviteTerms('a')
  const empty = new LogModel()
  t.is(empty.invite(owner, terms).skipped, 'the mesh is not founded yet')
  const log = founded()
  t.is(log.invite(eve, terms).skipped, 'its author is no member')
  t.ok(log.write(owner, { kind: 'invite', mesh: keyText('other'), invite: terms }).skipped, 'another mesh')
  const entry = seal('entry', { kind: 'invite' as const, mesh: MESH, invite: terms }, owner)
  t.ok(log.apply({ ...entry, sig: seal('entry', { x: 1 }, owner).sig }).skipped, 'the signature of something else')
  t.ok(log.apply({ ...entry, by: eve.id }).skipped, 'signed by another')
  t.ok(log.apply(seal('certificate', entry.body, owner)).skipped, 'signed as another kind')
  t.is(log.view().invites.size, 0)
  t.is(log.apply(entry).skipped, null)
})

test('an invite may not grant more than its author has', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { admin: true, tier: 2 })
  log.join(owner, bob, { tier: 0 })
  t.ok(log.invite(bob, inviteTerms('b')).skipped, 'a member may not invite')
  t.ok(log.invite(ann, inviteTerms('c', { tier: 1 })).skipped, 'L1 from an L2 admin')
  t.ok(log.invite(ann, inviteTerms('d', { tier: 2, createdAt: 5, expiresAt: 5 })).skipped, 'expires when it is made')
  t.is(log.invite(ann, inviteTerms('e', { tier: 2, admin: true })).skipped, null)
  t.is(log.invite(ann, inviteTerms('f', { tier: 3, sandboxId: 'ci' })).skipped, null)
  t.ok(log.invite(owner, inviteTerms('e', { tier: 0, uses: 9 })).skipped, 'an id in use')
  t.is(log.view().invites.get(inviteTerms('e').id)?.by, ann.id)
})

test('an admin in a sandbox invites into its own sandbox only', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { admin: true, sandboxId: 'ci' })
  t.ok(log.invite(ann, inviteTerms('a')).skipped)
  t.ok(log.invite(ann, inviteTerms('b', { sandboxId: 'lab' })).skipped)
  t.is(log.invite(ann, inviteTerms('c', { sandboxId: 'ci' })).skipped, null)
})

test('an admission makes a member with exactly what the invite says', (t: Assert) => {
  const log = founded()
  const terms = inviteTerms('a', { tier: 2, sandboxId: 'ci' })
  log.invite(owner, terms)
  const wrong = [
    { maxTier: 1 as const },
    { mayInvite: true },
    { mayWrite: true },
    { sandboxId: 'lab' },
    { inviteId: keyText('none') }
  ]
  for (const changes of wrong)
    t.ok(log.write(owner, admission(owner, ann, { terms, changes })).skipped, JSON.stringify(changes))
  t.is(log.view().members.size, 1)
  t.is(log.admit(owner, ann, terms).skipped, null)
  const member = log.view().members.get(ann.id)
  t.is(member?.coreKey, ann.coreKey)
  t.is(member?.order, 1)
  t.is(member?.certificate.body.maxTier, 2)
  t.alike(log.view().invites.get(terms.id)?.admitted, [ann.id])
  t.alike([...log.writers], [owner.coreKey], 'a plain member writes nothing')
})

test('any admin whose grant covers the invite may admit by it', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { admin: true, tier: 2 })
  log.join(owner, bob)
  const wide = inviteTerms('wide', { tier: 1 })
  const narrow = inviteTerms('narrow', { tier: 3 })
  log.invite(owner, wide)
  log.invite(owner, narrow)
  t.ok(log.admit(ann, eve, wide).skipped, 'an L2 admin by an L1 invite')
  t.ok(log.admit(bob, eve, narrow).skipped, 'a plain member')
  t.ok(log.write(owner, admission(ann, eve, { terms: narrow })).skipped, 'the author is not the issuer')
  t.is(log.admit(ann, eve, narrow).skipped, null)
})

test('nobody is admitted that did not ask for it, by this invite and with this core', (t: Assert) => {
  const log = founded()
  const terms = inviteTerms('a')
  const other = inviteTerms('b')
  log.invite(owner, terms)
  log.invite(owner, other)
  const body = admission(owner, ann, { terms })
  const forged = [
    { ...body, request: admission(owner, ann, { terms: other }).request },
    { ...body, request: admission(owner, bob, { terms }).request },
    { ...body, request: { ...body.request, name: 'someone else' } },
    { ...body, coreKey: keyText('another core') },
    { ...body, certificate: { ...body.certificate, sig: certificate({ issuer: eve, node: ann }).sig } },
    { ...body, certificate: seal('certificate', body.certificate.body, eve) }
  ]
  for (const one of forged) t.ok(log.write(owner, one).skipped)
  t.absent(log.view().members.has(ann.id))
  t.is(log.view().refusals.size, 0, 'worthless admissions leave nothing')
  t.is(log.write(owner, body).skipped, null)
})

test('the first uses of an invite are admitted, later ones find their refusal', (t: Assert) => {
  const log = founded()
  const terms = inviteTerms('a', { uses: 2 })
  log.invite(owner, terms)
  log.admit(owner, ann, terms)
  t.ok(log.admit(owner, ann, terms).skipped, 'the same node does not count twice')
  log.admit(owner, bob, terms)
  t.is(log.admit(owner, eve, terms).skipped, 'INVITE_USED')
  const view = log.view()
  t.alike(view.invites.get(terms.id)?.admitted, [ann.id, bob.id])
  t.absent(view.members.has(eve.id))
  t.alike(view.refusals.get(eve.id), { inviteId: terms.id, code: 'INVITE_USED', at: 1001 })
})

test('expired and revoked invites leave their own refusal', (t: Assert) => {
  const log = founded()
  const late = inviteTerms('late')
  log.invite(owner, late)
  log.write(owner, admission(owner, ann, { terms: late, changes: { issuedAt: late.expiresAt + 1 } }))
  t.is(log.view().refusals.get(ann.id)?.code, 'INVITE_EXPIRED')
  const gone = inviteTerms('gone')
  log.invite(owner, gone)
  log.write(owner, { kind: 'invite-revoked', mesh: MESH, inviteId: gone.id, at: 2000 })
  log.admit(owner, bob, gone)
  t.is(log.view().refusals.get(bob.id)?.code, 'INVITE_REVOKED')
  t.is(log.view().members.size, 1)
})

test('a later admission deletes the refusal, a later refusal replaces it', (t: Assert) => {
  const log = founded()
  const first = inviteTerms('first')
  const second = inviteTerms('second', { createdAt: 2000 })
  const third = inviteTerms('third', { createdAt: 3000 })
  for (const terms of [first, second, third]) log.invite(owner, terms)
  log.admit(owner, ann, first)
  log.admit(owner, eve, first)
  log.write(owner, { kind: 'invite-revoked', mesh: MESH, inviteId: second.id, at: 2000 })
  log.admit(owner, eve, second)
  t.is(log.view().refusals.get(eve.id)?.code, 'INVITE_REVOKED')
  log.admit(owner, eve, first)
  t.is(log.view().refusals.get(eve.id)?.code, 'INVITE_REVOKED', 'an old entry, appended again, changes nothing')
  t.is(log.admit(owner, eve, third).skipped, null)
  t.is(log.view().refusals.size, 0)
  t.ok(log.admit(owner, eve, first).skipped)
  t.is(log.view().refusals.size, 0)
})

test('a member that comes by another invite stays as it is', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { tier: 2 })
  const terms = inviteTerms('again', { tier: 0, admin: true })
  log.invite(owner, terms)
  t.is(log.admit(owner, ann, terms).skipped, 'the node is already a member')
  t.is(log.certificateOf(ann).maxTier, 2)
  t.alike(log.view().invites.get(terms.id)?.admitted, [])
})

test('an invite is revoked by its creator, the owner or any admin, once', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  log.join(owner, bob)
  const revoke = (by: typeof owner, name: string, at: number) =>
    log.write(by, { kind: 'invite-revoked', mesh: MESH, inviteId: inviteTerms(name).id, at }).skipped
  log.invite(owner, inviteTerms('a'))
  log.invite(ann, inviteTerms('b'))
  t.ok(revoke(bob, 'a', 2000), 'a plain member')
  t.is(revoke(owner, 'unknown', 2000), 'the invite is unknown')
  t.is(revoke(ann, 'a', 2000), null)
  t.is(revoke(owner, 'b', 3000), null)
  t.ok(revoke(owner, 'a', 4000), 'twice')
  t.is(log.view().invites.get(inviteTerms('a').id)?.revokedAt, 2000)
})

test('a revoked node is out for good: nothing of it counts, and its invites end with it', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  const kept = inviteTerms('kept', { uses: 5 })
  log.invite(ann, kept)
  log.admit(ann, bob, kept)
  t.is(log.revoke(owner, ann).skipped, null)
  t.alike(log.view().members.get(ann.id)?.revoked, { by: owner.id, at: 5000, reason: 'lost' })
  t.ok(log.invite(ann, inviteTerms('more')).skipped)
  t.ok(log.admit(ann, eve, kept).skipped)
  t.is(log.admit(owner, eve, kept).skipped, 'INVITE_REVOKED', 'also through an honest admin')
  t.is(log.view().invites.get(kept.id)?.revokedAt, 5000, 'the view says so')
  t.is(log.view().members.get(bob.id)?.revoked, null, 'its earlier certificates stay valid')
  const fresh = inviteTerms('fresh', { createdAt: 6000 })
  log.invite(owner, fresh)
  t.is(log.admit(owner, ann, fresh).skipped, 'the node is revoked')
  t.absent(log.view().refusals.has(ann.id), 'its own record has the reason')
  t.ok(log.view().members.get(ann.id)?.revoked)
  t.ok(log.revoke(owner, ann, 7000).skipped, 'twice')
})

test('an earlier request of a revoked node, or one by the invite that admitted it, leaves no refusal', (t: Assert) => {
  const log = founded()
  const first = log.join(owner, ann, { uses: 5 })
  const second = inviteTerms('second')
  log.invite(owner, second)
  log.admit(owner, ann, second)
  log.revoke(owner, ann)
  t.ok(log.admit(owner, ann, second).skipped)
  t.ok(log.write(owner, admission(owner, ann, { terms: first, changes: { issuedAt: 9000 } })).skipped)
  t.is(log.view().refusals.size, 0)
})

test('an admin revokes, renames or changes nobody that it could not have admitted, and ends no invite that it could not have made', (t: Assert) => {
  const log = founded()
  const [chief, high, outside, kid] = ['chief', 'high', 'outside', 'kid'].map((name) => actor(name)) as [
    Actor,
    Actor,
    Actor,
    Actor
  ]
  log.join(owner, chief, { admin: true, tier: 3, sandboxId: 'ci' })
  log.join(owner, high, { tier: 0 })
  log.join(owner, outside, { tier: 3 })
  log.join(owner, kid, { tier: 3, sandboxId: 'ci' })
  for (const name of ['top', 'low'])
    log.invite(owner, inviteTerms(name, name === 'top' ? { tier: 0 } : { tier: 3, sandboxId: 'ci' }))
  const end = (name: string) =>
    log.write(chief, { kind: 'invite-revoked', mesh: MESH, inviteId: inviteTerms(name).id, at: 2000 }).skipped
  t.ok(
    log.revoke(chief, high).skipped?.startsWith('its author could not have admitted the node: its tier L0'),
    'of a better tier'
  )
  t.ok(log.revoke(chief, outside).skipped?.includes('only the sandbox ci'), 'outside of its sandbox')
  t.is(log.revoke(chief, kid).skipped, null)
  t.ok(end('top')?.startsWith('its author could not have made the invite'))
  t.is(end('low'), null)
})

test('the owner revokes anyone but itself, an admin any non-admin', (t: Assert) => {
  const log = founded()
  const admin2 = actor('admin2')
  log.join(owner, ann, { admin: true })
  log.join(owner, admin2, { admin: true })
  log.join(owner, bob)
  log.join(owner, eve)
  t.ok(log.revoke(owner, owner).skipped)
  t.ok(log.revoke(ann, owner).skipped)
  t.ok(log.revoke(ann, admin2).skipped)
  t.ok(log.revoke(ann, ann).skipped)
  t.ok(log.revoke(bob, eve).skipped)
  t.is(log.revoke(owner, actor('nobody')).skipped, 'the node is no member')
  t.is(log.revoke(ann, bob).skipped, null)
  t.is(log.revoke(owner, admin2).skipped, null)
})

test('the owner and four more write; a revocation promotes the next in line', (t: Assert) => {
  const log = founded()
  const admins = Array.from({ length: 6 }, (_, i) => actor(`admin${i}`))
  for (const one of admins) log.join(owner, one, { admin: true })
  const cores = (...indices: number[]) => [owner.coreKey, ...indices.map((i) => admins[i]?.coreKey)].sort()
  t.alike([...log.writers].sort(), cores(0, 1, 2, 3))
  const result = log.revoke(owner, admins[1])
  t.alike(result.removeWriters, [admins[1]?.coreKey])
  t.alike(result.addWriters, [admins[4]?.coreKey])
  t.alike([...log.writers].sort(), cores(0, 2, 3, 4))
  t.alike(log.revoke(owner, admins[5]).addWriters, [], 'one still in line leaves it')
  log.revoke(owner, admins[0])
  t.alike([...log.writers].sort(), cores(2, 3, 4))
})

test('nobody becomes a writer with the core of another', (t: Assert) => {
  const log = founded()
  const thief = { ...eve, coreKey: owner.coreKey }
  const terms = inviteTerms('a', { admin: true })
  log.invite(owner, terms)
  t.ok(log.admit(owner, thief, terms).skipped)
  t.absent(log.view().members.has(eve.id))
})

test('a certificate renames and re-tiers, by the owner anyone, by an admin non-admins', (t: Assert) => {
  const log = founded()
  const admin2 = actor('admin2')
  log.join(owner, ann, { admin: true, tier: 1 })
  log.join(owner, admin2, { admin: true })
  log.join(owner, bob, { tier: 2 })
  const next = (node: typeof owner, by: typeof owner, changes: object) => ({
    ...log.certificateOf(node),
    issuer: by.id,
    serial: log.certificateOf(node).serial + 1,
    ...changes
  })
  t.is(log.recertify(ann, next(bob, ann, { name: 'robert', maxTier: 1 })).skipped, null)
  t.is(log.certificateOf(bob).name, 'robert')
  t.is(log.recertify(owner, next(bob, owner, { maxTier: 0 })).skipped, null)
  t.ok(log.recertify(ann, next(bob, ann, { name: 'bobby' })).skipped, 'L0 from an L1 admin')
  t.ok(log.recertify(ann, next(ann, ann, { name: 'queen' })).skipped, 'an admin not itself')
  t.ok(log.recertify(ann, next(admin2, ann, { name: 'x' })).skipped, 'nor another admin')
  t.ok(log.recertify(bob, next(bob, bob, { name: 'x' })).skipped, 'a plain member nobody')
  t.is(log.recertify(owner, next(ann, owner, { maxTier: 3 })).skipped, null)
  t.is(log.recertify(owner, next(owner, owner, { name: 'boss' })).skipped, null)
  t.ok(log.recertify(owner, next(owner, owner, { maxTier: 1 })).skipped, 'the owner stays L0')
  t.ok(log.recertify(owner, next(owner, owner, { expiresAt: 9000 })).skipped, 'and for ever')
  t.is(log.certificateOf(owner).name, 'boss')
})

test('a new certificate needs a higher serial and keeps rights, sandbox and invite', (t: Assert) => {
  const log = founded()
  log.join(owner, bob, { tier: 2, sandboxId: 'ci' })
  const now = log.certificateOf(bob)
  const wrong = [
    { serial: 1 },
    { serial: 2_000_000 },
    { serial: 2, mayInvite: true },
    { serial: 2, mayWrite: true },
    { serial: 2, sandboxId: 'lab' },
    { serial: 2, inviteId: keyText('other') },
    { serial: 2, mesh: keyText('other') },
    { serial: 2, issuer: ann.id },
    { serial: 2, nodeKey: eve.id }
  ]
  for (const changes of wrong) t.ok(log.recertify(owner, { ...now, ...changes }).skipped, JSON.stringify(changes))
  t.alike(log.certificateOf(bob), now)
  const forged = {
    kind: 'certificate' as const,
    mesh: MESH,
    certificate: seal('certificate', { ...now, serial: 2 }, eve)
  }
  t.ok(log.write(owner, { ...forged, certificate: { ...forged.certificate, by: owner.id } }).skipped)
  t.is(log.recertify(owner, { ...now, serial: 2 }).skipped, null)
  log.revoke(owner, bob)
  t.ok(log.recertify(owner, { ...now, serial: 3 }).skipped, 'a revoked node gets none')
})

test('certificates never outlive their issuer', (t: Assert) => {
  const log = founded()
  const terms = inviteTerms('a', { admin: true })
  log.invite(owner, terms)
  log.write(owner, admission(owner, ann, { terms, changes: { expiresAt: 50_000 } }))
  const next = inviteTerms('b', { createdAt: 2000 })
  t.is(log.invite(ann, next).skipped, null)
  t.ok(log.invite(ann, inviteTerms('c', { createdAt: 50_001 })).skipped, 'made after the certificate expired')
  t.ok(log.admit(ann, bob, next).skipped, 'without end')
  t.ok(log.write(ann, admission(ann, bob, { terms: next, changes: { expiresAt: 50_001 } })).skipped)
  t.is(log.write(ann, admission(ann, bob, { terms: next, changes: { expiresAt: 50_000 } })).skipped, null)
})

test('reads and fold take anything without a throw', (t: Assert) => {
  const context = { verify, isBootstrapRelay: true, meshId: MESH }
  for (const junk of [
    null,
    undefined,
    1,
    'x',
    [],
    {},
    { body: null },
    { body: { kind: 'card', mesh: MESH }, by: owner.id, sig: '' }
  ]) {
    t.alike(
      reads(junk as never).filter((key) => key.startsWith('card/')),
      []
    )
    t.ok(fold(new Map(), junk as never, context).skipped)
  }
  const log = founded()
  const unknown = { body: { kind: 'nonsense', mesh: MESH }, by: owner.id, sig: '' } as never
  t.ok(log.apply(unknown).skipped)
  t.ok(log.apply(seal('entry', { kind: 'nonsense', mesh: MESH } as never, owner)).skipped)
  t.ok(fold(new Map([[memberKey(owner.id), 5]]), founding(), { ...context, isBootstrapRelay: false }).skipped)
})
