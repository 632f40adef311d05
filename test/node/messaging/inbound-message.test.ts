import test from 'brittle'
import type { EnvelopeHeader } from '../../../src/domain/envelope/header.js'
import { type RecordedRequest, threadOf } from '../../../src/node/messaging/inbound-message.js'

const SENDER = { agentId: 'writer', nodeId: 'a' }
const RECIPIENT = { agentId: 'text', nodeId: 'b' }
const RECORDED: RecordedRequest = { name: 'r/1', isFirst: true, refusal: null, isDone: false }

function headerOf(correlationId?: string): EnvelopeHeader {
  return { id: 'msg_1', ...(correlationId === undefined ? {} : { correlationId }) } as EnvelopeHeader
}

test('a reply goes back to the sender, on the thread of the message or the one that it opened', (t) => {
  const incoming = { sender: SENDER, recipient: RECIPIENT, isReliable: true }
  const opened = threadOf({ ...incoming, header: headerOf() })
  t.alike(
    [opened.sender, opened.recipient, opened.correlationId, opened.isReliable],
    [RECIPIENT, SENDER, 'msg_1', true]
  )
  t.is(threadOf({ ...incoming, header: headerOf('msg_0') }).correlationId, 'msg_0')
})

test('only the message that was recorded first ends its request in the ledger', (t) => {
  const incoming = { sender: SENDER, recipient: RECIPIENT, isReliable: false, header: headerOf() }
  t.is(threadOf(incoming).request, undefined)
  t.is(threadOf({ ...incoming, recorded: RECORDED }).request, 'r/1')
  t.is(threadOf({ ...incoming, recorded: { ...RECORDED, isFirst: false } }).request, undefined)
})
