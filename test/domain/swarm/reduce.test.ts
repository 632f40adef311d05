import test from 'brittle'
import { isReducer, reduceResults } from '../../../src/domain/swarm/reduce.js'

test('texts are joined by line, lists end to end, and anything else becomes a list', (t) => {
  t.is(reduceResults('concat', ['a', 'b']), 'a\nb')
  t.alike(reduceResults('concat', [[1], [2, [3]], 'x']), [1, 2, [3], 'x'])
  t.alike(reduceResults('concat', []), [])
})

test('objects are merged in order, at every level, by own members alone', (t) => {
  t.alike(reduceResults('merge', [{ a: 1, deep: { x: 1 } }, 7, { b: 2, deep: { y: 2 } }, { a: 3 }]), {
    a: 3,
    b: 2,
    deep: { x: 1, y: 2 }
  })
  const merged = reduceResults('merge', [
    JSON.parse('{"__proto__":{"evil":true},"constructor":{"prototype":{"evil":true}}}'),
    { a: 1 }
  ])
  t.is(({} as { evil?: unknown }).evil, undefined)
  t.is((merged as { evil?: unknown }).evil, undefined)
})

test('results without an object are not lost by a merge', (t) => {
  t.is(reduceResults('merge', ['a', 'b']), 'a\nb')
  t.alike(reduceResults('merge', [[1], 2]), [1, 2])
  t.alike(reduceResults('merge', []), {})
})

test('count says how many there are, first gives the first; only these names are reducers', (t) => {
  t.is(reduceResults('count', [null, 1]), 2)
  t.is(reduceResults('first', ['a', 'b']), 'a')
  t.is(reduceResults('first', []), undefined)
  t.alike(['concat', 'merge', 'count', 'first', 'text.join', 'toString'].map(isReducer), [
    true,
    true,
    true,
    true,
    false,
    false
  ])
})
