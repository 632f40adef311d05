import test from 'brittle'
import fc from 'fast-check'
import { backoffMs, jitteredBackoffMs } from '../../src/kit/backoff.js'
import { holds } from '../support/holds.js'

const arbBackoff = fc
  .record({
    baseMs: fc.integer({ min: 1, max: 600_000 }),
    times: fc.integer({ min: 1, max: 100_000 }),
    factor: fc.double({ min: 1, max: 16, noNaN: true })
  })
  .map(({ baseMs, times, factor }) => ({ baseMs, maxMs: baseMs * times, factor }))
const arbCount = fc.oneof(fc.nat(64), fc.nat(), fc.constant(Number.MAX_SAFE_INTEGER))

test('a wait is never below the base, never above the cap, and never shorter than the one before', async (t) => {
  const property = fc.property(arbBackoff, arbCount, (backoff, count) => {
    const waitMs = backoffMs(backoff, count)
    return waitMs >= backoff.baseMs && waitMs <= backoff.maxMs && backoffMs(backoff, count + 1) >= waitMs
  })
  await holds(t, property, 500)
})

test('below the cap each wait is the factor times the one before', async (t) => {
  const property = fc.property(arbBackoff, fc.nat(64), (backoff, count) => {
    const [waitMs, next] = [backoffMs(backoff, count), backoffMs(backoff, count + 1)]
    const expected = Math.min(backoff.maxMs, waitMs * backoff.factor)
    return Math.abs(next - expected) <= expected * 1e-9
  })
  await holds(t, property, 500)
  t.alike(
    [-1, 0, 1, 2, 3].map((count) => backoffMs({ baseMs: 250 }, count)),
    [250, 250, 500, 1000, 2000]
  )
})

test('waits are the numbers that one factor after the other gives', (t) => {
  for (const factor of [1.5, 2, 6]) {
    const waits = Array.from({ length: 20 }, (_, count) => backoffMs({ baseMs: 250, maxMs: 60_000, factor }, count))
    t.is(waits[0], 250)
    t.alike(
      waits.slice(1),
      waits.slice(0, -1).map((waitMs) => Math.min(60_000, waitMs * factor)),
      `times ${factor}`
    )
  }
})

test('jitter is whole milliseconds from its least up to the wait', async (t) => {
  const arbChance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
  const property = fc.property(arbBackoff, arbCount, arbChance, fc.nat(1000), (backoff, count, chance, minMs) => {
    const waitMs = backoffMs(backoff, count)
    const [plain, bounded] = [
      jitteredBackoffMs(backoff, count, chance),
      jitteredBackoffMs({ ...backoff, minMs }, count, chance)
    ]
    return Number.isInteger(plain) && plain >= 0 && plain <= waitMs && bounded === Math.max(minMs, plain)
  })
  await holds(t, property, 500)
  t.is(jitteredBackoffMs({ baseMs: 1000 }, 3, 0.5), 4000)
})
