import test from 'brittle'
import { encodeWhole } from '../../../src/domain/channel/frames.js'
import type { RelayedFrame } from '../../../src/domain/channel/relayed.js'
import { RelayReceiver } from '../../../src/node/relay/relay-receiver.js'

const [ORIGIN, SELF, OTHER, NEIGHBOUR] = ['origin', 'self', 'other', 'neighbour'] as const

/** A receiver that notes its calls. */
function scene(isAccepted = true): { readonly receiver: RelayReceiver; readonly calls: unknown[][] } {
  const calls: unknown[][] = []
  const noting =
    (name: string) =>
    (...given: readonly unknown[]): void =>
      void calls.push([name, ...given.slice(0, 1)])
  const refusal = { code: 'FORBIDDEN', rule: 'a rule', reason: 'a reason' } as const
  const receiver = new RelayReceiver({
    self: SELF,
    routes: { onAnswer: noting('route') },
    nextHop: { onUndelivered: noting('undelivered here') },
    forwarder: { rejected: noting('rejected'), pass: noting('passed'), relay: noting('report relayed') },
    originSignature: {
      accept: () => (isAccepted ? { ok: true } : { ok: false, refusal, isForged: true, isReported: false })
    },
    links: { strike: noting('strike') }
  })
  return { receiver, calls }
}

function frameTo(
  target: string,
  content = encodeWhole({ kind: 'envelope', bytes: new Uint8Array([1]) })
): RelayedFrame {
  return { origin: ORIGIN, target, timestamp: 1, hops: [NEIGHBOUR], content, signature: new Uint8Array(64) }
}

test('a frame for this node is opened, and its origin answers for the fault of its content', (t) => {
  for (const [fault, strikes] of [
    [null, []],
    ['a fault', [['strike', ORIGIN]]]
  ] as const) {
    const { receiver, calls } = scene()
    receiver.onFrame(NEIGHBOUR, frameTo(SELF), (origin, message, hops) => {
      t.alike([origin, message.kind, hops], [ORIGIN, 'envelope', [NEIGHBOUR]])
      return fault
    })
    t.alike(calls, [['route', ORIGIN], ...strikes])
  }
})

test('content that cannot be read is a fault of its origin', (t) => {
  const { receiver, calls } = scene()
  receiver.onFrame(NEIGHBOUR, frameTo(SELF, new Uint8Array([255])), () => t.fail('it was opened') ?? null)
  t.alike(calls.at(-1), ['strike', ORIGIN])
})

test('a frame for another node is passed on unopened', (t) => {
  const { receiver, calls } = scene()
  const frame = frameTo(OTHER)
  receiver.onFrame(NEIGHBOUR, frame, () => t.fail('it was opened') ?? null)
  t.alike(calls, [
    ['route', ORIGIN],
    ['passed', frame]
  ])
})

test('a frame that is not accepted teaches no route and goes nowhere', (t) => {
  const { receiver, calls } = scene(false)
  receiver.onFrame(NEIGHBOUR, frameTo(SELF), () => t.fail('it was opened') ?? null)
  t.alike(calls, [['rejected', NEIGHBOUR]])
})

test('a report of an undelivered frame ends at its origin', (t) => {
  const { receiver, calls } = scene()
  const report = { to: OTHER, id: 'x', code: 'PEER_OFFLINE', rule: 'a rule', left: 1 } as const
  receiver.onUndelivered(NEIGHBOUR, { ...report, origin: SELF })
  receiver.onUndelivered(NEIGHBOUR, { ...report, origin: ORIGIN })
  t.alike(calls, [
    ['undelivered here', NEIGHBOUR],
    ['report relayed', NEIGHBOUR]
  ])
})
