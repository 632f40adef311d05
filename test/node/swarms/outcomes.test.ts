import test from 'brittle'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { NodeError } from '../../../src/kit/errors.js'
import { CommitQueue } from '../../../src/node/ledger/commit-queue.js'
import { SwarmEventLog } from '../../../src/node/swarms/event-log.js'
import { SwarmOutcomes } from '../../../src/node/swarms/outcomes.js'
import { SwarmReport } from '../../../src/node/swarms/report.js'
import { SwarmStore, type SwarmEnd, type SwarmHead, type SwarmRow } from '../../../src/node/swarms/store.js'
import type { LedgerChange } from '../../../src/ports/ledger.js'
import { ManualClock } from '../../support/manual-clock.js'
import { hash } from '../../support/membership.js'

const head = {
  id: 'swarm_1',
  taskId: 'task_1',
  request: { goal: 'count', capability: 'echo.say', strategy: 'map' },
  capabilities: ['echo.say'],
  stages: [{ id: 'map', rule: 'all', capability: 'echo.say', from: 0, count: 2, needs: [], isList: true }],
  itemCount: 2,
  createdAt: 0,
  deadline: 1000,
  expiresAt: 2000,
  agents: [],
  leftOut: [],
  key: null,
  end: null
} as unknown as SwarmHead

interface Scene {
  readonly outcomes: SwarmOutcomes
  readonly said: string[]
  readonly store: SwarmStore
  readonly queue: CommitQueue
  /** Lets the ledger take all that it was given. */
  write(): Promise<void>
}

/** A swarm of two items, whose ledger writes when the test says so. */
function scene(hasCapacity = true): Scene {
  const clock = new ManualClock()
  const telemetry = new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} })
  const ledger = createMemoryLedger()
  const said: string[] = []
  const waiting: (() => void)[] = []
  const commit = (changes: readonly LedgerChange[]): Promise<void> =>
    new Promise((resolve, reject) => waiting.push(() => void ledger.commit(changes).then(resolve, reject)))
  const queue = new CommitQueue({ clock, telemetry, commit })
  const store = new SwarmStore(ledger, hash)
  const eventLog = new SwarmEventLog(telemetry)
  eventLog.follow((event) => said.push(event.type === 'item' ? `item ${event.item}` : event.type))
  const directory = {
    namer: () => (agent: string) => `shown ${agent}`,
    shownAddress: (agent: string) => `shown ${agent}`
  }
  const items = [
    { name: 'first', input: 1 },
    { name: 'second', input: 2 }
  ]
  const report = new SwarmReport(directory as unknown as ConstructorParameters<typeof SwarmReport>[0], {
    head,
    items,
    eventLog,
    term: null
  })
  report.stages.begin([])
  const outcomes: SwarmOutcomes = new SwarmOutcomes(
    { clock, swarmStore: store, limits: { defaultTtlMs: 1000 }, hasCapacity: () => hasCapacity },
    {
      head,
      report,
      notifications: queue,
      standing: (): Omit<SwarmEnd, 'status' | 'error'> => report.standing(7, []),
      onChange: () => said.push('change'),
      onEnd: () => said.push(`end ${outcomes.end?.status}`)
    }
  )
  const write = async (): Promise<void> => {
    for (let round = 0; round < 5; round++) {
      for (const one of waiting.splice(0)) one()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return { outcomes, said, store, queue, write }
}

const settled = (index: number, result: unknown, error: SwarmRow['row']['error'] = null) =>
  ({
    type: 'item',
    index,
    agent: 'a@b',
    attempt: 1,
    status: error === null ? 'completed' : 'failed',
    result,
    error,
    durationMs: 5
  }) as const

test('an outcome is reported, and others are built on it, when it is durable', async (t) => {
  const { outcomes, said, store, write } = scene()
  outcomes.settle(settled(1, 'b'))
  outcomes.settle(settled(0, 'a'))
  t.alike(said, [])
  await write()
  t.alike(said, ['item second', 'change', 'item first', 'change'])
  const rows = await store.results(head)
  t.alike(
    rows
      .map(({ index, order, holder }) => [index, order, holder])
      .sort(([one], [other]) => Number(one) - Number(other)),
    [
      [0, 2, 'a@b'],
      [1, 1, 'a@b']
    ],
    'in the order in which they were accepted'
  )
  t.ok(outcomes.bytes > 0)
})

test('the end of a swarm comes behind its outcomes, and counts when it is durable', async (t) => {
  const { outcomes, said, store, write } = scene()
  outcomes.settle(settled(0, 'a'))
  outcomes.settle(settled(1, null, new NodeError('TASK_FAILED', 'no').toBody()))
  outcomes.finish('completed', 9)
  t.is(outcomes.end, null)
  await write()
  t.alike(said.slice(-2), [`end ${outcomes.end?.status}`, 'done'])
  t.alike([outcomes.end?.counts.completed, outcomes.end?.counts.failed, outcomes.end?.durationMs], [1, 1, 9])
  t.is(outcomes.end?.error?.code, 'TASK_FAILED')
  t.alike((await store.get('swarm_1'))?.end?.status, outcomes.end?.status)
})

test('a swarm that is canceled says so, also when all went well before', async (t) => {
  const { outcomes, write } = scene()
  outcomes.settle(settled(0, 'a'))
  outcomes.settle(settled(1, 'b'))
  outcomes.finish('canceled', 9)
  await write()
  t.alike([outcomes.end?.status, outcomes.end?.error?.code], ['canceled', 'CANCELED'])
})

test('a result without memory for it is refused; results that the ledger reported before still count', async (t) => {
  const lease = { index: 0, agent: 'a@b', attempt: 1, failures: 0, isRepeatable: true }
  t.is(scene().outcomes.fault(lease, 'a'), null)
  t.is(scene(false).outcomes.fault(lease, 'a')?.code, 'PAYLOAD_TOO_LARGE')
  const { outcomes, said, store, write } = scene()
  const { row } = {
    row: {
      item: 'first',
      agent: 'shown a@b',
      attempt: 1,
      status: 'completed',
      result: 'a',
      error: null,
      durationMs: 5
    } as const
  }
  outcomes.restore({ index: 0, order: 4, holder: 'a@b', row })
  t.alike(said, ['item first'])
  outcomes.settle(settled(1, 'b'))
  await write()
  t.alike(
    (await store.results(head)).map(({ order }) => order),
    [5]
  )
})
