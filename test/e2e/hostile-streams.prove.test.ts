import c from 'compact-encoding'
import test, { type Assert } from 'brittle'
import Protomux from 'protomux'
import { encodeEnvelope } from '../../src/domain/envelope/codec.js'
import { eventually } from '../support/agents/eventually.js'
import { PATIENT, scene, streamOf, untilRead } from '../support/hostile.js'
import { actor, cardBody, signedCard } from '../support/membership.js'

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
    await untilRead(at)
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
