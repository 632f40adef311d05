import test from 'brittle'
import fc from 'fast-check'
import { FetchShare } from '../../../src/node/documents/fetch-share.js'
import { ManualClock } from '../../support/manual-clock.js'
import { holds } from '../../support/holds.js'

const MEBIBYTE = 1_048_576

interface Scene {
  readonly clock: ManualClock
  readonly alone: Set<string>
  readonly share: FetchShare
}

function scene(): Scene {
  const clock = new ManualClock()
  const alone = new Set<string>()
  return { clock, alone, share: new FetchShare({ clock, self: 'self', isAlone: (peer) => alone.has(peer) }) }
}

test('streams of a member, however many, together get 2 MiB a second while others are served, one after the other', async (t) => {
  await holds(
    t,
    fc.property(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1000, max: 2 * MEBIBYTE }), (streams, block) => {
      const { clock, share } = scene()
      const from = clock.monotonic()
      const due = Array.from({ length: streams }, () => from)
      let bytes = 0
      while (clock.monotonic() < from + 30_000) {
        const next = Math.min(...due)
        clock.advance(Math.max(0, next - clock.monotonic()))
        bytes += block
        due[due.indexOf(next)] = clock.monotonic() + share.fetched(['eve'], block)
      }
      const least = 30 * 2 * MEBIBYTE * 0.99
      return bytes >= least && bytes <= least * 1.02 + MEBIBYTE + (streams + 1) * block
    }),
    30
  )
})

test('a member over its share slows nobody else down', (t) => {
  const { share } = scene()
  t.ok(share.fetched(['eve'], 64 * MEBIBYTE) > 15_000)
  t.is(share.fetched(['bob'], MEBIBYTE), 0)
  t.is(share.fetched(['self'], 64 * MEBIBYTE), 0)
  t.is(share.fetched(['eve', 'cat'], MEBIBYTE), 0, 'nor does it by announcing a stream of another')
})

test('a member while nobody else is served waits for nothing, and begins anew when others come', (t) => {
  const { alone, share } = scene()
  share.fetched(['eve'], 64 * MEBIBYTE)
  alone.add('eve')
  t.is(share.fetched(['eve'], 64 * MEBIBYTE), 0)
  alone.delete('eve')
  t.is(share.fetched(['eve'], MEBIBYTE), 0)
  t.is(share.fetched(['eve'], MEBIBYTE), 500)
})
