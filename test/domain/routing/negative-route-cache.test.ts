import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { NegativeRouteCache } from '../../../src/domain/routing/negative-route-cache.js'
import { holds } from '../../support/holds.js'

test('a peer without a route is remembered for five seconds, for the searched distance, and no other peer is', async (t) => {
  const arbStep = fc.record({
    neighbour: fc.constantFrom('p', 'q'),
    target: fc.constantFrom('x', 'y'),
    isFurther: fc.boolean(),
    passed: fc.nat(2000),
    does: fc.constantFrom('add', 'add', 'add', 'drop')
  })
  const property = fc.property(fc.array(arbStep, { maxLength: 60 }), (steps) => {
    const noWays = new NegativeRouteCache()
    const said = new Map<string, number>()
    let now = 0
    for (const { passed, does, ...asked } of steps) {
      now += passed
      const key = `${asked.neighbour} ${asked.target} ${asked.isFurther}`
      if (does === 'add') {
        noWays.add(asked, now)
        said.set(key, now)
      } else {
        noWays.drop(asked.neighbour)
        for (const one of [...said.keys()]) if (one.startsWith(`${asked.neighbour} `)) said.delete(one)
      }
      for (const neighbour of ['p', 'q'])
        for (const target of ['x', 'y'])
          for (const isFurther of [false, true]) {
            const isLate = (further: boolean): boolean =>
              now - (said.get(`${neighbour} ${target} ${further}`) ?? -1e9) < 5000
            assert.equal(
              noWays.has({ neighbour, target, isFurther }, now),
              isLate(true) || (!isFurther && isLate(false))
            )
          }
    }
  })
  await holds(t, property, 300)
})

test('the entries of one neighbour are bounded, and take none from another', (t) => {
  const noWays = new NegativeRouteCache()
  noWays.add({ neighbour: 'honest', target: 'x', isFurther: false }, 0)
  for (let i = 0; i < 1000; i++) noWays.add({ neighbour: 'p', target: `x${i}`, isFurther: false }, 0)
  const known = Array.from({ length: 1000 }, (_, i) =>
    noWays.has({ neighbour: 'p', target: `x${i}`, isFurther: false }, 1)
  )
  t.is(known.filter(Boolean).length, 256)
  t.ok(known.at(-1))
  t.ok(noWays.has({ neighbour: 'honest', target: 'x', isFurther: false }, 1))
})
