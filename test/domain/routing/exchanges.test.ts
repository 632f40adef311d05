import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
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
  for (const changes of [
    { peer: 'q' },
    { correlationId: 'd' },
    { from: 'c@p' },
    { to: 'b@n' },
    { to: key.from },
    { from: key.to }
  ])
    t.is(exchanges.find({ ...key, ...changes }, 1), null)
})

test('an exchange ends at its expiry', (t) => {
  const exchanges = opened()
  t.ok(exchanges.find(key, 99))
  t.absent(exchanges.find(key, 100))
  t.is(exchanges.size, 0)
})

test('several openings on one thread stay open until each is answered', (t) => {
  const exchanges = opened(3)
  exchanges.close(key)
  exchanges.close(key)
  t.ok(exchanges.find(key, 1))
  exchanges.close(key)
  t.absent(exchanges.find(key, 1))
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

test('exchanges that peers open leave slots for those of this node', (t) => {
  const exchanges = new Exchanges({ maxOpen: 3, kept: 1 })
  const open = (correlationId: string, isOwn: boolean): boolean =>
    exchanges.open({ ...key, correlationId, isOwn, expiresAt: 10 }, 0)
  t.alike([open('1', false), open('2', false), open('3', false)], [true, true, false])
  t.alike([open('4', true), open('5', true)], [true, false])
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
          exchanges.close(one)
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

test('the operator that answers for a removed agent finds the oldest exchange that the other opened with its node', (t) => {
  const exchanges = new Exchanges()
  for (const to of ['x@m', 'b@n', 'c@n'])
    exchanges.open({ peer: 'p', correlationId: 'c', from: 'a@p', to, expiresAt: 100 }, 0)
  const voice = { peer: 'p', correlationId: 'c', from: 'operator@n', to: 'a@p' }
  t.is(exchanges.findOpened(voice, 1)?.to, 'b@n')
  exchanges.close({ ...voice, from: 'b@n' })
  t.is(exchanges.findOpened(voice, 1)?.to, 'c@n')
  for (const changes of [{ peer: 'q' }, { correlationId: 'd' }, { from: 'operator@l' }, { to: 'b@p' }])
    t.is(exchanges.findOpened({ ...voice, ...changes }, 1), null)
  t.is(exchanges.findOpened({ ...voice, from: 'a@p', to: 'c@n' }, 1), null, 'the asked peer opened nothing')
  t.is(exchanges.findOpened(voice, 100), null)
  exchanges.sweep(100)
  t.is(exchanges.findOpened(voice, 1), null)
})
