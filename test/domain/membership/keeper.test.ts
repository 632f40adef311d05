import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import {
  dialPlan,
  FAST_MAX_MS,
  keeperPlan,
  type KeeperState,
  MAX_DIALS,
  type MissingMember,
  nextDialAt,
  SLOW_MS
} from '../../../src/domain/membership/keeper.js'
import { holds } from '../../support/holds.js'

const arbState: fc.Arbitrary<KeeperState> = fc.record({
  now: fc.nat(1_000_000),
  network: fc.constantFrom('public' as const, 'private' as const, 'local' as const),
  missing: fc.nat(3),
  connected: fc.nat(3),
  lastRefreshAt: fc.option(fc.nat(1_000_000)),
  attempt: fc.nat(40),
  chance: fc.double({ min: 0, max: 1, noNaN: true })
})
const arbMissing = fc.array(
  fc.record({ nodeId: fc.string({ minLength: 1 }), attempts: fc.nat(60), lastTriedAt: fc.option(fc.nat(100_000)) }),
  { maxLength: 12 }
)

test('discovery is asked fast while somebody is missing and slowly when nobody is, never twice at once', async (t: Assert) => {
  await holds(
    t,
    fc.property(arbState, (state) => {
      const plan = keeperPlan(state)
      const isFast = state.missing > 0 || state.connected === 0
      const [least, most] = isFast ? [100, FAST_MAX_MS] : SLOW_MS[state.network]
      if (plan.refreshNow) {
        const wait = plan.nextAt - state.now
        const again = keeperPlan({ ...state, lastRefreshAt: state.now, attempt: state.attempt + 1 })
        return wait >= least && wait <= most + 1e-6 && !again.refreshNow && again.nextAt === plan.nextAt
      }
      const last = state.lastRefreshAt ?? Number.NaN
      return plan.nextAt > state.now && plan.nextAt - last >= least && plan.nextAt - last <= most + 1e-6
    }),
    500
  )
})

test('the waits begin at 100 ms and grow by 1.6 up to 5 s', (t: Assert) => {
  const waits: number[] = []
  let at = 0
  for (let attempt = 0; attempt < 12; attempt++) {
    const due = keeperPlan({ now: at, network: 'public', missing: 1, connected: 1, lastRefreshAt: at, attempt }).nextAt
    waits.push(due - at)
    at = due
  }
  t.alike(waits.slice(0, 4), [100, 160, 256, 410])
  t.is(waits.at(-1), FAST_MAX_MS)
  t.ok(waits.filter((wait) => wait < FAST_MAX_MS).reduce((sum, wait) => sum + wait, 0) < 15_000)
})

test('a node without any peer asks at once', (t: Assert) => {
  t.is(
    keeperPlan({ now: 5, network: 'local', missing: 0, connected: 0, lastRefreshAt: null, attempt: 0 }).refreshNow,
    true
  )
})

test('at most four dials are under way, each due, those with fewest attempts first', async (t: Assert) => {
  await holds(
    t,
    fc.property(arbMissing, fc.nat(200_000), fc.nat(6), (missing, now, dialing) => {
      const dialled = dialPlan(missing, now, { dialing })
      const due = missing.filter((one) => dialPlan([one], now).length > 0)
      if (dialled.length !== Math.min(due.length, Math.max(0, MAX_DIALS - dialing))) return false
      const attempts = due.map((one) => one.attempts).sort((a, b) => a - b)
      const chosen = dialled
        .map((id) => Math.min(...due.filter((one) => one.nodeId === id).map((one) => one.attempts)))
        .sort((a, b) => a - b)
      return chosen.every((value, i) => value <= (attempts[i] ?? 0))
    }),
    300
  )
})

test('a lost member is dialled within 250 ms, often in the first minute, every 30 s in the end', (t: Assert) => {
  let member: MissingMember = { nodeId: 'a', attempts: 0, lastTriedAt: 0 }
  const times: number[] = []
  for (let i = 0; i < 60; i++) {
    const at = nextDialAt([member]) ?? Number.NaN
    t.alike(dialPlan([member], at - 1), [])
    t.alike(dialPlan([member], at), ['a'])
    times.push(at)
    member = { nodeId: 'a', attempts: i + 1, lastTriedAt: at }
  }
  const gaps = times.map((at, i) => at - (times[i - 1] ?? 0))
  t.is(times[0], 250)
  t.ok(
    gaps.every((gap, i) => (times[i] ?? 0) > 60_000 || gap <= 5000),
    'the first minute'
  )
  t.is(gaps.at(-1), 30_000)
  t.ok(gaps.includes(15_000))
})

test('chance only lengthens a wait, by a tenth at most', (t: Assert) => {
  fc.assert(
    fc.property(fc.nat(60), fc.double({ min: 0, max: 1, noNaN: true }), (attempts, chance) => {
      const member = [{ nodeId: 'a', attempts, lastTriedAt: 0 }]
      const plain = nextDialAt(member) ?? 0
      const late = nextDialAt(member, chance) ?? 0
      return late >= plain && late <= plain * 1.1 + 1e-6
    }),
    { numRuns: 100 }
  )
  t.is(nextDialAt([]), null)
  t.alike(dialPlan([{ nodeId: 'new', attempts: 0, lastTriedAt: null }], 0), ['new'])
})
