import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import type { OutboundDraft } from '../../../src/node/messaging/outbound.js'
import { NodeError } from '../../../src/kit/errors.js'
import { failsWith } from '../../support/fails.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { holds } from '../../support/holds.js'

interface Scene {
  readonly world: World
  readonly here: FakeNode
  readonly peer: FakeNode
  /** Payloads that the agent `ear` of the peer heard, in order. */
  readonly heard: unknown[]
  /** When a try found the link of `here` broken, on the monotonic clock. */
  readonly failedAt: number[]
  /** The next tries that find it broken. */
  breakFor(tries: number): void
  draft(payload: unknown, rest?: Partial<OutboundDraft>): OutboundDraft
}

async function scene(t: Assert): Promise<Scene> {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.link(here, peer)
  const heard: unknown[] = []
  const failedAt: number[] = []
  await peer.core.attach({ id: 'ear', onMessage: (message) => heard.push(message.payload) })
  // What the start left to be sent soon is no try of these tests.
  await world.pass(1000)
  let left = 0
  const [link] = here.links.open
  // Once for each try: the channel looks at it before it sends.
  const isBroken = (): boolean => left-- > 0 && failedAt.push(world.clock.monotonic()) > 0
  Object.defineProperty(link, 'closed', { get: () => left > 0 && isBroken(), set: () => {} })
  return {
    world,
    here,
    peer,
    heard,
    failedAt,
    breakFor: (tries) => {
      left = tries
      failedAt.length = 0
      heard.length = 0
    },
    draft: (payload, rest = {}) => ({
      sender: { agentId: 'operator', nodeId: here.id },
      recipient: { agentId: 'ear', nodeId: peer.id },
      type: 'notification',
      payload,
      ...rest
    })
  }
}

function failures(node: FakeNode): number {
  return node.core.events.recent().filter((one) => one.type === 'delivery-failed').length
}

test('Feature: a2a-mcp-protocols, Property 12: Channel retry on failure', async (t) => {
  const { world, here, heard, failedAt, breakFor, draft } = await scene(t)
  await holds(
    t,
    fc.asyncProperty(fc.nat({ max: 6 }), fc.string(), async (broken, value) => {
      breakFor(broken)
      const before = failures(here)
      const sending = here.core.outbound.send(draft({ value })).then(
        () => 'sent',
        (error: unknown) => (error instanceof NodeError ? error.code : 'another error')
      )
      await world.pass(3000)
      assert.equal(await sending, broken <= 3 ? 'sent' : 'DELIVERY_FAILED')
      assert.equal(failedAt.length, Math.min(broken, 4), 'the first try and at most three more')
      const waits = failedAt.slice(1).map((at, index) => at - (failedAt[index] ?? 0))
      assert.ok((waits[0] ?? 1) > 0)
      for (const [index, wait] of waits.entries())
        if (index > 0) assert.ok(wait >= 2 * (waits[index - 1] ?? 0), `waits: ${waits.join()}`)
      assert.equal(heard.length, broken <= 3 ? 1 : 0, 'delivered once or never')
      assert.equal(failures(here) - before, broken <= 3 ? 0 : 1, 'a failure is an event')
    }),
    100
  )
})

test('a message sent while another one waits for its next try does not overtake it', async (t) => {
  const { world, here, heard, breakFor, draft } = await scene(t)
  breakFor(2)
  const sendings = [1, 2, 3].map((value) => here.core.outbound.send(draft(value)))
  await world.pass(200)
  sendings.push(here.core.outbound.send(draft(4)))
  t.alike(heard, [])
  await world.pass(1000)
  await Promise.all(sendings)
  t.alike(heard, [1, 2, 3, 4])
})

test('a message that its sender keeps, and one that is refused, are not tried again', async (t) => {
  const { here, peer, breakFor, failedAt, draft } = await scene(t)
  breakFor(1)
  await failsWith(t, 'CHANNEL_CLOSED', () => here.core.outbound.send(draft(1, { isKept: true })))
  t.is(failedAt.length, 1)
  breakFor(5)
  await failsWith(t, 'AGENT_NOT_FOUND', () =>
    here.core.outbound.send(draft(1, { recipient: { agentId: 'ghost', nodeId: peer.id } }))
  )
  t.is(failedAt.length, 0)
})

test('a link that is gone is dialled anew for the next try', async (t) => {
  const { world, here, peer, heard, breakFor, draft } = await scene(t)
  breakFor(1)
  const sending = here.core.outbound.send(draft('again'))
  await world.settle()
  here.links.reachable.add(peer.id)
  world.net.disconnect(here.id, peer.id)
  await world.pass(300)
  await sending
  t.alike(heard, ['again'])
})

test('a node that stops lets nobody wait for another try', async (t) => {
  const { world, here, breakFor, draft } = await scene(t)
  breakFor(9)
  const sending = here.core.outbound.send(draft(1))
  await world.settle()
  here.core.outbound.close()
  await failsWith(t, 'CHANNEL_CLOSED', () => sending)
})
