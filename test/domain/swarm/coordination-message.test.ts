import test from 'brittle'
import { decodeCoordination, MAX_RECORDS } from '../../../src/domain/swarm/coordination-message.js'

const about = { swarm: 's', run: 'r', round: 1 }
const record = (count: number): unknown => ({
  ...about,
  kind: 'record',
  epoch: 1,
  items: Array.from({ length: count }, (_, index) => ({ index, digest: 'x' }))
})

test('a message of participants is taken within its bounds, and nothing else is', (t) => {
  t.ok(decodeCoordination({ ...about, kind: 'ask', epoch: 1 }).ok)
  t.ok(decodeCoordination(record(MAX_RECORDS)).ok)
  const bad = [
    record(MAX_RECORDS + 1),
    record(0),
    { ...about, kind: 'ask', epoch: -1 },
    { ...about, kind: 'ask', epoch: 2 ** 60 },
    { ...about, kind: 'ask', epoch: 1, more: 1 },
    { ...about, run: 'x'.repeat(65), kind: 'ask', epoch: 1 },
    { ...about, kind: 'vote', epoch: 1 },
    { ...about, kind: 'held', epoch: 1, candidate: 'nobody', from: 0, items: [], next: null },
    null,
    'ask'
  ]
  for (const one of bad) t.absent(decodeCoordination(one).ok, JSON.stringify(one)?.slice(0, 80))
})
