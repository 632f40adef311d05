import test from 'brittle'
import { encodeEntry } from '../../../../src/domain/membership/codec.js'
import { seal } from '../../../../src/domain/membership/signing.js'
import type { EntryBody } from '../../../../src/domain/membership/types.js'
import { eventually } from '../../../support/agents/eventually.js'
import { failsWith } from '../../../support/fails.js'
import { actor, cardBody, keyText } from '../../../support/membership.js'
import { keepApart, type LabNode, threeNodes, untilView } from '../lab.js'

test('an entry handed over a link is appended when the log accepts it, and only once', async (t) => {
  const { owner, member } = await threeNodes(t)
  const entry = sealed(member, cardEntry(member, 'tester'))
  t.ok(await member.mesh.links.relay(entry))
  await untilView(owner, (view) => view.cards.get(member.id)?.has('tester') === true)
  const length = owner.mesh.log.length()
  t.ok(await member.mesh.links.relay(entry), 'it is in the log')
  t.is(owner.mesh.log.length(), length, 'but not a second time')
})

test('entries that are forged, of strangers, or beyond the rights of their author never reach the log', async (t) => {
  const { owner, admin, member } = await threeNodes(t)
  const stranger = actor('stranger')
  const { mesh } = member
  const foreign = { ...cardEntry(member, 'tester'), mesh: keyText('another mesh') }
  const junk: Record<string, Uint8Array> = {
    'a card of the owner, signed by the member': encodeEntry(
      seal('entry', cardEntry(owner, 'tester'), { id: owner.id, sign: mesh.sign })
    ),
    'a card of a stranger, well signed': encodeEntry(
      seal('entry', { kind: 'card', mesh: mesh.meshId, card: seal('card', cardBody('tester'), stranger) }, stranger)
    ),
    'a card for another mesh': sealed(member, foreign),
    'an invite by one who may not invite': sealed(member, inviteEntry(owner)),
    'a revocation of the owner': sealed(member, revocation(member, owner)),
    'a revocation by one who may not': sealed(member, revocation(member, admin)),
    'bytes of nothing': new Uint8Array(100).fill(123),
    'no JSON form of an entry': new TextEncoder().encode('{"body":{"kind":"card"},"by":"x","sig":"y"}')
  }
  const before = [owner, admin].map((node) => [node.mesh.log.length(), node.mesh.ownLength()])
  for (const [what, bytes] of Object.entries(junk)) t.absent(await member.mesh.links.relay(bytes), what)
  t.alike(
    [owner, admin].map((node) => [node.mesh.log.length(), node.mesh.ownLength()]),
    before
  )
})

test('a change without the right to it is skipped on every node, and the log continues', async (t) => {
  const { owner, admin, member } = await threeNodes(t)
  t.ok(admin.mesh.log.writable())
  const certificate = admin.mesh.certificate().body
  const power = { ...certificate, maxTier: 0 as const, serial: certificate.serial + 1, issuer: admin.id }
  const attempts: EntryBody[] = [
    revocation(admin, owner),
    {
      kind: 'certificate',
      mesh: admin.mesh.meshId,
      certificate: seal('certificate', power, { id: admin.id, sign: admin.mesh.sign })
    },
    { kind: 'card', mesh: admin.mesh.meshId, card: seal('card', cardBody('tester'), actor('stranger')) }
  ]
  for (const body of attempts) await failsWith(t, 'TIMEOUT', () => admin.mesh.log.submit(body, 300))
  await admin.mesh.log.submit(cardEntry(admin, 'honest'))
  for (const node of [owner, admin, member]) {
    await untilView(node, (view) => view.cards.get(admin.id)?.has('honest') === true)
    const view = node.mesh.log.view()
    t.is(view.members.get(owner.id)?.revoked, null)
    t.is(view.members.get(admin.id)?.certificate.body.maxTier, 1)
    t.absent(view.cards.get(admin.id)?.has('tester'))
  }
})

test('when a writer is revoked another admin takes its place', async (t) => {
  const { lab, owner, admin } = await threeNodes(t)
  const others = []
  for (const name of ['two', 'three', 'four', 'five']) others.push(await lab.member(name, owner, { admin: true }))
  const last = others[3]
  await untilView(last, (view) => view.members.size === 7)
  t.absent(last.mesh.log.writable(), 'the owner and four admins write; a fifth waits')
  await owner.mesh.log.submit(revocation(owner, admin))
  await untilView(last, (view) => view.members.get(admin.id)?.revoked !== null)
  await eventually(() => last.mesh.log.writable())
  await t.execution(last.mesh.log.submit(cardEntry(last, 'tester')))
})

test('members that are no writers are not asked: their lies keep nothing out of the log', async (t) => {
  const { lab, owner, admin, member } = await threeNodes(t)
  const late = await lab.member('late', owner)
  await late.seen.link(member.id)
  let asked = 0
  member.mesh.log.appendFor = () => {
    asked++
    return Promise.resolve(true)
  }
  await admin.close()
  await behind(late, owner)
  await late.mesh.log.submit(cardEntry(late, 'tester'))
  await untilView(owner, (view) => view.cards.get(late.id)?.has('tester') === true)
  t.is(asked, 0)
})

test('a member without a link to a writer reaches the log through a member that has one', async (t) => {
  const { lab, owner, admin, member } = await threeNodes(t)
  const far = await lab.member('far', owner)
  await far.seen.link(member.id)
  keepApart(far, [owner, admin])
  await far.seen.until(() => far.mesh.links.list().every(({ peer }) => peer === member.id))
  await far.mesh.log.submit(cardEntry(far, 'tester'))
  await untilView(owner, (view) => view.cards.get(far.id)?.has('tester') === true)
  t.absent(
    await far.mesh.links.relay(sealed(far, revocation(far, admin))),
    'an entry that a writer would refuse is not handed on'
  )
})

test('a writer that does not answer, or says what is not true, keeps nothing out of the log', async (t) => {
  const { owner, admin, member } = await threeNodes(t)
  await behind(member, owner)
  admin.mesh.log.appendFor = () => new Promise(() => {})
  t.ok(await member.mesh.links.relay(sealed(member, cardEntry(member, 'first'))), 'the owner took it')
  admin.mesh.log.appendFor = () => Promise.resolve(true)
  await t.execution(member.mesh.log.submit(cardEntry(member, 'second')))
  await untilView(owner, (view) => view.cards.get(member.id)?.size === 2)
})

/** Puts the link to `last` behind the other links of a node. */
async function behind(node: LabNode, last: LabNode): Promise<void> {
  const link = await node.seen.link(last.id)
  link.close('to come again')
  await node.seen.until(() => node.seen.closed.some((one) => one.link === link))
  await node.seen.link(last.id)
}

function sealed(node: LabNode, body: EntryBody): Uint8Array {
  return encodeEntry(seal('entry', body, { id: node.id, sign: node.mesh.sign }))
}

function cardEntry(node: LabNode, id: string): EntryBody & { readonly kind: 'card' } {
  return {
    kind: 'card',
    mesh: node.mesh.meshId,
    card: seal('card', cardBody(id), { id: node.id, sign: node.mesh.sign })
  }
}

function inviteEntry(by: LabNode): EntryBody {
  const { terms } = by.mesh.pairing.create({
    tier: 1,
    admin: false,
    sandboxId: null,
    trust: 'guest',
    ttlMs: 60_000,
    uses: 1
  })
  return { kind: 'invite', mesh: by.mesh.meshId, invite: terms }
}

function revocation(by: LabNode, of: LabNode): EntryBody {
  return { kind: 'revocation', mesh: by.mesh.meshId, nodeKey: of.id, at: Date.now(), reason: 'a test' }
}
