import test from 'brittle'
import type { SwarmRequest, SwarmRetry } from '../../../src/ports/swarm-api.js'
import { NodeError } from '../../../src/kit/errors.js'
import type { NodeId } from '../../../src/kit/ids.js'
import type { SwarmPlan } from '../../../src/node/swarms/launcher.js'
import { retryable, retryRequest } from '../../../src/node/swarms/retry.js'
import { SwarmStore, type SwarmEnd, type SwarmHead, type SwarmRow } from '../../../src/node/swarms/store.js'
import { failsWith } from '../../support/fails.js'
import { hash } from '../../support/membership.js'
import { createMemoryLedger } from '../../support/memory-ledger.js'

type Status = SwarmRow['row']['status']

const REQUEST: SwarmRequest = { goal: 'go', capability: 'do', strategy: 'map', retries: 1 }
const END: SwarmEnd = {
  status: 'partial',
  counts: { total: 0, completed: 0, failed: 0 },
  durationMs: 1,
  error: null,
  stages: [],
  participants: [],
  leftOut: []
}

function rowOf(status: Status, index: number): SwarmRow {
  const error = status === 'completed' ? null : new NodeError('TASK_FAILED', 'no').toBody()
  const row = { item: `item ${index}`, agent: 'a@b', attempt: 1, status, result: null, error, durationMs: 5 }
  return { index, order: index + 1, holder: 'a@b', row }
}

/** The retries of a swarm that ended with these outcomes of its items. */
async function ended(statuses: readonly Status[], changes: Partial<SwarmHead> = {}) {
  const ledger = createMemoryLedger()
  const swarms = new SwarmStore(ledger, hash)
  const head: SwarmHead = {
    id: 'swarm_1',
    taskId: 'task_1',
    request: REQUEST,
    capabilities: ['do'],
    stages: [],
    agents: [],
    leftOut: [],
    itemCount: statuses.length,
    createdAt: 0,
    deadline: 1,
    expiresAt: 2,
    key: null,
    end: null,
    ...changes
  }
  const rows = statuses.map(rowOf)
  const items = statuses.map((_, index) => ({ name: `item ${index}`, input: index }))
  await ledger.commit(swarms.launched(head, items))
  await ledger.commit(rows.map((row) => swarms.settled(head, row)))
  await ledger.commit(swarms.ended(head, { end: END, expiresAt: 3, kept: retryable(head, rows) }))
  const directory = { ref: (node: NodeId) => ({ id: node, name: 'laptop' }) }
  const kept = await Promise.all(statuses.map((_, index) => swarms.input(head.id, index)))
  const retry = (which: Omit<SwarmRetry, 'id'> = {}): Promise<SwarmPlan> =>
    retryRequest({ swarmStore: swarms, directory }, head.id, which)
  return { kept, retry }
}

test('a retry has the items of the chosen outcomes with their inputs, and inputs of other items do not stay', async (t) => {
  const { kept, retry } = await ended(['completed', 'failed', 'unknown', 'canceled', 'failed'])
  t.alike(kept, [undefined, 1, 2, undefined, 4])
  const inputsOf = async (which?: Omit<SwarmRetry, 'id'>): Promise<unknown[]> =>
    ((await retry(which)).items ?? []).map(({ item, input }) => [item, input])
  const [one, two, four] = [1, 2, 4].map((index) => [`item ${index}`, index])
  t.alike(await inputsOf(), [one, four])
  t.alike(await inputsOf({ unknown: true }), [two])
  t.alike(await inputsOf({ failed: true, unknown: true }), [one, two, four])
})

test('a retry needs agents with all capabilities that the swarm needed', async (t) => {
  const { retry } = await ended(['failed'], { capabilities: ['do', 'read', 'write'] })
  const { capability, furtherCapabilities } = await retry()
  t.alike([capability, furtherCapabilities], ['do', ['read', 'write']])
})

test('a participant that did not launch the swarm keeps no input, and says so', async (t) => {
  const { kept, retry } = await ended(['failed'], { taskId: '' })
  t.alike(kept, [undefined])
  const { message } = await failsWith(t, 'CONFLICT', () => retry())
  t.ok(message.includes('only its launcher keeps them'), message)
})

test('a refused retry of a canceled swarm says how many items had no outcome', async (t) => {
  const { retry } = await ended(['completed', 'completed'], { itemCount: 5 })
  const { message } = await failsWith(t, 'CONFLICT', () => retry())
  t.ok(message.endsWith('failed; 3 had no outcome when it was canceled: launch them anew'), message)
})
