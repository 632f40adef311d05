import test from 'brittle'
import { Quarantine } from '../../../../src/adapters/mesh/log/quarantine.js'
import type { CoreFault } from '../../../../src/adapters/mesh/log/guarded-base.js'
import { seal } from '../../../../src/domain/membership/signing.js'
import type { EntryBody } from '../../../../src/domain/membership/types.js'
import { shortId } from '../../../../src/kit/ids.js'
import { actor, cardBody, founded, keyText, MESH } from '../../../support/membership.js'
import { type Lab, type LabNode, meshLab, untilView } from '../lab.js'

const owner = actor('owner')
const ann = actor('ann')

function card({ mesh, id }: LabNode, name: string): EntryBody {
  return { kind: 'card', mesh: mesh.meshId, card: seal('card', cardBody(name), { id, sign: mesh.sign }) }
}

function untilCard(node: LabNode, of: LabNode, name: string): Promise<void> {
  return untilView(node, (view) => view.cards.get(of.id)?.has(name) === true)
}

/** Resolves when a node remembers that a core is forked. */
function untilForked({ mesh }: LabNode): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => ((mesh.state().forked ?? []).length > 0 ? resolve() : undefined)
    mesh.onState(look)
    look()
  })
}

/** A mesh in which the forker's core has two tales; it is up with the one that nobody takes. */
interface Forked {
  readonly honest: LabNode
  readonly admin: LabNode
  readonly forker: LabNode
  /** Left before the fork. */
  readonly away: LabNode
}

async function forkedMesh(lab: Lab): Promise<Forked> {
  const honest = await lab.found('owner')
  await honest.start()
  const admin = await lab.member('admin', honest, { admin: true })
  const forker = await lab.member('forker', honest, { admin: true })
  const away = await lab.member('away', honest)
  await away.close()
  await untilView(forker, (view) => view.members.has(admin.id))
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
  await left.start()
  await untilForked(honest)
  for (const [by, to] of [
    [honest, admin],
    [admin, honest]
  ] as const) {
    await by.mesh.log.submit(card(by, 'after'))
    await untilCard(to, by, 'after')
  }
  return { honest, admin, forker, away }
}

test('a member that signed two blocks at one position is found and reported, no block of it is accepted, and all others continue', async (t) => {
  const { honest, admin, forker } = await forkedMesh(await meshLab(t))
  const [problem] = honest.mesh.problems()
  t.is(problem?.code, 'CONFLICT')
  t.is(problem?.next, `a2a-node peers revoke ${forker.id}`)
  t.is(honest.mesh.state().forked?.length, 1, 'and remembered')
  t.ok(
    honest.refused.some((one) => one.code === 'CONFLICT' && one.peer === forker.id && one.rule === 'quarantine'),
    'and on record'
  )
  t.absent(
    honest.mesh.log.view().cards.get(forker.id)?.has('left-two'),
    'of two versions the later one is not accepted'
  )
  await honest.mesh.log.submit({
    kind: 'revocation',
    mesh: honest.mesh.meshId,
    nodeKey: forker.id,
    at: Date.now(),
    reason: 'forked'
  })
  await untilView(admin, (view) => view.members.get(forker.id)?.revoked !== null)
  t.alike(honest.mesh.problems(), [], 'once it is revoked there is nothing left to do')
})

test('a node that joins after the fork, and one that was away meanwhile, get the log past the forked core and write to it', {
  timeout: 120_000
}, async (t) => {
  const lab = await meshLab(t)
  const { honest, admin, forker, away } = await forkedMesh(lab)
  const newcomer = await lab.member('newcomer', honest)
  const late = await lab.reopen(away)
  await late.start()
  for (const node of [newcomer, late]) {
    await Promise.all([honest, admin].map((of) => untilCard(node, of, 'after')))
    const cards = node.mesh.log.view().cards.get(forker.id)
    t.alike([...(cards?.keys() ?? [])], ['before', 'right'], `${node.name} has the version that the others have`)
    await node.mesh.log.submit(card(node, 'mine'))
    await Promise.all([honest, admin, newcomer, late].map((to) => untilCard(to, node, 'mine')))
  }
  t.alike(new Set([...newcomer.mesh.log.view().members.keys()]), new Set([...honest.mesh.log.view().members.keys()]))
})

test('two equally long versions are found as well, and a node that took the other one reaches the view that the owner signed', {
  timeout: 120_000
}, async (t) => {
  const lab = await meshLab(t)
  const founder = await lab.found('owner')
  await founder.start()
  const admin = await lab.member('admin', founder, { admin: true })
  const forker = await lab.member('forker', founder, { admin: true })
  await forker.mesh.log.submit(card(forker, 'before'))
  await Promise.all([founder, admin].map((node) => untilCard(node, forker, 'before')))
  await Promise.all([forker.close(), admin.close()])
  const right = await lab.twin(forker)
  const left = await lab.reopen(forker)
  await right.mesh.log.submit(card(right, 'right'))
  await left.mesh.log.submit(card(left, 'left'))

  // Each tale reaches one of two that do not see each other.
  await right.start()
  await untilCard(founder, forker, 'right')
  await Promise.all([right.close(), founder.close()])
  const deceived = await lab.reopen(admin)
  await deceived.start()
  await left.start()
  await untilCard(deceived, forker, 'left')
  await left.close()

  const again = await lab.reopen(founder)
  await again.start()
  await Promise.all([again, deceived].map(untilForked))
  t.alike(
    [again, deceived].map((node) => node.mesh.problems()[0]?.next),
    Array(2).fill(`a2a-node peers revoke ${forker.id}`)
  )
  await again.mesh.log.submit(card(again, 'after'))
  await untilCard(deceived, forker, 'right')
  t.absent(deceived.mesh.log.view().cards.get(forker.id)?.has('left'))
  await deceived.mesh.log.submit(card(deceived, 'after'))
  await untilCard(again, deceived, 'after')
})

test('a member is in quarantine for its own core only, and out of it with another', (t) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  const told: unknown[] = []
  const quarantine = new Quarantine({
    self: owner.id,
    forked: [],
    view: () => log.view(),
    onForked: (forked, member) => told.push([forked, member]),
    unreadable: () => null
  })
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

test('a node that is in quarantine itself gets the advice to repair its home, not to be revoked', (t) => {
  const log = founded()
  log.join(owner, ann)
  const next = (self: string): (string | undefined)[] =>
    new Quarantine({ self, forked: [ann.coreKey], view: () => log.view(), onForked: () => {}, unreadable: () => null })
      .problems()
      .map((one) => one.next)
  t.alike(next(owner.id), [`a2a-node peers revoke ${ann.id}`])
  t.ok(next(ann.id)[0]?.startsWith('a2a-node doctor --repair'))
})

test('the owner cannot be revoked: the advice is to repair; the finding counts after a restart', (t) => {
  const log = founded()
  const onForked = (): void => t.fail('no report')
  const quarantine = new Quarantine({
    self: ann.id,
    forked: [owner.coreKey],
    view: () => log.view(),
    onForked,
    unreadable: () => null
  })
  quarantine.add(owner.coreKey)
  t.ok(quarantine.problems()[0]?.next.startsWith('a2a-node doctor --repair'))
})

test('a member whose core holds a block that must not be read is in quarantine, and status says why', (t) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  const fault = { code: 'MALFORMED', reason: 'a batch of no sensible length' } as const
  const unreadable = (core: string): CoreFault | null => (core === ann.coreKey ? fault : null)
  const quarantine = new Quarantine({
    self: owner.id,
    forked: [],
    view: () => log.view(),
    onForked: () => {},
    unreadable
  })
  t.alike([quarantine.has(ann.id), quarantine.has(owner.id), quarantine.memberOf(ann.coreKey)], [true, false, ann.id])
  t.alike(quarantine.problems(), [
    {
      code: 'CONFLICT',
      message: `ann (${shortId(ann.id)}) wrote a block of the mesh log that must not be read (a batch of no sensible length): nothing that it writes is taken any more`,
      next: `a2a-node peers revoke ${ann.id}`
    }
  ])
})

test('a member that wrote more than its share of the log is in quarantine, and status says so with a code of its own', (t) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  const unreadable = (core: string): CoreFault | null =>
    core === ann.coreKey ? { code: 'OVERLOADED', reason: 'over' } : null
  const quarantine = new Quarantine({
    self: owner.id,
    forked: [],
    view: () => log.view(),
    onForked: () => {},
    unreadable
  })
  t.alike(quarantine.problems(), [
    {
      code: 'OVERLOADED',
      message: `ann (${shortId(ann.id)}) wrote more than its share of the mesh log (32 MiB): nothing that it writes is taken any more`,
      next: `a2a-node peers revoke ${ann.id}`
    }
  ])
})
