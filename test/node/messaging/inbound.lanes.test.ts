import test from 'brittle'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import { encodeMessage } from '../../../src/domain/channel/frames.js'
import { encodeEnvelope } from '../../../src/domain/envelope/codec.js'
import type { A2AEnvelope } from '../../../src/domain/envelope/envelope.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import { echo } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { envelope, sendFrames } from '../../support/forge.js'
import { actor } from '../../support/membership.js'

/** Puts a message of the lane from the operator of `from` to the agent `text` of `to` on their link. */
function forgeReliable(from: FakeNode, to: FakeNode, seq: number, changes: Partial<A2AEnvelope>): void {
  const bytes = encodeEnvelope(envelope(from, to, changes))
  const frame = {
    source: 'operator',
    target: 'text',
    seq,
    base: 1,
    messageId: `m${seq}`,
    requestId: null,
    envelope: bytes
  }
  sendFrames(
    from,
    to,
    encodeMessage({ kind: 'reliable', frame }, () => 1)
  )
}

test('no work of a member is done that is put out while its lane message is recorded, for any kind of message', async (t) => {
  const world = new World(t)
  const disk = createMemoryLedger()
  let onCommit = (): void => {}
  const ledger: Ledger = {
    get: (key) => disk.get(key),
    list: (range) => disk.list(range),
    compact: () => disk.compact(),
    size: () => disk.size(),
    close: () => disk.close(),
    async commit(changes) {
      onCommit()
      await disk.commit(changes)
    }
  }
  const agent = echo('text')
  const peer = await world.member('peer', { agents: [agent], ledger })
  const mallory = await world.member('mallory')
  await world.link(peer, mallory)
  forgeReliable(mallory, peer, 1, { type: 'notification', payload: { input: { n: 1 } } })
  await world.settle()
  t.is(agent.tasks.length, 1, 'a message of a member arrives')
  onCommit = () => {
    world.log.model.revoke(actor('owner'), mallory.actor)
    world.log.changed()
  }
  forgeReliable(mallory, peer, 2, { type: 'notification', payload: { input: { n: 2 } } })
  await world.settle()
  t.is(agent.tasks.length, 1, 'nothing more was done for it')
  t.ok(peer.audit.of('refusal').some(({ messageType }) => messageType === 'notification'))
})
