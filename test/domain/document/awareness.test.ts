import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import {
  AWARENESS_LIMITS,
  goneAwareness,
  readAwareness,
  writeAwareness
} from '../../../src/domain/document/awareness.js'
import { jsonFault } from '../../../src/kit/json.js'
import { holds } from '../../support/holds.js'

const arbPresence = fc.record(
  {
    client: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
    clock: fc.nat({ max: 1_000_000 }),
    state: fc
      .jsonValue({ maxDepth: 3 })
      .filter((value) => jsonFault(value) === null)
      .map((value): unknown => JSON.parse(JSON.stringify(value)))
  },
  { noNullPrototype: true }
)

test('presence is read as it was written, and a member that left has a newer clock and no state', async (t: Assert) => {
  await holds(
    t,
    fc.property(fc.array(arbPresence, { maxLength: 8 }), (presence) => {
      const gone = readAwareness(goneAwareness(presence))
      const same = JSON.stringify(readAwareness(writeAwareness(presence))) === JSON.stringify(presence)
      return (
        same &&
        gone?.every(({ clock, state }, place) => state === null && clock === (presence[place]?.clock ?? 0) + 1) === true
      )
    })
  )
})

test('bytes that nobody wrote are no presence, or a bounded one, and never an error', async (t: Assert) => {
  await holds(
    t,
    fc.property(
      fc.uint8Array({ maxLength: 64 }),
      fc.array(arbPresence, { maxLength: 3 }),
      fc.nat(),
      (bytes, presence, at) => {
        const changed = writeAwareness(presence)
        changed[at % changed.length] = at % 251
        return [bytes, changed].every((one) => (readAwareness(one)?.length ?? 0) <= AWARENESS_LIMITS.maxClients)
      }
    ),
    500
  )
  const many = Array.from({ length: AWARENESS_LIMITS.maxClients + 1 }, (_, client) => ({ client, clock: 1, state: {} }))
  t.is(readAwareness(writeAwareness(many)), null)
  t.is(readAwareness(new Uint8Array(AWARENESS_LIMITS.maxBytes + 1)), null)
})
