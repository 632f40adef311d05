import test from 'brittle'
import fc from 'fast-check'
import { DeliveryAttempts, LivenessTimer } from '../../../../src/node/requests/caller/delivery.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'

test('a copy of a request is out as long as fewer were denied than sent, in any order', async (t) => {
  const step = fc.constantFrom('sending' as const, 'notSent' as const, 'denied' as const)
  await holds(
    t,
    fc.property(fc.nat(3), fc.array(step, { maxLength: 30 }), (before, steps) => {
      const attempts = new DeliveryAttempts(before)
      let [sent, denied] = [before, 0]
      for (const one of steps) {
        if (one === 'sending') {
          attempts.sending()
          sent++
        } else if (one === 'notSent' && sent > denied) {
          attempts.notSent()
          sent--
        } else if (one === 'denied' && sent > denied) {
          const isLast = attempts.isLast
          denied++
          if (attempts.denied() !== sent <= denied || isLast !== sent <= denied) return false
        }
        if (attempts.isOut !== denied < sent) return false
      }
      return true
    })
  )
})

test('a request is lost after a lease without a word of its peer, and with each time that it is asked again after twice as long', (t) => {
  const clock = new ManualClock()
  const liveness = new LivenessTimer(clock, 1000)
  clock.advance(5000)
  t.absent(liveness.isExpected)
  t.absent(liveness.isLost, 'its peer never acknowledged it')
  liveness.onHeartbeat()
  const waits = [1000, 2000, 4000].map((ms) => {
    clock.advance(ms)
    const before = liveness.isLost
    clock.advance(1)
    const after = liveness.isLost
    liveness.askedAgain()
    return [before, after]
  })
  t.alike(waits, [
    [false, true],
    [false, true],
    [false, true]
  ])
  liveness.onHeartbeat()
  clock.advance(1001)
  t.ok(liveness.isLost, 'a word of the peer begins anew')
  liveness.isBack()
  t.absent(liveness.isLost, 'a peer that is back has as long as before')
  liveness.forget()
  clock.advance(600_000)
  t.absent(liveness.isLost, 'it is not with its peer')
})

test('the wait for a word of the peer ends at five minutes', (t) => {
  const clock = new ManualClock()
  const liveness = new LivenessTimer(clock, 1000)
  liveness.onHeartbeat()
  for (let asked = 0; asked < 40; asked++) liveness.askedAgain()
  clock.advance(300_000)
  t.absent(liveness.isLost)
  clock.advance(1)
  t.ok(liveness.isLost)
})
