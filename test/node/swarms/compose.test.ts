import test from 'brittle'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import type { NodeId } from '../../../src/kit/ids.js'
import { NodeEvents } from '../../../src/node/observe/events.js'
import { createSwarmTable, type SwarmsDeps } from '../../../src/node/swarms/compose.js'
import { VoteStore } from '../../../src/node/swarms/consensus/vote-store.js'
import { type SwarmHead, SwarmStore } from '../../../src/node/swarms/store.js'
import { TaskTable } from '../../../src/node/tasks/task-table.js'
import { countingIds } from '../../support/counting-ids.js'
import { FakeAudit } from '../../support/fake-node.js'
import { ManualClock } from '../../support/manual-clock.js'
import { actor, hash } from '../../support/membership.js'
import { createMemoryLedger } from '../../support/memory-ledger.js'

const [self, bob, cyd] = [actor('self').id, actor('bob').id, actor('cyd').id]

function headOf(clock: ManualClock, id: string, voters?: readonly NodeId[]): SwarmHead {
  const now = clock.now()
  return {
    id,
    taskId: `task_${id}`,
    request: { goal: 'do it', capability: 'work.do', strategy: 'map' },
    capabilities: ['work.do'],
    stages: [{ id: 'map', capability: 'work.do', rule: 'all', from: 0, count: 1, isList: true, needs: [] }],
    agents: [],
    leftOut: [],
    itemCount: 1,
    createdAt: now,
    deadline: now + 60_000,
    expiresAt: now + 120_000,
    key: null,
    end: null,
    ...(voters === undefined ? {} : { voters })
  }
}

test('swarms of this node alone and of several participants share memory, tasks and events', async (t) => {
  const clock = new ManualClock()
  const ledger = createMemoryLedger()
  const telemetry = new MemoryTelemetry({ clock, level: 'error', format: 'text', write: (line) => t.fail(line) })
  const ids = countingIds()
  const [swarmStore, swarmVotes] = [new SwarmStore(ledger, hash), new VoteStore(ledger, hash)]
  const [tasks, events] = [new TaskTable({ clock, ids, telemetry }), new NodeEvents(clock, telemetry)]
  const deps = {
    ...{ clock, ids, self, hash, telemetry, tasks, audit: new FakeAudit(), events, swarmStore, swarmVotes },
    commit: ledger.commit.bind(ledger),
    tell: () => {},
    ledgerName: () => 'own ledger',
    ledgerQuota: { isFull: false },
    registry: { find: () => [] },
    peers: { isOnline: () => false },
    guests: { has: () => false },
    directory: {
      ...{ namer: () => (agent: string) => agent, ref: (node: NodeId) => ({ id: node, name: node }) },
      ...{ certificate: () => null, isPutOut: () => false, shownAddress: (agent: string) => agent }
    },
    limits: { leaseMs: 10_000, deadlineMs: 60_000, defaultTtlMs: 60_000 }
  }
  await ledger.commit([
    ...[headOf(clock, 'swarm_1'), headOf(clock, 'swarm_2', [self, bob, cyd])].flatMap((head) =>
      swarmStore.launched(head, [{ name: 'first' }])
    ),
    swarmVotes.participantChange('swarm_2', { ledger: 'own ledger', state: 'open', seated: {} })
  ])
  const table = createSwarmTable(deps as unknown as SwarmsDeps)
  t.teardown(() => table.stop())
  await table.resume()
  t.alike(
    new Set(table.list().map(({ id, status }) => `${id} ${status}`)),
    new Set(['swarm_1 running', 'swarm_2 running'])
  )
  t.alike([table.participants.has(bob), table.participants.has(actor('dan').id)], [true, false])
  await table.cancel('swarm_1')
  t.is(tasks.get('task_swarm_1')?.state, 'canceled')
  t.is(tasks.get('task_swarm_2')?.state, 'working')
  t.is(events.recent().at(-1)?.message, 'a swarm ended')
  t.alike(
    table.activeSessions().map(({ id }) => id),
    ['swarm_2']
  )
})
