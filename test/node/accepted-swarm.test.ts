import test from 'brittle'
import { createMemoryLedger } from '../../src/adapters/storage/memory-ledger.js'
import { MemoryTelemetry } from '../../src/adapters/telemetry/memory-telemetry.js'
import { encodePayload } from '../../src/domain/envelope/codec.js'
import { AcceptedSwarm } from '../../src/node/accepted-swarm.js'
import { SwarmBook, type SwarmHead, type SwarmRow } from '../../src/node/swarm-book.js'
import { SwarmCourse } from '../../src/node/swarm-course.js'
import { SwarmVotes } from '../../src/node/swarm-votes.js'
import type { SwarmEvent } from '../../src/ports/swarm-api.js'
import { ManualClock } from '../support/manual-clock.js'
import { actor, hash } from '../support/membership.js'

function rowOf(index: number): SwarmRow {
  const row = { item: `item ${index}`, agent: 'w@b', attempt: 1, status: 'completed', result: index, error: null, durationMs: 1 } as const
  return { index, order: index, holder: 'w', row }
}

test('what was accepted while its coordinator stepped back, and was not told by it, is told as what others accept is', async (t) => {
  const clock = new ManualClock()
  const telemetry = new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} })
  const ledger = createMemoryLedger()
  const [swarmBook, swarmVotes] = [new SwarmBook(ledger, hash), new SwarmVotes(ledger, hash)]
  const course = new SwarmCourse(telemetry)
  const told: SwarmEvent[] = []
  course.follow((event) => told.push(event))
  const contents = new Map([0, 1].map((index) => [index, encodePayload(rowOf(index))]))
  const names = [...contents].map(([index, content]) => ({ index, digest: swarmVotes.digest(content) }))
  const head = { id: 'swarm_1', itemCount: 3 } as SwarmHead
  const accepted = new AcceptedSwarm(
    { clock, telemetry, swarmBook, swarmVotes, limits: { defaultTtlMs: 1000 }, commit: (changes) => ledger.commit(changes) },
    {
      head,
      course,
      content: async ({ index }) => contents.get(index) ?? null,
      obtain: () => t.fail('all is here'),
      release: () => {},
      onOver: () => t.fail('it has no end')
    }
  )
  // As a coordinator does: its term tells.
  accepted.records.add(names, { total: 0, epoch: 1 })
  accepted.settled(rowOf(0))
  const last = new Promise<void>((resolve) =>
    course.follow((event) => {
      if (event.type === 'item' && event.item === 'item 1') resolve()
    })
  )
  accepted.takeUntold(actor('a').id)
  await last
  await accepted.stop()
  t.alike(
    told.flatMap((event) => (event.type === 'item' ? [event.item] : [])),
    ['item 0', 'item 1'],
    'each once'
  )
  const kept = await swarmVotes.content('swarm_1', 1, 3)
  t.is(kept === null ? '' : swarmVotes.digest(kept), names[1]?.digest, 'and is durable before')
})
