import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { MESSAGE_TYPES, OPENING_TYPES, type MessageType } from '../../../src/domain/envelope/envelope.js'
import { Exchanges } from '../../../src/domain/routing/exchanges.js'
import { holds } from '../../support/arbitraries.js'

const key = { peer: 'p', correlationId: 'c' }

function opened(times = 1): Exchanges {
  const exchanges = new Exchanges()
  for (let i = 0; i < times; i++) exchanges.open({ ...key, expiresAt: 100 }, 0)
  return exchanges
}

test('a reply is allowed only with the peer and on the thread of an opening', (t) => {
  const exchanges = opened()
  t.is(exchanges.allows(key, 1), true)
  t.is(exchanges.allows({ ...key, peer: 'q' }, 1), false)
  t.is(exchanges.allows({ ...key, correlationId: 'd' }, 1), false)
  t.is(exchanges.allows({ peer: 'pc', correlationId: '' }, 1), false)
})

test('response, error, stream-end and task-reject end an exchange; task-accept and stream-data do not', (t) => {
  const ends = new Set<MessageType>(['response', 'error', 'stream-end', 'task-reject'])
  for (const type of MESSAGE_TYPES.filter((one) => !OPENING_TYPES.has(one))) {
    const exchanges = opened()
    exchanges.replied(key, type)
    t.is(exchanges.allows(key, 1), !ends.has(type), type)
    t.is(exchanges.size, ends.has(type) ? 0 : 1)
  }
})

test('an exchange ends at its expiry', (t) => {
  const exchanges = opened()
  t.is(exchanges.allows(key, 99), true)
  t.is(exchanges.allows(key, 100), false)
  t.is(exchanges.size, 0)
})

test('several openings on one thread stay open until each is answered', (t) => {
  const exchanges = opened(3)
  exchanges.replied(key, 'response')
  exchanges.replied(key, 'response')
  t.is(exchanges.allows(key, 1), true)
  exchanges.replied(key, 'response')
  t.is(exchanges.allows(key, 1), false)
})

test('the request that follows an accepted proposal goes on with its exchange', (t) => {
  const exchanges = opened()
  exchanges.replied(key, 'task-accept')
  exchanges.open({ ...key, expiresAt: 200 }, 1)
  t.is(exchanges.allows(key, 150), true, 'for as long as the later of the two')
  exchanges.replied(key, 'response')
  t.is(exchanges.allows(key, 150), false)
})

test('a full table refuses new exchanges, keeps the live ones and takes new ones when old ones expired', (t) => {
  const exchanges = new Exchanges({ maxOpen: 3, maxPerPeer: 2 })
  const open = (peer: string, correlationId: string, now: number): boolean =>
    exchanges.open({ peer, correlationId, expiresAt: now + 10 }, now)
  t.alike([open('p', '1', 0), open('p', '2', 5), open('p', '3', 6)], [true, true, false], 'two a peer')
  t.alike([open('q', '1', 6), open('r', '1', 6)], [true, false], 'three in all')
  t.is(exchanges.allows({ peer: 'p', correlationId: '2' }, 6), true)
  t.is(open('p', '3', 11), true, 'the first expired at 10')
  t.is(exchanges.size, 3)
})

test('the table behaves like a list of openings, at any times and in any order', (t) => {
  const arbStep = fc.record({
    peer: fc.constantFrom('p', 'q'),
    correlationId: fc.constantFrom('1', '2'),
    ttl: fc.integer({ min: 1, max: 30 }),
    passed: fc.nat({ max: 10 }),
    isReply: fc.boolean()
  })
  holds(
    t,
    fc.property(fc.array(arbStep, { maxLength: 60 }), (steps) => {
      const exchanges = new Exchanges()
      const model = new Map<string, { count: number; expiresAt: number }>()
      let now = 0
      for (const { peer, correlationId, ttl, passed, isReply } of steps) {
        now += passed
        for (const [id, one] of model) if (one.expiresAt <= now) model.delete(id)
        const id = `${peer} ${correlationId}`
        const known = model.get(id)
        if (isReply) {
          exchanges.replied({ peer, correlationId }, 'response')
          if (known !== undefined && --known.count === 0) model.delete(id)
        } else {
          exchanges.open({ peer, correlationId, expiresAt: now + ttl }, now)
          model.set(id, { count: (known?.count ?? 0) + 1, expiresAt: Math.max(known?.expiresAt ?? 0, now + ttl) })
        }
        exchanges.sweep(now)
        assert.equal(exchanges.allows({ peer, correlationId }, now), model.has(id))
        assert.equal(exchanges.size, model.size)
      }
    }),
    300
  )
})
