import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { ClientIds } from '../../../src/domain/document/client-ids.js'
import { Line } from '../../../src/domain/document/lane.js'
import { DocumentStream } from '../../../src/domain/document/stream.js'
import { type WaitingLane, WaitingLanes } from '../../../src/domain/document/waiting-lanes.js'
import type { CheckedBlock } from '../../../src/domain/document/block.js'
import { hash, keyText } from '../../support/membership.js'
import { holds } from '../../support/holds.js'

test('lanes are found once the clock that they wait for has come so far, each once and no others', async (t) => {
  const stream = new DocumentStream(keyText('stream'), new ClientIds(hash))
  const arbWait = fc.record({ client: fc.nat({ max: 2 }), end: fc.integer({ min: 1, max: 20 }), clock: fc.nat({ max: 20 }) })
  await holds(
    t,
    fc.property(fc.array(arbWait), (steps) => {
      const lanes = new WaitingLanes()
      let kept: { readonly client: number; readonly end: number; readonly waiting: WaitingLane }[] = []
      const found = (): Set<WaitingLane> => {
        const all = new Set<WaitingLane>()
        for (let one = lanes.next(); one !== undefined; one = lanes.next()) {
          assert.ok(!all.has(one))
          all.add(one)
        }
        return all
      }
      for (const { client, end, clock } of steps) {
        const waiting = { stream, lane: new Line<CheckedBlock>(), missing: null }
        lanes.keep(waiting, { client, end })
        kept.push({ client, end, waiting })
        lanes.wake(client, clock)
        const due = kept.filter((one) => one.client === client && one.end <= clock)
        kept = kept.filter((one) => !due.includes(one))
        assert.deepEqual(found(), new Set(due.map((one) => one.waiting)))
        assert.equal(
          lanes.isAwaited(client),
          kept.some((one) => one.client === client)
        )
      }
      lanes.wakeAll()
      assert.equal(found().size, kept.length)
    })
  )
})
