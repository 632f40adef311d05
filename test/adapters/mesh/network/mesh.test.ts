import test from 'brittle'
import type { Assert } from 'brittle'
import Corestore from 'corestore'
import Protomux from 'protomux'
import { encodeGateMessage, type GateRefusal } from '../../../../src/adapters/mesh/links/hello.js'
import { PeerLinks, type PeerLinksDeps } from '../../../../src/adapters/mesh/links/links.js'
import type { MeshBinding } from '../../../../src/adapters/mesh/network/mesh-binding.js'
import { AutobaseLog } from '../../../../src/adapters/mesh/log/log.js'
import { pairingSwarm } from '../../../../src/adapters/mesh/pairing/pairing-swarm.js'
import { MeshNode } from '../../../../src/adapters/mesh/network/mesh-node.js'
import { hash, signer, verify } from '../../../../src/adapters/mesh/network/sodium.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import type { Clock } from '../../../../src/kit/clock.js'
import { bytesToText, keyToText } from '../../../../src/kit/ids.js'
import { chainOf } from '../../../../src/domain/membership/chain.js'
import { seal } from '../../../../src/domain/membership/signing.js'
import type { EntryBody } from '../../../../src/domain/membership/types.js'
import { failsWith } from '../../../support/fails.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { keyText } from '../../../support/membership.js'
import { tempDir } from '../../../support/tmp.js'
import { inviteCode, type Lab, type LabNode, labNetwork, loopbackDht, meshLab, untilView } from '../lab.js'

/** An owner, an admin and a member, all linked. */
async function threeNodes(t: Assert): Promise<{ lab: Lab; owner: LabNode; admin: LabNode; member: LabNode }> {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const admin = await lab.member('admin', owner, { admin: true })
  const member = await lab.member('member', owner)
  await untilView(admin, (view) => view.members.size === 3)
  await untilView(member, (view) => view.members.size === 3)
  await Promise.all([admin.seen.link(member.id), member.seen.link(admin.id)])
  return { lab, owner, admin, member }
}

/** Says over an open stream what the gate would say. */
function say(from: LabNode, to: LabNode, refusal: GateRefusal): void {
  for (const stream of from.swarm.connections) {
    if (keyToText(stream.remotePublicKey) !== to.id) continue
    Protomux.from(stream)
      .getLastChannel({ protocol: 'a2a-node/gate' })
      ?.messages[0]?.send(encodeGateMessage({ type: 'refused', ...refusal }))
  }
}

/** Sends a frame and waits for it: what was said on the stream before has been heard then. */
async function heard(from: LabNode, to: LabNode): Promise<void> {
  const before = to.seen.frames.length
  const link = await from.seen.link(to.id)
  link.send(Uint8Array.of(1))
  await to.seen.until(() => to.seen.frames.length > before)
}

function revocation(by: LabNode, of: LabNode): EntryBody {
  return { kind: 'revocation', mesh: by.mesh.meshId, nodeKey: of.id, at: Date.now(), reason: 'a test' }
}

test('a founder is owner with every right, a newcomer has what its invite grants, and both after a restart', async (t) => {
  const { lab, owner, member } = await threeNodes(t)
  const { maxTier, mayInvite, mayWrite, issuer } = owner.mesh.certificate().body
  t.alike({ maxTier, mayInvite, mayWrite, issuer }, { maxTier: 0, mayInvite: true, mayWrite: true, issuer: owner.id })
  await Promise.all([owner.close(), member.close()])
  const [again, back] = [await lab.reopen(owner), await lab.reopen(member)]
  t.alike([again.id, back.id], [owner.id, member.id], 'a home keeps its key')
  t.alike(again.mesh.certificate(), owner.mesh.certificate())
  t.alike(back.mesh.certificate(), member.mesh.certificate())
  t.is(back.mesh.meshName, 'lab')
  t.is(back.mesh.owner, owner.id)
  await Promise.all([again.start(), back.start()])
  await again.seen.link(member.id)
  t.pass('they find each other again')
})

test('a joined node remembers what it needs, and its log shows its own admission', async (t) => {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const node = await lab.join('newcomer', await inviteCode(owner))
  await node.start()
  await node.mesh.settled()
  t.ok(node.mesh.log.view().members.has(node.id))
  const { key, owner: root, name, chain } = node.mesh.state()
  t.alike(
    { key, root, name, holder: chain[0].body.nodeKey },
    { key: owner.mesh.meshId, root: owner.id, name: 'lab', holder: node.id }
  )
})

test('a revoked node is cut everywhere, with the reason, and remembers it', async (t) => {
  const { owner, admin, member } = await threeNodes(t)
  const states: unknown[] = []
  member.mesh.onState((state) => states.push(state.isRevoked))
  await owner.mesh.log.submit(revocation(owner, member))
  t.is((await member.mesh.expelled).code, 'REVOKED')
  await Promise.all(
    [owner, admin].map((node) => node.seen.until(() => node.mesh.links.list().every((link) => link.peer !== member.id)))
  )
  t.is(member.mesh.state().isRevoked, true)
  t.alike(states.at(-1), true)
})

test('a revoked node that comes again, also to nodes that started anew, gets no link', async (t) => {
  const { lab, owner, admin, member } = await threeNodes(t)
  await member.close()
  await owner.mesh.log.submit(revocation(owner, member))
  await untilView(admin, (view) => view.members.get(member.id)?.revoked !== null)
  await Promise.all([owner.close(), admin.close()])
  const [again, back, out] = [await lab.reopen(owner), await lab.reopen(admin), await lab.reopen(member)]
  await Promise.all([again.start(), back.start(), out.start()])
  t.is((await out.mesh.expelled).code, 'REVOKED', 'it is reported, since its own log does not know')
  await back.seen.link(again.id)
  for (const node of [again, back]) t.absent(node.seen.opened.some((link) => link.peer === member.id))
  t.is(out.seen.opened.length, 0)
})

test('nobody is put out by the word of one who could not do it by the log', async (t) => {
  const { owner, admin, member } = await threeNodes(t)
  const expelled: string[] = []
  for (const node of [owner, admin]) void node.mesh.expelled.then(() => expelled.push(node.name))
  const revoked: GateRefusal = { code: 'REVOKED', reason: 'a lie' }
  const used: GateRefusal = { code: 'INVITE_USED', reason: 'a lie' }
  for (const [from, to] of [
    [member, owner],
    [member, admin],
    [admin, owner]
  ]) {
    say(from, to, revoked)
    say(from, to, used)
    await heard(from, to)
  }
  // A refusal of another invite, and one that is no word about membership, count for nothing from anybody.
  say(owner, admin, { ...used, inviteId: keyText('another invite') })
  say(owner, admin, { code: 'FORBIDDEN', reason: 'a whim' })
  await heard(owner, admin)
  t.alike(expelled, [])
  say(admin, member, revoked)
  t.is((await member.mesh.expelled).code, 'REVOKED', 'an admin may put out a member')
  say(owner, admin, revoked)
  t.is((await admin.mesh.expelled).code, 'REVOKED', 'the owner anybody')
})

test('an admin puts nobody out by its word that it could not have admitted', async (t) => {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const weak = await lab.member('weak', owner, { admin: true, tier: 3 })
  const strong = await lab.member('strong', owner, { tier: 1 })
  const peer = await lab.member('peer', owner, { tier: 3 })
  await Promise.all([strong, peer].map((node) => untilView(node, (view) => view.members.size === 4)))
  await Promise.all([strong, peer].map((node) => weak.seen.link(node.id)))
  const expelled: string[] = []
  void strong.mesh.expelled.then(({ code }) => expelled.push(code))
  say(weak, strong, { code: 'REVOKED', reason: 'a lie' })
  await heard(weak, strong)
  t.alike(expelled, [])
  say(weak, peer, { code: 'REVOKED', reason: 'it may' })
  t.is((await peer.mesh.expelled).code, 'REVOKED')
})

test('the word of a revoked admin puts nobody out, not even whom it let in', async (t) => {
  const lab = await meshLab(t)
  const founder = await lab.found('owner')
  await founder.start()
  const admin = await lab.member('admin', founder, { admin: true })
  // Any admin that is online may let a newcomer in: the owner is away, so that it is this one.
  await founder.close()
  const member = await lab.member('member', admin)
  t.is(member.mesh.certificate().body.issuer, admin.id)
  const owner = await lab.reopen(founder)
  await owner.start()
  await untilView(owner, (view) => view.members.has(member.id))
  // The stream stays: what the admin says on it just before it is cut is what counts.
  for (const node of [admin, member]) node.mesh.links.review = () => {}
  const expelled: string[] = []
  void member.mesh.expelled.then(({ code }) => expelled.push(code))
  await owner.mesh.log.submit(revocation(owner, admin))
  await untilView(member, (view) => (view.members.get(admin.id)?.revoked ?? null) !== null)
  say(admin, member, { code: 'REVOKED', reason: 'out of spite' })
  say(admin, member, { code: 'INVITE_USED', reason: 'out of spite' })
  await heard(admin, member)
  t.alike(expelled, [])
})

test('with all links taken a node sends members away, and takes the next when one is gone', async (t) => {
  const lab = await meshLab(t)
  const owner = await lab.found('owner', { maxLinks: 1 })
  await owner.start()
  const first = await lab.member('first', owner)
  const second = await lab.join('second', await inviteCode(owner))
  await second.start()
  await second.seen.link(first.id)
  t.absent(second.seen.opened.some((link) => link.peer === owner.id))
  t.is(owner.mesh.links.list().length, 1)
  // At once, not after its hour.
  await failsWith(t, 'PEER_OFFLINE', () => owner.mesh.links.dial(second.id, 3_600_000))
  await first.close()
  await second.seen.link(owner.id)
  t.pass('there is a place now')
})

/** Links that show what they are bound to. */
class ShownLinks extends PeerLinks {
  bound: MeshBinding | null = null

  override bind(binding: MeshBinding): void {
    this.bound = binding
    super.bind(binding)
  }
}

/** A node that was let in by the owner and has no certificate yet, and what peers that know the mesh may tell it. */
async function certificateless(t: Assert, owner: LabNode, clock: Clock = systemClock()) {
  const store = new Corestore(await tempDir(t))
  const keyPair = await store.createKeyPair('a2a-node/node')
  const sign = signer(keyPair.secretKey)
  const telemetry = new MemoryTelemetry({ clock: systemClock(), level: null, format: 'text', write: () => {} })
  const { network } = labNetwork(await loopbackDht(t))
  const { key, encryptionKey } = owner.mesh.log
  const nodeId = keyToText(keyPair.publicKey)
  const log = await AutobaseLog.open({
    store: store.namespace('log'),
    mesh: { key, encryptionKey },
    nodeId,
    sign,
    verify,
    clock: systemClock(),
    telemetry
  })
  const codeNetwork = { network: 'private', bootstrap: [], localPort: null } as const
  const shared = { network, keyPair, software: 'x', clock: systemClock(), telemetry, maxLinks: 8 }
  const transport = network.openTransport(keyPair)
  const links = new ShownLinks({
    ...shared,
    transport,
    networkKind: 'private',
    hash,
    verify,
    onRefused: () => {}
  } satisfies PeerLinksDeps)
  const swarm = pairingSwarm(transport.rendezvous, links)
  const state = {
    v: 1,
    key: owner.mesh.meshId,
    encryptionKey: bytesToText(encryptionKey),
    owner: owner.id,
    name: 'lab',
    chain: [],
    epoch: 1
  } as const
  const parts = { ...shared, clock, store, codeNetwork, onRefused: () => {} }
  const node = new MeshNode({ deps: parts, log, links, swarm, state, inviteId: null })
  t.teardown(async () => {
    await node.close()
    await network.close()
    await store.close()
  })

  const identity = links.bound?.identity as MeshBinding['identity']
  return { node, nodeId, sign, identity }
}

test('a newcomer takes its certificate only by a chain that holds', async (t) => {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const other = await lab.member('other', owner)
  const clock = systemClock()
  const { node, nodeId, sign, identity } = await certificateless(t, owner, clock)
  const give = (chain: Parameters<MeshBinding['identity']['onGrant']>[0]): void => identity.onGrant(chain)
  const body = { ...other.mesh.certificate().body, nodeKey: nodeId }
  give([])
  give([seal('certificate', { ...body, issuer: nodeId }, { id: nodeId, sign })])
  give([{ ...seal('certificate', body, { id: nodeId, sign }), by: owner.id }])
  give(chainOf(owner.mesh.log.view(), other.id) ?? [])
  give([seal('certificate', { ...body, mesh: keyText('another mesh') }, { id: owner.id, sign: owner.mesh.sign })])
  t.alike(node.state().chain, [], 'self-made, forged, of another node, of another mesh')
  const real = [seal('certificate', body, { id: owner.id, sign: owner.mesh.sign })]
  give(real)
  t.alike(node.state().chain, real)
  await t.execution(node.granted(clock))
})

test('a lie that its invite is lost does not stop a newcomer that gets its certificate, and the truth ends it soon', async (t) => {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const other = await lab.member('other', owner)
  const clock = new ManualClock(Date.now())
  const [lucky, loser] = [await certificateless(t, owner, clock), await certificateless(t, owner, clock)]
  const refusal: GateRefusal = { code: 'INVITE_USED', reason: 'it is said' }
  const expelled: string[] = []
  void lucky.node.expelled.then(({ code }) => expelled.push(code))
  for (const { identity } of [lucky, loser]) identity.onRefused(refusal, other.id)
  const body = { ...other.mesh.certificate().body, nodeKey: lucky.nodeId }
  lucky.identity.onGrant([seal('certificate', body, { id: owner.id, sign: owner.mesh.sign })])
  clock.advance(2000)
  t.is((await loser.node.expelled).code, 'INVITE_USED')
  t.alike(expelled, [])
})
