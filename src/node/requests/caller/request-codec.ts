import { NodeError, type ErrorBody } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import { addressText, type AgentAddress } from '../../../domain/card/card.js'
import type { NodeId } from '../../../kit/ids.js'
import type { EnvelopeHeader } from '../../../domain/envelope/codec.js'
import { type Conversation, type PackedConversation, packConversation } from '../../../domain/gateway/conversation.js'
import { isForgotten } from '../../../domain/reliable/repeat.js'
import { REQUEST_POLICY } from '../../../domain/reliable/request.js'
import { retryDelay } from '../../../domain/reliable/retry-policy.js'
import type { CallerAuthority } from '../../../domain/routing/effective.js'
import {
  errorBodySchema,
  MAX_TTL_MS,
  progressPayloadSchema,
  readResponse,
  type RequestPayload
} from '../../../domain/task/payloads.js'
import type { Clock } from '../../../kit/clock.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import type { CancelQueue } from './cancel-queue.js'
import type { ExchangeTable } from '../../messaging/exchange-table.js'
import type { CommitQueue } from '../../ledger/commit-queue.js'
import type { Lanes } from '../../reliable/lanes.js'
import type { OutgoingRequest } from './request.js'
import type { TaskTable } from '../../tasks/task-table.js'
import type { CallerRecord } from './record.js'
import type { QuestionListener, SendAnswer } from './questions.js'
import { refusedThere } from '../../messaging/error-hints.js'
import type { DraftHead, Outbound } from '../../messaging/outbound.js'

const LATE_MS = 3_600_000
const GONE_MS = 10_000
const MAX_PATIENCE_MS = 300_000
const RETRY_MS = 1000
const MAX_RETRY_MS = 60_000

/** Times that a caller waits, in milliseconds. */
export const PATIENCE = {
  /** For a late answer to a lease, beyond the caller's timeout. */
  lateMs: LATE_MS,
  /** For a peer that goes offline during the work: a broken link has recovered by then. */
  goneMs: GONE_MS,
  /** Longest time between two repeats of a request. */
  maxMs: MAX_PATIENCE_MS,
  /** After refusals for lack of room. */
  refused: { baseMs: RETRY_MS, maxMs: MAX_RETRY_MS }
} as const

/** A request to one agent. */
export interface Asking {
  readonly sender: AgentAddress
  readonly target: AgentAddress
  /** null: the agent's default capability. */
  readonly capability: string | null
  readonly input: unknown
  readonly description: string
  readonly justification?: string
  /** The caller's authority, when it may be weaker than the sender's. */
  readonly onBehalfOf?: CallerAuthority
  /** Is it part of a broadcast? */
  readonly isBroadcast?: boolean
  /**
   * Timeout of the answer, in milliseconds; after it the outcome is unknown, and a late answer still counts. It stands
   * still while a person must approve the request, at most `MAX_APPROVAL_WAIT_MS`; that of a lease does not.
   */
  readonly timeoutMs: number
  /** Waits for an agent that is offline or has no room, until `timeoutMs`. */
  readonly mayQueue: boolean
  /** It may run again after an unknown outcome, although its capability does not allow that. */
  readonly allowRepeat?: boolean
  /** Neither node records it, if its capability only reads and is repeatable, and a caller waits. */
  readonly mayGoUnrecorded?: boolean
  /** The result is wanted in the form of MCP, where the agent has one. */
  readonly wantsContent?: boolean
  /** Of a client of the A2A gateway: the conversation that it is one turn of. */
  readonly conversation?: Conversation
  /** Answers the agent's questions during the request. Absent: it cannot ask. */
  readonly questions?: QuestionListener
  /** Names that its caller has chosen. */
  readonly names?: { readonly requestId: string; readonly taskId: string }
  /** Set for the lease of a swarm's item. */
  readonly lease?: AskedLease
}

/** The lease that a request carries. */
export interface AskedLease {
  readonly swarm: string
  /** The coordinator's epoch, in a swarm with several participants. */
  readonly epoch?: number
  readonly requestId: string
  readonly attempt: number
  /** Only asks for its state: a request that its node never received is not begun. */
  readonly isQuery: boolean
  /** In a query: the agent that made the request, when another node coordinated. */
  readonly askedBy?: AgentAddress
  /** Digest of the voters. A query with `askedBy` has the voters instead. */
  readonly voters?: string
  readonly amongVoters?: readonly NodeId[]
  /** Ledger changes for the commit that sends the request. */
  changes(): readonly LedgerChange[]
}

/** How a request ended for its caller. */
export type Answer = (
  | { readonly outcome: 'COMPLETED'; readonly result: unknown }
  | { readonly outcome: 'FAILED'; readonly error: ErrorBody }
  | { readonly outcome: 'UNKNOWN'; readonly error: ErrorBody }
) & {
  /** The attempt that its agent ran; absent for the requested one. */
  readonly run?: number
}

/** A final answer. */
export type Ended = Exclude<Answer, { outcome: 'UNKNOWN' }>

/** Replaces the input of a request from the ledger: it is read when needed. */
export const STORED = Symbol('the input is in the ledger')

/** Names of a request. */
export interface RequestNames {
  readonly requestId: string
  readonly attempt: number
  readonly correlationId: string
  /** null for leases: the swarm records them. */
  readonly taskId: string | null
}

/** Dependencies of an outgoing request. */
export interface RequestDeps {
  readonly clock: Clock
  readonly outbound: Outbound
  readonly exchanges: ExchangeTable
  readonly cancellations: CancelQueue
  readonly sendAnswer: SendAnswer
  readonly tasks: TaskTable
  readonly lanes: Pick<Lanes, 'commit' | 'giveUp' | 'holds'>
  /** Commits the state of a request. False: the ledger refused it. Never rejects. */
  record(changes: readonly LedgerChange[], requestId: string): Promise<boolean>
  /** Reports ends that the ledger refused at first, once it has taken them. */
  readonly ends: Pick<CommitQueue, 'add'>
  /** In [0, 1). */
  readonly chance: () => number
  /**
   * A peer that does not report a request for longer than `leaseMs` has lost it. A late answer counts for
   * `defaultTtlMs`.
   */
  readonly limits: { readonly leaseMs: number; readonly heartbeatMs: number; readonly defaultTtlMs: number }
  /**
   * `wait`: its peer had no room for it; it may wait until {@link OutgoingRequest.dueAt}. `ended`: it has ended for
   * good.
   */
  readonly dispatcher: { wait(request: OutgoingRequest): void; ended(request: OutgoingRequest): void }
}

/** Parts of a request. */
export interface RequestMaking {
  readonly asking: Asking
  readonly names: RequestNames
  /** null for leases and unrecorded requests. */
  readonly record: CallerRecord | null
}

/** The fields of a request that the rules check. */
export function headOf(
  { sender, target: recipient, capability, justification, onBehalfOf, isBroadcast = false }: Asking,
  { correlationId }: RequestNames
): DraftHead {
  return {
    sender,
    recipient,
    type: 'request',
    capability,
    correlationId,
    isBroadcast,
    ...(justification === undefined ? {} : { justification }),
    ...(onBehalfOf === undefined ? {} : { onBehalfOf })
  }
}

/** Does its peer report that it did not do it and has dropped it? */
export function isNotDone(answer: Answer): answer is Ended & { readonly outcome: 'FAILED' } {
  return answer.outcome === 'FAILED' && isForgotten(answer.error.code)
}

/** Does the answer concern one copy alone: its peer has dropped it, or a neighbour did not relay it? */
export function isOfOneCopy(answer: Answer): answer is Ended & { readonly outcome: 'FAILED' } {
  if (answer.outcome !== 'FAILED') return false
  return isForgotten(answer.error.code) || isByNeighbour(answer.error)
}

/** Is an error that of a neighbour on the route? */
export function isByNeighbour({ data }: ErrorBody): boolean {
  return isRecord(data) && 'via' in data
}

/** How a request ended for its caller, as the ledger records it. */
export type CallerOutcome =
  | { readonly status: 'completed'; readonly result: unknown; readonly run?: number }
  | { readonly status: 'failed'; readonly error: ErrorBody; readonly run?: number }
  | { readonly status: 'unknown'; readonly error: ErrorBody; readonly retryAt: number | null }

/** The payload of a request as it is sent. */
type WirePayload = Omit<RequestPayload, 'conversation'> & { readonly conversation?: PackedConversation }

/** The payload of a request; its times are milliseconds from now: at least 1, and at most the limit of all nodes. */
export function requestPayload(
  { capability, description, lease, allowRepeat = false, wantsContent = false, questions }: Asking,
  { requestId, attempt }: RequestNames,
  {
    timeoutMs,
    approvalMs,
    ttlMs,
    isQuery,
    isAgain,
    isUnrecorded,
    input,
    conversation
  }: Pick<RequestPayload, 'timeoutMs' | 'ttlMs' | 'isQuery' | 'isAgain' | 'isUnrecorded' | 'input'> & {
    readonly approvalMs?: number | undefined
    readonly conversation?: Conversation | undefined
  }
): WirePayload {
  const whole = (ms: number): number => Math.min(MAX_TTL_MS, Math.max(1, Math.round(ms)))
  return {
    requestId,
    attempt,
    capability,
    input,
    description,
    swarm: lease?.swarm ?? null,
    timeoutMs: whole(timeoutMs),
    ...(approvalMs === undefined ? {} : { approvalMs: whole(approvalMs) }),
    ttlMs: whole(ttlMs),
    allowRepeat,
    isQuery,
    isAgain,
    isUnrecorded,
    ...(wantsContent ? { wantsContent } : {}),
    ...(conversation === undefined ? {} : { conversation: packConversation(conversation, input) }),
    ...abilitiesOf(questions),
    ...leasePayload(lease)
  }
}

function abilitiesOf(questions: QuestionListener | undefined): Pick<RequestPayload, 'takes' | 'logLevel'> {
  if (questions === undefined) return {}
  const { takes, logLevel } = questions
  return { takes: [...takes], ...(logLevel === null ? {} : { logLevel }) }
}

function leasePayload(
  lease: AskedLease | undefined
): Pick<RequestPayload, 'epoch' | 'askedBy' | 'voters' | 'amongVoters'> {
  const { epoch, askedBy, voters, amongVoters } = lease ?? {}
  return {
    ...(epoch === undefined ? {} : { epoch }),
    ...(askedBy === undefined ? {} : { askedBy: addressText(askedBy) }),
    ...(voters === undefined ? {} : { voters }),
    ...(amongVoters === undefined ? {} : { amongVoters: [...amongVoters] })
  }
}

/** A reply before the answer. */
type Word =
  | { readonly progress: unknown }
  | { readonly question: Readonly<Record<string, unknown>> & { readonly id: number } }
  | { readonly log: unknown }

/** Parses a reply: an outcome, progress, or null when it does not count. */
export function readReply(
  header: EnvelopeHeader,
  payload: unknown,
  { names: expected, peer }: { readonly names: RequestNames; readonly peer: NodeId }
): Answer | Word | null {
  if (header.type === 'error') {
    const error = errorBodySchema.safeParse(payload)
    return error.success ? { outcome: 'FAILED', error: refusedThere(error.data, peer) } : null
  }
  if (header.type === 'stream-data') {
    const data = progressPayloadSchema.safeParse(payload)
    if (!data.success) return null
    const { progress, question, log } = data.data
    if (question !== undefined) return { question }
    if (log !== undefined) return { log }
    return progress === undefined ? null : { progress }
  }
  if (header.type !== 'response') return null
  const response = readResponse(payload)
  if (response === null || !isOf(response, expected)) return null
  const { outcome, run } = response
  const by = run === undefined ? {} : { run }
  if (outcome === 'COMPLETED') return { outcome, result: response.result ?? null, ...by }
  const error = response.error ?? new NodeError('TASK_FAILED', 'the agent failed').toBody()
  return { outcome, error: outcome === 'FAILED' ? refusedThere(error, peer) : error, ...by }
}

function isOf(stated: Pick<RequestNames, 'requestId' | 'attempt'>, { requestId, attempt }: RequestNames): boolean {
  return stated.requestId === requestId && stated.attempt === attempt
}

/** An answer as the ledger records it. A request unknown to its peer is not asked for again. */
export function outcomeOf(answer: Answer): CallerOutcome {
  const run = answer.run === undefined ? {} : { run: answer.run }
  if (answer.outcome === 'COMPLETED') return { status: 'completed', result: answer.result, ...run }
  return answer.outcome === 'FAILED'
    ? { status: 'failed', error: answer.error, ...run }
    : { status: 'unknown', error: answer.error, retryAt: null }
}

/** Does neither node record a request? Swarms record their leases themselves. */
export function hasNoRecord({ asking, record }: RequestMaking): boolean {
  return record === null && asking.lease === undefined
}

/** Milliseconds until the caller stops waiting: at most the timeout, also when the clock was set back. */
export function leftMs({ asking, record }: RequestMaking, now: number): number {
  const { deadline } = record?.current ?? { deadline: Number.POSITIVE_INFINITY }
  return Math.min(asking.timeoutMs, Math.max(0, deadline - now))
}

/** Milliseconds for which a late answer to a request still counts. */
export function lateMs({ record }: RequestMaking, now: number): number {
  return record === null ? PATIENCE.lateMs : Math.max(0, record.current.expiresAt - now)
}

/** Unix milliseconds at which a request is asked for again, at least `ms` from now. */
export function retryAfter({ clock, chance }: Pick<RequestDeps, 'clock' | 'chance'>, ms: number): number {
  return clock.now() + ms + retryDelay(REQUEST_POLICY, 0, chance())
}
