import test from 'brittle'
import { Conversations } from '../../src/node/conversations.js'
import type { EnvelopeHeader } from '../../src/domain/envelope/codec.js'
import { ManualClock } from '../support/manual-clock.js'

function header(correlationId: string): EnvelopeHeader {
  return { id: 'm', schemaVersion: 1, sender: 'a@b', recipient: 'c@d', type: 'response', timestamp: 1, correlationId }
}

test('replies go to whoever waits for them, until the exchange ends', (t) => {
  const conversations = new Conversations(new ManualClock())
  t.teardown(() => conversations.close())
  const seen: unknown[] = []
  t.ok(conversations.sentOut('peer', 'thr', { ttlMs: 1000, handler: (_header, payload) => seen.push(payload) }))
  t.ok(conversations.allows('peer', 'thr'))
  t.absent(conversations.allows('other', 'thr'))
  t.absent(conversations.allows('peer', 'thr2'))
  t.absent(conversations.allows('peer', undefined))
  t.ok(conversations.isAwaited('peer', 'thr'))
  for (const [peer, thread] of [
    ['other', 'thr'],
    ['peer', 'thr2'],
    ['peer', undefined]
  ] as const)
    t.absent(conversations.isAwaited(peer, thread))
  conversations.deliver('peer', header('thr'), 1)
  conversations.deliver('other', header('thr'), 2)
  conversations.end('peer', 'thr')
  t.absent(conversations.allows('peer', 'thr'))
  t.absent(conversations.isAwaited('peer', 'thr'))
  conversations.deliver('peer', header('thr'), 3)
  t.alike(seen, [1])
})

test('an ended exchange is remembered as such, until it is opened again', (t) => {
  const conversations = new Conversations(new ManualClock())
  t.teardown(() => conversations.close())
  t.absent(conversations.hasEnded('peer', 'thr'))
  conversations.letIn('peer', 'thr', 1000)
  conversations.end('peer', 'thr')
  t.ok(conversations.hasEnded('peer', 'thr'))
  t.absent(conversations.hasEnded('peer', undefined))
  conversations.letIn('peer', 'thr', 1000)
  t.absent(conversations.hasEnded('peer', 'thr'))
  for (let i = 0; i < 10_000; i++) conversations.end('peer', `thr_${i}`)
  t.absent(conversations.hasEnded('peer', 'thr_0'), 'not for ever')
  t.ok(conversations.hasEnded('peer', 'thr_9999'))
})

test('an exchange that nobody ends is over when its time is', (t) => {
  const clock = new ManualClock()
  const conversations = new Conversations(clock)
  t.teardown(() => conversations.close())
  conversations.sentOut('peer', 'thr', { ttlMs: 40_000, handler: () => t.fail('nobody waits any more') })
  clock.advance(39_999)
  t.ok(conversations.allows('peer', 'thr'))
  clock.advance(60_000)
  t.absent(conversations.allows('peer', 'thr'))
  conversations.deliver('peer', header('thr'), 1)
})

test('a peer with too many open exchanges gets no further one, others do', (t) => {
  const conversations = new Conversations(new ManualClock())
  t.teardown(() => conversations.close())
  let opened = 0
  while (conversations.letIn('peer', `thr_${opened}`, 1000)) opened++
  t.is(opened, 8192)
  t.absent(conversations.sentOut('peer', 'one more', { ttlMs: 1000, handler: () => {} }))
  t.ok(conversations.letIn('other', 'thr', 1000))
})
