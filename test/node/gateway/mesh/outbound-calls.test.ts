import test from 'brittle'
import type { CallPart } from '../../../../src/domain/channel/call.js'
import { CALL_WINDOW_BYTES, MAX_CALLS, OutboundCalls } from '../../../../src/node/gateway/mesh/outbound-calls.js'
import type { CallPiece, CallRequest } from '../../../../src/ports/member-calls.js'
import { failsWith } from '../../../support/fails.js'

const REQUEST = {} as CallRequest

function scene(): { readonly calls: OutboundCalls; readonly sent: CallPart[]; open(): AsyncIterator<CallPiece> } {
  const sent: CallPart[] = []
  const calls = new OutboundCalls({ reach: () => Promise.resolve(), send: (_peer, part) => sent.push(part) })
  return { calls, sent, open: () => calls.open('peer', REQUEST)[Symbol.asyncIterator]() }
}

async function settle(): Promise<void> {
  for (let tick = 0; tick < 20; tick++) await Promise.resolve()
}

test('an answer ends its call, and the callee gets no hangup', async (t) => {
  const { calls, sent, open } = scene()
  const call = open()
  const first = call.next()
  await settle()
  t.alike([sent.map(({ type }) => type), calls.has('peer')], [['request'], true])
  t.is(calls.onAnswer('peer', { type: 'answer', id: 1, body: new Uint8Array([7]) }), null)
  t.alike([...((await first).value as { body: Uint8Array }).body], [7])
  t.ok((await call.next()).done)
  t.alike([sent.length, calls.has('peer')], [1, false])
})

test('a caller that stops reading hangs up', async (t) => {
  const { sent, calls, open } = scene()
  const call = open()
  const first = call.next()
  await settle()
  calls.onAnswer('peer', { type: 'item', id: 1, generation: 1, body: new Uint8Array(1) })
  await first
  await call.return?.()
  t.is(sent.at(-1)?.type, 'hangup')
})

test('a callee gets credit for a quarter of the window that was read, and may not send beyond the window', async (t) => {
  const { sent, calls, open } = scene()
  const call = open()
  const first = call.next()
  await settle()
  const body = new Uint8Array(CALL_WINDOW_BYTES / 4)
  for (let at = 1; at <= 4; at++) t.is(calls.onAnswer('peer', { type: 'item', id: 1, generation: at, body }), null)
  t.is(calls.onAnswer('peer', { type: 'item', id: 1, generation: 5, body }), 'more of a stream than was asked for')
  await first
  await call.next()
  t.alike(sent.slice(1), [{ type: 'credit', id: 1, bytes: CALL_WINDOW_BYTES / 4 }])
})

test('a lost link, and each end of a callee, is its own error', async (t) => {
  for (const [how, code] of [
    ['cut', 'CHANNEL_CLOSED'],
    ['busy', 'OVERLOADED'],
    ['unserved', 'CAPABILITY_NOT_FOUND'],
    ['link', 'CHANNEL_CLOSED']
  ] as const) {
    const { calls, open } = scene()
    const first = open().next()
    await settle()
    if (how === 'link') calls.onLinks('peer')
    else calls.onAnswer('peer', { type: 'end', id: 1, how })
    await failsWith(t, code, () => first)
  }
})

test('a member is called a bounded number of times at once', async (t) => {
  const { open } = scene()
  for (let at = 0; at < MAX_CALLS; at++) void open().next()
  await settle()
  await failsWith(t, 'OVERLOADED', () => open().next())
})
