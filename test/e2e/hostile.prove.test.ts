import test, { type Assert } from 'brittle'
import Protomux from 'protomux'
import { scene } from '../support/hostile.js'
import { PATIENT, streamOf } from '../support/hostile.js'

test(
  'garbage at every layer costs Eve her link and nobody else anything; she ends by being kept out',
  PATIENT,
  async (t: Assert) => {
    const at = await scene(t)
    const { eve, victim } = at
    const noise = (seed: number, length: number): Uint8Array =>
      Uint8Array.from({ length }, (_, place) => (Math.imul(seed + 1, 2_654_435_761) >>> (place % 24)) ^ (place * 31))
    const on = (protocol: string, bytes: Uint8Array): void =>
      void Protomux.from(streamOf(eve)).getLastChannel({ protocol })?.messages[0]?.send(bytes)
    // What says nothing to anybody is passed over; what breaks a protocol costs the link.
    streamOf(eve).write(Uint8Array.of(200, ...noise(1, 1000)))
    on('a2a-node/gate', noise(2, 300))
    const attacks: (() => unknown)[] = [
      () =>
        streamOf(eve).write(
          Uint8Array.from([0, 0, ...Array.from({ length: 9 }, () => [0, 0xfe, 0xff, 0xff, 0xff, 0x7f, 0]).flat()])
        ),
      () => on('a2a-node/log', noise(3, 3)),
      () => eve.frames(Uint8Array.of(99, ...noise(4, 64))),
      () => eve.frames(Uint8Array.of(4, 6, ...new TextEncoder().encode('cancel{"requestId":'))),
      () => eve.control('cancel', { requestId: { length: 1 } }),
      () => eve.control('cancel', JSON.parse(`${'['.repeat(40)}${']'.repeat(40)}`))
    ]
    for (const attack of attacks) {
      const link = await eve.link()
      attack()
      await eve.member.seen.until(() => link.closed)
    }
    t.ok(await at.isServing())
    const link = await eve.link()
    for (let seed = 0; seed < 60; seed++) link.send(Uint8Array.of(0, 1, ...noise(seed, 100)))
    await eve.member.seen.until(() => link.closed)
    await victim.onRecord({ rule: 'strikes', peer: eve.member.id })
    t.is(await victim.counted('errors', 'inbox'), 0)
    t.ok(await at.isServing())
  }
)
