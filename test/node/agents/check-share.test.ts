import test from 'brittle'
import { CheckShare } from '../../../src/node/agents/check-share.js'
import { ManualClock } from '../../support/manual-clock.js'

interface Scene {
  readonly clock: ManualClock
  readonly share: CheckShare
  readonly alone: Set<string>
  /** A check of a node that takes so long: was it made? */
  check(peer: string, ms: number): boolean
}

function scene(): Scene {
  const clock = new ManualClock()
  const alone = new Set<string>()
  const share = new CheckShare({ clock, self: 'self', isAlone: (peer) => alone.has(peer) })
  return {
    clock,
    share,
    alone,
    check: (peer, ms) => {
      let isMade = false
      try {
        share.within(peer, () => {
          isMade = true
          clock.advance(ms)
        })
      } catch (error) {
        if ((error as { code?: string }).code !== 'OVERLOADED') throw error
      }
      return isMade
    }
  }
}

test('a member whose inputs take long to check has a second of it, and a fifth of the time from then on', (t) => {
  const { clock, check } = scene()
  let made = 0
  // What a check takes is time in which the share comes back, too.
  const from = clock.monotonic()
  while (clock.monotonic() < from + 60_000)
    if (check('eve', 250)) made += 250
    else clock.advance(10)
  t.ok(made >= 12_000 && made <= 14_000, `${made} ms of 60,000`)
  t.ok(check('bob', 250), 'another member has its own share')
})

test('checks of this node, and of a member while nobody else is served, have no limit', (t) => {
  const { alone, check } = scene()
  t.is(Array.from({ length: 100 }, () => check('self', 250)).filter(Boolean).length, 100)
  alone.add('eve')
  t.is(Array.from({ length: 100 }, () => check('eve', 250)).filter(Boolean).length, 100)
  alone.delete('eve')
  t.absent(check('eve', 250))
})

test('until the tasks of members are read, all requests resumed by a start are checked in one share; then each requester pays', (t) => {
  const { share, check } = scene()
  const restarted = Array.from({ length: 100 }, (_, at) => share.payerOf(`req_${at}`, 'self'))
  t.ok(restarted.filter((payer) => check(payer, 250)).length <= 6, 'not 25 seconds')
  t.ok(check(share.payerOf('req_0', 'bob'), 250), 'requests of others have their own')
  share.payers = { memberBehind: (requestId) => (requestId === 'req_0' ? 'eve' : null) }
  t.is(share.payerOf('req_0', 'self'), 'eve')
  t.is(share.payerOf('req_1', 'self'), 'self')
})
