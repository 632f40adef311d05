import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { AS_SHIPPED, chooseStreams, payerKey, type StreamClaim } from '../../../src/domain/document/share.js'
import { holds } from '../../support/holds.js'

const LIMITS = { maxStreams: 6, maxFollowed: 40, minUnused: 20 }
/** Members with streams or snapshots, the honest one among them. */
const OTHERS = ['bob', 'cat', 'mallory']
/**
 * Streams that the honest member keeps whatever others do: an equal part of the places, with four members of two kinds
 * each.
 */
const EQUAL_PART = Math.min(LIMITS.maxStreams, Math.floor(LIMITS.minUnused / (2 * (OTHERS.length + 1))))

/** Claims of one member; `names`: of its streams. */
function arbClaims(node: fc.Arbitrary<string>, names: string, maxLength: number): fc.Arbitrary<StreamClaim[]> {
  const claim = fc.record({
    stream: fc.nat({ max: 99 }).map((at) => `${names}${at}`),
    payer: fc.record({ node, kind: fc.constantFrom('stream' as const, 'snapshot' as const) }),
    use: fc.constantFrom('none' as const, 'none' as const, 'used' as const, 'open' as const),
    isStored: fc.boolean(),
    since: fc.integer({ min: -5, max: 5 })
  })
  return fc.uniqueArray(claim, { maxLength, selector: ({ stream }) => stream })
}

const honest = arbClaims(fc.constant('ann'), 'ann/', EQUAL_PART).map((all) =>
  all.map((one) => ({ ...one, payer: { node: 'ann', kind: 'stream' as const } }))
)

test('a member within its share keeps its place, for any announcements of others and of its own streams', async (t: Assert) => {
  await holds(
    t,
    fc.property(
      honest,
      arbClaims(fc.constantFrom(...OTHERS), 'a/', 100),
      fc.array(fc.nat({ max: 20 })),
      (own, others, stolen) => {
        const again = stolen.flatMap((at): StreamClaim[] => {
          const one = own[at % Math.max(1, own.length)]
          return one === undefined ? [] : [{ ...one, payer: { node: 'mallory', kind: 'stream' } }]
        })
        const { kept, left } = chooseStreams([...others, ...again, ...own], LIMITS)
        return own.every(({ stream }) => kept.includes(stream) && !left.has(stream))
      }
    )
  )
})

test('the stored streams do not depend on the order of announcements, and each stream is stored once or left out for a reason', async (t: Assert) => {
  const claims = arbClaims(fc.constantFrom('ann', ...OTHERS), 's/', 90)
  await holds(
    t,
    fc.property(
      claims.chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }))),
      ([all, mixed]) => {
        const { kept, left } = chooseStreams(all, LIMITS)
        const other = chooseStreams(mixed, LIMITS)
        const names = new Set(all.map(({ stream }) => stream))
        const isWhole = new Set(kept).size === kept.length && kept.length + left.size === names.size
        return (
          isWhole &&
          kept.join() === other.kept.join() &&
          [...left].every(([stream, reason]) => other.left.get(stream) === reason)
        )
      }
    )
  )
})

test('streams of used documents are always kept, and of others no member has more than its share', async (t: Assert) => {
  await holds(
    t,
    fc.property(arbClaims(fc.constantFrom('ann', ...OTHERS), 's/', 90), (claims) => {
      const kept = new Set(chooseStreams(claims, LIMITS).kept)
      const unused = claims.filter(({ stream, use }) => use === 'none' && kept.has(stream))
      const counts = new Map<string, number>()
      for (const { payer } of unused) counts.set(payerKey(payer), (counts.get(payerKey(payer)) ?? 0) + 1)
      const isWithin =
        [...counts.values()].every((count) => count <= LIMITS.maxStreams) && unused.length <= LIMITS.maxFollowed
      return isWithin && claims.every(({ stream, use }) => use === 'none' || kept.has(stream))
    })
  )
})

test('as shipped, one member that announces a thousand streams leaves two others their whole share', (t: Assert) => {
  const claims = (node: string, count: number): StreamClaim[] =>
    Array.from({ length: count }, (_, at) => ({
      stream: `${node}/${at}`,
      payer: { node, kind: 'stream' },
      use: 'none',
      isStored: false,
      since: 0
    }))
  const { kept } = chooseStreams([...claims('a', 1000), ...claims('ann', 256), ...claims('bob', 256)])
  const of = (node: string): number => kept.filter((stream) => stream.startsWith(`${node}/`)).length
  t.alike([of('a'), of('ann'), of('bob')], [256, 256, 256])
  t.is(AS_SHIPPED.maxFollowed - kept.length, 128)
})
