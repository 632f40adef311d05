import type { NodeId } from '../../kit/ids.js'
import {
  COORDINATION_PERIOD_MS,
  type Coordination,
  isCandidate,
  type ItemRecord,
  majorityOf,
  mergeRecords,
  VOTER_LEASE_MS
} from './coordination.js'
import type { CoordinationMessage, MessageOf, Tell } from './coordination-message.js'
import { openReading, pageOf, type RecordReading, readPage } from './coordination-read.js'

/** Durable vote state of a participant. */
export interface StoredVote {
  /** The highest granted epoch, 0 for none, and its candidate; null: the epoch is granted to none here. */
  readonly epoch: number
  readonly candidate: NodeId | null
  readonly records: ReadonlyMap<number, ItemRecord>
}

/** Start of a voter: new, from its disk, or after a loss of its disk. */
export type VoterStart =
  | { readonly type: 'fresh' }
  | { readonly type: 'lost' }
  | { readonly type: 'restarted'; readonly stored: StoredVote }

/** Dependencies of a voter. `run`: an id unique to this start. */
export interface VoterParts {
  readonly coordination: Coordination
  readonly self: NodeId
  readonly run: string
}

/** The vote of one participant in one swarm. Owned by its caller. Times: monotonic milliseconds. */
export interface VoterState {
  readonly parts: VoterParts
  epoch: number
  candidate: NodeId | null
  /**
   * The epoch in which a candidate showed that a majority granted it, 0 for none: a grant of this voter alone makes no
   * coordinator.
   */
  provenEpoch: number
  /** Nothing else is granted before this. */
  freeAt: number
  readonly records: Map<number, ItemRecord>
  /** State that a voter without its disk learned from others; null when it may vote. */
  recovery: { askedAt: number; readonly readings: Map<NodeId, RecordReading> } | null
}

/** Inputs of a voter. The sender of a message is the key of its stream. */
export type VoterInput =
  | { readonly type: 'message'; readonly from: NodeId; readonly message: CoordinationMessage }
  /** A participant reports accepted outcomes up to this epoch, as only a coordinator does. */
  | { readonly type: 'coordinates'; readonly from: NodeId; readonly epoch: number }
  /** Time passed; at least each {@link COORDINATION_PERIOD_MS}. */
  | { readonly type: 'tick' }

/**
 * Effects for the owner of a voter, strictly in this order over all steps: a tell waits until every store before it is
 * durable.
 */
export type VoterEffect =
  /** Make these durable, all or nothing. When that fails the voter has ended: open it again from the disk. */
  | ({ readonly type: 'store'; readonly records: readonly (readonly [number, ItemRecord])[] } & Omit<
      StoredVote,
      'records'
    >)
  | Tell

/**
 * A new voter. After a restart the elapsed time is unknown, so it waits a whole lease before another grant. After a
 * loss of its disk it abstains for a lease, which ends all its former answers. Then it reads enough others to cover any
 * majority it was part of.
 */
export function openVoter(parts: VoterParts, start: VoterStart, now: number): VoterState {
  const none = {
    parts,
    epoch: 0,
    candidate: null,
    provenEpoch: 0,
    freeAt: Number.NEGATIVE_INFINITY,
    records: new Map(),
    recovery: null
  }
  if (start.type === 'fresh') return none
  const freeAt = now + VOTER_LEASE_MS
  if (start.type === 'lost')
    return { ...none, freeAt, recovery: { askedAt: Number.NEGATIVE_INFINITY, readings: new Map() } }
  const { epoch, candidate, records } = start.stored
  return { ...none, epoch, candidate, freeAt, records: new Map(records) }
}

/**
 * Moves a voter by one input and returns the effects in order; the state is changed in place. It never grants one epoch
 * to two candidates, nor a lower epoch, nor a new one before its last lease is over. It records outcomes only for the
 * coordinator of its last granted epoch. Strangers get no answer. Never throws.
 */
export function stepVoter(state: VoterState, input: VoterInput, now: number): VoterEffect[] {
  if (input.type === 'tick') return state.recovery === null ? [] : askOthers(state, now)
  if (input.type === 'coordinates') {
    if (input.epoch === state.epoch) prove(state, input.from)
    return []
  }
  const { from, message } = input
  const { coordination } = state.parts
  if (message.swarm !== coordination.swarm || !coordination.voters.includes(from)) return []
  if (message.kind === 'held') return learn(state, from, message)
  if (state.recovery !== null) return []
  if (message.kind === 'ask') return asked(state, { from, message, now })
  if (message.kind === 'record') return record(state, from, message)
  if (message.kind !== 'read') return []
  // A candidate reads only when a majority has granted it; a voter that lost its disk counts no rounds.
  if (message.round > 0) prove(state, from)
  return [tell(from, pageMessage(state, message))]
}

/** Takes a message that only a coordinator with a majority sends. */
function prove(state: VoterState, from: NodeId): void {
  if (from === state.candidate) state.provenEpoch = state.epoch
}

function asked(
  state: VoterState,
  { from, message, now }: { from: NodeId; message: MessageOf<'ask'>; now: number }
): VoterEffect[] {
  const isRenewal = message.epoch === state.epoch && from === state.candidate
  const isGranted =
    isRenewal || (message.epoch > state.epoch && now >= state.freeAt && isCandidate(state.parts.coordination, from))
  if (!isGranted) return [tell(from, { ...message, kind: 'refused', epoch: state.epoch })]
  state.freeAt = now + VOTER_LEASE_MS
  const granted = tell(from, { ...message, kind: 'granted' })
  if (isRenewal) return [granted]
  state.epoch = message.epoch
  state.candidate = from
  return [store(state, []), granted]
}

function record(state: VoterState, from: NodeId, { items, ...message }: MessageOf<'record'>): VoterEffect[] {
  const { epoch } = message
  if (epoch !== state.epoch || from !== state.candidate)
    return [tell(from, { ...message, kind: 'refused', epoch: state.epoch })]
  prove(state, from)
  const fitting = items.filter(({ index }) => index < state.parts.coordination.itemCount)
  const records = fitting.map(({ index, digest }) => [index, { epoch, digest }] as const)
  mergeRecords(state.records, records)
  return [store(state, records), tell(from, { ...message, kind: 'recorded' })]
}

function pageMessage(
  { epoch, candidate, records }: VoterState,
  { from, run, round, swarm }: MessageOf<'read'>
): MessageOf<'held'> {
  return { kind: 'held', swarm, run, round, epoch, candidate, from, ...pageOf(records, from) }
}

function askOthers(state: VoterState, now: number): VoterEffect[] {
  const { recovery } = state
  const { coordination, self } = state.parts
  if (recovery === null || now < state.freeAt || now - recovery.askedAt < COORDINATION_PERIOD_MS) return []
  recovery.askedAt = now
  const others = coordination.voters.filter((node) => node !== self)
  for (const node of others) if (!recovery.readings.has(node)) recovery.readings.set(node, openReading())
  return [...recovery.readings].flatMap(([node, { from }]) => (from === null ? [] : [read(state, node, from)]))
}

function read({ parts: { coordination, run } }: VoterState, node: NodeId, from: number): Tell {
  return tell(node, { kind: 'read', swarm: coordination.swarm, run, round: 0, from })
}

function learn(state: VoterState, from: NodeId, message: MessageOf<'held'>): VoterEffect[] {
  const { recovery, parts } = state
  if (recovery === null || message.run !== parts.run) return []
  const reading = recovery.readings.get(from)
  if (reading === undefined || !readPage(reading, message)) return []
  if (reading.from !== null) return [read(state, from, reading.from)]
  const whole = [...recovery.readings.values()].filter((one) => one.from === null)
  // A majority with this voter has all other members among the others, so one of this many is in it.
  if (whole.length < parts.coordination.voters.length - majorityOf(parts.coordination) + 1) return []
  state.recovery = null
  for (const { epoch, candidate, records } of whole) {
    // One that was granted to two may have been granted to either of them here.
    if (epoch === state.epoch && candidate !== state.candidate) state.candidate = null
    else if (epoch > state.epoch) Object.assign(state, { epoch, candidate })
    mergeRecords(state.records, records)
  }
  return [store(state, [...state.records])]
}

function store({ epoch, candidate }: VoterState, records: readonly (readonly [number, ItemRecord])[]): VoterEffect {
  return { type: 'store', epoch, candidate, records }
}

function tell(to: NodeId, message: CoordinationMessage): Tell {
  return { type: 'tell', to, message }
}
