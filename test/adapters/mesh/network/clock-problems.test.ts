import test from 'brittle'
import { clockProblems } from '../../../../src/adapters/mesh/network/clock-problems.js'
import { actor, founded } from '../../../support/membership.js'

const [owner, ann, ben] = [actor('owner'), actor('ann'), actor('ben')]

function view() {
  const log = founded()
  for (const member of [ann, ben]) log.join(owner, member)
  return log.view()
}

function of(...skews: readonly (readonly [typeof ann, number])[]) {
  return clockProblems(
    skews.map(([{ id: peer }, aheadMs]) => ({ peer, aheadMs })),
    view()
  )
}

test('a clock that differs from most members is one problem of this machine; with one member both may be wrong', (t) => {
  t.alike(of([ann, 1_200_000]), [
    {
      code: 'CLOCK_SKEW',
      message: 'the clock of this machine is 20 min ahead of that of ann: set the wrong one of both',
      next: 'date'
    }
  ])
  const [problem, ...more] = of([ann, -1_200_000], [ben, -1_200_100], [owner, 10])
  t.is(more.length, 0)
  t.ok(
    /^the clock of this machine is 20 min behind that of (ann|ben) and those of 1 more members: set it$/.test(
      problem?.message ?? ''
    )
  )
})

test('only members whose clocks differ in the same direction are counted as agreeing', (t) => {
  const [problem] = of([ann, -9_000_000], [ben, 1_200_000], [owner, 1_300_000])
  t.is(problem?.message, 'the clock of this machine is 20 min ahead of that of ben and those of 1 more members: set it')
})

test('a member whose clock differs from all others is a problem by its name; clocks within the bound are none', (t) => {
  t.alike(of([ann, 119_000], [ben, -119_000]), [])
  const [problem, ...more] = of([ann, 1_200_000], [ben, 0], [owner, 3])
  t.is(more.length, 0)
  t.is(
    problem?.message,
    'the clock of ann is 20 min behind that of this machine, and other members agree with this one'
  )
  t.is(problem?.next, 'date   # on the machine of ann')
  t.is(
    of([ann, -1_200_000], [ben, 0])[0]?.message,
    problem?.message.replace('behind', 'ahead of'),
    'of two, whichever it is'
  )
})
