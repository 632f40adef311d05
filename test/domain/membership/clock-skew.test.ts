import test from 'brittle'
import { MAX_SKEW_MS } from '../../../src/kit/clock.js'
import { isSkewed, ownSkew, type PeerClock, skewText } from '../../../src/domain/membership/clock-skew.js'
import { actor } from '../../support/membership.js'

function clocks(...aheadMs: readonly number[]): PeerClock[] {
  return aheadMs.map((one, place) => ({ peer: actor(`peer${place}`).id, aheadMs: one }))
}

test('a skew counts beyond the bound, ahead as well as behind', (t) => {
  t.alike(clocks(MAX_SKEW_MS, MAX_SKEW_MS + 1, -MAX_SKEW_MS, -MAX_SKEW_MS - 1).map(isSkewed), [
    false,
    true,
    false,
    true
  ])
})

test('the own clock is skewed when it differs from most peers, and one wrong peer of several changes nothing', (t) => {
  t.is(ownSkew([]), null)
  t.is(ownSkew(clocks(0, 1_200_000, -5)), null)
  for (const pair of [
    clocks(0, 1_200_000),
    clocks(0, -1_200_000),
    clocks(5, 0, -1_200_000, -1e15),
    clocks(-5, 0, 1_200_000, 1e15)
  ])
    t.is(ownSkew(pair), null, 'two that disagree prove nothing')
  t.is(ownSkew(clocks(1e15, 1_200_000))?.aheadMs, 1_200_000, 'an absurd one of two is not taken')
  t.is(ownSkew(clocks(-1_200_000, -1e15))?.aheadMs, -1_200_000)
  t.is(ownSkew(clocks(1_200_000))?.aheadMs, 1_200_000)
  t.is(ownSkew(clocks(-1_200_000, -1_200_500, 0))?.aheadMs, -1_200_000)
})

test('the words give minutes, and which clock is ahead', (t) => {
  t.is(skewText({ aheadMs: 1_199_400 }, 'alpha'), '20 min ahead of that of alpha')
  t.is(skewText({ aheadMs: -7_260_000 }, 'alpha'), '2 h 1 min behind that of alpha')
})
