import test from 'brittle'
import fc from 'fast-check'
import { MAX_RECORDS } from '../../../../src/domain/swarm/coordination-message.js'
import { RECORDS } from '../../../../src/domain/swarm/record-index.js'
import { CommittedRecords } from '../../../../src/node/swarms/consensus/committed-results.js'

const ITEMS = 4

test('a participant that knows of leases knows no more than one that does not: the end is whole for both', (t) => {
  const index = fc.integer({ min: 0, max: RECORDS.count(ITEMS) - 1 })
  const told = fc.array(fc.array(index, { maxLength: 6 }), { maxLength: 8 })
  fc.assert(
    fc.property(told, (all) => {
      const [heard, plain] = [new CommittedRecords(ITEMS), new CommittedRecords(ITEMS)]
      for (const [epoch, indexes] of all.entries()) {
        const names = indexes.map((one) => ({ index: one, digest: `of ${one}` }))
        heard.add(names, { total: 0, epoch })
        plain.add(
          names.filter((one) => one.index <= RECORDS.end(ITEMS)),
          { total: 0, epoch }
        )
      }
      const [a, b] = [heard, plain].map((one) => JSON.stringify([one.size, one.isWhole, one.page('swarm_1', 0)]))
      return a === b && heard.get(RECORDS.mark(ITEMS, 0)) === undefined
    }),
    { numRuns: 200 }
  )
  t.pass('outcomes and the end alone')
})

test('all is known when as much is as anybody spoke of; pages go up to the last', (t) => {
  const records = new CommittedRecords(2 * MAX_RECORDS)
  const names = Array.from({ length: MAX_RECORDS + 1 }, (_, index) => ({ index, digest: `of ${index}` }))
  t.alike(records.add(names.slice(1), { total: names.length, epoch: 3 }), names.slice(1))
  t.absent(records.isWhole)
  t.alike(records.add(names, { total: 0, epoch: 2 }), names.slice(0, 1), 'the unknown part')
  t.ok(records.isWhole)
  t.is(records.epoch, 3)
  const first = records.page('swarm_1', 0)
  t.is(first.next, MAX_RECORDS)
  t.alike([...first.items, ...records.page('swarm_1', first.next ?? 0).items], names)
  t.is(records.page('swarm_1', MAX_RECORDS).next, null)
})
