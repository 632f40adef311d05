import c from 'compact-encoding'
import test from 'brittle'
import Protomux from 'protomux'
import { GATE_TIMEOUT_MS } from '../../../../src/adapters/mesh/links/gate.js'
import {
  encodeGateMessage,
  GATE_OPENING,
  type GateMessage,
  type GateRefusal
} from '../../../../src/adapters/mesh/links/hello.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import type { Clock } from '../../../../src/kit/clock.js'
import { chainOf } from '../../../../src/domain/membership/chain.js'
import { firstView } from '../../../../src/domain/membership/view.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor, founded, inviteTerms, MESH } from '../../../support/membership.js'
import { againstNobody, gates, heardAll, Identity, meshOf, openGate, provenHello } from './gates.js'
import { streamPair } from '../stream-pair.js'

const owner = actor('owner')
const ann = actor('ann')
const bob = actor('bob')

test('two members let each other pass and learn certificate and software of the other', async (t) => {
  const { log, of } = meshOf(ann)
  const [a, b] = await gates(t, ['owner', 'ann'], [of(owner), of(ann)])
  const [atA, atB] = await Promise.all([a.passed, b.passed])
  t.alike(atA.certificate.body, log.certificateOf(ann))
  t.alike(atB.certificate.body, log.certificateOf(owner))
  t.is(atA.software, 'test/false')
  t.is(atB.software, 'test/true')
  t.is(a.gate.peer, ann.id)
  t.alike(
    [a.calls, b.calls],
    [
      { passed: 1, cut: 0 },
      { passed: 1, cut: 0 }
    ]
  )
})

test('a peer without the secret of the mesh is refused, for any certificate', async (t) => {
  const { of } = meshOf(ann)
  const outsider = of(ann)
  outsider.encryptionKey = new Uint8Array(32).fill(9)
  const [a, b] = await gates(t, ['owner', 'ann'], [of(owner), outsider])
  t.is((await a.cut).code, 'FORBIDDEN')
  await b.cut
  t.alike([a.calls.passed, b.calls.passed], [0, 0])
})

test("a proof is worth nothing when it is the verifier's own, sent back", async (t) => {
  const { end, say, heard } = await againstNobody(t, meshOf(ann).of(owner))
  const hello = await heard()
  t.is(hello.type, 'hello')
  say(hello)
  t.is((await end.cut).reason, 'the peer does not know this mesh')
})

test('a stranger that knows the mesh waits, and is cut when its time is up', async (t) => {
  const clock = new ManualClock()
  const { of } = meshOf()
  const [streamA, streamB] = await streamPair(t, 'owner', 'eve')
  const stranger = new Identity(firstView({ mesh: MESH, name: 'home', owner: owner.id }), null)
  const a = openGate(streamA, of(owner), clock)
  const b = openGate(streamB, stranger)
  const told = new Promise<void>((resolve) => {
    stranger.onGrant = () => t.fail('there is nothing to grant')
    a.mux.stream.on('data', () => resolve())
  })
  await told
  clock.advance(GATE_TIMEOUT_MS - 1)
  t.is(a.calls.cut, 0)
  clock.advance(1)
  t.is((await a.cut).code, 'TIMEOUT')
  t.is(b.calls.passed, 0)
})

test('nobody passes before the channels behind the gate are ready', async (t) => {
  const { of } = meshOf(ann)
  const late = of(owner)
  const asked = new Promise<void>((resolve) => {
    late.isReady = () => {
      resolve()
      return late.ready
    }
  })
  late.ready = false
  const [a, b] = await gates(t, ['owner', 'ann'], [late, of(ann)])
  await asked
  t.alike([a.calls.passed, b.calls.passed], [0, 0])
  late.ready = true
  a.gate.review(late)
  await Promise.all([a.passed, b.passed])
  t.is(a.calls.passed, 1)
})

test('a member that connects when all links are taken is sent away, with the reason', async (t) => {
  const { of } = meshOf(ann)
  const [full, member] = [of(owner), of(ann)]
  full.full = true
  const [a, b] = await gates(t, ['owner', 'ann'], [full, member])
  t.is((await a.cut).code, 'OVERLOADED')
  await b.cut
  t.is(member.refusals[0].refusal.code, 'OVERLOADED')
  t.is(b.calls.passed, 0)
})

test('a node that finds its mesh later says hello then', async (t) => {
  const { of } = meshOf(ann)
  const [a, b] = await gates(t, ['owner', 'ann'], [of(owner), null])
  t.is(b.calls.passed, 0)
  b.gate.review(of(ann))
  await Promise.all([a.passed, b.passed])
  t.alike([a.calls.passed, b.calls.passed], [1, 1])
})

test('a newcomer without a certificate gets it from a member that knows of its admission, and passes with it', async (t) => {
  const { log, of } = meshOf(ann)
  const newcomer = new Identity(firstView({ mesh: MESH, name: 'home', owner: owner.id }), null)
  const [a, b] = await gates(t, ['owner', 'ann'], [of(owner), newcomer])
  await Promise.all([a.passed, b.passed])
  t.alike(newcomer.grants, [chainOf(log.view(), ann.id)])
})

test('a certificate from somebody who has not proved to know the mesh is not taken', async (t) => {
  const { log } = meshOf(ann)
  const newcomer = new Identity(firstView({ mesh: MESH, name: 'home', owner: owner.id }), null)
  const { end, say } = await againstNobody(t, newcomer)
  const grant = chainOf(log.view(), ann.id)
  say({ type: 'credentials', chain: null, grant })
  say({ type: 'hello', version: 1, maxFrameBytes: 1024 * 1024, software: 'x', proof: 'wrong' })
  await end.cut
  t.alike(newcomer.grants, [])
})

test('a member that this view does not know yet passes by its chain, and goes when the view revokes its issuer', async (t) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  const behind = log.view()
  log.join(ann, bob)
  const [a, b] = await gates(
    t,
    ['owner', 'bob'],
    [new Identity(behind, chainOf(behind, owner.id)), new Identity(log.view(), chainOf(log.view(), bob.id))]
  )
  t.is((await a.passed).certificate.body.nodeKey, bob.id)
  await b.passed
  a.gate.review(new Identity(behind, chainOf(behind, owner.id)))
  t.is(a.calls.cut, 0, 'a view that says nothing of it leaves it alone')
  const other = founded()
  other.join(owner, ann, { admin: true })
  other.revoke(owner, ann, 1500)
  a.gate.review(new Identity(other.view(), chainOf(other.view(), owner.id)))
  t.is((await a.cut).code, 'REVOKED')
})

test('a peer admitted by a chain is judged by it later, for any later proof', async (t) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  const behind = log.view()
  log.join(ann, bob)
  const other = founded()
  other.join(owner, ann, { admin: true })
  other.revoke(owner, ann, 1500)
  const nothing: GateMessage = { type: 'credentials', chain: null, grant: null }
  for (const isEarly of [true, false]) {
    const { end, peer, say } = await againstNobody(t, new Identity(behind, chainOf(behind, owner.id)), { as: bob })
    say(provenHello(peer))
    say({ type: 'credentials', chain: chainOf(log.view(), bob.id), grant: null })
    if (isEarly) say(nothing)
    say({ type: 'passed' })
    if (!isEarly) say(nothing)
    say({ ...provenHello(peer), version: 2 })
    await heardAll(end.mux, Protomux.from(peer))
    t.alike(end.calls, { passed: 1, cut: 0 })
    end.gate.review(new Identity(other.view(), chainOf(other.view(), owner.id)))
    t.is((await end.cut).code, 'REVOKED')
  }
})

test('a peer admitted by the view alone is cut when the view no longer shows it', async (t) => {
  const { of } = meshOf(ann)
  const newcomer = new Identity(firstView({ mesh: MESH, name: 'home', owner: owner.id }), null)
  const [a, b] = await gates(t, ['owner', 'ann'], [of(owner), newcomer])
  await Promise.all([a.passed, b.passed])
  a.gate.review(new Identity(founded().view(), chainOf(founded().view(), owner.id)))
  t.is((await a.cut).code, 'FORBIDDEN')
})

test('a member that is revoked later is cut, with the reason', async (t) => {
  const { log, of } = meshOf(ann)
  const [told, member] = [of(owner), of(ann)]
  const [a, b] = await gates(t, ['owner', 'ann'], [told, member])
  await Promise.all([a.passed, b.passed])
  log.revoke(owner, ann)
  const heard = new Promise<GateRefusal>((resolve) => {
    member.onRefused = (refusal) => resolve(refusal)
  })
  a.gate.review(of(owner))
  t.is((await a.cut).code, 'REVOKED')
  t.is((await heard).code, 'REVOKED')
})

test('bytes of a peer after its cut are ignored', async (t) => {
  const { log, of } = meshOf(ann)
  const told = of(owner)
  const [a, b] = await gates(t, ['owner', 'ann'], [told, of(ann)])
  await Promise.all([a.passed, b.passed])
  log.revoke(owner, ann)
  a.gate.review(Object.assign(told, { viewNow: log.view() }))
  await a.cut
  const refusal = encodeGateMessage({ type: 'refused', code: 'REVOKED', reason: 'out of spite' })
  b.mux.getLastChannel({ protocol: 'a2a-node/gate' })?.messages[0]?.send(refusal)
  await heardAll(a.mux, b.mux)
  t.alike(told.refusals, [])
})

test('a refusal of an earlier invite does not put out a member that came by a later one', async (t) => {
  const log = founded()
  const used = inviteTerms('used', { uses: 1 })
  log.invite(owner, used)
  log.admit(owner, bob, used)
  log.admit(owner, ann, used)
  const refusing = log.view()
  t.is(refusing.refusals.get(ann.id)?.code, 'INVITE_USED')
  log.join(owner, ann)
  const member = new Identity(log.view(), chainOf(log.view(), ann.id))
  const [a, b] = await gates(t, ['owner', 'ann'], [new Identity(refusing, chainOf(refusing, owner.id)), member])
  await Promise.all([a.passed, b.passed])
  a.gate.review(new Identity(refusing, chainOf(refusing, owner.id)))
  t.is(a.calls.cut, 0)
})

test('a refusal by an invite says which one it was', async (t) => {
  const log = founded()
  const used = inviteTerms('used', { uses: 1 })
  log.invite(owner, used)
  log.admit(owner, bob, used)
  log.admit(owner, ann, used)
  const newcomer = new Identity(firstView({ mesh: MESH, name: 'home', owner: owner.id }), null)
  const [a, b] = await gates(t, ['owner', 'ann'], [new Identity(log.view(), chainOf(log.view(), owner.id)), newcomer])
  t.is((await a.cut).code, 'INVITE_USED')
  await b.cut
  const [{ refusal, peer }] = newcomer.refusals
  t.alike(
    { code: refusal.code, inviteId: refusal.inviteId, peer },
    { code: 'INVITE_USED', inviteId: used.id, peer: owner.id }
  )
})

test('another version of the gate, and a peer that takes too small frames, are refused with the reason', async (t) => {
  const good = { type: 'hello', version: 1, maxFrameBytes: 1024 * 1024, software: 'x', proof: '' } as const
  for (const hello of [
    { ...good, version: 2 },
    { ...good, maxFrameBytes: 100 }
  ]) {
    const { end, say, heard } = await againstNobody(t, meshOf(ann).of(owner))
    say(hello)
    t.is((await end.cut).code, 'FORBIDDEN')
    await heard()
    const refusal = await heard()
    t.is(refusal.type === 'refused' && refusal.code, 'FORBIDDEN')
  }
})

test('bytes that are no message of the gate cut the stream', async (t) => {
  for (const bytes of [
    new Uint8Array(0),
    Uint8Array.of(1, 2, 3),
    new TextEncoder().encode('{"type":"passed","x":1}'),
    new Uint8Array(70_000)
  ]) {
    const { end, say } = await againstNobody(t, meshOf(ann).of(owner))
    say(bytes)
    t.is((await end.cut).code, 'MALFORMED')
  }
})

test('saying that one passed does not let one pass', async (t) => {
  const { log, of } = meshOf(ann)
  const { end, say } = await againstNobody(t, of(owner))
  say({ type: 'passed' })
  say({ type: 'credentials', chain: chainOf(log.view(), ann.id), grant: null })
  say({ type: 'hello', version: 1, maxFrameBytes: 1024 * 1024, software: 'x', proof: 'wrong' })
  t.is((await end.cut).code, 'FORBIDDEN')
  t.is(end.calls.passed, 0)
})

test('a peer that closes the channel, or the stream, is gone without a word', async (t) => {
  const clock = new ManualClock()
  const { end, peer } = await againstNobody(t, meshOf(ann).of(owner), { clock })
  peer.destroy()
  t.is((await end.cut).code, 'LEFT')
  t.is(clock.pending, 0, 'no timer is left')
})

test('both ends of a gate compare their clocks, also before any of them is in a mesh, and follow a clock that is set', async (t) => {
  const [streamA, streamB] = await streamPair(t, 'owner', 'ann')
  const system = systemClock()
  let offMs = 1_200_000
  const off: Clock = { ...system, now: () => system.now() + offMs }
  const [a, b] = [openGate(streamA, null, off), openGate(streamB, null, system)]
  await heardAll(a.mux, b.mux)
  const isAbout = (ms: number | null, expected: number): boolean => ms !== null && Math.abs(ms - expected) < 60_000
  t.ok(isAbout(a.gate.aheadMs(), 1_200_000))
  t.ok(isAbout(b.gate.aheadMs(), -1_200_000))
  offMs = 0
  t.ok(isAbout(a.gate.aheadMs(), 0), 'the own clock was set')
})

test('a node of an older build, which sends no time, passes the gate, and its clock is unknown; so is an invalid time', async (t) => {
  const { of } = meshOf(ann)
  const { end, say, heard, peer } = await againstNobody(t, of(owner))
  say(provenHello(peer))
  say({ type: 'credentials', chain: of(ann).chain(), grant: null })
  say({ type: 'passed' })
  await end.passed
  t.is((await heard()).type, 'hello', 'the older build reads what it always read')
  t.is(end.gate.aheadMs(), null)
  for (const bytes of [
    [],
    [1],
    [0, 0, 0, 0, 0, 0, 0, 0],
    [255, 255, 255, 255, 255, 255, 255, 255],
    [1, 2, 3, 4, 5, 6, 7]
  ])
    t.alike(openingOf(bytes), { time: null, process: null, isDoubled: false }, bytes.join(' '))
  const time = [5, 0, 0, 0, 0, 0, 0, 0]
  for (const rest of [0, 1, 7, 8])
    t.alike(openingOf([...time, ...Array<number>(rest).fill(9)]), { time: 5, process: null, isDoubled: false })
})

test('the opening of a gate has the same time for an older build, and takes the additions of a newer one', (t) => {
  for (const opening of [
    { time: 1_800_000_000_000, process: '00ff10203040a0b0', isDoubled: true },
    { time: null, process: 'ffffffffffffffff', isDoubled: false },
    { time: 7, process: null, isDoubled: false }
  ]) {
    const bytes = [...c.encode(GATE_OPENING, opening)]
    t.alike(openingOf(bytes), opening)
    t.alike(
      openingOf(bytes.slice(0, 8)),
      { time: opening.time, process: null, isDoubled: false },
      'the time in an older build'
    )
    if (opening.process !== null) t.alike(openingOf([...bytes, 1, 2, 3]), opening)
  }
})

function openingOf(bytes: readonly number[]): unknown {
  return GATE_OPENING.decode({ start: 0, end: bytes.length, buffer: Uint8Array.from(bytes) })
}
