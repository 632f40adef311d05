import { encodeMessage } from '../../src/domain/channel/frames.js'
import { encodeEnvelope } from '../../src/domain/envelope/codec.js'
import { SCHEMA_VERSION, type A2AEnvelope } from '../../src/domain/envelope/envelope.js'
import type { ControlName } from '../../src/domain/channel/control.js'
import type { FakeNode } from './fake-node.js'

let last = 0

/**
 * An envelope as an honest operator of `from` would send it to the agent `text` of `to`; every field can be replaced.
 */
export function envelope(from: FakeNode, to: FakeNode, changes: Partial<A2AEnvelope> = {}): A2AEnvelope {
  last++
  return {
    id: `forged_${last}`,
    schemaVersion: SCHEMA_VERSION,
    sender: `operator@${from.id}`,
    recipient: `text@${to.id}`,
    type: 'request',
    timestamp: 1,
    payload: request(`req_${last}`),
    ...changes
  }
}

/** Payload of a request for `text.do`. */
export function request(requestId: string, changes: Record<string, unknown> = {}): Record<string, unknown> {
  return { requestId, attempt: 1, capability: 'text.do', input: {}, description: '', swarm: null, ...changes }
}

/** Puts an envelope on the link as `from`, past every rule of its own node. */
export function forge(from: FakeNode, to: FakeNode, changes: Partial<A2AEnvelope> = {}): void {
  sendFrames(
    from,
    to,
    encodeMessage({ kind: 'envelope', bytes: encodeEnvelope(envelope(from, to, changes)) }, () => 1)
  )
}

/** Puts a control message on the link as `from`. */
export function forgeControl(
  from: FakeNode,
  to: FakeNode,
  message: { readonly name: ControlName; readonly body: unknown }
): void {
  sendFrames(
    from,
    to,
    encodeMessage({ kind: 'control', ...message }, () => 1)
  )
}

/** Puts raw frames on the link as `from`. */
export function sendFrames(from: FakeNode, to: FakeNode, frames: Iterable<Uint8Array>): void {
  const link = from.links.open.find((one) => one.peer === to.id)
  if (link === undefined) throw new Error('no link between these nodes')
  // Of a version before flow control, so that a burst of them is read: what it costs is what these tests are about.
  for (const end of [link, link.other]) if (end !== null) end.credit = null
  for (const frame of frames) link.send(frame)
}
