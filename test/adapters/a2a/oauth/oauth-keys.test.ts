import test from 'brittle'
import fc from 'fast-check'
import { MAX_ACCESS_TOKEN_MS } from '../../../../src/adapters/a2a/oauth/oauth-denials.js'
import { OAuthKeys, RETIRED_MS } from '../../../../src/adapters/a2a/oauth/oauth-keys.js'
import { OAuthStore } from '../../../../src/adapters/a2a/oauth/oauth-store.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'

const DAY_MS = 86_400_000

function scene(keyDays: number) {
  const clock = new ManualClock()
  const disk = { isFull: false }
  const write = (): Promise<void> => (disk.isFull ? Promise.reject(new Error('no room')) : Promise.resolve())
  const keys = new OAuthKeys(new OAuthStore({ read: () => Promise.resolve(null), write }, clock), { clock, keyDays })
  return { clock, disk, keys }
}

const step = fc.record({
  passMs: fc.integer({ min: 0, max: 2 * RETIRED_MS }),
  rotates: fc.boolean(),
  isFull: fc.boolean()
})

test('whenever keys are rotated, each is good while a token of it may be, and no longer; the newest signs', async (t) => {
  t.ok(RETIRED_MS > MAX_ACCESS_TOKEN_MS)
  await holds(
    t,
    fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
      const { clock, disk, keys } = scene(90)
      const made = [{ kid: await keys.rotate(), retiredAt: Number.POSITIVE_INFINITY }]
      for (const { passMs, rotates, isFull } of steps) {
        clock.advance(passMs)
        disk.isFull = isFull
        const kid = rotates ? await keys.rotate().catch(() => null) : null
        if (rotates && (kid === null) !== isFull) return false
        const last = made[0]
        if (kid !== null && last !== undefined) {
          last.retiredAt = clock.now()
          made.unshift({ kid, retiredAt: Number.POSITIVE_INFINITY })
        }
        const good = made.filter(({ retiredAt }) => clock.now() < retiredAt + RETIRED_MS).map((one) => one.kid)
        const shown = keys.publicKeys.keys.map((one) => one.kid)
        const own = keys.privateKeys.map((one) => one.kid)
        if (JSON.stringify([good, good]) !== JSON.stringify([shown, own])) return false
      }
      return keys.publicKeys.keys.every((one) => !('d' in one))
    }),
    100
  )
})

test('a key is due when it signed for its days, and at once when there is none', async (t) => {
  await holds(
    t,
    fc.asyncProperty(fc.integer({ min: 1, max: 365 }), async (keyDays) => {
      const { clock, keys } = scene(keyDays)
      const before = keys.isDue
      await keys.rotate()
      clock.advance(keyDays * DAY_MS - 1)
      const early = keys.isDue
      clock.advance(1)
      const due = keys.isDue
      await keys.rotate()
      return before && !early && due && !keys.isDue
    }),
    100
  )
})
