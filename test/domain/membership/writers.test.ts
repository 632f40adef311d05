import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { MAX_WRITERS, withoutWriter, withWriter } from '../../../src/domain/membership/writers.js'
import type { WritersRecord } from '../../../src/domain/membership/types.js'

const START: WritersRecord = { eligible: [{ nodeKey: 'owner', coreKey: 'core/owner' }], active: ['core/owner'] }

test('the first five of the line are the writers, and the changes lead from one state to the next', (t: Assert) => {
  const arbSteps = fc.array(fc.tuple(fc.boolean(), fc.nat(11)), { maxLength: 60 })
  fc.assert(
    fc.property(arbSteps, (steps) => {
      let record = START
      const writers = new Set(START.active)
      for (const [adds, who] of steps) {
        const nodeKey = who === 0 ? 'owner' : `n${who}`
        const change = adds
          ? withWriter(record, { nodeKey, coreKey: `core/${nodeKey}` })
          : withoutWriter(record, nodeKey)
        for (const core of change.addWriters) if (writers.has(core)) return false
        for (const core of change.removeWriters) if (core === 'core/owner' || !writers.delete(core)) return false
        for (const core of change.addWriters) writers.add(core)
        record = change.record
        const first = record.eligible.slice(0, MAX_WRITERS).map((one) => one.coreKey)
        if (JSON.stringify(first) !== JSON.stringify(record.active)) return false
        if (JSON.stringify([...writers].sort()) !== JSON.stringify([...first].sort())) return false
        if (new Set(record.eligible.map((one) => one.nodeKey)).size !== record.eligible.length) return false
      }
      return record.eligible[0]?.nodeKey === 'owner'
    }),
    { numRuns: 200 }
  )
  t.is(MAX_WRITERS, 5)
})
