import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { DoneMemory } from '../../src/node/done-memory.js'
import { holds } from '../support/holds.js'

const MIB = 1024 * 1024

test('an answer is remembered by its key', (t) => {
  const memory = new DoneMemory()
  memory.add('peer', 'a', { result: 1 })
  t.alike(memory.get('peer', 'a'), { payload: { result: 1 } })
  t.is(memory.get('peer', 'b'), undefined)
})

test('of large answers only the fact stays, the oldest first', (t) => {
  const memory = new DoneMemory()
  for (let i = 0; i < 10; i++) memory.add('peer', `${i}`, 'x'.repeat(5 * MIB))
  t.is(memory.get('peer', '0'), null, 'it was done, but its answer is forgotten')
  t.ok(memory.get('peer', '9'))
  memory.add('peer', 'huge', 'x'.repeat(40 * MIB))
  t.is(memory.get('peer', 'huge'), null)
})

test('the number of remembered requests is bounded', (t) => {
  const memory = new DoneMemory()
  for (let i = 0; i < 5000; i++) memory.add('peer', `${i}`, i)
  t.is(memory.get('peer', '0'), undefined)
  t.alike(memory.get('peer', '4999'), { payload: 4999 })
})

test('what one peer asked never makes the node forget what another did', (t) => {
  const memory = new DoneMemory()
  memory.add('honest', 'small', 'kept')
  memory.add('honest', 'large', 'x'.repeat(10 * MIB))
  for (let i = 0; i < 5000; i++) memory.add('greedy', `${i}`, i)
  for (let i = 0; i < 5; i++) memory.add('greedy', `large ${i}`, 'x'.repeat(10 * MIB))
  t.alike(memory.get('honest', 'small'), { payload: 'kept' })
  t.ok(memory.get('honest', 'large'))
  t.is(memory.get('greedy', 'small'), undefined)
  t.is(memory.get('greedy', '0'), undefined)
  t.is(memory.get('greedy', 'large 0'), null)
  t.ok(memory.get('greedy', 'large 4'))
})

test('whatever is added, the oldest answers go first, and no further than needed', async (t) => {
  const added = fc.array(fc.record({ key: fc.integer({ min: 0, max: 9 }), mib: fc.integer({ min: 0, max: 12 }) }), { maxLength: 30 })
  const property = fc.property(added, (list) => {
    const memory = new DoneMemory()
    const kept = new Map<string, number>()
    const seen = new Set<string>()
    for (const { key, mib } of list) {
      const name = `${key}`
      memory.add('peer', name, 'x'.repeat(mib * MIB))
      seen.add(name)
      kept.delete(name)
      kept.set(name, mib * MIB + 16)
      for (const oldest of [...kept.keys()]) if ([...kept.values()].reduce((a, b) => a + b, 0) > 32 * MIB) kept.delete(oldest)
    }
    for (const name of seen) assert.equal(memory.get('peer', name) === null, !kept.has(name), name)
  })
  await holds(t, property, 100)
})
