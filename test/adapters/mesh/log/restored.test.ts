import test from 'brittle'
import type { EntryBody } from '../../../../src/domain/membership/types.js'
import { cardBody } from '../../../support/membership.js'
import { seal } from '../../../../src/domain/membership/signing.js'
import { keepApart, meshLab, type LabNode, untilView } from '../lab.js'

function card({ mesh, id }: LabNode, name: string): EntryBody {
  return { kind: 'card', mesh: mesh.meshId, card: seal('card', cardBody(name), { id, sign: mesh.sign }) }
}

function untilCard(node: LabNode, of: LabNode, name: string): Promise<void> {
  return untilView(node, (view) => view.cards.get(of.id)?.has(name) === true)
}

function untilHeld({ mesh, id }: LabNode): Promise<void> {
  return untilView(
    { mesh } as LabNode,
    (view) => view.members.get(id)?.coreKey === mesh.log.coreKey && mesh.state().takesOver === undefined
  )
}

test('the only writer of a mesh, restored without its core, writes again on a new one; nobody else has to be able to write', async (t) => {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const member = await lab.member('member', owner)
  const former = owner.mesh.log.coreKey
  await owner.mesh.log.submit(card(owner, 'before'))
  await untilCard(member, owner, 'before')
  await owner.close()

  const again = await lab.restore(owner)
  t.is(again.id, owner.id)
  t.not(again.mesh.log.coreKey, former)
  await again.start()
  await untilHeld(again)
  await again.mesh.log.submit(card(again, 'after'))
  await untilCard(member, again, 'after')
  await untilCard(again, owner, 'before')
  await member.mesh.log.submit(card(member, 'handed'))
  await untilCard(again, member, 'handed')
  const view = member.mesh.log.view()
  t.is(view.members.get(again.id)?.coreSerial, 1)
  t.alike(view.writers.active, [again.mesh.log.coreKey], 'its new core is the writer, the former one is none')
  const third = await lab.member('third', again)
  t.ok(third.mesh.log.view().members.has(member.id), 'it lets others in')
})

test('the core of a restored writer reaches members without a link to it, also of a neighbour that was started again', async (t) => {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const near = await lab.member('near', owner)
  const far = await lab.member('far', owner)
  await Promise.all([near, far].map((node) => untilView(node, (view) => view.members.size === 3)))
  await owner.close()
  const again = await lab.restore(owner)
  keepApart(far, [again])
  await again.start()
  await untilHeld(again)
  await again.mesh.log.submit(card(again, 'first'))
  await untilCard(far, again, 'first')

  await far.close()
  await again.mesh.log.submit(card(again, 'second'))
  await untilCard(near, again, 'second')
  await Promise.all([again.close(), near.close()])
  const [nearAgain, farAgain] = [await lab.reopen(near), await lab.reopen(far)]
  await nearAgain.start()
  await farAgain.start()
  await untilCard(farAgain, again, 'second')
  t.alike(farAgain.mesh.log.view().writers.active, [again.mesh.log.coreKey])
  const newcomer = await lab.reopen(again)
  await newcomer.start()
  const late = await lab.member('late', newcomer)
  t.ok(late.mesh.log.view().members.has(far.id), 'and one that joins')
})

test('an admin and a plain member come back on new cores, through any writer', async (t) => {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const admin = await lab.member('admin', owner, { admin: true })
  const member = await lab.member('member', owner)
  await Promise.all([admin.close(), member.close()])
  for (const one of [admin, member]) {
    const again = await lab.restore(one)
    await again.start()
    await untilHeld(again)
    await again.mesh.log.submit(card(again, 'after'))
    await untilCard(owner, again, 'after')
  }
  const { eligible } = owner.mesh.log.view().writers
  t.alike(
    eligible.map((one) => one.nodeKey),
    [owner.id, admin.id],
    'a member that may not write does not become a writer by it'
  )
})

test('two homes of one node at once: the one that was restored later stays, the other one stops and says why', {
  timeout: 120_000
}, async (t) => {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const member = await lab.member('member', owner)
  await owner.mesh.log.submit(card(owner, 'before'))
  const copy = await lab.restore(member)
  await copy.start()
  t.is((await member.mesh.expelled).code, 'CONFLICT')
  t.is(member.mesh.state().isReplaced, true)
  await member.close()
  await untilHeld(copy)

  const other = await lab.restore(owner)
  await other.start()
  t.is((await owner.mesh.expelled).code, 'CONFLICT', 'also the founder, whose first core stays the root of the log')
  await owner.close()
  await untilHeld(other)
  await other.mesh.log.submit(card(other, 'after'))
  await untilCard(copy, other, 'after')
  t.ok(copy.mesh.log.view().cards.get(owner.id)?.has('before'), 'the entries of the former home stay')
})
