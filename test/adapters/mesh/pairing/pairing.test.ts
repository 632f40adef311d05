import test from 'brittle'
import BlindPairing from 'blind-pairing'
import c from 'compact-encoding'
import { AdminPairing } from '../../../../src/adapters/mesh/pairing/pairing.js'
import { hash, verify } from '../../../../src/adapters/mesh/network/sodium.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { encodeInviteCode } from '../../../../src/domain/membership/invites/invite-code.js'
import { MAX_RENDEZVOUS } from '../../../../src/domain/membership/invites/rendezvous.js'
import { pairingContract } from '../../../contracts/pairing.js'
import { failsWith } from '../../../support/fails.js'
import { inviteCode, type LabNode, loopbackDht, meshLab, untilView } from '../lab.js'
import { pairingWorld } from './pairing-world.js'
import { rawStream } from '../raw-stream.js'

pairingContract('Blind pairing', 'long', pairingWorld)

test('two admins that cannot see each other let one node each in by a one-use invite: in the end exactly one is a member', async (t) => {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const admin = await lab.member('admin', owner, { admin: true })
  const code = await inviteCode(owner)
  await untilView(admin, (view) => view.invites.size === 2)
  await admin.close()
  // Two networks: what joins on one knows nothing of the other.
  const apart = await loopbackDht(t)
  const away = await lab.reopen(admin, { bootstrap: apart })
  await away.start()
  const joiners = await Promise.all([lab.join('one', code), lab.join('two', code, { bootstrap: apart })])
  t.ok(owner.mesh.log.view().members.has(joiners[0].id))
  t.ok(away.mesh.log.view().members.has(joiners[1].id))

  await Promise.all([away.close(), joiners[1].close()])
  const back = await lab.reopen(away)
  const two = await lab.reopen(joiners[1])
  const nodes = [owner, back, joiners[0], two]
  await Promise.all(nodes.slice(1).map((node) => node.start()))
  const isIn = (node: LabNode, id: string): boolean => node.mesh.log.view().members.has(id)
  const expelled = await Promise.race(
    [joiners[0], two].map((node) => node.mesh.expelled.then((error) => ({ node, error })))
  )
  t.is(expelled.error.code, 'INVITE_USED')
  const [winner] = [joiners[0], two].filter((node) => node !== expelled.node)
  for (const node of [owner, back]) {
    await untilView(node, (view) => view.refusals.get(expelled.node.id)?.code === 'INVITE_USED')
    t.ok(isIn(node, winner.id))
    t.absent(isIn(node, expelled.node.id))
  }
  await winner.seen.link(owner.id)
  await owner.seen.until(() => owner.mesh.links.list().every((link) => link.peer !== expelled.node.id))
  t.pass('the one that lost has no link any more')
})

test('a newcomer that gave up is not admitted later by its request in the DHT', async (t) => {
  const lab = await meshLab(t)
  const admin = await lab.found('admin')
  const code = await inviteCode(admin)
  await admin.close()
  await failsWith(t, 'NO_ADMIN_ONLINE', () => lab.join('newcomer', code, { timeoutMs: 2000 }))
  const back = await lab.reopen(admin)
  await back.mesh.pairing.close()
  const { log, nodeId, sign } = back.mesh
  const network = { network: 'private', bootstrap: [], localPort: null, trust: 'guest' } as const
  const clock = systemClock()
  const left = new Promise<void>((resolve) => {
    const telemetry = new MemoryTelemetry({
      clock,
      level: 'info',
      format: 'text',
      write: (line) => line.includes('came without a stream') && resolve()
    })
    const pairing = new AdminPairing({
      swarm: back.swarm,
      nodeId,
      sign,
      verify,
      hash,
      clock,
      telemetry,
      log,
      network,
      isCutOff: () => false
    })
    t.teardown(() => pairing.close())
  })
  await Promise.race([left, untilView(back, (view) => view.members.size > 1)])
  t.is(log.view().members.size, 1)
})

test('a code with the right checksum but a strange invite is INVITE_INVALID', async (t) => {
  const lab = await meshLab(t)
  for (const invite of [Uint8Array.of(9, 9, 9), Uint8Array.of(1, 0, ...new Uint8Array(32))]) {
    const place = { network: 'private', bootstrap: ['127.0.0.1:1'], localPort: null, trust: 'guest' } as const
    const code = encodeInviteCode({ kind: 'long', ...place, root: new Uint8Array(16), invite }, hash)
    await failsWith(t, 'INVITE_INVALID', () => lab.join('newcomer', code, { timeoutMs: 500 }))
  }
})

test('requests that no honest newcomer makes leave an admin up and change nothing', async (t) => {
  const lab = await meshLab(t)
  const admin = await lab.found('admin')
  await admin.start({ want: false })
  const code = await inviteCode(admin)
  const stranger = await rawStream(t, lab.bootstrap, admin)
  const channel = stranger.mux.createChannel({
    protocol: 'blind-pairing',
    id: admin.mesh.log.discoveryKey,
    messages: [{ encoding: c.buffer as never }, { encoding: c.buffer as never }]
  })
  channel?.open()
  t.ok(await channel?.fullyOpened())
  const { id } = BlindPairing.createInvite(admin.mesh.log.key)
  const session = new Uint8Array(32)
  const requests = {
    'nothing at all': new Uint8Array(0),
    'a few bytes': Uint8Array.of(1, 2, 3),
    'a session without data': Uint8Array.of(...id, 32, ...session, 0),
    'data of another key': Uint8Array.of(...id, 32, ...session, 3, 1, 2, 3),
    'neither session nor data': Uint8Array.of(...id, 0, 0),
    'much too much': new Uint8Array(4000).fill(255)
  }
  for (const request of Object.values(requests)) channel?.messages[0]?.send(request)
  t.ok(await stranger.stream.flush(), 'the admin has them all')
  const node = await lab.join('newcomer', code)
  t.ok(admin.mesh.log.view().members.has(node.id), 'it lets an honest newcomer in')
  t.is(admin.mesh.log.view().members.size, 2, 'and nobody else')
})

test('with as many open invites as an admin answers, admins, members and newcomers reach each other on new streams', async (t) => {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const admin = await lab.member('admin', owner, { admin: true })
  const member = await lab.member('member', owner)
  const codes: string[] = []
  while (codes.length < MAX_RENDEZVOUS) codes.push(await inviteCode(owner))
  await untilView(admin, (view) => view.invites.size >= MAX_RENDEZVOUS)
  await Promise.all([admin.close(), member.close()])
  const back = await lab.reopen(admin)
  const other = await lab.reopen(member)
  await Promise.all([back.start(), other.start()])
  await Promise.all([back.seen.link(owner.id), other.seen.link(owner.id), other.seen.link(back.id)])
  const newcomer = await lab.join('newcomer', codes.at(-1) ?? '')
  t.ok(owner.mesh.log.view().members.has(newcomer.id))
  await untilView(back, (view) => view.members.has(newcomer.id))
  await owner.close()
  const late = await lab.join('late', codes.at(-2) ?? '')
  t.ok(back.mesh.log.view().members.has(late.id), 'the other admin answers a code of the owner')
  for (const node of [owner, back, other, newcomer, late]) t.alike(node.refused, [], `${node.name} saw no fault`)
})
