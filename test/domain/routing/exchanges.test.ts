import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { MESSAGE_TYPES, OPENING_TYPES, type MessageType } from '../../../src/domain/envelope/envelope.js'
import { Exchanges } from '../../../src/domain/routing/exchanges.js'
import { holds } from '../../support/holds.js'

const key = { peer: 'p', correlationId: 'c', from: 'b@p', to: 'a@n' }

function opened(times = 1): Exchanges {
  const exchanges = new Exchanges()
  for (let i = 0; i < times; i++) exchanges.open({ ...key, expiresAt: 100 }, 0)
  return exchanges
}

test('a reply is found only with the peer, on the thread and between the agents of an opening', (t) => {
  const exchanges = opened()
  t.ok(exchanges.find(key, 1))
  t.ok(exchanges.find({ ...key, from: key.to, to: key.from }, 1), 'either of them may speak')
  for (const changes of [{ peer: 'q' }, { correlationId: 'd' }, { from: 'c@p' }, { to: 'b@n' }, { to: key.from }, { from: key.to }])
    t.is(exchanges.find({ ...key, ...changes }, 1), null)
})

test('response, error, stream-end and task-reject end an exchange; task-accept and stream-data do not', (t) => {
  const ends = new Set<MessageType>(['response', 'error', 'stream-end', 'task-reject'])
  for (const type of MESSAGE_TYPES.filter((one) => !OPENING_TYPES.has(one))) {
    const exchanges = opened()
    exchanges.replied(key, type, 1)
    t.is(exchanges.find(key, 1) === null, ends.has(type), type)
    t.is(exchanges.size, ends.has(type) ? 0 : 1)
  }
})

test('an exchange ends at its expiry', (t) => {
  const exchanges = opened()
  t.ok(exchanges.find(key, 99))
  t.absent(exchanges.find(key, 100))
  t.is(exchanges.size, 0)
})

test('several openings on one thread stay open until each is answered', (t) => {
  const exchanges = opened(3)
  exchanges.replied(key, 'response', 1)
  exchanges.replied(key, 'response', 1)
  t.ok(exchanges.find(key, 1))
  exchanges.replied(key, 'response', 1)
  t.absent(exchanges.find(key, 1))
})

test('an opening whose final reply did not arrive is open again', (t) => {
  const exchanges = opened(2)
  for (let i = 0; i < 2; i++) {
    exchanges.replied(key, 'response', 1)
    t.ok(exchanges.reopen({ ...key, expiresAt: 100 }, 1))
  }
  exchanges.replied(key, 'response', 1)
  exchanges.replied(key, 'response', 1)
  t.absent(exchanges.find(key, 1))
  t.ok(exchanges.reopen({ ...key, expiresAt: 100 }, 1))
  t.ok(exchanges.find(key, 1))
})

test('the request that follows an accepted proposal goes on with its exchange', (t) => {
  const exchanges = opened()
  exchanges.replied(key, 'task-accept', 1)
  exchanges.open({ ...key, expiresAt: 200 }, 1)
  t.ok(exchanges.find(key, 150), 'for as long as the later of the two')
  exchanges.replied(key, 'response', 1)
  t.absent(exchanges.find(key, 150))
})

test('a full table refuses new exchanges, keeps the live ones and takes new ones when old ones expired', (t) => {
  const exchanges = new Exchanges({ maxOpen: 3, maxPerPeer: 2 })
  const open = (peer: string, correlationId: string, now: number): boolean =>
    exchanges.open({ ...key, peer, correlationId, expiresAt: now + 10 }, now)
  t.alike([open('p', '1', 0), open('p', '2', 5), open('p', '3', 6)], [true, true, false], 'two a peer')
  t.alike([open('q', '1', 6), open('r', '1', 6)], [true, false], 'three in all')
  t.ok(exchanges.find({ ...key, correlationId: '2' }, 6))
  t.is(open('p', '3', 11), true, 'the first expired at 10')
  t.is(exchanges.size, 3)
})

test('what peers open leaves room for what this node opens', (t) => {
  const exchanges = new Exchanges({ maxOpen: 3, kept: 1 })
  const open = (correlationId: string, isOwn: boolean): boolean => exchanges.open({ ...key, correlationId, isOwn, expiresAt: 10 }, 0)
  t.alike([open('1', false), open('2', false), open('3', false)], [true, true, false])
  t.alike([open('4', true), open('5', true)], [true, false])
})

test('an idle exchange makes room for one of its peer, one in use does not', (t) => {
  const exchanges = new Exchanges({ maxPerPeer: 2, idleMs: 10 })
  const open = (correlationId: string, now: number): boolean => exchanges.open({ ...key, correlationId, expiresAt: 1000 }, now)
  t.alike([open('1', 0), open('2', 5), open('3', 9)], [true, true, false])
  exchanges.replied({ ...key, correlationId: '1' }, 'stream-data', 9)
  t.is(open('3', 14), false, 'the first has been used, the second is not idle yet')
  t.is(open('3', 15), true)
  t.alike(
    ['1', '2', '3'].map((correlationId) => exchanges.find({ ...key, correlationId }, 15) !== null),
    [true, false, true]
  )
  t.ok(exchanges.isAnyOpen(() => true, 24))
  t.absent(
    exchanges.isAnyOpen(() => true, 25),
    'idle ones keep no link'
  )
  t.ok(exchanges.find({ ...key, correlationId: '3' }, 999), 'and stay until their room is needed')
})

test('in a full table who has most makes room: nobody with a fair share loses what is in use, nor is refused', async (t) => {
  const arbStep = fc.record({ peer: fc.constantFrom('p', 'q', 'r', 's'), passed: fc.nat(3), used: fc.nat(40) })
  const property = fc.property(fc.array(arbStep, { maxLength: 120 }), (steps) => {
    const exchanges = new Exchanges({ maxOpen: 16, maxPerPeer: 10, idleMs: 50 })
    const open: { peer: string; correlationId: string; usedAt: number }[] = []
    let now = 0
    for (const [index, { peer, passed, used }] of steps.entries()) {
      now += passed
      const touched = open[used]
      if (touched !== undefined) {
        exchanges.replied({ ...key, ...touched }, 'stream-data', now)
        touched.usedAt = now
      }
      const before = open.filter((one) => one.peer === peer).length
      const isIn = exchanges.open({ ...key, peer, correlationId: `${index}`, expiresAt: 1e9 }, now)
      if (before < 4) assert.ok(isIn, 'it has less than its share')
      if (isIn) open.push({ peer, correlationId: `${index}`, usedAt: now })
      const counts = new Map(open.map(({ peer: of }) => [of, open.filter((one) => one.peer === of).length]))
      for (const one of [...open]) {
        if (exchanges.find({ ...key, ...one }, now) !== null) continue
        const isIdle = now - one.usedAt >= 50
        assert.ok(isIdle || (counts.get(one.peer) ?? 0) > 4, 'it was idle, or its peer had more than its share')
        for (const other of open) if (other.peer === one.peer) assert.ok(other.usedAt >= one.usedAt, 'the one used longest ago')
        open.splice(open.indexOf(one), 1)
      }
      assert.equal(exchanges.size, open.length)
      assert.ok(open.length <= 16)
    }
  })
  await holds(t, property, 300)
})

test('the table behaves like a list of openings, at any times and in any order', async (t) => {
  const arbStep = fc.record({
    peer: fc.constantFrom('p', 'q'),
    correlationId: fc.constantFrom('1', '2'),
    from: fc.constantFrom('a@n', 'b@n'),
    to: fc.constantFrom('a@m', 'b@m'),
    isTurned: fc.boolean(),
    ttl: fc.integer({ min: 1, max: 30 }),
    passed: fc.nat({ max: 10 }),
    isReply: fc.boolean()
  })
  await holds(
    t,
    fc.property(fc.array(arbStep, { maxLength: 60 }), (steps) => {
      const exchanges = new Exchanges()
      const model = new Map<string, { count: number; expiresAt: number }>()
      let now = 0
      for (const { peer, correlationId, from, to, isTurned, ttl, passed, isReply } of steps) {
        now += passed
        for (const [id, open] of model) if (open.expiresAt <= now) model.delete(id)
        const id = `${peer} ${correlationId} ${from} ${to}`
        const one = { peer, correlationId, ...(isTurned ? { from: to, to: from } : { from, to }) }
        const known = model.get(id)
        if (isReply) {
          exchanges.replied(one, 'response', now)
          if (known !== undefined && --known.count === 0) model.delete(id)
        } else {
          exchanges.open({ ...one, expiresAt: now + ttl }, now)
          model.set(id, { count: (known?.count ?? 0) + 1, expiresAt: Math.max(known?.expiresAt ?? 0, now + ttl) })
        }
        exchanges.sweep(now)
        assert.equal(exchanges.find(one, now) !== null, model.has(id))
        assert.equal(exchanges.size, model.size)
      }
    }),
    300
  )
})

test('who answers for an agent that is gone finds the oldest exchange that the other opened with its node', (t) => {
  const exchanges = new Exchanges()
  for (const to of ['x@m', 'b@n', 'c@n']) exchanges.open({ peer: 'p', correlationId: 'c', from: 'a@p', to, expiresAt: 100 }, 0)
  const voice = { peer: 'p', correlationId: 'c', from: 'operator@n', to: 'a@p' }
  t.is(exchanges.findOpened(voice, 1)?.to, 'b@n')
  exchanges.close({ ...voice, from: 'b@n' })
  t.is(exchanges.findOpened(voice, 1)?.to, 'c@n')
  for (const changes of [{ peer: 'q' }, { correlationId: 'd' }, { from: 'operator@l' }, { to: 'b@p' }])
    t.is(exchanges.findOpened({ ...voice, ...changes }, 1), null)
  t.is(exchanges.findOpened({ ...voice, from: 'a@p', to: 'c@n' }, 1), null, 'who was asked opened nothing')
  t.is(exchanges.findOpened(voice, 100), null)
  exchanges.sweep(100)
  t.is(exchanges.findOpened(voice, 1), null)
})
