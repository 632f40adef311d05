import test from 'brittle'
import { recordedSkew, skewRecorder } from '../../../../src/adapters/storage/home/skew-record.js'
import { openNodeStore } from '../../../../src/adapters/storage/home/node-store.js'
import { actor } from '../../../support/membership.js'
import { FakeStore } from '../../../support/fake-store.js'
import { tempDir } from '../../../support/tmp.js'

const SKEW = { peer: actor('alpha').id, aheadMs: 1_200_000 }

test('a recorded skew is forgotten when the clock was set, and by a measurement within the bound', async (t) => {
  const store = new FakeStore()
  const recordSkew = skewRecorder(store)
  const now = Date.now()
  t.is(await recordedSkew(store, now), null)
  await recordSkew(SKEW, now)
  t.is((await recordedSkew(store, now))?.aheadMs, SKEW.aheadMs)
  t.is(await recordedSkew(store, now - SKEW.aheadMs), null, 'the clock was set back')
  await recordSkew(null, now)
  t.is(await recordedSkew(store, now), null)
  const { writes } = store
  await recordSkew(null, now)
  t.is(store.writes, writes, 'nothing is written while there is nothing to say')
})

test('of measurements one right after the other the last one holds, and one of an earlier run is removed', async (t) => {
  const store = openNodeStore(await tempDir(t))
  const now = Date.now()
  const recordSkew = skewRecorder(store)
  await Promise.all([recordSkew(SKEW, now), recordSkew(null, now)])
  t.is(await recordedSkew(store, now), null)
  await Promise.all([recordSkew(null, now), recordSkew(SKEW, now)])
  t.is((await recordedSkew(store, now))?.aheadMs, SKEW.aheadMs)
  await skewRecorder(store)(null, now)
  t.is(await recordedSkew(store, now), null)
})
