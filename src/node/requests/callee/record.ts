import { calleeTaskId, type CalleeTaskIdDeps } from '../../tasks/callee-task-id.js'
import { changesNothing } from '../../../domain/policy/requested-work.js'
import type { Clock } from '../../../kit/clock.js'
import { asNodeError, NodeError, type ErrorBody } from '../../../kit/errors.js'
import type { IdSource, NodeId } from '../../../kit/ids.js'
import { addressText, defaultCapability, OPERATOR, parseAddress } from '../../../domain/card/card.js'
import type { AgentAddress, CapabilityDescriptor } from '../../../domain/card/card.js'
import { decodeStored, encodeStored } from '../../../domain/envelope/codec.js'
import type { RequestRecord } from '../../../domain/reliable/records.js'
import { arrive, recover } from '../../../domain/reliable/request.js'
import { readRequest, type RequestPayload } from '../../../domain/task/payloads.js'
import { contentOf, failedWith } from '../../../domain/task/tool-content.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import type { HostOutcome } from '../../agents/agent-host.js'
import type { Directory } from '../../cards/directory.js'
import type { CutRuns } from './cut-runs.js'
import {
  completedBy,
  ENDINGS,
  endedBy,
  responseOf,
  type Ending,
  type ReportedFailure
} from '../../../domain/task/outcome.js'
import type { LedgerQuota } from '../../ledger/quota.js'
import type { Recording } from '../../messaging/inbound.js'
import type { InboundMessage } from '../../messaging/inbound-message.js'
import { taskFromRecord, type RecordedTask } from '../../tasks/from-record.js'
import type { RequestStore } from '../store.js'
import type { Hash } from '../../../kit/sign.js'
import { votersDigest } from '../../../domain/swarm/coordination.js'

/**
 * How long a request is remembered after its caller may last ask for it, in milliseconds: clocks differ, and messages
 * take time.
 */
const BEYOND_MS = 3_600_000

/** Dependencies of callee requests. */
export interface CalleeRequestsDeps extends PriorRequestDeps, CalleeTaskIdDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly ids: IdSource
  readonly requestStore: RequestStore
  readonly cutRuns: Pick<CutRuns, 'begins' | 'ended' | 'found' | 'isAtFault' | 'isWaiting'>
  readonly directory: Directory
  readonly self: NodeId
  readonly ledgerQuota: Pick<LedgerQuota, 'refusal'>
  /**
   * Does a program answer its requests in person? Such requests are not recorded: only the program knows whether they
   * are repeatable.
   */
  isInPerson(agent: AgentAddress): boolean
}

/** How a request ended. */
export type CalleeOutcome =
  | { readonly status: 'completed'; readonly response: unknown }
  | { readonly status: 'failed' | 'unknown'; readonly error: ErrorBody }

/** A run that has ended; `record` is null when the ledger has none. */
interface EndedRun {
  readonly record: RequestRecord | null
  readonly recipient: AgentAddress
  readonly payload: RequestPayload
}

/** A request that runs, now or in its turn (`isEarly`), or its response and changes. */
export type Standing = { readonly record: RequestRecord; readonly isEarly: boolean } | Concluded

/** A response and the ledger changes with it. */
interface Concluded {
  readonly response: unknown
  readonly changes: readonly LedgerChange[]
  /** Listed once the changes are durable; absent when it is listed already, or there is no task. */
  readonly task?: RecordedTask | null
  /** The result cannot be encoded, so the request failed with this error. */
  readonly unfit?: ErrorBody
}

/** Records the requests of other nodes in the ledger. */
export class CalleeRequests {
  readonly #deps: CalleeRequestsDeps
  /** Names of requests being recorded: of equal ones that arrive at once, one is new. */
  readonly #recording = new Set<string>()

  constructor(deps: CalleeRequestsDeps) {
    this.#deps = deps
  }

  /** As {@link priorRequest}. */
  prior(incoming: InboundMessage, payload: RequestPayload): InboundMessage {
    return priorRequest(incoming, payload, this.#deps)
  }

  /**
   * The record to commit before a message is handled; null when it is no request of another node.
   * @throws NodeError STORE_DAMAGED
   */
  async record(incoming: InboundMessage, envelope: Uint8Array): Promise<Recording | null> {
    const { requestStore, directory, self, isInPerson, ledgerQuota } = this.#deps
    if (incoming.peer === self || incoming.header.type !== 'request' || isInPerson(incoming.recipient)) return null
    const payload = readRequest(incoming.payload)
    if (payload === null || (payload.isUnrecorded && onlyReads(directory, incoming.recipient, payload.capability)))
      return null
    const record = this.#fresh(incoming, payload)
    const name = requestStore.name(record)
    const copy = { name, isFirst: false, isDone: false, refusal: null }
    const known = { changes: [], recorded: copy, end: () => {} }
    if (payload.isQuery || this.#recording.has(name)) return known
    const end = (): void => void this.#recording.delete(name)
    this.#recording.add(name)
    try {
      const before = await this.#before(name)
      const stopped = before !== null && before !== 'damaged' && isStopped(before) ? before : null
      const isNew = before === null || stopped !== null
      if (isNew && ledgerQuota.refusal === null) {
        const { tries, taskId } = stopped ?? record
        const asking = record.asking ?? stopped?.asking ?? null
        const changes = requestStore.changes(stopped, { ...record, tries, taskId, asking }, { input: envelope })
        return { changes, recorded: { ...copy, isFirst: true }, end }
      }
      end()
      const isDone =
        before === 'damaged' || (before !== null && before.status !== 'pending' && before.status !== 'started')
      return { ...known, recorded: { ...copy, isDone, refusal: isNew ? ledgerQuota.refusal : null } }
    } catch (error) {
      end()
      throw error
    }
  }

  /**
   * The next step of a request that is not in flight: it runs (`record`), or gets a response.
   * @throws NodeError for an unreadable ledger entry
   */
  async standing(incoming: InboundMessage, name: string, payload: RequestPayload): Promise<Standing> {
    const before = await this.#before(name)
    // Its record existed when it arrived and was removed since: an earlier copy found no room.
    if (before === null) return { response: responseOf(payload, ENDINGS.removed), changes: [] }
    if (before === 'damaged') return { response: responseOf(payload, ENDINGS.damaged), changes: [] }
    // Its card may have changed since, and a peer may use one id for two capabilities.
    const isRepeatable = before.isRepeatable && this.#isRepeatable(incoming.recipient, payload)
    const record = { ...before, isRepeatable, deadline: beginsBy(before, incoming, payload) }
    const { clock, cutRuns } = this.#deps
    const known = cutRuns.found(name, record)
    if (arrive(known, 'query') === 'tell')
      return { response: await this.#outcomeOf(record, name, payload), changes: [] }
    // It has no end and is not in flight: this node ended during its run.
    const next = recover(known)
    if (next === 'unknown') return this.#ended(record, payload, ENDINGS.interrupted)
    if (next === 'suspect') return this.#suspected(record, payload)
    if (record.deadline <= clock.now())
      return this.#ended(record, payload, lateEnding(before, incoming.recorded, payload))
    const { asking } = record
    const counted = known.cuts === 0 ? record : { ...record, asking: { mayQueue: false, ...asking, cuts: known.cuts } }
    return { record: counted, isEarly: cutRuns.isWaiting(name) }
  }

  /** The node ended too often during its runs: the request may be the cause. */
  #suspected(record: RequestRecord, payload: RequestPayload): Standing {
    const ending = this.#deps.cutRuns.isAtFault ? ENDINGS.cutByFault : ENDINGS.cutTwice
    const { requestId, source, target, capability, taskId } = record
    const facts = { requestId, taskId, source, target, capability, reason: ending.error.message }
    this.#deps.telemetry.log('warn', 'a request is not run again', facts)
    return this.#ended(record, payload, ending)
  }

  /**
   * The response to a query; null before the request ends, when the run answers. `voters`: the record must have this
   * digest.
   * @throws NodeError as `standing`.
   */
  async answerTo(name: string | null, payload: RequestPayload, voters?: string): Promise<unknown> {
    // An unreadable record proves nothing.
    const unread = (error: unknown): null => {
      if (voters === undefined) throw error
      return null
    }
    const record = name === null ? null : await this.#before(name).catch(unread)
    const isOther = payload.askedBy !== undefined && record !== 'damaged' && record?.swarm !== payload.swarm
    const isUnproven = voters !== undefined && (record === 'damaged' || record?.asking?.voters !== voters)
    if (record === null || name === null || isOther || isUnproven) return responseOf(payload, ENDINGS.noTrace)
    if (record === 'damaged') return responseOf(payload, ENDINGS.damaged)
    return arrive(this.#deps.cutRuns.found(name, record), 'query') === 'tell'
      ? await this.#outcomeOf(record, name, payload)
      : null
  }

  /** One damaged record must not hold up its lane: its request ends, and later messages are handled. */
  #before(name: string): Promise<RequestRecord | 'damaged' | null> {
    return this.#deps.requestStore.get(name).catch((error: unknown) => {
      if (asNodeError(error).code !== 'STORE_DAMAGED') throw error
      this.#deps.telemetry.count('errors', 'ledger')
      this.#deps.telemetry.log('error', 'the record of a request is damaged: it is unknown whether it was done', {
        record: name
      })
      return 'damaged'
    })
  }

  #isRepeatable(agent: AgentAddress, { allowRepeat, capability }: RequestPayload): boolean {
    return allowRepeat || isIdempotent(this.#deps.directory, agent, capability)
  }

  #ended(record: RequestRecord, payload: RequestPayload, ending: Ending): Standing {
    return { response: responseOf(payload, ending), ...this.endBefore(record, ending) }
  }

  /** The response to a request that has ended. */
  async #outcomeOf(record: RequestRecord, name: string, payload: RequestPayload): Promise<unknown> {
    const { status } = record
    // It arrived while this node was stopping: no run of it will end, and its caller may ask once more.
    if (isStopped(record)) return responseOf(payload, ENDINGS.stopped)
    if (status === 'failed' || status === 'unknown')
      return responseOf(payload, { status, error: record.error ?? ENDINGS.forgotten.error })
    const bytes = await this.#deps.requestStore.result(name)
    const response = bytes === null ? null : decodeStored(bytes)
    return response?.ok === true ? response.value : responseOf(payload, ENDINGS.forgotten)
  }

  /**
   * The changes that begin a run, and the record after them. `isLeft`: it is from before this start.
   * @throws NodeError TIMEOUT when the first run would begin after the deadline.
   */
  begin(record: RequestRecord): {
    readonly record: RequestRecord
    readonly changes: readonly LedgerChange[]
    readonly isLeft: boolean
  } {
    const { requestStore, cutRuns } = this.#deps
    const now = this.#deps.clock.now()
    if (record.tries === 0 && record.deadline <= now) throw NodeError.fromBody(ENDINGS.noPlace.error)
    const next = { ...record, status: 'started' as const, tries: record.tries + 1, updatedAt: now }
    return {
      record: next,
      changes: requestStore.changes(record, next),
      isLeft: cutRuns.begins(requestStore.name(record))
    }
  }

  /** The response and the changes after a run. A request that found no room may be sent again as if new. */
  ending({ record, recipient, payload }: EndedRun, outcome: HostOutcome): Concluded {
    const concluded = (end: CalleeOutcome, response: unknown): Concluded => ({
      response,
      changes: record === null ? [] : this.end(record, end)
    })
    const { wantsContent = false } = payload
    const run = record !== null && record.tries > 1 ? { ...payload, run: payload.attempt + record.tries - 1 } : payload
    try {
      if (outcome.ok) {
        const response = completedBy(run, wantsContent ? contentOf(outcome) : outcome.result)
        return concluded({ status: 'completed', response }, response)
      }
      const end = this.endOf({ record, recipient, payload }, wantsContent ? failedWith(outcome) : outcome)
      const { response, changes } = concluded(end, responseOf(run, end))
      return {
        response,
        changes: record !== null && outcome.code === 'OVERLOADED' ? this.#deps.requestStore.removal(record) : changes
      }
    } catch (error) {
      const end = { status: 'failed', error: asNodeError(error).toBody() } as const
      return { ...concluded(end, responseOf(payload, end)), unfit: end.error }
    }
  }

  /** The end of a run without a result. */
  endOf({ record, recipient, payload }: EndedRun, stated: ReportedFailure): Ending {
    return endedBy(stated, record?.isRepeatable ?? this.#isRepeatable(recipient, payload))
  }

  /** The changes for a request that this node stops: its caller is told that it was not done, and may ask once more. */
  stopped(record: RequestRecord, isRunning: boolean): LedgerChange[] {
    const { error } = ENDINGS.stopped
    return isRunning && record.swarm === null
      ? this.end(record, { status: 'unknown', error })
      : this.#deps.requestStore.removal(record)
  }

  /** Ends a request from before this start, without a run. */
  endBefore(record: RequestRecord, { status, error }: Ending): Pick<Concluded, 'changes' | 'task'> {
    const task = taskFromRecord({ ...record, status, error, updatedAt: this.#deps.clock.now() }, null)
    return { changes: this.end(record, { status, error }), task }
  }

  /** The changes that end a request. The stored result is the whole response. */
  end(record: RequestRecord, outcome: CalleeOutcome): LedgerChange[] {
    const { requestStore, clock, cutRuns } = this.#deps
    const { status } = outcome
    cutRuns.ended(requestStore.name(record))
    const next = { ...record, status, updatedAt: clock.now(), error: 'error' in outcome ? outcome.error : null }
    return requestStore.changes(record, next, 'response' in outcome ? { result: encodeStored(outcome.response) } : {})
  }

  #fresh({ peer, recipient, header }: InboundMessage, payload: RequestPayload): RequestRecord {
    const { clock, ids } = this.#deps
    const now = clock.now()
    const { requestId, attempt } = payload
    const origin = { source: header.sender, target: header.recipient, requestId, attempt }
    return {
      role: 'callee',
      ...origin,
      capability: payload.capability,
      description: payload.description,
      swarm: payload.swarm,
      correlationId: header.correlationId ?? header.id,
      taskId: calleeTaskId(this.#deps, { peer, ...origin }) ?? ids.next('task'),
      status: 'pending',
      isRepeatable: this.#isRepeatable(recipient, payload),
      tries: 0,
      createdAt: now,
      updatedAt: now,
      deadline: now + payload.timeoutMs,
      retryAt: null,
      expiresAt: now + Math.max(payload.ttlMs, payload.timeoutMs) + BEYOND_MS,
      error: null,
      asking: payload.voters === undefined ? null : { mayQueue: false, voters: payload.voters }
    }
  }
}

/**
 * When the run must begin, in Unix milliseconds. The timeout of a caller does not pass while it waits for a person, if
 * it says so.
 */
function beginsBy(
  { deadline }: RequestRecord,
  { approvedAt }: InboundMessage,
  { timeoutMs, approvalMs }: RequestPayload
): number {
  return approvedAt === undefined || approvalMs === undefined ? deadline : Math.max(deadline, approvedAt + timeoutMs)
}

/** Did the node stop during the run, so that a further copy is a further attempt? */
export function isStopped({ status, error }: RequestRecord): boolean {
  return status === 'unknown' && error?.code === ENDINGS.stopped.error.code
}

/**
 * The end of a request that did not begin in time. It is known to be undone only if it arrived just now, or if its
 * beginning would be on record first.
 */
function lateEnding(
  { status, tries, isRepeatable }: RequestRecord,
  recorded: InboundMessage['recorded'],
  { isAgain }: RequestPayload
): Ending {
  if (status === 'started' || tries > 0) return ENDINGS.late
  // An earlier copy's record may be lost with a disk.
  if (isAgain) return ENDINGS.lateInDoubt
  const isFresh = recorded?.isFirst === true && recorded.deadline === undefined
  return isFresh || !isRepeatable ? ENDINGS.tooLate : ENDINGS.lateInDoubt
}

/** May a capability be repeated after an unknown outcome? `capability` null: the agent's default one. */
export function isIdempotent(directory: Directory, agent: AgentAddress, capability: string | null): boolean {
  return described(directory, agent, capability)?.idempotent === true
}

/** Does a capability change nothing? Then it may be repeated or skipped, and needs no record. */
export function onlyReads(directory: Directory, agent: AgentAddress, capability: string | null): boolean {
  const one = described(directory, agent, capability)
  return one?.idempotent === true && changesNothing(one.sideEffect)
}

function described(
  directory: Directory,
  agent: AgentAddress,
  capability: string | null
): CapabilityDescriptor | null | undefined {
  const card = directory.card(agent)
  if (card === undefined) return null
  return capability === null ? defaultCapability(card) : card.capabilities.find(({ id }) => id === capability)
}

/** Dependencies of the lookup of prior requests. */
interface PriorRequestDeps {
  readonly requestStore: Pick<RequestStore, 'name'>
  /** Do both nodes vote in the swarm, as this one does? */
  areVoters(swarm: string, nodes: readonly NodeId[]): boolean
  readonly hash: Hash
}

/**
 * The request that a query asks for: the sender's own, or a lease that another voter gave as coordinator (`askedBy`).
 * Any voter may read the outcomes of its swarm; a query starts nothing. A node that is no participant does not know the
 * voters, so the lease must have the digest of the voters in the query (`voters`).
 */
export function priorRequest(
  incoming: InboundMessage,
  payload: RequestPayload,
  { requestStore, areVoters, hash }: PriorRequestDeps
): InboundMessage {
  const { askedBy, swarm, requestId, attempt, isQuery, amongVoters = [] } = payload
  const sender = askedBy === undefined ? null : parseAddress(askedBy)
  if (
    sender === null ||
    !isQuery ||
    swarm === null ||
    sender.agentId !== OPERATOR ||
    !requestId.startsWith(`${swarm}.`)
  )
    return incoming
  const nodes = [incoming.peer, sender.nodeId]
  const isParticipant = areVoters(swarm, nodes)
  if (!isParticipant && !nodes.every((node) => amongVoters.includes(node))) return incoming
  const identity = {
    role: 'callee',
    source: addressText(sender),
    target: addressText(incoming.recipient),
    requestId,
    attempt
  } as const
  const recorded = { name: requestStore.name(identity), isFirst: false, isDone: false, refusal: null }
  const known = { ...incoming, peer: sender.nodeId, sender, recorded }
  return isParticipant ? known : { ...known, voters: votersDigest(amongVoters, hash) }
}
