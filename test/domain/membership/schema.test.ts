import test, { type Assert } from 'brittle'
import {
  certificateSchema,
  entryBodySchema,
  entrySchema,
  inviteTermsSchema,
  joinRequestSchema,
  meshRecordSchema,
  nameSchema
} from '../../../src/domain/membership/schema.js'
import { snapshotBody } from '../../support/document-entries.js'
import {
  ACCESS,
  actor,
  certificateBody,
  founded,
  inviteTerms,
  joinRequest,
  keyText,
  MESH,
  SETTINGS
} from '../../support/membership.js'

const owner = actor('owner')
const ann = actor('ann')

test('the log takes names without control characters, also names that no node admits any more', (t: Assert) => {
  for (const name of ['laptop', 'gpu box', 'Zoë', '机器', 'x'.repeat(64), 'bo\u200bss', 'b\u043ess', '\u{1f680}'])
    t.ok(nameSchema.safeParse(name).success, name)
  for (const name of ['', ' ', 'a\nb', 'a\u001bb', '\u202eabc', 'x'.repeat(65), 5, null])
    t.absent(nameSchema.safeParse(name).success, String(name))
})

test('a certificate is bounded and strict', (t: Assert) => {
  const body = certificateBody({ issuer: owner, node: ann })
  t.ok(certificateSchema.safeParse(body).success)
  t.ok(certificateSchema.safeParse({ ...body, sandboxId: 'ci', expiresAt: 5, inviteId: keyText('i') }).success)
  const wrong = [
    { nodeKey: `${ann.id.slice(0, -1)}b` },
    { mesh: 'home' },
    { maxTier: 4 },
    { maxTier: '1' },
    { serial: 0 },
    { serial: 1.5 },
    { issuedAt: -1 },
    { expiresAt: Number.POSITIVE_INFINITY },
    { sandboxId: 'a/b' },
    { mayInvite: 1 },
    { name: '' },
    { extra: true }
  ]
  for (const change of wrong)
    t.absent(certificateSchema.safeParse({ ...body, ...change }).success, JSON.stringify(change))
  for (const key of Object.keys(body)) {
    const { [key as 'name']: _, ...rest } = body
    t.absent(certificateSchema.safeParse(rest).success, `without ${key}`)
  }
})

test('an invite has 1..1000 uses', (t: Assert) => {
  for (const uses of [1, 1000]) t.ok(inviteTermsSchema.safeParse(inviteTerms('a', { uses })).success)
  for (const uses of [0, 1001, -1, 2.5, Number.NaN])
    t.absent(inviteTermsSchema.safeParse(inviteTerms('a', { uses })).success)
  t.absent(inviteTermsSchema.safeParse({ ...inviteTerms('a'), more: 1 }).success)
  t.absent(
    inviteTermsSchema.safeParse(
      inviteTerms('a', { additional: { data: 'y'.repeat(900), signature: inviteTerms('a').additional.signature } })
    ).success
  )
})

test('requests and mesh records have their form', (t: Assert) => {
  const request = joinRequest(ann, keyText('i'))
  t.ok(joinRequestSchema.safeParse(request).success)
  t.absent(joinRequestSchema.safeParse({ ...request, sig: 'yyyy' }).success)
  t.absent(joinRequestSchema.safeParse({ ...request, admin: true }).success)
  t.ok(meshRecordSchema.safeParse({ id: MESH, name: 'home', owner: owner.id, foundedAt: 1 }).success)
  t.absent(meshRecordSchema.safeParse({ id: MESH, name: 'home', owner: 'me', foundedAt: 1 }).success)
})

test('a rating is about a key, in one of two words and a whole serial, and never about a name that objects have', (t: Assert) => {
  const rating = { kind: 'trust', mesh: MESH, nodeKey: ann.id, trust: 'mine', serial: 1, at: 1 }
  t.ok(entryBodySchema.safeParse(rating).success)
  const strange = ['__proto__', 'constructor', 'toString', '_'.repeat(52), ann.id.toUpperCase(), `${ann.id} `, '', 1]
  for (const nodeKey of strange)
    t.absent(entryBodySchema.safeParse({ ...rating, nodeKey }).success, JSON.stringify(nodeKey))
  for (const wrong of [{ trust: 'friend' }, { trust: null }, { serial: 0 }, { serial: 1.5 }, { serial: 2 ** 53 }])
    t.absent(entryBodySchema.safeParse({ ...rating, ...wrong }).success, JSON.stringify(wrong))
})

test('every kind of entry passes as the fold writes it, and none with a foreign key', (t: Assert) => {
  const log = founded()
  const terms = log.join(owner, ann)
  log.write(owner, { kind: 'invite-revoked', mesh: MESH, inviteId: terms.id, at: 1 })
  log.recertify(owner, { ...log.certificateOf(ann), serial: 2 })
  log.card(owner, {
    id: 'host',
    name: 'host',
    version: '1.0.0',
    description: '',
    tier: 0,
    protocols: [],
    endpoints: [],
    capabilities: [],
    revision: 1
  })
  log.uncard(owner, 'host', 1)
  log.write(owner, { kind: 'settings', mesh: MESH, settings: SETTINGS, serial: 1, at: 1 })
  log.write(ann, { kind: 'document', mesh: MESH, name: 'notes', access: ACCESS, at: 1 })
  log.write(ann, { kind: 'document-stream', mesh: MESH, name: 'notes', coreKey: keyText('s') })
  log.write(ann, snapshotBody({ core: 'snapshot', lengths: { s: 1024 }, serial: 1 }))
  log.write(ann, {
    kind: 'document-access',
    mesh: MESH,
    name: 'notes',
    access: { ...ACCESS, serial: 2 },
    lengths: { [keyText('s')]: 1 }
  })
  log.revoke(owner, ann)
  const entries = log.entries.map((one) => one.entry)
  t.is(new Set(entries.map((entry) => entry.body.kind)).size, 13)
  for (const entry of entries) {
    t.ok(entrySchema.safeParse(entry).success, entry.body.kind)
    t.absent(entrySchema.safeParse({ ...entry, body: { ...entry.body, extra: 1 } }).success, entry.body.kind)
    t.absent(entrySchema.safeParse({ ...entry, extra: 1 }).success)
  }
})

test('a snapshot of a document has 1 to 1,024 blocks, whole lengths of streams by their keys, and nothing is missing', (t: Assert) => {
  const body = snapshotBody({ core: 'snapshot', lengths: { s: 1024, r: 0 } })
  for (const change of [{}, { blocks: 1 }, { blocks: 1024 }, { serial: 7 }, { lengths: {} }])
    t.ok(entryBodySchema.safeParse({ ...body, ...change }).success, JSON.stringify(change))
  const wrong = [
    { blocks: 0 },
    { blocks: 1025 },
    { blocks: 1.5 },
    { serial: -1 },
    { serial: null },
    { hash: 'none' },
    { coreKey: `${body.coreKey.slice(0, -1)}b` },
    { lengths: { s: 1 } },
    { lengths: { [keyText('s')]: -1 } },
    { lengths: { [keyText('s')]: 0.5 } },
    { lengths: { [keyText('s')]: 2 ** 53 } },
    { lengths: [] },
    { name: 'two\nlines' }
  ]
  for (const change of wrong)
    t.absent(entryBodySchema.safeParse({ ...body, ...change }).success, JSON.stringify(change))
  for (const key of Object.keys(body)) {
    const { [key as 'name']: _, ...rest } = body
    t.absent(entryBodySchema.safeParse(rest).success, `without ${key}`)
  }
})
