import test from 'brittle'
import { Quarantine } from '../../../src/adapters/mesh/quarantine.js'
import { seal } from '../../../src/domain/membership/signing.js'
import type { EntryBody } from '../../../src/domain/membership/types.js'
import { actor, cardBody, founded, keyText, MESH } from '../../support/membership.js'
import { type LabNode, meshLab, untilView } from './lab.js'

const owner = actor('owner')
const ann = actor('ann')

function card({ mesh, id }: LabNode, name: string): EntryBody {
  return { kind: 'card', mesh: mesh.meshId, card: seal('card', cardBody(name), { id, sign: mesh.sign }) }
}

function untilCard(node: LabNode, of: LabNode, name: string): Promise<void> {
  return untilView(node, (view) => view.cards.get(of.id)?.has(name) === true)
}

test('a member that signed two blocks at one place is found and told of, nothing of it is taken, and all others go on', async (t) => {
  const lab = await meshLab(t)
  const honest = await lab.found('owner')
  await honest.start()
  const admin = await lab.member('admin', honest, { admin: true })
  const forker = await lab.member('forker', honest, { admin: true })
  await untilView(forker, (view) => view.members.size === 3)
  await forker.mesh.log.submit(card(forker, 'before'))
  await Promise.all([honest, admin].map((node) => untilCard(node, forker, 'before')))
  await forker.close()

  // Two homes with one core write apart from each other, the second one more than the first.
  const right = await lab.twin(forker)
  const left = await lab.reopen(forker)
  for (const name of ['left-one', 'left-two', 'left-three']) await left.mesh.log.submit(card(left, name))
  await right.mesh.log.submit(card(right, 'right'))
  await right.start()
  await Promise.all([honest, admin].map((node) => untilCard(node, forker, 'right')))
  await right.close()
  t.alike(honest.mesh.problems(), [])
  await left.start()
  const found = (): boolean => honest.refused.some((one) => one.code === 'CONFLICT' && one.peer === forker.id)
  while (!found()) await new Promise((resolve) => setTimeout(resolve, 20))

  const [problem] = honest.mesh.problems()
  t.is(problem?.code, 'CONFLICT')
  t.is(problem?.next, 'a2a-node peers revoke forker')
  t.is(honest.mesh.state().forked?.length, 1, 'and remembered')
  await honest.mesh.log.submit(card(honest, 'after'))
  await untilCard(admin, honest, 'after')
  await admin.mesh.log.submit(card(admin, 'after'))
  await untilCard(honest, admin, 'after')
  t.absent(honest.mesh.log.view().cards.get(forker.id)?.has('left-two'), 'of two tales the later one is not taken')
  await honest.mesh.log.submit({ kind: 'revocation', mesh: honest.mesh.meshId, nodeKey: forker.id, at: Date.now(), reason: 'forked' })
  await untilView(admin, (view) => view.members.get(forker.id)?.revoked !== null)
  t.alike(honest.mesh.problems(), [], 'once it is revoked there is nothing left to do')
})

test('a member is in quarantine for its own core only, and out of it with another', (t) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  const told: unknown[] = []
  const quarantine = new Quarantine({ forked: [], view: () => log.view(), onForked: (forked, member) => told.push([forked, member]) })
  quarantine.add(keyText('core/of nobody'))
  t.alike([quarantine.has(ann.id), quarantine.has(owner.id)], [false, false])
  quarantine.add(ann.coreKey)
  quarantine.add(ann.coreKey)
  t.alike(told, [
    [[keyText('core/of nobody')], null],
    [[keyText('core/of nobody'), ann.coreKey], ann.id]
  ])
  t.ok(quarantine.has(ann.id))
  log.write(ann, { kind: 'core', mesh: MESH, coreKey: keyText('core/again'), serial: 1 })
  t.absent(quarantine.has(ann.id), 'its home was restored')
  t.alike(quarantine.problems(), [])
})

test('the owner, whom nobody can revoke, is told to be repaired; what was known before a restart counts', (t) => {
  const log = founded()
  const quarantine = new Quarantine({ forked: [owner.coreKey], view: () => log.view(), onForked: () => t.fail('no news') })
  quarantine.add(owner.coreKey)
  t.ok(quarantine.problems()[0]?.next.startsWith('a2a-node doctor --repair'))
})
