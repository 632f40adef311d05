import test from 'brittle'
import fc from 'fast-check'
import type { EnvelopeHeader } from '../../src/domain/envelope/codec.js'
import { SCHEMA_VERSION } from '../../src/domain/envelope/envelope.js'
import { readReply } from '../../src/node/asking.js'
import { holds } from '../support/holds.js'
import { actor } from '../support/membership.js'

const peer = actor('peer').id
const names = { requestId: 'req_1', attempt: 2, correlationId: 'thr_1', taskId: null }
const header: EnvelopeHeader = {
  id: 'msg_1',
  schemaVersion: SCHEMA_VERSION,
  sender: `text@${peer}`,
  recipient: `operator@${actor('here').id}`,
  correlationId: 'thr_1',
  type: 'stream-data',
  timestamp: 1
}
const read = (payload: unknown): unknown => readReply(header, payload, { names, peer })

test('whatever a stream on the thread of a request says, only the word of its own run tells what it waits for', async (t) => {
  t.alike(read({ requestId: 'req_1', attempt: 2, waitingFor: 'approval' }), { waitingFor: 'approval' })
  t.alike(read({ requestId: 'req_1', attempt: 2, waitingFor: null }), { waitingFor: null })
  for (const of of [{ requestId: 'req_2' }, { attempt: 1 }])
    t.is(read({ requestId: 'req_1', attempt: 2, waitingFor: 'approval', ...of }), null)
  const word = fc.record(
    {
      requestId: fc.oneof(fc.constant('req_1'), fc.string({ maxLength: 60 })),
      attempt: fc.oneof(fc.constant(2), fc.double()),
      waitingFor: fc.oneof(fc.constantFrom('approval', 'slot', 'peer', null), fc.jsonValue()),
      progress: fc.jsonValue()
    },
    { requiredKeys: [] }
  )
  await holds(
    t,
    fc.property(fc.oneof(word, fc.jsonValue()), (payload) => {
      const said = read(payload)
      const isOurs = isWord(payload) && payload.requestId === 'req_1' && payload.attempt === 2
      const isWait = isWord(payload) && (payload.waitingFor === 'approval' || payload.waitingFor === null)
      const tells = typeof said === 'object' && said !== null && 'waitingFor' in said
      return tells === (isOurs && isWait)
    })
  )
})

function isWord(payload: unknown): payload is { requestId?: unknown; attempt?: unknown; waitingFor?: unknown } {
  return typeof payload === 'object' && payload !== null
}
