import test, { type Assert } from 'brittle'
import { createMemoryLedger } from '../../../support/memory-ledger.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { encodePayload } from '../../../../src/domain/envelope/codec.js'
import { RECORDS } from '../../../../src/domain/swarm/record-index.js'
import { CommittedResults, type FollowedSwarm } from '../../../../src/node/swarms/consensus/committed-results.js'
import { type SwarmEnd, SwarmStore, type SwarmHead, type SwarmRow } from '../../../../src/node/swarms/store.js'
import type { ContentName } from '../../../../src/node/swarms/consensus/content-transfer.js'
import { SwarmEventLog } from '../../../../src/node/swarms/event-log.js'
import { ContentStore } from '../../../../src/node/swarms/consensus/content-store.js'
import { VoteStore } from '../../../../src/node/swarms/consensus/vote-store.js'
import type { LedgerChange } from '../../../../src/ports/ledger.js'
import type { SwarmEvent } from '../../../../src/ports/swarm-api.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor, hash } from '../../../support/membership.js'

function rowOf(index: number): SwarmRow {
  const row = {
    item: `item ${index}`,
    agent: 'w@b',
    attempt: 1,
    status: 'completed',
    result: index,
    error: null,
    durationMs: 1
  } as const
  return { index, order: index, holder: 'w', row }
}

/** Resolves when so many outcomes are reported and the records of then are taken. */
async function taken(accepted: CommittedResults, course: SwarmEventLog, count: number): Promise<void> {
  while (course.rows.size < count) await new Promise((resolve) => setImmediate(resolve))
  accepted.take([], actor('a').id)
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** What was accepted in a swarm of three items, as a node with an empty ledger follows it. */
function scene(
  t: Assert,
  {
    onOver = () => t.fail('it has no end'),
    tell = () => t.fail('all is here')
  }: Partial<Pick<FollowedSwarm, 'onOver'>> & {
    readonly tell?: () => void
  } = {}
): {
  readonly accepted: CommittedResults
  readonly course: SwarmEventLog
  readonly shelf: ContentStore
  readonly swarmVotes: VoteStore
} {
  const clock = new ManualClock()
  const telemetry = new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} })
  const ledger = createMemoryLedger()
  const [swarmStore, swarmVotes] = [new SwarmStore(ledger, hash), new VoteStore(ledger, hash)]
  const commit = (changes: readonly LedgerChange[]): Promise<void> => ledger.commit(changes)
  const course = new SwarmEventLog(telemetry)
  const request = { goal: 'g', capability: 'w.run', strategy: 'map' }
  const head = { id: 'swarm_1', itemCount: 3, request, taskId: '', expiresAt: 0 } as SwarmHead
  const shelf = new ContentStore({ clock, telemetry, self: actor('a').id, swarmVotes, commit, tell }, head)
  const accepted = new CommittedResults(
    { clock, telemetry, swarmStore, swarmVotes, limits: { defaultTtlMs: 1000 }, commit },
    { head, eventLog: course, contentStore: shelf, completed: (end) => end, onOver }
  )
  return { accepted, course, shelf, swarmVotes }
}

test('an end is taken with all outcomes that it counts, also when its sender knows fewer', async (t) => {
  const ends: SwarmEnd[] = []
  let wake = (): void => {}
  const over = new Promise<void>((resolve) => (wake = resolve))
  const { accepted, course, shelf, swarmVotes } = scene(t, {
    onOver: (one) => {
      ends.push(one)
      wake()
    }
  })
  const end: SwarmEnd = {
    status: 'completed',
    counts: { total: 3, completed: 2, failed: 0 },
    durationMs: 1,
    error: null,
    stages: [],
    participants: [],
    leftOut: []
  }
  const nameOf = (index: number, content: Uint8Array): ContentName => {
    const name = { index, digest: swarmVotes.digest(content) }
    shelf.contents.put(name, content)
    return name
  }
  const [first, second] = [0, 1].map((index) => nameOf(index, encodePayload(rowOf(index)))) as [
    ContentName,
    ContentName
  ]
  const last = nameOf(RECORDS.end(3), encodePayload(end))
  accepted.take(accepted.learn([first, last], { total: 2, epoch: 1 }), actor('b').id)
  await taken(accepted, course, 1)
  t.alike(ends, [])
  accepted.take(accepted.learn([second], { total: 3, epoch: 1 }), actor('c').id)
  await over
  t.is(course.rows.size, 2)
  t.alike(ends, [end])
})

test('an end waits for outcomes that were reported here and never stored', async (t) => {
  let wake = (): void => {}
  const over = new Promise<void>((resolve) => (wake = resolve))
  const { accepted, course, shelf, swarmVotes } = scene(t, { onOver: () => wake() })
  const end: SwarmEnd = {
    status: 'completed',
    counts: { total: 3, completed: 1, failed: 0 },
    durationMs: 1,
    error: null,
    stages: [],
    participants: [],
    leftOut: []
  }
  const [outcome, last] = [encodePayload(rowOf(0)), encodePayload(end)]
  const reported = { index: 0, digest: swarmVotes.digest(outcome) }
  const ended = { index: RECORDS.end(3), digest: swarmVotes.digest(last) }
  shelf.contents.put(reported, outcome)
  course.settled(rowOf(0))
  accepted.learn([reported], { total: 0, epoch: 1 })
  shelf.contents.put(ended, last)
  accepted.take(accepted.learn([ended], { total: 2, epoch: 2 }), actor('b').id)
  const ticks = setInterval(() => accepted.take([], actor('b').id), 1)
  await over
  clearInterval(ticks)
  t.alike([...(await swarmVotes.outcomes('swarm_1')).keys()], [0])
})

test('a proposal for an item with another outcome is no longer stored, and after the end only accepted results are', (t) => {
  const { accepted, shelf, swarmVotes } = scene(t)
  const [won, lost, open] = [0, 0, 1].map((index, at) => {
    const content = encodePayload([index, at])
    const name = { index, digest: swarmVotes.digest(content) }
    shelf.contents.put(name, content)
    return name
  }) as [ContentName, ContentName, ContentName]
  const held = (): boolean[] => [won, lost, open].map((name) => shelf.contents.get(name) !== undefined)
  accepted.learn([won], { total: 1, epoch: 1 })
  t.alike(held(), [true, false, true])
  accepted.close()
  t.alike(held(), [true, false, false])
})

test('a result accepted while its coordinator stepped back, and not reported by it, is reported as accepted by others', async (t) => {
  const { accepted, course, shelf, swarmVotes } = scene(t)
  const told: SwarmEvent[] = []
  course.follow((event) => told.push(event))
  const contents = new Map([0, 1].map((index) => [index, encodePayload(rowOf(index))]))
  const names = [...contents].map(([index, content]) => ({ index, digest: swarmVotes.digest(content) }))
  for (const [at, content] of contents) shelf.contents.put(names[at] ?? { index: at, digest: '' }, content)
  // As a coordinator does: its term tells.
  accepted.records.add(names, { total: 0, epoch: 1 })
  course.settled(rowOf(0))
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
