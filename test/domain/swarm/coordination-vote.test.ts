import test from 'brittle'
import { VOTER_LEASE_MS } from '../../../src/domain/swarm/coordination.js'
import type { CoordinationMessage } from '../../../src/domain/swarm/coordination-message.js'
import { openVoter, stepVoter, type VoterEffect, type VoterState } from '../../../src/domain/swarm/coordination-vote.js'

const coordination = { swarm: 's', itemCount: 4, voters: ['a', 'b', 'c'], mayTakeOver: true }
const parts = { coordination, self: 'b', run: 'b.0' }
const about = { swarm: 's', run: 'r', round: 1 }

function fresh(): VoterState {
  return openVoter(parts, { type: 'fresh' }, 0)
}

function say(voter: VoterState, from: string, message: CoordinationMessage, now: number): VoterEffect[] {
  return stepVoter(voter, { type: 'message', from, message }, now)
}

/** The kind of answer to the wish to coordinate. */
function ask(voter: VoterState, from: string, epoch: number, now: number): string | undefined {
  const last = say(voter, from, { ...about, kind: 'ask', epoch }, now).at(-1)
  return last?.type === 'tell' ? last.message.kind : undefined
}

test('a grant is durable before it is sent, and so is a record', (t) => {
  const voter = fresh()
  t.alike(say(voter, 'a', { ...about, kind: 'ask', epoch: 1 }, 0), [
    { type: 'store', epoch: 1, candidate: 'a', records: [] },
    { type: 'tell', to: 'a', message: { ...about, kind: 'granted', epoch: 1 } }
  ])
  const items = [
    { index: 1, digest: 'x' },
    { index: 9, digest: 'beyond the items' }
  ]
  t.alike(say(voter, 'a', { ...about, kind: 'record', epoch: 1, items }, 1), [
    { type: 'store', epoch: 1, candidate: 'a', records: [[1, { epoch: 1, digest: 'x' }]] },
    { type: 'tell', to: 'a', message: { ...about, kind: 'recorded', epoch: 1 } }
  ])
})

test('one epoch is granted to one candidate, no lower one is granted, and no other before the lease has ended', (t) => {
  const voter = fresh()
  t.is(ask(voter, 'a', 5, 0), 'granted')
  t.is(ask(voter, 'c', 6, VOTER_LEASE_MS - 1), 'refused', 'the lease is not over')
  t.is(ask(voter, 'a', 6, VOTER_LEASE_MS - 1), 'refused', 'nor for an agent with it')
  t.is(ask(voter, 'a', 5, VOTER_LEASE_MS - 1), 'granted', 'it is renewed')
  const over = 2 * VOTER_LEASE_MS
  t.is(ask(voter, 'c', 5, over), 'refused', 'the same epoch')
  t.is(ask(voter, 'c', 4, over), 'refused', 'a lower one')
  t.is(ask(voter, 'x', 6, over), undefined, 'a stranger gets no answer')
  t.is(ask(voter, 'c', 6, over), 'granted')
})

test('outcomes are recorded for the coordinator of the epoch granted last alone', (t) => {
  const voter = fresh()
  ask(voter, 'a', 1, 0)
  ask(voter, 'c', 2, VOTER_LEASE_MS)
  const record = { ...about, kind: 'record' as const, items: [{ index: 0, digest: 'x' }] }
  for (const [from, epoch] of [
    ['a', 1],
    ['a', 2],
    ['c', 3]
  ] as const) {
    const refused = { ...about, kind: 'refused', epoch: 2 } as const
    t.alike(say(voter, from, { ...record, epoch }, VOTER_LEASE_MS), [{ type: 'tell', to: from, message: refused }])
  }
  t.is(voter.records.size, 0)
})

test('with --no-takeover nobody but the launcher is granted anything', (t) => {
  const voter = openVoter({ ...parts, coordination: { ...coordination, mayTakeOver: false } }, { type: 'fresh' }, 0)
  t.is(ask(voter, 'c', 1, 0), 'refused')
  t.is(ask(voter, 'a', 1, 0), 'granted')
})

test('a voter that was restarted waits a whole lease before it grants anything else', (t) => {
  const voter = openVoter(parts, { type: 'restarted', stored: { epoch: 3, candidate: 'a', records: new Map() } }, 100)
  t.is(ask(voter, 'c', 4, 100 + VOTER_LEASE_MS - 1), 'refused')
  t.is(ask(voter, 'c', 4, 100 + VOTER_LEASE_MS), 'granted')
  const other = openVoter(parts, { type: 'restarted', stored: { epoch: 3, candidate: 'a', records: new Map() } }, 100)
  t.is(ask(other, 'a', 3, 101), 'granted', 'a member that had it continues')
})

test('a voter that lost its disk abstains for a lease, then learns from enough others, and only then votes', (t) => {
  const voter = openVoter(parts, { type: 'lost' }, 0)
  t.is(ask(voter, 'a', 1, 10), undefined)
  t.alike(stepVoter(voter, { type: 'tick' }, VOTER_LEASE_MS - 1), [], 'nobody is asked before')
  t.is(stepVoter(voter, { type: 'tick' }, VOTER_LEASE_MS).length, 2)
  t.is(ask(voter, 'a', 1, VOTER_LEASE_MS), undefined)
  const held = { ...about, run: 'b.0', kind: 'held', from: 0, next: null } as const
  t.alike(
    say(
      voter,
      'a',
      { ...held, epoch: 2, candidate: 'a', items: [{ index: 0, epoch: 1, digest: 'old' }] },
      VOTER_LEASE_MS
    ),
    []
  )
  const records = [[0, { epoch: 2, digest: 'new' }]]
  t.alike(
    say(
      voter,
      'c',
      { ...held, epoch: 2, candidate: 'c', items: [{ index: 0, epoch: 2, digest: 'new' }] },
      VOTER_LEASE_MS
    ),
    [{ type: 'store', epoch: 2, candidate: null, records }]
  )
  t.is(ask(voter, 'a', 2, VOTER_LEASE_MS), 'refused', 'it may have granted this one to the other')
  t.is(ask(voter, 'a', 3, VOTER_LEASE_MS), 'granted')
})
