import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { RunningCopies } from '../../../src/domain/membership/running-copies.js'
import { actor } from '../../support/membership.js'
import { holds } from '../../support/holds.js'

const [ann, bob] = [actor('ann').id, actor('bob').id]
const [x, y] = ['aaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbb']

/** Passes streams of ann, one a second, each opened half a second before it passes. */
function passAll(processes: readonly (string | null)[]): RunningCopies {
  const copies = new RunningCopies()
  processes.forEach((process, i) =>
    copies.passed({ peer: ann, process, isDoubled: false, openedAt: i * 1000 - 500, now: i * 1000 })
  )
  return copies
}

test('a process that links again after another one of its key shows that both run; a restart, however often, does not', (t: Assert) => {
  t.alike(passAll([x, y, x]).found(3000), { reporter: null, peers: [ann] })
  for (const restarts of [
    [x],
    [x, x, x],
    [x, y],
    [x, y, y],
    ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10'],
    [null, x, null, y]
  ])
    t.alike(passAll(restarts).found(20_000).peers, [], restarts.join(' '))
})

test('any order in which the processes of one node follow each other finds no copy', async (t: Assert) => {
  await holds(
    t,
    fc.property(fc.array(fc.nat(3), { maxLength: 40 }), (steps) => {
      let process = 0
      const starts = steps.map((step) => String((process += step === 0 ? 0 : 1)))
      return passAll(starts).found(steps.length * 1000).peers.length === 0
    })
  )
})

test('a stream that was opened before another process linked is no sign of a copy, as its process may have ended', (t: Assert) => {
  const copies = new RunningCopies()
  copies.passed({ peer: ann, process: x, isDoubled: false, openedAt: 0, now: 1 })
  copies.passed({ peer: ann, process: y, isDoubled: false, openedAt: 10, now: 12 })
  copies.passed({ peer: ann, process: x, isDoubled: false, openedAt: 11, now: 13 })
  t.alike(copies.found(14).peers, [])
  copies.passed({ peer: ann, process: y, isDoubled: false, openedAt: 20, now: 21 })
  t.alike(copies.found(22).peers, [ann])
})

test('a copy counts for ten minutes, at the member that found it and at the nodes to which it was reported', (t: Assert) => {
  const finder = passAll([x, y, x])
  t.ok(finder.isDoubled(ann, 601_000))
  t.absent(finder.isDoubled(bob, 3000))
  t.alike(finder.found(602_000).peers, [])
  const told = new RunningCopies()
  told.passed({ peer: bob, process: null, isDoubled: true, openedAt: 0, now: 1000 })
  t.alike(told.found(2000), { reporter: bob, peers: [] })
  t.alike(told.found(601_000).reporter, null)
})
