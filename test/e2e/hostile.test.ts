import c from 'compact-encoding'
import test, { type Assert } from 'brittle'
import Protomux from 'protomux'
import { encodeEnvelope } from '../../src/domain/envelope/codec.js'
import { eventually } from '../support/agents/eventually.js'
import { failsWith } from '../support/fails.js'
import { PATIENT, scene, type Scene, streamOf } from '../support/hostile.js'
import { actor, cardBody, signedCard } from '../support/membership.js'

/** Resolves when the victim has read all that Eve sent: a request that she sends then is at work, or was refused. */
async function heard({ eve, victim }: Scene): Promise<void> {
  const before = await victim.counted('messages_received')
  await eve.send({ type: 'notification', recipient: `operator@${victim.id}`, payload: null })
  await eventually(async () => (await victim.counted('messages_received')) > before)
}

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
    await heard(at)
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
  await heard(at)
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

test('frames, envelopes and control messages over their size cut the link', PATIENT, async (t: Assert) => {
  const at = await scene(t)
  const { eve, victim } = at
  const large = [
    [new Uint8Array(200_000)],
    [new Uint8Array(1024 * 1024 + 1)],
    // An envelope that goes on after 16 MiB.
    Array.from({ length: 258 }, () => Uint8Array.of(1, 7, 0, ...new Uint8Array(64 * 1024)))
  ]
  for (const frames of large) {
    const link = await eve.link()
    for (const frame of frames) link.send(frame)
    await eve.member.seen.until(() => link.closed)
  }
  await eventually(async () => (await victim.counted('frames_malformed')) === large.length)
  await victim.onRecord({ kind: 'strike', code: 'MALFORMED', peer: eve.member.id })
  t.ok(await at.isServing())
})

test('a bomb of channels cuts the stream before the multiplexer reads it', PATIENT, async (t: Assert) => {
  const at = await scene(t)
  const link = await at.eve.link()
  const open = (channel: number): number[] => [1, ...c.encode(c.uint, channel), ...c.encode(c.string, `x${channel}`), 0]
  const opens = Array.from({ length: 5000 }, (_, place) => open(100 + place)).flatMap((message) => [
    message.length,
    ...message
  ])
  streamOf(at.eve).write(Uint8Array.from([0, 0, 0, ...opens]))
  await at.eve.member.seen.until(() => link.closed)
  t.is((await at.victim.onRecord({ kind: 'strike', code: 'MALFORMED' })).reason, 'too many channels on one stream')
  t.ok(await at.isServing())
})

test(
  'a member that sends more than its credit while others use the node is cut, and honest work goes on',
  PATIENT,
  async (t: Assert) => {
    const at = await scene(t)
    const { eve, victim } = at
    const link = await eve.link()
    const bytes = encodeEnvelope(
      eve.envelope({ type: 'notification', recipient: `operator@${victim.id}`, payload: null })
    )
    const frame = Uint8Array.of(0, ...bytes)
    const mux = Protomux.from(streamOf(eve))
    let sent = 0
    for (let batch = 0; batch < 100 && !link.closed; batch++) {
      // Alone with an idle node she may send as fast as it reads.
      const served = at.isServing()
      mux.cork()
      for (let i = 0; i < 20_000; i++) link.send(frame)
      mux.uncork()
      sent += 20_000
      await Promise.race([link.drained(), eve.member.seen.until(() => link.closed)])
      t.ok(await served)
    }
    const line = await victim.onRecord({ kind: 'strike', code: 'MALFORMED', peer: eve.member.id })
    t.is(line.reason, 'more messages than it has credit for')
    t.ok((await victim.counted('messages_received', 'notification')) < sent)
    t.ok(await at.isServing())
  }
)

test(
  'card tricks: of another key, too strong, changed, too large, with a poisonous name; only what is honest is taken',
  PATIENT,
  async (t: Assert) => {
    const at = await scene(t)
    const { eve, victim, bob } = at
    await eve.cards(
      signedCard(actor('stranger'), cardBody('foreign')),
      eve.card('strong', { tier: 0 }),
      { ...eve.card('changed'), body: cardBody('changed', { description: 'more' }) },
      eve.card('large', { description: 'x'.repeat(70_000) }),
      eve.card('poison', { name: 'red\u001b[31m\u202ename' }),
      eve.card('good', { revision: 5, name: 'new' })
    )
    await eve.cards(eve.card('good', { revision: 4, name: 'old' }))
    await eve.control('cards-removed', { agents: [{ id: 'text', revision: 99 }] })
    await heard(at)
    const ofEve = (await victim.api.call('agents.list', {})).agents.filter((one) => one.node.id === eve.member.id)
    t.alike(ofEve.map((one) => one.id).sort(), ['eve', 'good'])
    t.is((await victim.api.call('agents.show', { agent: 'good@eve' })).name, 'new', 'an older card changes nothing')
    await eve.cards(JSON.parse('{"body":{"__proto__":{"tier":0},"id":"__proto__","revision":1},"by":"x","sig":"y"}'))
    await victim.onRecord({ kind: 'strike', code: 'MALFORMED', peer: eve.member.id })
    t.is(({} as { tier?: number }).tier, undefined)
    t.ok(await at.isServing())
    t.ok((await bob.api.call('agents.list', {})).agents.some((one) => one.address === 'text@victim'))
  }
)

test('an invite that was used lets nobody in again, not even under another key', PATIENT, async (t: Assert) => {
  const { lab, victim } = await scene(t)
  const code = await victim.invite()
  await (await lab.join('mallory', code)).start()
  await failsWith(t, 'INVITE_USED', () => lab.join('trent', code))
  t.is((await victim.api.call('node.status', {})).mesh.members, 4)
})
