import test from 'brittle'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import type { A2AEnvelope } from '../../../src/domain/envelope/envelope.js'
import { headerOf } from '../../../src/domain/envelope/header.js'
import { Subscriptions } from '../../../src/node/messaging/subscriptions.js'
import { ManualClock } from '../../support/manual-clock.js'

function envelopeOf(id: string, correlationId: string): A2AEnvelope {
  return {
    id,
    schemaVersion: 1,
    sender: 'a@one',
    recipient: 'b@two',
    correlationId,
    type: 'notification',
    timestamp: 1,
    payload: { id }
  }
}

function subscriptions(): Subscriptions {
  return new Subscriptions(
    new MemoryTelemetry({ clock: new ManualClock(), level: null, format: 'text', write: () => {} })
  )
}

test('a handler gets the messages of its agent until it stops, and no others', (t) => {
  const subs = subscriptions()
  const heard: string[] = []
  const stop = subs.onReceive('b', ({ id, payload }) => heard.push(`${id} ${JSON.stringify(payload)}`))
  const one = envelopeOf('m1', 'c')
  subs.received('b', headerOf(one), one.payload)
  subs.received('other', headerOf(one), one.payload)
  t.alike([heard, subs.has('b'), subs.has('other')], [['m1 {"id":"m1"}'], true, false])
  stop()
  subs.received('b', headerOf(one), one.payload)
  t.alike([heard.length, subs.has('b'), subs.isListening('b')], [1, false, false])
})

test('a handler that throws keeps the message from no other', (t) => {
  const subs = subscriptions()
  let heard = 0
  subs.onReceive('b', () => {
    throw new Error('no')
  })
  subs.onReceive('b', () => heard++)
  const one = envelopeOf('m1', 'c')
  subs.received('b', headerOf(one), one.payload)
  t.is(heard, 1)
})

test('threads have headers of sent and received messages, only once they are read', (t) => {
  const subs = subscriptions()
  const [one, two, three] = [envelopeOf('m1', 'c'), envelopeOf('m2', 'c'), envelopeOf('m3', 'other')]
  subs.sent(one)
  t.alike(subs.thread('c'), [])
  subs.keepThreads()
  subs.sent(one)
  subs.received('b', headerOf(two), two.payload)
  subs.sent(three)
  t.alike(
    subs.thread('c').map(({ id }) => id),
    ['m1', 'm2']
  )
  t.absent('payload' in (subs.thread('c')[0] ?? {}))
  t.ok(subs.isListening('nobody'), 'each message is looked at now')
})
