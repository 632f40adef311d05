import test, { type Assert } from 'brittle'
import { echo } from '../../support/fake-agents.js'
import { FakeAudit, type FakeNode, World } from '../../support/fake-node.js'
import { FakeStore } from '../../support/fake-store.js'
import { actor } from '../../support/membership.js'

function lines(node: FakeNode): string[] {
  return node.audit
    .of('membership')
    .map(({ code, reason = '' }) => `${code} ${reason.replace(/ [a-z0-9]{8}(?=:|$)/, '')}`)
}

test('every node puts on record what any of them changes, each once', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner()
  const ann = await world.member('ann')
  await world.link(owner, ann)
  const before = [lines(owner).length, lines(ann).length]
  const api = owner.api()
  await api.call('peers.rename', { peer: 'ann', name: 'annie' })
  await api.call('peers.tier', { peer: 'annie', tier: 2 })
  const { id } = await api.call('invite.create', { trust: 'mine', uses: 2 })
  await api.call('invite.revoke', { id })
  await api.call('peers.revoke', { peer: 'annie', reason: 'lost' })
  await world.settle()
  const expected = [
    'renamed "ann" to "annie"',
    'tier-changed "annie" L1 to L2',
    'invited invite: L1, 2 uses',
    'invite-revoked invite',
    'revoked "annie": lost'
  ]
  t.alike(lines(owner).slice(before[0]), expected)
  t.alike(lines(ann).slice(before[1]), expected)
  t.ok(owner.audit.of('membership').every(({ by, peer }) => by === undefined || by !== peer))
  t.is(ann.audit.of('membership').at(-1)?.by, owner.id)
  t.is(
    owner.core.events.recent().filter(({ type }) => type === 'membership').length,
    expected.length + 2,
    'with the admission of ann'
  )
})

test('changes while a node was away are on record after its start, known ones are not again', async (t: Assert) => {
  const world = new World(t)
  const store = new FakeStore()
  await world.owner()
  const ann = await world.member('ann', { store })
  t.alike(
    lines(ann).map((line) => line.split(' ')[0]),
    ['invited', 'founded', 'admitted']
  )
  t.is(ann.core.events.recent().filter(({ type }) => type === 'membership').length, 0, 'no event')
  await ann.core.close()
  await world.member('bob')
  const again = await world.start(actor('ann'), { store })
  t.alike(
    lines(again).map((line) => line.split(' ')[0]),
    ['invited', 'admitted']
  )
  await again.core.close()
  const third = await world.start(actor('ann'), { store, agents: [echo('text')] })
  t.alike(lines(third), [])
})

test('no change is remembered as reported before it is on disk', async (t: Assert) => {
  const world = new World(t)
  const store = new FakeStore()
  await world.owner()
  const ann = await world.member('ann', { store })
  const failing = ann.audit as FakeAudit & { flush: () => Promise<void> }
  failing.flush = () => Promise.reject(new Error('the disk is full'))
  world.log.model.join(actor('owner'), actor('bob'))
  world.log.changed()
  await world.settle()
  t.ok(ann.lines.some((line) => line.includes('could not be put on record')))
  await ann.core.close()
  const again = await world.start(actor('ann'), { store })
  t.alike(
    again.audit.of('membership').map(({ code }) => code),
    ['invited', 'admitted'],
    'reported again; the log knows its reference'
  )
})

test('a node that the log did not admit is a refusal on record', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner()
  const terms = world.log.model.join(actor('owner'), actor('bob'))
  world.log.model.admit(actor('owner'), actor('late'), terms)
  world.log.changed()
  const [refusal] = owner.audit.of('refusal')
  t.alike([refusal?.code, refusal?.rule, refusal?.peer], ['INVITE_USED', 'invite', actor('late').id])
})
