import test from 'brittle'
import fc from 'fast-check'
import { coordinationOf, type ItemRecord, MAX_VOTERS, mergeRecords } from '../../../src/domain/swarm/coordination.js'
import { holds } from '../../support/holds.js'
import { hash } from '../../support/membership.js'

const rest = { itemCount: 1, mayTakeOver: true, launcher: 'l' }

test('the launcher is first, the others follow in an order of their own for each swarm, the same wherever it is made', (t) => {
  const nodes = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'l', 'a']
  const { voters } = coordinationOf({ ...rest, swarm: 's', nodes }, hash)
  t.is(voters[0], 'l')
  t.alike([...voters].sort(), [...new Set(nodes)].sort())
  t.alike(coordinationOf({ ...rest, swarm: 's', nodes: nodes.toReversed() }, hash).voters, voters)
  t.unlike(coordinationOf({ ...rest, swarm: 'other', nodes }, hash).voters, voters)
  const many = Array.from({ length: 100 }, (_, index) => `n${index}`)
  t.is(coordinationOf({ ...rest, swarm: 's', nodes: many }, hash).voters.length, MAX_VOTERS)
})

test('merging records of coordinators keeps that of the highest epoch, for any order', async (t) => {
  const arbRecord = fc
    .tuple(fc.nat(5), fc.nat(5))
    .map(([index, epoch]) => [index, { epoch, digest: `${index} ${epoch}` }] as const)
  const property = fc.property(fc.array(arbRecord), fc.func(fc.integer()), (records, rank) => {
    const merged = (order: typeof records): [number, ItemRecord][] => {
      const into = new Map<number, ItemRecord>()
      for (const record of order) mergeRecords(into, [record])
      return [...into].sort(([a], [b]) => a - b)
    }
    const other = [...records].sort((a, b) => rank(a) - rank(b))
    return JSON.stringify(merged(records)) === JSON.stringify(merged(other))
  })
  await holds(t, property)
})
