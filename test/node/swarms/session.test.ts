import test from 'brittle'
import fc from 'fast-check'
import type { SwarmState } from '../../../src/domain/swarm/machine.js'
import { sessionOf, subTaskId, subTaskIndex } from '../../../src/node/swarms/session.js'
import type { SwarmRow } from '../../../src/node/swarms/store.js'
import { holds } from '../../support/holds.js'

const ITEMS = ['first', 'second', 'third']

function machine(statuses: readonly ('waiting' | 'leased' | 'blocked')[]): SwarmState {
  const state = {
    items: statuses.map((status, index) => ({
      name: ITEMS[index] ?? '',
      agent: status === 'leased' ? 'a@b' : '',
      status
    }))
  }
  return state as unknown as SwarmState
}

function session(state: SwarmState, rows: readonly [number, SwarmRow['row']['status']][], more: object = {}) {
  const known = rows.map(
    ([index, status]) =>
      [index, { index, order: index, holder: 'a@b', row: { status, result: `of ${index}` } }] as const
  )
  return sessionOf({
    head: {
      id: 'swarm_1',
      request: { goal: 'count', capability: 'echo.say', strategy: 'map' },
      capabilities: ['echo.say'],
      createdAt: 1
    },
    names: ITEMS,
    state,
    end: null,
    isRecruiting: false,
    participants: new Set(['a@b']),
    rows: new Map(known as unknown as [number, SwarmRow][]),
    ...more
  })
}

test('a sub-task is completed or failed when its outcome was reported, and else has the state of its lease', (t) => {
  const { subTasks, sharedState } = session(machine(['leased', 'leased', 'waiting']), [[0, 'completed']])
  t.alike(
    subTasks.map(({ status }) => status),
    ['completed', 'running', 'pending']
  )
  t.alike(sharedState, { 'swarm_1.0': 'of 0' })
  t.is(subTasks[0]?.result, 'of 0')
  t.absent('result' in (subTasks[1] ?? {}))
})

test('a sub-task that was not needed counts as completed without a result of its own, and an unknown outcome as failed', (t) => {
  const { subTasks, sharedState } = session(machine(['waiting', 'waiting', 'waiting']), [
    [0, 'skipped'],
    [1, 'canceled'],
    [2, 'unknown']
  ])
  t.alike(
    subTasks.map(({ status }) => status),
    ['completed', 'completed', 'failed']
  )
  t.alike(sharedState, {})
})

test('a session goes from recruiting over active and completing to its end', (t) => {
  t.is(session(machine(['waiting', 'waiting', 'waiting']), [], { isRecruiting: true }).status, 'recruiting')
  t.is(session(machine(['leased', 'waiting', 'leased']), []).status, 'active')
  t.is(session(machine(['leased', 'blocked', 'leased']), []).status, 'active')
  t.is(session(machine(['leased', 'leased', 'leased']), []).status, 'completing')
  t.is(session(machine(['leased', 'leased', 'leased']), [], { end: 'completed' }).status, 'completed')
  for (const end of ['partial', 'failed', 'canceled'])
    t.is(session(machine(['waiting']), [], { end }).status, 'failed', end)
})

test('the name of a sub-task leads back to it, in its own swarm alone', async (t) => {
  await holds(
    t,
    fc.property(fc.nat(999_999_999), (index) => {
      const name = subTaskId('swarm_1', index)
      return subTaskIndex('swarm_1', name) === index && subTaskIndex('swarm_2', name) === null
    })
  )
  for (const name of ['swarm_1', 'swarm_1.', 'swarm_1.x', 'swarm_1.-1', 'swarm_1.1.2', 'swarm_1.1234567890'])
    t.is(subTaskIndex('swarm_1', name), null, name)
})
