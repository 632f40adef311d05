import test from 'brittle'
import type { LogCore } from 'autobase'
import { CoreShare } from '../../../../src/adapters/mesh/log/core-share.js'
import type { CoreLimit } from '../../../../src/domain/membership/log-share.js'

const LIMIT = { bytes: 100_000, isKnown: true, isRevoked: false }

/** The share of a core of which so many blocks of 1,000 bytes are known. */
function shareOf(length: number, limit: Partial<CoreLimit> = {}): CoreShare {
  const core = { length, core: { state: { length, byteLength: length * 1000 } } } as unknown as LogCore
  return new CoreShare(core, () => ({ ...LIMIT, ...limit }))
}

test('a core within its share is asked for to the end that is known, and one block beyond it', (t) => {
  t.alike(
    [0, 10, 79].map((length) => shareOf(length).end(length, 0)),
    [1, 11, 80]
  )
  t.is(shareOf(79).end(5, 0), 80, 'also while blocks before it are not read yet')
  t.is(shareOf(2000, { bytes: Number.POSITIVE_INFINITY }).end(5, 0), 261)
})

test('a core over its share is asked for one block after the other, and no further than its share goes', async (t) => {
  const share = shareOf(1000)
  t.is(share.end(0, 0), 1)
  for (let at = 0; at < 79; at++) t.is(await share.of(at, 1000), 'read')
  t.is(share.end(79, 0), 80)
  t.is(await share.of(79, 1000), 'over')
  t.is(share.end(80, 0), 80)
})

test('of a revoked member only blocks that others name are asked for', (t) => {
  const share = shareOf(50, { isRevoked: true })
  t.alike(
    [0, 7, 500].map((named) => share.end(5, named)),
    [5, 7, 51]
  )
})

test('a core whose owner is not known waits where the share of a member ends', async (t) => {
  const share = shareOf(1000, { isKnown: false })
  for (let at = 0; at < 79; at++) await share.of(at, 1000)
  t.is(await share.of(79, 1000), 'wait')
  t.is(await share.of(79, 1000), 'wait', 'asked again it is counted once')
})
