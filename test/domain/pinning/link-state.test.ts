import fc from 'fast-check'
import test, { type Assert } from 'brittle'
import {
  FIRST_RETRY_MS,
  GATHER_MS,
  IDLE,
  LIST_GAP_MS,
  type LinkEffect,
  type LinkInput,
  type LinkState,
  MAX_RETRY_MS,
  MIN_RETRY_MS,
  retryDelay,
  SESSION_MIN_MS,
  step
} from '../../../src/domain/pinning/link-state.js'
import { holds } from '../../support/holds.js'

const TTL_MS = 300_000

function run(inputs: readonly (readonly [at: number, input: LinkInput])[]): {
  state: LinkState
  effects: LinkEffect[]
} {
  let state = IDLE
  const effects: LinkEffect[] = []
  for (const [now, input] of inputs) {
    const next = step(state, input, { now, ttlMs: TTL_MS })
    state = next.state
    effects.push(...next.effects)
  }
  return { state, effects }
}

const failure = (chance = 0.5): LinkInput => ({ type: 'failed', reason: 'broken', chance })

test('a server is started, asked for its tools, and asked again when the list is old', (t: Assert) => {
  const { state, effects } = run([
    [0, { type: 'start' }],
    [5, { type: 'connected' }],
    [10, { type: 'listed' }]
  ])
  t.alike(effects, ['connect', 'list'])
  t.is(state.phase, 'ready')
  t.is(state.wakeAt, 10 + TTL_MS)
  const early = step(state, { type: 'wake' }, { now: 20, ttlMs: TTL_MS })
  t.alike(early.effects, [], 'not before')
  t.alike(step(state, { type: 'wake' }, { now: 10 + TTL_MS, ttlMs: TTL_MS }).effects, ['list'])
})

test('changes that come together are one list, and lists keep their gap', (t: Assert) => {
  const ready = run([
    [0, { type: 'start' }],
    [0, { type: 'connected' }],
    [0, { type: 'listed' }]
  ]).state
  const once = step(ready, { type: 'changed' }, { now: 10_000, ttlMs: TTL_MS }).state
  t.is(once.wakeAt, 10_000 + GATHER_MS)
  let many = once
  for (let i = 0; i < 1000; i++) many = step(many, { type: 'changed' }, { now: 10_000 + i / 10, ttlMs: TTL_MS }).state
  t.is(many.wakeAt, once.wakeAt, 'a flood puts it neither off nor forward')
  const listing = step(many, { type: 'wake' }, { now: 10_000 + GATHER_MS, ttlMs: TTL_MS })
  t.alike(listing.effects, ['list'])
  const dirty = step(listing.state, { type: 'changed' }, { now: 10_300, ttlMs: TTL_MS }).state
  const again = step(dirty, { type: 'listed' }, { now: 10_400, ttlMs: TTL_MS }).state
  t.is(again.wakeAt, 10_400 + LIST_GAP_MS, 'a change during the listing is listed after the gap')
})

test('a lost session begins anew at once, but not over and over', (t: Assert) => {
  const ready = run([
    [0, { type: 'start' }],
    [0, { type: 'connected' }],
    [0, { type: 'listed' }]
  ]).state
  const lost: LinkInput = { type: 'lost', reason: 'forgotten', chance: 0.5 }
  t.alike(step(ready, lost, { now: SESSION_MIN_MS, ttlMs: TTL_MS }).effects, ['disconnect', 'connect'])
  t.is(step(ready, lost, { now: SESSION_MIN_MS - 1, ttlMs: TTL_MS }).state.phase, 'backoff')
})

test('a server that was too busy for its first list is asked for it again', (t: Assert) => {
  const { state } = run([
    [0, { type: 'start' }],
    [0, { type: 'connected' }],
    [10_000, { type: 'busy' }]
  ])
  t.alike([state.phase, state.isListing, state.wakeAt], ['starting', false, 10_000 + LIST_GAP_MS])
  const again = step(state, { type: 'wake' }, { now: 10_000 + LIST_GAP_MS, ttlMs: TTL_MS })
  t.alike(again.effects, ['list'])
  t.is(step(again.state, { type: 'listed' }, { now: 13_000, ttlMs: TTL_MS }).state.phase, 'ready')
})

test('a person can have a failed server tried at once', (t: Assert) => {
  const { state, effects } = run([
    [0, { type: 'start' }],
    [1, failure(0.99)],
    [2, { type: 'refresh' }]
  ])
  t.is(state.phase, 'starting')
  t.alike(effects, ['connect', 'disconnect', 'connect'])
})

test('waits between tries have full jitter: anything up to a bound that doubles', async (t: Assert) => {
  await holds(
    t,
    fc.property(
      fc.integer({ min: 1, max: 40 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (failures, chance) => {
        const delay = retryDelay(failures, chance)
        const most = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1))
        return delay >= MIN_RETRY_MS && delay <= Math.max(most, MIN_RETRY_MS)
      }
    )
  )
  t.is(retryDelay(1, 0), MIN_RETRY_MS)
  t.ok(retryDelay(20, 0.999) > MAX_RETRY_MS * 0.9)
})

test('one connection at a time, no list without one, always a next step, nothing after close, for any events in any order', async (t: Assert) => {
  const simple = fc.constantFrom<LinkInput['type']>(
    'start',
    'connected',
    'listed',
    'busy',
    'changed',
    'refresh',
    'wake',
    'close'
  )
  const input: fc.Arbitrary<LinkInput> = fc.oneof(
    { weight: 6, arbitrary: simple.filter((type) => type !== 'close').map((type) => ({ type }) as LinkInput) },
    { weight: 2, arbitrary: fc.double({ min: 0, max: 0.999, noNaN: true }).map((chance) => failure(chance)) },
    { weight: 1, arbitrary: fc.constant<LinkInput>({ type: 'lost', reason: 'forgotten', chance: 0.5 }) },
    { weight: 1, arbitrary: fc.constant<LinkInput>({ type: 'close' }) }
  )
  const course = fc.array(fc.tuple(fc.integer({ min: 0, max: 5000 }), input), { minLength: 1, maxLength: 80 })
  await holds(
    t,
    fc.property(course, (inputs) => {
      let state = IDLE
      let isOpen = false
      let hasAsked = false
      let now = 0
      for (const [passed, one] of inputs) {
        now += passed
        const wasClosed = state.phase === 'closed'
        const next = step(state, one, { now, ttlMs: TTL_MS })
        if (wasClosed && next.effects.length > 0) return false
        for (const effect of next.effects) {
          if (effect === 'connect' && isOpen) return false
          if (effect !== 'connect' && !isOpen) return false
          if (effect === 'connect') isOpen = true
          if (effect === 'disconnect') isOpen = false
          hasAsked = effect === 'list'
        }
        state = next.state
        if (state.isOpen !== isOpen || (state.phase === 'closed' && isOpen)) return false
        // A state in which nothing is under way must wake by itself.
        const isConnecting = state.phase === 'starting' && !hasAsked
        const isWaiting = (isOpen && !isConnecting && !state.isListing) || state.phase === 'backoff'
        if (isWaiting !== (state.wakeAt !== null) || (one.type === 'busy' && state.isListing)) return false
        const due = step(state, { type: 'wake' }, { now: Math.max(now, state.wakeAt ?? 0), ttlMs: TTL_MS })
        if (isWaiting && due.effects.length === 0) return false
        if (state.phase === 'backoff' && (state.wakeAt ?? 0) > now + MAX_RETRY_MS) return false
      }
      return true
    }),
    1000
  )
})

test('however a server floods, it is asked for its list once in a gap', async (t: Assert) => {
  await holds(
    t,
    fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 400 }), fc.boolean()), { maxLength: 200 }), (course) => {
      let { state } = run([
        [0, { type: 'start' }],
        [0, { type: 'connected' }],
        [0, { type: 'listed' }]
      ])
      let now = 0
      let last = 0
      for (const [passed, isChange] of course) {
        now += passed
        const next = step(state, { type: isChange ? 'changed' : 'wake' }, { now, ttlMs: TTL_MS })
        state = next.state
        if (!next.effects.includes('list')) continue
        if (now - last < LIST_GAP_MS) return false
        state = step(state, { type: 'listed' }, { now, ttlMs: TTL_MS }).state
        last = now
      }
      return true
    })
  )
})
