import type { NodeId } from '../../kit/ids.js'
import {
  COORDINATION_PERIOD_MS,
  COORDINATOR_LEASE_MS,
  type ItemRecord,
  isCandidate,
  majorityOf,
  mergeRecords,
  TAKEOVER_STEP_MS,
  UNABLE_MS,
  VOTER_LEASE_MS,
  withoutStaleEnd
} from './coordination.js'
import type { CoordinationMessage, MessageOf, Tell } from './coordination-message.js'
import { openReading, type RecordReading, readPage } from './coordination-read.js'
import { confirm, type Proposals, recordMessages, type WantedRecord } from './coordination-records.js'
import type { VoterParts, VoterState } from './coordination-vote.js'

/**
 * How long an attempt to coordinate lasts without a majority: a voter that refused because of another grant is free by
 * then.
 */
const ATTEMPT_MS = VOTER_LEASE_MS + 2 * COORDINATION_PERIOD_MS

/**
 * Phase of a candidate: it waits; asks for a majority; reads the records of the majority; has them recorded in its own
 * epoch; coordinates.
 */
export type CandidatePhase = 'waiting' | 'asking' | 'reading' | 'settling' | 'coordinating'

/** A participant that may coordinate. Owned by its caller. Times: monotonic milliseconds. */
export interface CandidateState {
  readonly parts: VoterParts
  phase: CandidatePhase
  /** May this node reach the remaining agents? */
  mayStand: boolean
  /** Of its last attempt. */
  epoch: number
  knownEpoch: number
  /** Its retreats: each puts it behind all others. */
  retreats: number
  /** It does not stand before this. */
  standAt: number
  startedAt: number
  askedAt: number
  /** Counts its messages. */
  round: number
  /** When the round was sent in which each granted last. */
  readonly grants: Map<NodeId, number>
  /** Messages of the last lease by round, with their outcomes. */
  readonly sent: Map<number, { readonly at: number; readonly items: readonly WantedRecord[] }>
  readonly readings: Map<NodeId, RecordReading>
  readonly proposals: Proposals
  /** Proposals for after the accepted end; empty when there is none. */
  readonly behindEnd: Proposals
  /** Outcomes that a majority has recorded. */
  readonly accepted: Map<number, string>
}

/** Inputs of a candidate. */
export type CandidateInput =
  | { readonly type: 'message'; readonly from: NodeId; readonly message: CoordinationMessage }
  /** Time passed; at least each {@link COORDINATION_PERIOD_MS}. `voter`: the voter of this node. */
  | { readonly type: 'tick'; readonly voter: VoterState }
  /** Whether the tiers and sandboxes of this node let it reach the remaining agents. */
  | { readonly type: 'standing'; readonly mayStand: boolean }
  /** Data that it needs is not available here: it retreats, so that another may try. */
  | { readonly type: 'retreat' }
  /** Outcomes to be accepted, durable here. Accepted and pending ones are skipped. */
  | { readonly type: 'propose'; readonly items: readonly WantedRecord[] }

/** Effects for the owner of a candidate. */
export type CandidateEffect =
  | Tell
  /**
   * It coordinates from now on. `accepted`: the outcomes that are final already; no other of these items is ever
   * accepted.
   */
  | { readonly type: 'begin'; readonly epoch: number; readonly accepted: ReadonlyMap<number, string> }
  /** The outcomes are final: a majority has them on record, and the lease was held then. */
  | { readonly type: 'accepted'; readonly epoch: number; readonly items: readonly WantedRecord[] }
  /** Its lease is over: nothing more is leased or accepted, and pending proposals are void. */
  | { readonly type: 'ended'; readonly epoch: number }

/** A new candidate. A participant other than the launcher first waits as if the launcher had just been active. */
export function openCandidate(parts: VoterParts, now: number): CandidateState {
  const rank = parts.coordination.voters.indexOf(parts.self)
  return {
    parts,
    phase: 'waiting',
    mayStand: true,
    epoch: 0,
    knownEpoch: 0,
    retreats: 0,
    standAt: rank === 0 ? now : now + VOTER_LEASE_MS + rank * TAKEOVER_STEP_MS,
    startedAt: now,
    askedAt: Number.NEGATIVE_INFINITY,
    round: 0,
    grants: new Map(),
    sent: new Map(),
    readings: new Map(),
    proposals: new Map(),
    behindEnd: new Map(),
    accepted: new Map()
  }
}

/** How many stand before it. */
function rankOf({ retreats, parts: { coordination, self } }: CandidateState): number {
  return retreats * coordination.voters.length + coordination.voters.indexOf(self)
}

/**
 * End of the lease that a majority, this node among it, has granted; in the past, or -Infinity, when there is none. It
 * counts from the sending of the requests, so it never outlives the voters' promises.
 */
export function leaseEnd({ grants, parts: { coordination, self } }: CandidateState): number {
  const ends = [...grants.values()].map((sentAt) => sentAt + COORDINATOR_LEASE_MS).sort((a, b) => b - a)
  const own = grants.get(self) ?? Number.NEGATIVE_INFINITY
  return Math.min(own + COORDINATOR_LEASE_MS, ends[majorityOf(coordination) - 1] ?? Number.NEGATIVE_INFINITY)
}

/** May it lease items and accept outcomes now? Asked before each of both. */
export function isCoordinating(state: CandidateState, now: number): boolean {
  return state.phase === 'coordinating' && now < leaseEnd(state)
}

/**
 * State of a swarm for this participant: it coordinates; or it recently granted that to another, which reported a
 * majority; or it knows no coordinator.
 */
export function coordinationStatus(
  state: CandidateState,
  voter: VoterState,
  now: number
): 'coordinating' | 'following' | 'stalled' {
  if (isCoordinating(state, now)) return 'coordinating'
  const isProven = voter.recovery === null && voter.provenEpoch === voter.epoch && voter.candidate !== null
  return isProven && voter.candidate !== state.parts.self && now < voter.freeAt ? 'following' : 'stalled'
}

/**
 * Moves a candidate by one input and returns the effects in order; the state is changed in place. It stands when the
 * last lease of its own voter is over, later for each position in the order of takeover. It coordinates while a
 * majority grants it, once it has recorded the majority's records in its own epoch. Never throws.
 */
export function stepCandidate(state: CandidateState, input: CandidateInput, now: number): CandidateEffect[] {
  const ended = endIfOver(state, now)
  switch (input.type) {
    case 'standing':
      state.mayStand = input.mayStand
      return ended
    case 'propose':
      return isCoordinating(state, now) ? [...ended, ...propose(state, input.items, now)] : ended
    case 'retreat':
      return [...ended, ...giveUp(state, now)]
    case 'tick':
      return [...ended, ...tick(state, input.voter, now)]
    case 'message':
      return [...ended, ...onReply(state, { ...input, now })]
  }
}

/** Has the lease of a coordinator, or of one on its way, ended? */
function endIfOver(state: CandidateState, now: number): CandidateEffect[] {
  return state.phase === 'waiting' || state.phase === 'asking' || now < leaseEnd(state) ? [] : retreat(state, now)
}

/** Its voters are free for others once it is silent. */
function giveUp(state: CandidateState, now: number): CandidateEffect[] {
  if (state.phase === 'waiting') return []
  state.retreats++
  return retreat(state, now + UNABLE_MS)
}

function retreat(state: CandidateState, standAt: number): CandidateEffect[] {
  const { phase, epoch } = state
  Object.assign(state, { phase: 'waiting', standAt })
  for (const table of [state.grants, state.sent, state.readings, state.proposals, state.behindEnd, state.accepted])
    table.clear()
  return phase === 'coordinating' ? [{ type: 'ended', epoch }] : []
}

function tick(state: CandidateState, voter: VoterState, now: number): CandidateEffect[] {
  const { coordination, self } = state.parts
  const isOther = voter.candidate !== self && now < voter.freeAt
  if (state.phase === 'waiting') {
    const mayBegin = state.mayStand && voter.recovery === null && isCandidate(coordination, self)
    const readyAt = Math.max(state.standAt, voter.freeAt + rankOf(state) * TAKEOVER_STEP_MS)
    if (!mayBegin || now < readyAt) return []
    Object.assign(state, { phase: 'asking', epoch: Math.max(voter.epoch, state.knownEpoch) + 1, startedAt: now })
  } else if (state.phase === 'asking' && (isOther || !state.mayStand)) {
    return retreat(state, now)
  } else if (state.phase === 'asking' && now - state.startedAt >= ATTEMPT_MS) {
    // Its voters are of use to others for a while.
    return retreat(state, now + VOTER_LEASE_MS + (1 + rankOf(state)) * TAKEOVER_STEP_MS)
  } else if (now - state.askedAt < COORDINATION_PERIOD_MS) return []
  state.askedAt = now
  for (const [round, { at }] of state.sent) if (now - at >= COORDINATOR_LEASE_MS) state.sent.delete(round)
  // Its own vote comes last: without the others it would only use up epochs.
  const asked = state.phase === 'asking' ? coordination.voters.filter((node) => node !== self) : coordination.voters
  return [
    ...ask(state, asked, now),
    ...proceed(state, now),
    ...readOthers(state, now),
    ...sendRecords(state, state.proposals, now)
  ]
}

function nextRound(
  state: CandidateState,
  at: number,
  items: readonly WantedRecord[] = []
): { swarm: string; run: string; round: number } {
  state.sent.set(++state.round, { at, items })
  return { swarm: state.parts.coordination.swarm, run: state.parts.run, round: state.round }
}

function ask(state: CandidateState, nodes: readonly NodeId[], now: number): Tell[] {
  const message = { ...nextRound(state, now), kind: 'ask', epoch: state.epoch } as const
  return nodes.map((to) => ({ type: 'tell', to, message }))
}

/** Asks its own voter when the others that it needs have granted. */
function proceed(state: CandidateState, now: number): Tell[] {
  if (state.phase !== 'asking') return []
  const { coordination, self } = state.parts
  const others = [...state.grants].filter(([node, sentAt]) => node !== self && now - sentAt < COORDINATOR_LEASE_MS)
  return others.length >= majorityOf(coordination) - 1 ? ask(state, [self], now) : []
}

function onReply(
  state: CandidateState,
  { from, message, now }: { from: NodeId; message: CoordinationMessage; now: number }
): CandidateEffect[] {
  const { coordination, run } = state.parts
  if (message.swarm !== coordination.swarm || message.run !== run || !coordination.voters.includes(from)) return []
  // Answers to messages older than a lease do not count: their sender may have lost its state.
  const sent = state.sent.get(message.round)
  if (state.phase === 'waiting' || sent === undefined || now - sent.at >= COORDINATOR_LEASE_MS) return []
  if (message.kind === 'refused') return refused(state, message, now)
  if (!('epoch' in message) || message.epoch !== state.epoch) return []
  if (message.kind === 'granted') return granted(state, { from, sentAt: sent.at, now })
  if (message.kind === 'held') return onPage(state, { from, message, now })
  return message.kind === 'recorded' ? recorded(state, { ...sent, from, now }) : []
}

function refused(state: CandidateState, { epoch }: MessageOf<'refused'>, now: number): CandidateEffect[] {
  state.knownEpoch = Math.max(state.knownEpoch, epoch)
  // That voter never grants this epoch. A coordinator needs a majority, not all.
  if (state.phase === 'asking' && epoch >= state.epoch) {
    return retreat(state, now + (1 + rankOf(state)) * COORDINATION_PERIOD_MS)
  }
  return []
}

function granted(
  state: CandidateState,
  { from, sentAt, now }: { from: NodeId; sentAt: number; now: number }
): CandidateEffect[] {
  const before = state.grants.get(from)
  state.grants.set(from, Math.max(before ?? sentAt, sentAt))
  if (state.phase !== 'asking') return []
  if (now >= leaseEnd(state)) return before === undefined && from !== state.parts.self ? proceed(state, now) : []
  state.phase = 'reading'
  return readOthers(state, now)
}

/** Asks the voters of its majority for their records, from the end of their last page. */
function readOthers(state: CandidateState, now: number): CandidateEffect[] {
  if (state.phase !== 'reading') return []
  for (const node of state.grants.keys()) if (!state.readings.has(node)) state.readings.set(node, openReading())
  return [...state.readings].flatMap(([to, { from }]) => (from === null ? [] : [read(state, { to, from, now })]))
}

function read(state: CandidateState, { to, from, now }: { to: NodeId; from: number; now: number }): Tell {
  return { type: 'tell', to, message: { ...nextRound(state, now), kind: 'read', from } }
}

function onPage(
  state: CandidateState,
  { from, message, now }: { from: NodeId; message: MessageOf<'held'>; now: number }
): CandidateEffect[] {
  const reading = state.readings.get(from)
  // After its grant a voter records nothing of lower epochs: its earlier records are final.
  if (state.phase !== 'reading' || message.candidate !== state.parts.self || reading === undefined) return []
  if (!readPage(reading, message)) return []
  if (reading.from !== null) return [read(state, { to: from, from: reading.from, now })]
  const whole = [...state.readings.values()].filter((one) => one.from === null)
  if (whole.length < majorityOf(state.parts.coordination)) return []
  const known = new Map<number, ItemRecord>()
  for (const { records } of whole) mergeRecords(known, records)
  state.phase = 'settling'
  const { endIndex } = state.parts.coordination
  const valid = withoutStaleEnd(known, endIndex)
  // Nothing of this epoch is on record without an end that was accepted before it.
  const hasEnd = endIndex !== undefined && valid.has(endIndex)
  for (const [index, { digest }] of valid) {
    const proposals = hasEnd && index !== endIndex ? state.behindEnd : state.proposals
    proposals.set(index, { digest, confirmed: new Map() })
  }
  return [...settle(state, now), ...sendRecords(state, state.proposals, now)]
}

function settle(state: CandidateState, now: number): CandidateEffect[] {
  const { proposals, behindEnd } = state
  if (state.phase !== 'settling' || proposals.size > 0) return []
  if (behindEnd.size > 0) {
    for (const [index, proposal] of behindEnd) proposals.set(index, proposal)
    behindEnd.clear()
    return sendRecords(state, proposals, now)
  }
  state.phase = 'coordinating'
  return [{ type: 'begin', epoch: state.epoch, accepted: new Map(state.accepted) }]
}

function propose(state: CandidateState, items: readonly WantedRecord[], now: number): CandidateEffect[] {
  const { accepted, proposals, parts } = state
  const fresh: Proposals = new Map()
  for (const { index, digest } of items) {
    if (index < parts.coordination.itemCount && !accepted.has(index) && !proposals.has(index)) {
      fresh.set(index, { digest, confirmed: new Map() })
    }
  }
  for (const [index, proposal] of fresh) proposals.set(index, proposal)
  return sendRecords(state, fresh, now)
}

function sendRecords(state: CandidateState, proposals: Proposals, now: number): Tell[] {
  return recordMessages(state.parts.coordination.voters, proposals, now).map(({ to, items }) => {
    return {
      type: 'tell',
      to,
      message: { ...nextRound(state, now, items), kind: 'record', epoch: state.epoch, items: [...items] }
    }
  })
}

function recorded(
  state: CandidateState,
  { from, at, items, now }: { from: NodeId; at: number; items: readonly WantedRecord[]; now: number }
): CandidateEffect[] {
  const majority = majorityOf(state.parts.coordination)
  const confirmed = confirm(state.proposals, { from, items, askedAt: at, now, majority })
  for (const { index, digest } of confirmed) state.accepted.set(index, digest)
  if (state.phase === 'settling') return settle(state, now)
  return confirmed.length === 0 ? [] : [{ type: 'accepted', epoch: state.epoch, items: confirmed }]
}
