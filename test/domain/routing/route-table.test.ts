import test from 'brittle'
import { MAX_ROUTES, ROUTE_TTL_MS, RouteTable } from '../../../src/domain/routing/route-table.js'

test('a route is known until it expires, and longer when it is confirmed', (t) => {
  const table = new RouteTable()
  table.set('c', { via: 'b', hops: 1 }, 0)
  t.is(table.get('c', ROUTE_TTL_MS - 1)?.via, 'b')
  table.set('c', { via: 'd', hops: 2 }, ROUTE_TTL_MS - 1)
  t.is(table.get('c', ROUTE_TTL_MS + 1)?.via, 'd')
  t.is(table.get('c', 2 * ROUTE_TTL_MS), null)
  t.is(table.size, 0)
})

test('a lost node takes every route to it and through it along', (t) => {
  const table = new RouteTable()
  for (const target of ['c', 'd', 'b']) table.set(target, { via: target === 'd' ? 'e' : 'b', hops: 1 }, 0)
  table.drop('d', 'b')
  t.is(table.get('d', 1)?.via, 'e', 'another neighbour has that one')
  table.dropNode('b')
  t.alike([table.get('c', 1), table.get('b', 1), table.get('d', 1)?.via], [null, null, 'e'])
  table.drop('d', 'e')
  t.is(table.size, 0)
})

test('the table is bounded: the entry confirmed longest ago is dropped', (t) => {
  const table = new RouteTable()
  for (let i = 0; i <= MAX_ROUTES; i++) {
    table.set(`n${i}`, { via: 'b', hops: 1 }, 0)
    table.set('n0', { via: 'b', hops: 1 }, 0)
  }
  t.is(table.size, MAX_ROUTES)
  t.is(table.get('n0', 1)?.via, 'b')
  t.is(table.get('n1', 1), null)
})
