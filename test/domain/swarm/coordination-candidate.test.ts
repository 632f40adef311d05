import test from 'brittle'
import {
  COORDINATION_PERIOD_MS,
  COORDINATOR_LEASE_MS,
  TAKEOVER_STEP_MS,
  UNABLE_MS,
  VOTER_LEASE_MS
} from '../../../src/domain/swarm/coordination.js'
import {
  type CandidateEffect,
  type CandidateState,
  isCoordinating,
  leaseEnd,
  openCandidate,
  stepCandidate
} from '../../../src/domain/swarm/coordination-candidate.js'
import type { CoordinationMessage } from '../../../src/domain/swarm/coordination-message.js'
import { openVoter, type VoterParts, type VoterState } from '../../../src/domain/swarm/coordination-vote.js'

const coordination = { swarm: 's', itemCount: 9, voters: ['a', 'b', 'c'], mayTakeOver: true }
const parts = { coordination, self: 'a', run: 'a.0' }
type Body = Pick<Extract<CoordinationMessage, { kind: 'held' }>, 'items' | 'candidate'>

interface Scene {
  readonly state: CandidateState
  readonly voter: VoterState
  tick(now: number): CandidateEffect[]
  /** The answer of a voter to the newest message of a kind to it. */
  answer(from: string, kind: 'granted' | 'held' | 'recorded' | 'refused', now: number, body?: Body): CandidateEffect[]
  propose(index: number, now: number): CandidateEffect[]
}

function scene(own: VoterParts = parts): Scene {
  const [state, voter] = [openCandidate(own, 0), openVoter(own, { type: 'fresh' }, 0)]
  const told = new Map<string, CoordinationMessage>()
  const asked = { granted: 'ask', refused: 'ask', held: 'read', recorded: 'record' } as const
  const note = (effects: CandidateEffect[]): CandidateEffect[] => {
    for (const effect of effects)
      if (effect.type === 'tell') told.set(`${effect.to} ${effect.message.kind}`, effect.message)
    return effects
  }
  return {
    state,
    voter,
    tick: (now) => note(stepCandidate(state, { type: 'tick', voter }, now)),
    propose: (index, now) => note(stepCandidate(state, { type: 'propose', items: [{ index, digest: 'x' }] }, now)),
    answer(from, kind, now, body = { items: [], candidate: 'a' }) {
      const { run = '', round = 0 } = told.get(`${from} ${asked[kind]}`) ?? {}
      const more = kind === 'held' ? { ...body, from: 0, next: null } : {}
      const message = { swarm: 's', run, round, epoch: state.epoch, kind, ...more } as CoordinationMessage
      return note(stepCandidate(state, { type: 'message', from, message }, now))
    }
  }
}

/** One that asked at 0, got its grants at 400, and coordinates. */
function coordinating(): Scene {
  const one = scene()
  one.tick(0)
  one.answer('b', 'granted', 400)
  one.answer('a', 'granted', 400)
  one.answer('a', 'held', 410)
  one.answer('b', 'held', 420)
  return one
}

function outcomes(effects: readonly CandidateEffect[]): string[] {
  return effects.filter(({ type }) => type !== 'tell').map(({ type }) => type)
}

test('a lease counts from when a majority was asked, not from when it answered', (t) => {
  const { state } = coordinating()
  t.is(leaseEnd(state), COORDINATOR_LEASE_MS)
  t.ok(isCoordinating(state, COORDINATOR_LEASE_MS - 1))
  t.absent(isCoordinating(state, COORDINATOR_LEASE_MS))
})

/**
 * The end of the swarm is record 4; `a` has read it and the outcomes of some items, each with the epoch that it is on
 * record in.
 */
function readWithEnd(records: Readonly<Record<number, number>>): {
  readonly one: Scene
  readonly effects: readonly CandidateEffect[]
} {
  const one = scene({ ...parts, coordination: { ...coordination, endIndex: 4 } })
  one.tick(0)
  one.answer('b', 'granted', 10)
  one.answer('a', 'granted', 20)
  one.answer('a', 'held', 30)
  const items = Object.entries(records).map(([index, epoch]) => ({
    index: Number(index),
    epoch,
    digest: `${index}@${epoch}`
  }))
  return { one, effects: one.answer('b', 'held', 40, { candidate: 'a', items }) }
}

function recordsTo(node: string, effects: readonly CandidateEffect[]): number[] {
  return effects.flatMap((effect) =>
    effect.type === 'tell' && effect.to === node && effect.message.kind === 'record'
      ? effect.message.items.map(({ index }) => index)
      : []
  )
}

test('an end that was not accepted does not end a swarm of which a later coordinator has recorded more', (t) => {
  const { one, effects } = readWithEnd({ 1: 2, 2: 1, 4: 1 })
  t.alike(recordsTo('b', effects), [1, 2])
  one.answer('a', 'recorded', 50)
  const [begin] = one.answer('b', 'recorded', 60)
  t.alike(begin?.type === 'begin' && [...begin.accepted.keys()], [1, 2])
})

test('an end that may have been accepted is recorded before anything else', (t) => {
  const { one, effects } = readWithEnd({ 1: 1, 2: 1, 4: 1 })
  t.alike(recordsTo('b', effects), [4])
  one.answer('a', 'recorded', 50)
  const next = one.answer('b', 'recorded', 60)
  t.alike(outcomes(next), [])
  t.alike(recordsTo('b', next), [1, 2])
  one.answer('a', 'recorded', 70)
  const [begin] = one.answer('b', 'recorded', 80)
  t.alike(begin?.type === 'begin' && [...begin.accepted.keys()].sort((a, b) => a - b), [1, 2, 4])
})

test('an outcome is accepted when a majority has it on record, once', (t) => {
  const one = coordinating()
  t.is(one.propose(3, 500).length, 3, 'all are reported')
  t.alike(one.propose(3, 500), [], 'it is under way')
  t.alike(one.answer('b', 'recorded', 510), [])
  t.alike(one.answer('b', 'recorded', 515), [], 'one voter counts once')
  t.alike(one.answer('c', 'recorded', 520), [{ type: 'accepted', epoch: 1, items: [{ index: 3, digest: 'x' }] }])
  t.alike(one.answer('a', 'recorded', 530), [])
  t.alike(one.propose(3, 540), [])
})

test('a candidate without a lease accepts nothing, for any records of a majority', (t) => {
  const one = coordinating()
  one.propose(3, 500)
  one.answer('b', 'recorded', 510)
  t.alike(outcomes(one.answer('c', 'recorded', COORDINATOR_LEASE_MS)), ['ended'])
  t.alike(one.propose(4, COORDINATOR_LEASE_MS), [])
  t.is(one.state.phase, 'waiting')
})

test('the record of a majority counts by its highest epoch, and is recorded anew before anything else is accepted', (t) => {
  const one = scene()
  one.tick(0)
  one.answer('b', 'granted', 10)
  one.answer('a', 'granted', 20)
  one.answer('a', 'held', 30, { candidate: 'a', items: [{ index: 2, epoch: 1, digest: 'old' }] })
  const told = one.answer('b', 'held', 40, { candidate: 'a', items: [{ index: 2, epoch: 4, digest: 'new' }] })
  const digests = told.flatMap((effect) =>
    effect.type === 'tell' && effect.message.kind === 'record' ? effect.message.items : []
  )
  t.alike(
    digests,
    coordination.voters.map(() => ({ index: 2, digest: 'new' }))
  )
  t.absent(isCoordinating(one.state, 50))
  t.alike(one.propose(5, 50), [])
  one.answer('a', 'recorded', 60)
  t.alike(one.answer('b', 'recorded', 70), [{ type: 'begin', epoch: 1, accepted: new Map([[2, 'new']]) }])
})

test('the records of a voter count only while it has granted the epoch', (t) => {
  const one = scene()
  one.tick(0)
  one.answer('b', 'granted', 10)
  one.answer('a', 'granted', 20)
  one.answer('a', 'held', 30)
  t.alike(outcomes(one.answer('b', 'held', 40, { candidate: 'c', items: [] })), [])
  t.is(one.state.phase, 'reading')
})

test('a lease is renewed each second, and its end moves with the requests', (t) => {
  const one = coordinating()
  t.is(
    one.tick(COORDINATION_PERIOD_MS).filter((effect) => effect.type === 'tell' && effect.message.kind === 'ask').length,
    3
  )
  one.answer('c', 'granted', COORDINATION_PERIOD_MS + 10)
  t.is(leaseEnd(one.state), COORDINATOR_LEASE_MS + 400, 'its own vote is among the majority')
  one.answer('a', 'granted', COORDINATION_PERIOD_MS + 20)
  t.is(leaseEnd(one.state), COORDINATOR_LEASE_MS + COORDINATION_PERIOD_MS)
})

test('a candidate that retreats requests nothing for a minute, and is behind all others then', (t) => {
  const one = coordinating()
  t.alike(stepCandidate(one.state, { type: 'retreat' }, 500), [{ type: 'ended', epoch: 1 }])
  t.absent(isCoordinating(one.state, 500))
  t.alike(stepCandidate(one.state, { type: 'retreat' }, 600), [], 'there is nothing to let go of')
  t.alike(one.tick(500 + UNABLE_MS - 1), [])
  // Another has asked in vain meanwhile, and is the next but two to ask.
  one.voter.freeAt = 500 + UNABLE_MS
  t.alike(one.tick(500 + UNABLE_MS + 3 * TAKEOVER_STEP_MS - 1), [])
  t.is(one.tick(500 + UNABLE_MS + 3 * TAKEOVER_STEP_MS).length, 2)
  t.is(one.state.phase, 'asking')
})

test('the further behind in the order, the later a participant stands; one that may not reach the agents never does', (t) => {
  for (const [rank, self] of coordination.voters.entries()) {
    const own = { ...parts, self }
    const voter = openVoter(own, { type: 'restarted', stored: { epoch: 1, candidate: 'a', records: new Map() } }, 0)
    const candidate = openCandidate(own, 0)
    const standsAt = VOTER_LEASE_MS + rank * TAKEOVER_STEP_MS
    t.alike(stepCandidate(candidate, { type: 'tick', voter }, standsAt - 1), [])
    stepCandidate(candidate, { type: 'standing', mayStand: false }, standsAt)
    t.alike(stepCandidate(candidate, { type: 'tick', voter }, standsAt), [])
    stepCandidate(candidate, { type: 'standing', mayStand: true }, standsAt)
    t.is(stepCandidate(candidate, { type: 'tick', voter }, standsAt).length, 2)
  }
})
