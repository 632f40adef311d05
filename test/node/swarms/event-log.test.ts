import test from 'brittle'
import fc from 'fast-check'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { NodeError } from '../../../src/kit/errors.js'
import { SwarmEventLog } from '../../../src/node/swarms/event-log.js'
import type { SwarmRow } from '../../../src/node/swarms/store.js'
import type { SwarmEvent } from '../../../src/ports/swarm-api.js'
import { holds } from '../../support/holds.js'
import { ManualClock } from '../../support/manual-clock.js'

const error = new NodeError('TASK_FAILED', 'no').toBody()
const telemetry = new MemoryTelemetry({ clock: new ManualClock(), level: 'error', format: 'text', write: () => {} })

function row(index: number, status: SwarmRow['row']['status'] = 'completed'): SwarmRow {
  const failed = status === 'failed' || status === 'unknown'
  const shown = {
    item: `item ${index}`,
    agent: 'a@b',
    attempt: 1,
    status,
    result: failed ? null : index,
    error: failed ? error : null
  }
  return { index, order: index, holder: 'a@b', row: { ...shown, durationMs: 5 } }
}

test('an outcome is reported once, without its duration, and results are in the order of the items', (t) => {
  const log = new SwarmEventLog(telemetry)
  for (const index of [2, 0, 2, 1]) log.settled(row(index))
  const { past } = log.follow(() => {})
  t.alike(
    past.map((event) => (event.type === 'item' ? event.item : event.type)),
    ['item 2', 'item 0', 'item 1']
  )
  t.absent(past.some((event) => 'durationMs' in event))
  t.alike(
    log.results().map(({ item }) => item),
    ['item 0', 'item 1', 'item 2']
  )
})

test('the state of a sub-task is reported again only when it has changed', (t) => {
  const log = new SwarmEventLog(telemetry)
  const stage = (status: 'open' | 'completed', reason = ''): SwarmEvent => ({
    type: 'stage',
    stage: 'one',
    status,
    reason
  })
  for (const event of [
    stage('open'),
    stage('open'),
    stage('completed'),
    stage('completed', 'all of it'),
    stage('open')
  ])
    log.tell(event)
  t.is(log.follow(() => {}).past.length, 4)
})

test('a follower gets events until it stops, and a listener that fails prevents no other', (t) => {
  const log = new SwarmEventLog(telemetry)
  const events: string[] = []
  log.follow(() => {
    throw new Error('a program')
  })
  const { stop } = log.follow((event) => events.push(event.type))
  log.settled(row(0))
  stop()
  log.settled(row(1))
  t.alike(events, ['item'])
})

test('every item counts under one fate, and the first failure is the one of the swarm', async (t) => {
  const status = fc.constantFrom(
    'completed' as const,
    'failed' as const,
    'unknown' as const,
    'skipped' as const,
    'canceled' as const
  )
  await holds(
    t,
    fc.property(fc.array(status, { maxLength: 20 }), fc.nat(5), (all, open) => {
      const log = new SwarmEventLog(telemetry)
      for (const [index, one] of all.entries()) log.settled(row(index, one))
      const { total, completed, failed, skipped = 0, unknown = 0 } = log.counts(all.length + open)
      const isWhole = total - open === completed + failed + skipped && unknown <= failed
      return isWhole && (log.firstError() === null) === (failed === 0) && log.rows.size === all.length
    })
  )
})
