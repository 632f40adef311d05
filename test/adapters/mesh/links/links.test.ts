import test from 'brittle'
import type { Assert } from 'brittle'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { eventually } from '../../../support/agents/eventually.js'
import { failsWith } from '../../../support/fails.js'
import { actor } from '../../../support/membership.js'
import { linksContract, type LinksSubject } from '../../../contracts/links.js'
import { inviteCode, type LabNode, meshLab } from '../lab.js'

for (const [name, isInMemory] of [
  ['Hyperswarm links', false],
  ['links over memory', true]
] as const) {
  linksContract(name, async (t: Assert) => {
    const lab = await meshLab(t, { isInMemory })
    const a = await lab.found('a')
    const b = await lab.join('b', await inviteCode(a))
    const foreigner = await lab.found('foreigner')
    return { a: subject(a), b: subject(b), foreigner: subject(foreigner) }
  })
}

function subject(node: LabNode): LinksSubject {
  return { id: node.id, links: node.mesh.links, seen: node.seen, start: () => node.start({ want: false }) }
}

test('a peer that does not answer is not dialled after the last waiter is gone', async (t) => {
  const lab = await meshLab(t)
  const node = await lab.found('a')
  await node.start()
  const { swarm } = node
  const dialling = node.mesh.links.dial(actor('nobody').id, 100)
  t.is(swarm.explicitPeers.size, 1)
  await failsWith(t, 'PEER_OFFLINE', () => dialling)
  t.is(swarm.explicitPeers.size, 0)
})

test('a wanted peer stays wanted when a dial to it gives up', async (t) => {
  const lab = await meshLab(t)
  const node = await lab.found('a')
  await node.start({ want: false })
  node.mesh.links.want([actor('nobody').id])
  await failsWith(t, 'PEER_OFFLINE', () => node.mesh.links.dial(actor('nobody').id, 100))
  t.is(node.swarm.explicitPeers.size, 1)
})

test('the counts of links opened and closed are exact', async (t) => {
  const lab = await meshLab(t)
  const a = await lab.found('a')
  await a.start()
  const b = await lab.member('b', a)
  b.mesh.links.list()[0].close('to see')
  await a.seen.until(() => a.seen.closed.length === 1)
  await a.seen.link(b.id)
  const counted = (name: string): number | undefined =>
    a.telemetry.snapshot().counters.find((one) => one.name === name)?.value
  t.is(counted('links_opened'), a.seen.opened.length)
  t.is(counted('links_closed'), a.seen.closed.length)
})

test('a peer that breaks the protocol is cut and on record', async (t) => {
  const lab = await meshLab(t)
  const a = await lab.found('a')
  await a.start()
  const b = await lab.member('b', a)
  const link = await a.seen.link(b.id)
  link.fault('nonsense')
  await a.seen.until(() => a.seen.closed.length === 1)
  t.alike(a.seen.closed[0], { link, reason: 'nonsense' })
  t.alike(a.refused.at(-1), { kind: 'strike', code: 'MALFORMED', rule: 'protocol', reason: 'nonsense', peer: b.id })
  t.is(a.telemetry.snapshot().counters.find((one) => one.name === 'frames_malformed')?.value, 1)
})

test('a peer with too many strikes is cut, kept out for a while and let in again; others are not touched', async (t) => {
  const lab = await meshLab(t)
  const real = systemClock()
  let skew = 0
  const a = await lab.found('a', { clock: { ...real, monotonic: () => real.monotonic() + skew } })
  await a.start()
  const eve = await lab.member('eve', a)
  const bob = await lab.member('bob', a)
  const [evil, honest] = [await a.seen.link(eve.id), await a.seen.link(bob.id)]
  const counted = (): number =>
    a.telemetry.snapshot().counters.find(({ name, label }) => name === 'strangers_cut' && label === 'strikes')?.value ??
    0
  for (let i = 0; i < 20; i++) a.mesh.links.strike(eve.id, 'forged', 'a forgery')
  t.absent(evil.closed)
  a.mesh.links.strike(eve.id, 'forged', 'a forgery')
  t.alike(
    [eve.id, bob.id].map((id) => a.mesh.links.isKeptOut(id)),
    [true, false]
  )
  await a.seen.until(() => a.seen.closed.length > 0)
  t.alike(a.seen.closed, [{ link: evil, reason: 'too many strikes' }])
  t.alike(a.refused, [
    {
      kind: 'strike',
      code: 'FORBIDDEN',
      rule: 'strikes',
      reason: 'kept out for 10 s, the last strike being: a forgery',
      peer: eve.id
    }
  ])
  await eventually(() => counted() > 1)
  t.is(a.mesh.links.list().filter((link) => link.peer === eve.id).length, 0, 'it came again and was turned away')
  t.absent(honest.closed)
  skew = 10_000
  t.not(await a.seen.link(eve.id), evil)
  t.absent(honest.closed)
})

test('handlers that fail cost the link, not the process, and leave nothing behind', async (t) => {
  const lab = await meshLab(t)
  const a = await lab.found('a')
  await a.start()
  const b = await lab.join('b', await inviteCode(a))
  const closed = new Promise<void>((resolve) => {
    void b.mesh.links.start({
      onOpen: () => {
        throw new Error('a bug above')
      },
      onFrame: () => {},
      onCredit: () => {},
      onClose: () => resolve(),
      spare: () => null
    })
  })
  b.mesh.links.want([a.id])
  await closed
  await a.seen.until(() => a.seen.closed.length > 0)
  t.is(b.mesh.links.list().filter((link) => !link.closed).length, 0)
})
