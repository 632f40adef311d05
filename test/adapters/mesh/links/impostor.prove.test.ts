import test from 'brittle'
import type { Assert } from 'brittle'
import { GRANT_TIMEOUT_MS } from '../../../../src/adapters/mesh/network/certificate-wait.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import type { Clock } from '../../../../src/kit/clock.js'
import { failsWith } from '../../../support/fails.js'
import { impostorScene, type ImpostorScene, type Lies } from './impostor.js'
import { meshLab } from '../lab.js'

/** The owner comes back, and the impostor goes: the newcomer joins by the same code, with the same key. */
async function joinsTrueMesh(t: Assert, { lab, owner, member, impostor, code }: ImpostorScene): Promise<void> {
  await member.close()
  const back = await lab.reopen(owner)
  await back.start()
  const node = await lab.join('newcomer', code)
  t.is(node.id, impostor.answered[0], 'the same node')
  t.is(node.mesh.owner, owner.id)
  t.ok(back.mesh.log.view().members.has(node.id))
}

/** A newcomer by the second use of the code does not believe what the impostor says, and joins the true mesh later. */
async function refuses(t: Assert, lies: Lies): Promise<void> {
  const all = await impostorScene(t, lies)
  const error = await failsWith(t, 'INVITE_INVALID', () => all.lab.join('newcomer', all.code))
  t.is(all.impostor.answered.length, 1, 'it was answered')
  t.ok(error.message.includes('it names another owner or another mesh than the code'), error.message)
  t.ok(error.next.some((command) => command.startsWith('a2a-node invite revoke')))
  await joinsTrueMesh(t, all)
}

test('a member that answers the second use of its code as the owner is refused; the newcomer joins the true mesh later', async (t) => {
  await refuses(t, { isOwner: true })
})

test('an answer with another encryption key or name of the mesh is refused, for any owner that it names', async (t) => {
  const encryptionKey = new Uint8Array(32).fill(7)
  await refuses(t, { isOwner: true, encryptionKey })
  await refuses(t, { isOwner: false, encryptionKey })
  await refuses(t, { isOwner: false, name: 'bank' })
})

test('the fingerprint of a short code refuses the same answers', async (t) => {
  await refuses(t, { isOwner: true, isShort: true })
  await refuses(t, { isOwner: false, isShort: true, encryptionKey: new Uint8Array(32).fill(7) })
})

test('a node whose home names another owner than the log of its mesh leaves the mesh', async (t) => {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const node = await lab.member('node', owner)
  const state = { ...node.mesh.state(), owner: node.id }
  await node.close()
  node.mesh.state = () => state
  const back = await lab.reopen(node)
  const error = await back.mesh.expelled
  t.is(error.code, 'INVITE_INVALID')
  t.ok(error.message.startsWith('the log of the mesh names another owner'), error.message)
})

test('a certificate of a member that may not invite is none, and a newcomer that gets no other says so', async (t) => {
  const all = await impostorScene(t, { isOwner: false })
  const clock = systemClock()
  let endWait: () => void = () => {}
  const after: Clock['after'] = (ms, run) => {
    if (ms === GRANT_TIMEOUT_MS) endWait = run
    return clock.after(ms, run)
  }
  const joining = failsWith(t, 'INVITE_INVALID', () =>
    all.lab.join('newcomer', all.code, { clock: { ...clock, after } })
  )
  await all.impostor.received
  endWait()
  const error = await joining
  t.ok(error.message.includes('the certificate that it gave does not count: its issuer may not invite'), error.message)
  await joinsTrueMesh(t, all)
})
