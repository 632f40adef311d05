import test, { type Assert } from 'brittle'
import { encodeEnvelope } from '../../src/domain/envelope/codec.js'
import { eventually } from '../support/agents/eventually.js'
import { failsWith } from '../support/fails.js'
import { PATIENT, scene, type Scene, untilRead } from '../support/hostile.js'
import { actor } from '../support/membership.js'

/** Runs the victim's agents have begun. */
function runs({ victim }: Scene): Promise<number> {
  return victim.counted('tasks_started')
}

test('a forged tier is refused, reported and on record; nothing runs', PATIENT, async (t: Assert) => {
  const at = await scene(t)
  const { eve, victim } = at
  await eve.send({ metadata: { tier: 0 } })
  const line = await victim.onRecord({ kind: 'strike', rule: 'claims: as certified' })
  t.is(line.peer, eve.member.id)
  t.is(await victim.counted('messages_sent', 'error'), 1)
  t.is(await runs(at), 0)
  t.ok(await at.isServing())
})

test(
  'a forged sender is refused: the victim, a member, a stranger; after many forgeries, Eve is kept out',
  PATIENT,
  async (t: Assert) => {
    const at = await scene(t)
    const { eve, victim, bob } = at
    const link = await eve.link()
    for (const sender of [`operator@${victim.id}`, `operator@${bob.id}`, `operator@${actor('stranger').id}`])
      await eve.send({ sender })
    await untilRead(at)
    const strikes = (await victim.audit()).filter((one) => one.rule === 'sender: the key of the stream')
    t.ok(strikes.every((one) => one.peer === eve.member.id))
    t.is(await runs(at), 0)
    t.absent(link.closed)
    const forgery = encodeEnvelope(eve.envelope({ sender: `operator@${bob.id}` }))
    for (let i = 0; i < 30; i++) link.send(Uint8Array.of(0, ...forgery))
    t.ok((await victim.onRecord({ rule: 'strikes' })).reason?.startsWith('kept out for 10 s'))
    t.is(await runs(at), 0)
    t.ok(await at.isServing(), 'bob, whose name she used, is not harmed')
  }
)

test('a weak agent on a strong node is weak, claim it what it may', PATIENT, async (t: Assert) => {
  const at = await scene(t)
  const { eve, victim } = at
  await eve.cards(eve.card('weak', { tier: 3 }))
  const sender = `weak@${eve.member.id}`
  await eve.send({ sender, metadata: { tier: 3 } })
  await victim.onRecord({ kind: 'refusal', code: 'ESCALATION_REQUIRED', sender })
  await eve.send({ sender, metadata: { tier: 1 } })
  await victim.onRecord({ kind: 'strike', rule: 'claims: as certified', sender })
  t.is(await runs(at), 0)
})

test('a request sent again, as it was or under another id, runs once', PATIENT, async (t: Assert) => {
  const at = await scene(t)
  const { eve, victim } = at
  const request = eve.envelope()
  const bytes = encodeEnvelope(request)
  for (let i = 0; i < 5; i++) await eve.message({ kind: 'envelope', bytes })
  await eventually(async () => (await victim.counted('tasks_completed')) > 0)
  await eve.message({ kind: 'envelope', bytes })
  for (let i = 0; i < 5; i++) await eve.send({ payload: request.payload })
  await untilRead(at)
  t.is(await runs(at), 1)
  t.ok(await at.isServing())
})

test('messages of one mesh are worth nothing in another, nor is a certificate', PATIENT, async (t: Assert) => {
  const at = await scene(t)
  const other = await at.start('other')
  const again = await at.lab.join('eve-too', await other.invite())
  await again.start()
  const link = await again.seen.link(other.id)
  const overheard = encodeEnvelope(at.eve.envelope({ sender: `operator@${at.bob.id}` }))
  link.send(Uint8Array.of(0, ...overheard))
  await other.onRecord({ kind: 'strike', rule: 'sender: the key of the stream', peer: again.id })
  link.send(Uint8Array.of(0, ...encodeEnvelope(at.eve.envelope({ sender: `operator@${again.id}` }))))
  await other.onRecord({ kind: 'strike', rule: 'recipient: an agent of this node', peer: again.id })
  t.is(await other.counted('tasks_started'), 0)
  await failsWith(t, 'PEER_OFFLINE', () => at.eve.member.mesh.links.dial(other.id, 2000))
  const line = await other.onRecord({ kind: 'refusal', rule: 'gate', peer: at.eve.member.id })
  t.is(line.reason, 'the peer does not know this mesh')
})

test('an invite that was used lets nobody in again, not even under another key', PATIENT, async (t: Assert) => {
  const { lab, victim } = await scene(t)
  const code = await victim.invite()
  await (await lab.join('mallory', code)).start()
  await failsWith(t, 'INVITE_USED', () => lab.join('trent', code))
  t.is((await victim.api.call('node.status', {})).mesh.members, 4)
})
