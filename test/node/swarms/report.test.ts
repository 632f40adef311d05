import test from 'brittle'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { SwarmEventLog } from '../../../src/node/swarms/event-log.js'
import { SwarmReport } from '../../../src/node/swarms/report.js'
import type { SwarmHead } from '../../../src/node/swarms/store.js'
import { ManualClock } from '../../support/manual-clock.js'

const directory = {
  namer: () => (agent: string) => `shown ${agent}`,
  shownAddress: (agent: string) => `shown ${agent}`
}

function report(stages: readonly string[], attemptOf?: (lease: number) => number): SwarmReport {
  const head = {
    id: 'swarm_1',
    request: { goal: 'count', strategy: 'map', capability: 'echo.say' },
    stages: stages.map((id, from) => ({ id, from, count: 1, capability: 'echo.say', needs: [], isList: true })),
    itemCount: stages.length
  } as unknown as SwarmHead
  const telemetry = new MemoryTelemetry({ clock: new ManualClock(), level: 'error', format: 'text', write: () => {} })
  const items = [{ name: 'first' }, { name: 'a@b', pinnedTo: 'a@b' }]
  const term = attemptOf === undefined ? null : { attemptOf }
  return new SwarmReport(directory as unknown as ConstructorParameters<typeof SwarmReport>[0], {
    head,
    items,
    eventLog: new SwarmEventLog(telemetry),
    term
  })
}

test('a lease is shown by the names of its item and agent, with its sub-task where there are several', (t) => {
  t.alike(report(['map']).shown({ index: 0, agent: 'c@d', attempt: 1 }), {
    item: 'first',
    agent: 'shown c@d',
    attempt: 1
  })
  const { stage, item } = report(['one', 'two']).shown({ index: 1, agent: 'a@b', attempt: 1 })
  t.alike([stage, item], ['two', 'shown a@b'], 'an item for one agent alone has the name of that agent')
  t.is(report(['map']).shown({ index: 0, agent: '', attempt: 0 }).agent, '-')
})

test('a lease of a swarm with several participants is shown by the count of its coordinator', (t) => {
  t.is(report(['map'], (lease) => lease - 100).shown({ index: 0, agent: 'a@b', attempt: 102 }).attempt, 2)
})

test('an agent with a lease takes part; results are listed apart where nothing combines them', (t) => {
  const one = report(['map'])
  one.participants.add('a@b').add('c@d').add('a@b')
  t.alike(one.standing(7, []).participants, ['shown a@b', 'shown c@d'])
  t.is(one.standing(7, []).durationMs, 7)
  const row = {
    item: 'first',
    agent: 'a@b',
    attempt: 1,
    status: 'completed',
    result: 'a',
    error: null,
    durationMs: 5
  } as const
  one.stages.begin([{ index: 0, order: 1, holder: 'a@b', row }])
  t.alike(one.results('completed', true), { id: 'swarm_1', status: 'completed', results: [] })
})
