import test from 'brittle'
import { leasesBefore } from '../../../src/node/swarms/restore.js'
import { actor } from '../../support/membership.js'

const SELF = actor('self').id
const OTHER = actor('other').id

test('a mark of its own whose lease the ledger has lost is a lease all the same, as are those of others; none is there twice', (t) => {
  const mark = (node: typeof SELF, agent: string) => ({ node, agent, attempt: 7, failures: 1 })
  const kept = (index: number, isRepeatable: boolean) => ({
    index,
    agent: 'kept',
    attempt: 9,
    failures: 2,
    isRepeatable,
    leasedAt: 1
  })
  const marks = new Map([
    [0, mark(SELF, 'own')],
    [1, mark(SELF, 'lost')],
    [2, mark(OTHER, 'strange')],
    [3, mark(OTHER, 'strange, after an own')]
  ])
  const strange = { attempt: 7, failures: 1, isRepeatable: false, givenBy: OTHER }
  t.alike(leasesBefore([kept(0, false), kept(3, false), kept(4, true)], marks, SELF), [
    kept(0, false),
    kept(4, true),
    { index: 1, agent: 'lost', ...strange, givenBy: SELF },
    { index: 2, agent: 'strange', ...strange },
    { index: 3, agent: 'strange, after an own', ...strange }
  ])
})
