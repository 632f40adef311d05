import { type Clock, ExpiryClock, type Timer } from '../../kit/clock.js'
import { messageOf } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { decodeStored } from '../../domain/envelope/codec.js'
import type { RequestRecord } from '../../domain/reliable/records.js'
import { recover, SETTLED } from '../../domain/reliable/request.js'
import type { Ledger } from '../../ports/ledger.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { isStopped } from './callee/record.js'
import type { ExchangeTable } from '../messaging/exchange-table.js'
import type { CutRuns } from './callee/cut-runs.js'
import { parseAddress } from '../../domain/card/card.js'
import type { Directory } from '../cards/directory.js'
import { ENDINGS, failed } from '../../domain/task/outcome.js'
import type { Inbound } from '../messaging/inbound.js'
import { taskFromRecord, type RecordedTask } from '../tasks/from-record.js'
import type { LastFault } from '../dependencies.js'
import type { RequestStore } from './store.js'
import type { Requests } from './caller/requests.js'
import type { SwarmDocuments } from '../documents/swarm-documents.js'
import type { SwarmTable } from '../swarms/swarm-table.js'
import type { TaskTable } from '../tasks/task-table.js'
import type { Executor } from './callee/executor.js'
import type { Problem } from '../../ports/node-api.js'
import type { NodeEvents } from '../observe/events.js'

/** How often requests that wait for their sender's card are checked, in milliseconds. */
const AGAIN_MS = 1000
/** How often expired requests are removed, in milliseconds. */
const PURGE_MS = 600_000
/** Ended requests that are listed again after a start. */
const LISTED = 500
/** Requests removed at once that make a compaction worthwhile. */
const MANY = 1000
/** How long the answer to a request that is not taken up may wait, in milliseconds. */
const ANSWER_MS = 60_000
/** How long after the start requests wait for a missing agent, in milliseconds. */
const ATTACHING_MS = 10_000
/** The refusal of a request without a stored input. */
const LOST = { code: 'STORE_DAMAGED', reason: 'what it was asked with is no longer there' } as const

/** Dependencies of recovery. */
export interface RecoveryDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly requestStore: RequestStore
  readonly cutRuns: CutRuns
  readonly lastFault?: LastFault
  readonly directory: Pick<Directory, 'card' | 'isPutOut' | 'party'>
  readonly ledger: Pick<Ledger, 'commit'>
  readonly requests: Pick<Requests, 'onRevoked' | 'resume'>
  readonly inbound: Pick<Inbound, 'recover'>
  readonly exchanges: Pick<ExchangeTable, 'letIn'>
  readonly executor: Pick<Executor, 'end'>
  readonly tasks: Pick<TaskTable, 'restore'>
}

/** Takes up requests that had no end when this node stopped. */
export class Recovery {
  readonly #deps: RecoveryDeps
  /** Requests of other nodes that wait for their sender's card. */
  readonly #waiting: RequestRecord[] = []
  #isStopped = false
  /** Turns that have ended, of requests that ran when this node ended. */
  #turnsOver = 0
  #timer: Timer | null = null
  /** Monotonic milliseconds. */
  #startedAt = 0

  constructor(deps: RecoveryDeps) {
    this.#deps = deps
  }

  /**
   * Resumes this node's requests, except to removed nodes, and lists recently ended ones.
   * @throws NodeError STORE_DAMAGED
   */
  async resume(putOut: readonly NodeId[]): Promise<void> {
    const { requestStore, requests } = this.#deps
    const ended = (await requestStore.lasting(LISTED)).filter(hasEnded)
    for (const record of ended.sort((a, b) => a.createdAt - b.createdAt)) await this.#restore(record)
    for await (const record of requestStore.pending()) {
      if (record.role === 'callee') {
        this.#waiting.push(record)
        this.#deps.cutRuns.add(requestStore.name(record), record)
        continue
      }
      await this.#restore(record)
      requests.resume(record)
    }
    for (const peer of putOut) requests.onRevoked(peer)
  }

  async #restore(record: RequestRecord): Promise<void> {
    const restored = await taskOf(this.#deps.requestStore, record)
    if (restored !== null) this.#deps.tasks.restore(restored.task, restored.events)
  }

  /** Takes up the requests of other nodes. */
  async start(): Promise<void> {
    const { clock, cutRuns, lastFault, telemetry } = this.#deps
    this.#startedAt = clock.monotonic()
    const { waiting: requests } = cutRuns
    if (lastFault !== undefined)
      telemetry.log('error', 'this node ended by an error of its own', { reason: lastFault.reason })
    if (requests > 0)
      telemetry.log('warn', 'this node ended while requests ran; they run again one after the other', { requests })
    cutRuns.onFree(() => {
      this.#turnsOver++
      void this.#again()
    })
    await this.#again()
    await lastFault?.settled()
  }

  /** Stops recovery. */
  stop(): void {
    const { clock } = this.#deps
    this.#isStopped = true
    this.#deps.cutRuns.stop()
    clock.clear(this.#timer)
  }

  async #again(): Promise<void> {
    const before = this.#turnsOver
    for (const record of this.#waiting.splice(0)) {
      if (this.#isStopped) return
      if (!(await this.#recovered(record))) this.#waiting.push(record)
    }
    // A turn that ended meanwhile found the requests of this loop in no list.
    if (before !== this.#turnsOver) return await this.#again()
    this.#takeUpSoon()
  }

  /** Checks waiting requests again after a second. */
  #takeUpSoon(): void {
    if (this.#waiting.length === 0 || this.#isStopped) return
    this.#timer ??= this.#deps.clock.after(AGAIN_MS, () => {
      this.#timer = null
      void this.#again()
    })
  }

  /** False: it waits for its turn, or, until its deadline, for its sender's card or its agent. */
  async #recovered(waiting: RequestRecord): Promise<boolean> {
    const { requestStore, clock, cutRuns } = this.#deps
    const name = requestStore.name(waiting)
    if (cutRuns.isBlocked(name)) return false
    const isLate = waiting.deadline <= clock.now()
    if (!isLate && (this.#isOfStranger(waiting) || this.#isForNobody(waiting))) return false
    cutRuns.take(name)
    try {
      const record = await requestStore.get(name)
      if (record !== null) await this.#takeUp(name, record)
    } catch (error) {
      note(this.#deps.telemetry, 'a request that was not finished could not be read', error)
    }
    return true
  }

  /** Is its sender's card not known yet? */
  #isOfStranger({ source: text }: RequestRecord): boolean {
    const { directory } = this.#deps
    const source = parseAddress(text)
    return source !== null && !directory.isPutOut(source.nodeId) && directory.party(source) === null
  }

  /** Is its agent missing so soon after the start? A program attaches it when the node runs. */
  #isForNobody({ target: text }: RequestRecord): boolean {
    const { clock, directory } = this.#deps
    const target = parseAddress(text)
    return target !== null && directory.card(target) === undefined && clock.monotonic() - this.#startedAt < ATTACHING_MS
  }

  /** Runs a request again, or ends it. One that has ended has reported that, or reports it to a query. */
  async #takeUp(name: string, record: RequestRecord): Promise<void> {
    const { requestStore, cutRuns, inbound, ledger } = this.#deps
    const next = recover(cutRuns.found(name, record))
    if (next === 'nothing') return
    const isDone = next !== 'run'
    // A swarm's launcher reassigns repeatable leases; of the others it is told that the outcome is unknown.
    if (record.swarm !== null && next !== 'unknown') return await ledger.commit(requestStore.removal(record))
    const envelope = await requestStore.input(name)
    const [sender, recipient] = [parseAddress(record.target), parseAddress(record.source)]
    if (sender === null || recipient === null) return
    // It was accepted before, so it is not refused; it waits while newer requests use the slots.
    const later = (): void => {
      this.#waiting.push(record)
      this.#takeUpSoon()
    }
    const recorded = { name, isFirst: true, isDone, refusal: null, deadline: record.deadline, later }
    const refusal = envelope === null ? LOST : inbound.recover(recipient.nodeId, { envelope, recorded })
    if (refusal === null) return
    const thread = { sender, recipient, correlationId: record.correlationId, isReliable: true }
    this.#deps.exchanges.letIn(thread, ANSWER_MS)
    // A ledger that refuses changes now holds up no other request.
    void this.#deps.executor.end(thread, record, isDone ? ENDINGS.interrupted : failed(refusal.code, refusal.reason))
  }
}

function note(telemetry: Telemetry, what: string, error: unknown): void {
  telemetry.count('errors', 'ledger')
  telemetry.log('error', what, { reason: messageOf(error) })
}

/** Dependencies of the purge of expired records. */
interface PurgeDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly ledger: Pick<Ledger, 'compact'>
  readonly requestStore: Pick<RequestStore, 'purgeExpired'>
  readonly swarms: Pick<SwarmTable, 'purgeExpired'>
  readonly swarmDocuments: Pick<SwarmDocuments, 'removeExpired'>
}

/** Removes expired requests and swarms from the ledger, and the documents of these swarms from the mesh. */
export class Purge {
  readonly #deps: PurgeDeps
  readonly #expiry: ExpiryClock
  #timer: Timer | null = null

  constructor(deps: PurgeDeps) {
    this.#deps = deps
    this.#expiry = new ExpiryClock(deps.clock)
  }

  /** Starts to remove expired records. */
  start(): void {
    this.#timer = this.#deps.clock.every(PURGE_MS, () => void this.#run())
  }

  /** Stops. */
  stop(): void {
    this.#deps.clock.clear(this.#timer)
  }

  async #run(): Promise<void> {
    const { requestStore, clock, ledger, swarms, swarmDocuments, telemetry } = this.#deps
    const now = this.#expiry.now()
    const byMs = clock.now() - now
    if (byMs > 0)
      telemetry.log('info', 'the clock went forward: what has expired by it is removed when it stays', { byMs })
    try {
      const purged = (await requestStore.purgeExpired(now)) + (await swarms.purgeExpired(now))
      if (purged >= MANY) await ledger.compact()
      await swarmDocuments.removeExpired()
    } catch (error) {
      note(telemetry, 'what has expired could not be removed', error)
    }
  }
}

/** A stopped run continues as the same task when its caller asks once more, so it has not ended. */
function hasEnded(record: RequestRecord): boolean {
  return SETTLED.has(record.status) || (record.role === 'callee' && record.status === 'unknown' && !isStopped(record))
}

/** Tasks of the ledger that are no longer in memory, by the beginning of their ids. @throws NodeError STORE_DAMAGED */
export async function tasksOfLedger(requestStore: RequestStore, prefix: string): Promise<RecordedTask[]> {
  const tasks = await Promise.all((await requestStore.ofTasks(prefix)).map((record) => taskOf(requestStore, record)))
  return tasks.filter((task) => task !== null)
}

async function taskOf(requestStore: RequestStore, record: RequestRecord): Promise<RecordedTask | null> {
  const bytes = record.status === 'completed' ? await requestStore.result(requestStore.name(record)) : null
  const read = bytes === null ? null : decodeStored(bytes)
  const payload = read?.ok === true ? read.value : null
  return taskFromRecord(record, record.role === 'caller' ? payload : resultOf(payload))
}

/** For a callee the whole response is stored. */
function resultOf(response: unknown): unknown {
  return typeof response === 'object' && response !== null && 'result' in response ? response.result : null
}

/** How often requests without an outcome are checked, in milliseconds. */
const CHECK_MS = 60_000

/** Dependencies of the check for orphans. */
interface OrphansDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly events: NodeEvents
  readonly requestStore: Pick<RequestStore, 'pending'>
  readonly requests: Pick<Requests, 'orphans' | 'knows' | 'resume'>
}

/**
 * Checks an invariant of this node: a lane, a queue or a peer holds each request without an outcome. A request that
 * none of them holds is an orphan: it is reported, and sent again, as a query when it may not be repeated.
 */
export class Orphans {
  readonly #deps: OrphansDeps
  #timer: Timer | null = null
  /** Orphans at the last check. */
  #count = 0
  /** Requests that only the ledger had at the last check: their ends may be about to be recorded. */
  #suspects = new Set<string>()
  #isStopped = false

  constructor(deps: OrphansDeps) {
    this.#deps = deps
  }

  /** Starts the checks. */
  start(): void {
    this.#timer = this.#deps.clock.every(CHECK_MS, () => void this.check())
  }

  /** Stops the checks. */
  stop(): void {
    this.#isStopped = true
    this.#deps.clock.clear(this.#timer)
  }

  /** The problem for `status`, by the last check. */
  problems(): readonly Problem[] {
    if (this.#count === 0) return []
    const message = `${this.#count} requests without an outcome were in no queue and at no peer; they are sent again`
    return [{ code: 'REQUEST_ORPHANED', message, next: 'a2a-node tasks' }]
  }

  /** Checks now. Never rejects. */
  async check(): Promise<void> {
    const { requests, events, telemetry } = this.#deps
    try {
      const lost = await this.#unknown()
      const orphans = requests.orphans()
      for (const request of orphans) request.reported.tend()
      this.#count = lost + orphans.length
    } catch (error) {
      return telemetry.log('error', 'requests without an outcome could not be checked', { reason: messageOf(error) })
    }
    if (this.#count === 0) return
    telemetry.count('errors', 'orphan', this.#count)
    events.add('delivery-failed', 'requests without an outcome were in no queue and at no peer', {
      code: 'REQUEST_ORPHANED',
      requests: this.#count
    })
  }

  /** Takes up requests that only the ledger knows at two checks in a row. Returns their number. */
  async #unknown(): Promise<number> {
    const { clock, requestStore, requests } = this.#deps
    const suspects = new Set<string>()
    let count = 0
    for await (const record of requestStore.pending()) {
      if (this.#isStopped) return 0
      const { requestId, role, expiresAt } = record
      if (role !== 'caller' || expiresAt <= clock.now() || isGivenUp(record) || requests.knows(requestId)) continue
      suspects.add(requestId)
      if (!this.#suspects.has(requestId)) continue
      requests.resume(record)
      count++
    }
    this.#suspects = suspects
    return count
  }
}

/** Is its outcome unknown for good, as of a request to a removed node? */
function isGivenUp({ status, retryAt }: RequestRecord): boolean {
  return status === 'unknown' && retryAt === null
}
