import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { ExchangeTable } from '../../../src/node/messaging/exchange-table.js'
import type { Thread } from '../../../src/node/messaging/inbound-message.js'
import type { EnvelopeHeader } from '../../../src/domain/envelope/codec.js'
import { holds } from '../../support/holds.js'
import { ManualClock } from '../../support/manual-clock.js'

const header: EnvelopeHeader = {
  id: 'm',
  schemaVersion: 1,
  sender: 'a@b',
  recipient: 'c@d',
  type: 'response',
  timestamp: 1
}

/** A thread of the agent `own` of this node with the agent `other` of `peer`. */
function thread(correlationId: string, { own = 'own', other = 'other', peer = 'peer' } = {}): Thread {
  return { sender: { agentId: own, nodeId: 'self' }, recipient: { agentId: other, nodeId: peer }, correlationId }
}

function make(t: Assert, clock = new ManualClock()): ExchangeTable {
  const conversations = new ExchangeTable(clock)
  t.teardown(() => conversations.close())
  return conversations
}

const NO_ONE = { ttlMs: 1000, handler: () => {} }

test('replies go to the handler that waits for them, until the exchange ends', (t) => {
  const conversations = make(t)
  const seen: unknown[] = []
  const open = thread('thr')
  t.ok(conversations.sentOut(open, { ttlMs: 1000, handler: (_header, payload) => seen.push(payload) }))
  t.ok(conversations.mayReceive(open))
  t.ok(conversations.maySend(open))
  t.ok(conversations.isAwaited(open))
  for (const other of [
    thread('thr2'),
    ...[{ peer: 'q' }, { own: 'third' }, { other: 'third' }].map((one) => thread('thr', one))
  ]) {
    t.absent(conversations.mayReceive(other))
    t.absent(conversations.maySend(other))
    t.absent(conversations.isAwaited(other))
    conversations.deliver(other, header, 'nobody waits for it')
  }
  conversations.deliver(open, header, 1)
  conversations.end(open)
  t.absent(conversations.mayReceive(open))
  t.absent(conversations.isAwaited(open))
  conversations.deliver(open, header, 3)
  t.alike(seen, [1])
})

test('the operator of a node answers for a removed agent of it, in both directions', (t) => {
  const conversations = make(t)
  const seen: unknown[] = []
  conversations.sentOut(thread('out'), { ttlMs: 1000, handler: (_header, payload) => seen.push(payload) })
  conversations.letIn(thread('in'), 1000)
  const voice = thread('out', { other: 'operator' })
  t.ok(conversations.mayReceive(voice))
  t.ok(conversations.isAwaited(voice))
  conversations.deliver(voice, header, 'gone')
  t.alike(seen, ['gone'])
  t.ok(conversations.maySend(thread('in', { own: 'operator' })))
  for (const one of [
    { own: 'operator' },
    { own: 'operator', other: 'operator' },
    { own: 'third', other: 'operator' },
    { other: 'operator', peer: 'q' }
  ])
    t.absent(conversations.mayReceive(thread('out', one)), 'no other node gets it')
  t.absent(conversations.mayReceive(thread('in', { other: 'operator' })), 'the opener answers for itself')
  t.absent(conversations.mayReceive(thread('in', { own: 'operator' })))
  t.absent(conversations.maySend(thread('in', { own: 'third' })))
  conversations.end(thread('out'))
  t.absent(conversations.mayReceive(voice))
  t.ok(conversations.hasEnded(voice), 'it is only late')
})

test('several exchanges on one thread, as a broadcast opens, are each of their own two agents', (t) => {
  const conversations = make(t)
  const seen: string[] = []
  for (const other of ['one', 'two'])
    conversations.sentOut(thread('thr', { other }), { ttlMs: 1000, handler: () => seen.push(other) })
  for (const other of ['two', 'one']) conversations.deliver(thread('thr', { other }), header, 1)
  t.alike(seen, ['two', 'one'])
  conversations.end(thread('thr', { other: 'one' }))
  t.absent(conversations.mayReceive(thread('thr', { other: 'one' })))
  t.ok(conversations.mayReceive(thread('thr', { other: 'two' })))
})

test('within one node a thread is one exchange for both its ends', (t) => {
  const conversations = make(t)
  const out = thread('thr', { peer: 'self' })
  const back = thread('thr', { own: 'other', other: 'own', peer: 'self' })
  conversations.sentOut(out, NO_ONE)
  conversations.letIn(back, 1000)
  t.ok(conversations.maySend(back))
  t.ok(conversations.mayReceive(out))
  t.absent(conversations.mayReceive(thread('thr', { own: 'third', peer: 'self' })))
  conversations.end(back)
  t.ok(conversations.mayReceive(out))
  conversations.end(out)
  t.absent(conversations.mayReceive(out))
})

test('an ended exchange is remembered as such, until it is opened again', (t) => {
  const conversations = make(t)
  t.absent(conversations.hasEnded(thread('thr')))
  conversations.letIn(thread('thr'), 1000)
  conversations.end(thread('thr'))
  t.ok(conversations.hasEnded(thread('thr')))
  t.absent(conversations.hasEnded(thread('thr', { own: 'third' })))
  conversations.letIn(thread('thr'), 1000)
  t.absent(conversations.hasEnded(thread('thr')))
  for (let i = 0; i < 10_000; i++) conversations.end(thread(`thr_${i}`))
  t.absent(conversations.hasEnded(thread('thr_0')), 'not for ever')
  t.ok(conversations.hasEnded(thread('thr_9999')))
})

test('an exchange that nobody ends is over when its time is', (t) => {
  const clock = new ManualClock()
  const conversations = make(t, clock)
  conversations.sentOut(thread('thr'), { ttlMs: 40_000, handler: () => t.fail('nobody waits any more') })
  clock.advance(39_999)
  t.ok(conversations.mayReceive(thread('thr')))
  clock.advance(60_000)
  t.absent(conversations.mayReceive(thread('thr')))
  conversations.deliver(thread('thr'), header, 1)
})

test('a peer with too many open exchanges gets no further one, others do', (t) => {
  const conversations = make(t)
  let opened = 0
  while (conversations.letIn(thread(`thr_${opened}`), 1000)) opened++
  t.is(opened, 8192)
  t.absent(conversations.sentOut(thread('one more'), NO_ONE))
  t.ok(conversations.letIn(thread('thr', { peer: 'q' }), 1000))
})

test('a reply is admitted only between the two agents of one exchange, or from the operator of the asked node, for any open exchanges', async (t) => {
  const arbThread = fc.record({
    own: fc.constantFrom('operator', 'a', 'b'),
    other: fc.constantFrom('operator', 'a', 'b'),
    peer: fc.constantFrom('p', 'q'),
    correlationId: fc.constantFrom('1', '2')
  })
  const arbStep = fc.record({ ends: arbThread, how: fc.constantFrom('out', 'in', 'follow', 'end') })
  await holds(
    t,
    fc.property(fc.array(arbStep, { maxLength: 30 }), arbThread, (steps, { correlationId, ...reply }) => {
      const conversations = new ExchangeTable(new ManualClock())
      const open = new Map<string, { count: number; isOut: boolean; ends: typeof reply & { correlationId: string } }>()
      for (const { ends, how } of steps) {
        const one = thread(ends.correlationId, ends)
        const text = JSON.stringify(one)
        const known = open.get(text)
        if (how === 'out') conversations.sentOut(one, NO_ONE)
        else if (how === 'in') conversations.letIn(one, 1000)
        else if (how === 'follow') conversations.follow(one, NO_ONE)
        else conversations.end(one)
        if (how === 'out' || how === 'in')
          open.set(text, { isOut: how === 'out', ends, ...known, count: (known?.count ?? 0) + 1 })
        else if (how === 'end' && known !== undefined && --known.count === 0) open.delete(text)
      }
      const isAnsweredFor = [...open.values()].some(
        ({ isOut, ends }) =>
          isOut && ends.own === reply.own && ends.peer === reply.peer && ends.correlationId === correlationId
      )
      const one = thread(correlationId, reply)
      const mayPass = open.has(JSON.stringify(one)) || (reply.other === 'operator' && isAnsweredFor)
      assert.equal(conversations.mayReceive(one), mayPass)
      conversations.close()
    }),
    500
  )
})

test('members that keep exchanges open do not keep this node from asking others', (t) => {
  const conversations = make(t)
  for (let peer = 0; peer < 9; peer++)
    for (let one = 0; one < 8192; one++) conversations.letIn(thread(`${one}`, { peer: `m${peer}` }), 86_400_000)
  t.absent(conversations.letIn(thread('one more', { peer: 'm9' }), 1000))
  t.ok(conversations.sentOut(thread('own', { peer: 'honest' }), NO_ONE))
})
