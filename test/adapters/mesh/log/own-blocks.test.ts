import test, { type Assert } from 'brittle'
import { seal } from '../../../../src/domain/membership/signing.js'
import type { EntryBody } from '../../../../src/domain/membership/types.js'
import { cardBody } from '../../../support/membership.js'
import { failsWith } from '../../../support/fails.js'
import { type LabNode, meshLab, untilView } from '../lab.js'

function card({ mesh, id }: LabNode, name: string): EntryBody {
  return { kind: 'card', mesh: mesh.meshId, card: seal('card', cardBody(name), { id, sign: mesh.sign }) }
}

/** Resolves when a node remembers that its home was put back. */
function untilRolledBack({ mesh }: LabNode): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => (mesh.state().isRolledBack === true ? resolve() : undefined)
    mesh.onState(look)
    look()
  })
}

test('the restored old home of an owner is found by the blocks of others; it writes nothing more and forks no log', (t) =>
  putBack(t, 'owner'))

test('the restored old home of an admin is found by the blocks of others; it writes nothing more and forks no log', (t) =>
  putBack(t, 'admin'))

async function putBack(t: Assert, who: 'owner' | 'admin'): Promise<void> {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const admin = await lab.member('admin', owner, { admin: true })
  const [one, other] = who === 'owner' ? [owner, admin] : [admin, owner]
  await untilView(other, (view) => view.members.has(admin.id))
  await one.mesh.log.submit(card(one, 'before'))
  await untilView(other, (view) => view.cards.get(one.id)?.has('before') === true)
  await one.close()
  const old = await lab.twin(one)
  const newer = await lab.reopen(one)
  await newer.start()
  await newer.mesh.log.submit(card(newer, 'after'))
  await untilView(other, (view) => view.cards.get(one.id)?.has('after') === true)
  await newer.close()

  await old.start()
  await untilRolledBack(old)
  t.is(old.mesh.problems()[0]?.code, 'STORE_DAMAGED')
  t.is(old.mesh.problems()[0]?.next, 'a2a-node stop && a2a-node doctor --repair')
  await failsWith(t, 'STORE_DAMAGED', () => old.mesh.log.submit(card(old, 'more')))
  t.alike(other.mesh.problems(), [], 'nothing is forked')
  await other.mesh.log.submit(card(other, 'other'))
  await untilView(old, (view) => view.cards.get(other.id)?.has('other') === true)
}
