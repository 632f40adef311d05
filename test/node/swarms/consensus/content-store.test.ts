import test from 'brittle'
import { createMemoryLedger } from '../../../support/memory-ledger.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { PIECE_BYTES } from '../../../../src/domain/swarm/participant-message.js'
import type { SwarmHead } from '../../../../src/node/swarms/store.js'
import { ContentStore } from '../../../../src/node/swarms/consensus/content-store.js'
import { VoteStore } from '../../../../src/node/swarms/consensus/vote-store.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor, hash } from '../../../support/membership.js'

test('a large content is read once for all its pieces, and let go with the last', async (t) => {
  const clock = new ManualClock()
  const ledger = createMemoryLedger()
  const swarmVotes = new VoteStore(ledger, hash)
  const contents = [new Uint8Array(3 * PIECE_BYTES).fill(7), new Uint8Array(10).fill(8)]
  for (const [index, content] of contents.entries()) {
    await ledger.commit([swarmVotes.contentChange('swarm_1', { index, items: 2 }, content)])
  }
  const reads: number[] = []
  const read = swarmVotes.content.bind(swarmVotes)
  swarmVotes.content = (id, index, items) => {
    reads.push(index)
    return read(id, index, items)
  }
  const given: [number, number][] = []
  const shelf = new ContentStore(
    {
      clock,
      telemetry: new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} }),
      self: actor('a').id,
      swarmVotes,
      commit: (changes) => ledger.commit(changes),
      tell: (_to, { body }) => {
        if (body.kind === 'pieces') given.push(...body.pieces.map(({ index, at }): [number, number] => [index, at]))
      }
    },
    { id: 'swarm_1', itemCount: 2, voters: [] } as unknown as SwarmHead
  )
  const ask = (index: number, at: number): Promise<void> =>
    shelf.give(actor('b').id, [{ index, digest: swarmVotes.digest(contents[index] ?? new Uint8Array()), at }], [])
  await ask(0, 0)
  await ask(1, 0)
  await ask(0, PIECE_BYTES)
  await ask(0, 2 * PIECE_BYTES)
  t.alike(reads, [0, 1], 'a small one in between lets nothing go')
  await ask(0, 0)
  t.alike(reads, [0, 1, 0])
  t.alike(
    given.map(([index]) => index),
    [0, 1, 0, 0, 0]
  )
})
