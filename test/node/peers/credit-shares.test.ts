import test from 'brittle'
import fc from 'fast-check'
import { CreditShares } from '../../../src/node/peers/credit-shares.js'
import { ManualClock } from '../../support/manual-clock.js'
import { holds } from '../../support/holds.js'

const SECONDS = 10

/** Lets members ask again and again, each for windows of its own size; tokens that each got, after some seconds. */
function served(sizes: readonly number[]): readonly number[] {
  const clock = new ManualClock()
  const shares = new CreditShares(clock)
  const got = sizes.map(() => 0)
  const ask = (place: number): void => {
    const size = sizes[place]
    const give = (): void => {
      got[place] = got[place] + size
      // A member with credit sends for a while before it asks again.
      clock.after(1, () => ask(place))
    }
    shares.ask({ peer: `member ${place}`, tokens: () => size, give })
  }
  for (const place of sizes.keys()) ask(place)
  for (let step = 0; step < SECONDS * 1000; step++) clock.advance(1)
  return got
}

test('of members that send much none gets less than half of the share of another, and together they get no more than their share', async (t) => {
  await holds(
    t,
    fc.property(fc.array(fc.integer({ min: 64, max: 128 }), { minLength: 1, maxLength: 12 }), (sizes) => {
      const got = served(sizes)
      const all = got.reduce((sum, one) => sum + one, 0)
      if (all > 10_000 * SECONDS + 2048 + 128) throw new Error(`${all} tokens in all`)
      if (Math.max(...got) > 5000 * SECONDS + 2048 + 128) throw new Error(`${Math.max(...got)} tokens of one`)
      const fair = Math.min(5000, 10_000 / sizes.length) * SECONDS
      if (Math.min(...got) < fair / 2) throw new Error(`${Math.min(...got)} tokens of one, where ${fair} are its share`)
    }),
    30
  )
})

test('a member that asks seldom does not wait behind what others asked before', (t) => {
  const clock = new ManualClock()
  const shares = new CreditShares(clock)
  const pour = (peer: string): void =>
    shares.ask({ peer, tokens: () => 128, give: () => void clock.after(1, () => pour(peer)) })
  for (let place = 0; place < 8; place++) pour(`member ${place}`)
  for (let step = 0; step < 1000; step++) clock.advance(1)
  let got = 0
  shares.ask({ peer: 'quiet', tokens: () => 128, give: () => void (got = clock.monotonic()) })
  const from = clock.monotonic()
  while (got === 0 && clock.monotonic() - from < 2000) clock.advance(1)
  t.ok(got > 0 && got - from <= 130, `${got - from} ms: a window of each of the others`)
})
