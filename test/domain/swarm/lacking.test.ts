import test from 'brittle'
import {
  createSwarm,
  nextTickAt,
  stepSwarm,
  swarmStatus,
  type SwarmInput,
  type SwarmParts,
  type SwarmState
} from '../../../src/domain/swarm/machine.js'

const LEASE_MS = 1000
const SPAN = 12 * LEASE_MS

function swarm(items: SwarmParts['items']): SwarmState {
  return createSwarm({ id: 's', items, maxParallel: 10, retries: 2, deadlineAt: 1_000_000, leaseMs: LEASE_MS }, 0)
}

function outcomes(state: SwarmState, input: SwarmInput, now: number): unknown[] {
  return stepSwarm(state, input, now).effects.flatMap((one) =>
    one.type === 'item' ? [[one.index, one.status, one.error?.code]] : []
  )
}

test('items without an agent are given up after twelve lease spans; the rest continues, and an agent that comes in time gets them', (t) => {
  const state = swarm([{ name: 'fresh' }, { name: 'other', need: 1 }, { name: 'third', need: 2 }])
  stepSwarm(state, { type: 'accepted', agent: 'a@n', slots: 1, need: 1 }, 0)
  t.alike(outcomes(state, { type: 'tick' }, 1), [])
  t.alike(
    outcomes(state, { type: 'result', index: 1, attempt: 1, agent: 'a@n', outcome: { ok: true, result: 1 } }, 2),
    [[1, 'completed', undefined]]
  )
  t.is(swarmStatus(state), 'stalled', 'waiting bytes are for others')
  stepSwarm(state, { type: 'accepted', agent: 'c@n', slots: 1, need: 2 }, 5)
  t.is(swarmStatus(state), 'running')
  t.is(nextTickAt(state, 5), Math.min(1 + SPAN, 5 + LEASE_MS))
  stepSwarm(state, { type: 'heartbeat', leases: [{ index: 2, attempt: 1 }] }, SPAN)
  t.alike(outcomes(state, { type: 'tick' }, SPAN), [], 'not a moment too soon')
  t.alike(outcomes(state, { type: 'tick' }, SPAN + 1), [[0, 'failed', 'NO_CAPABLE_AGENT']])
})

test('an item whose agents went is given up like one that nobody ever could do', (t) => {
  const state = swarm([{ name: 'one' }])
  stepSwarm(state, { type: 'accepted', agent: 'a@n', slots: 1 }, 0)
  stepSwarm(state, { type: 'gone', agents: ['a@n'], reason: 'away' }, 10)
  stepSwarm(state, { type: 'tick' }, 20)
  t.is(swarmStatus(state), 'stalled')
  stepSwarm(state, { type: 'accepted', agent: 'a@n', slots: 1 }, 5000)
  stepSwarm(state, { type: 'tick' }, 5001)
  stepSwarm(state, { type: 'gone', agents: ['a@n'], reason: 'away' }, 5002)
  stepSwarm(state, { type: 'tick' }, 5003)
  t.alike(outcomes(state, { type: 'tick' }, 5003 + SPAN - 1), [], 'it counts from when the last one went')
  t.alike(outcomes(state, { type: 'tick' }, 5003 + SPAN), [[0, 'failed', 'NO_CAPABLE_AGENT']])
})

test('of items of one group no agent does two, and one that is left without an agent is given up', (t) => {
  const state = swarm([
    { name: '1', group: 0 },
    { name: '2', group: 0 }
  ])
  const { effects } = stepSwarm(state, { type: 'accepted', agent: 'a@n', slots: 5 }, 0)
  t.is(effects.filter(({ type }) => type === 'lease').length, 1)
  stepSwarm(state, { type: 'result', index: 0, attempt: 1, agent: 'a@n', outcome: { ok: true, result: 1 } }, 1)
  stepSwarm(state, { type: 'tick' }, 2)
  t.is(swarmStatus(state), 'stalled')
  t.alike(outcomes(state, { type: 'tick' }, 2 + SPAN), [[1, 'failed', 'NO_CAPABLE_AGENT']])
})
