import test from 'brittle'
import { recordedSkew, recordSkew } from '../../../../src/adapters/storage/home/skew-record.js'
import { actor } from '../../../support/membership.js'
import { FakeStore } from '../../../support/fake-store.js'

const SKEW = { peer: actor('alpha').id, aheadMs: 1_200_000 }

test('a recorded skew is forgotten when the clock was set, and by a measurement within the bound', async (t) => {
  const store = new FakeStore()
  const now = Date.now()
  t.is(await recordedSkew(store, now), null)
  await recordSkew(store, SKEW, now)
  t.is((await recordedSkew(store, now))?.aheadMs, SKEW.aheadMs)
  t.is(await recordedSkew(store, now - SKEW.aheadMs), null, 'the clock was set back')
  await recordSkew(store, null, now)
  t.is(await recordedSkew(store, now), null)
  const { writes } = store
  await recordSkew(store, null, now)
  t.is(store.writes, writes, 'nothing is written while there is nothing to say')
})
