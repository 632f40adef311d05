import { type Clock, ExpiryClock, type Timer } from '../../kit/clock.js'
import { messageOf } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { decodePayload } from '../../domain/envelope/codec.js'
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
import type { SwarmTable } from '../swarms/swarm-table.js'
import type { TaskTable } from '../tasks/task-table.js'
import type { Executor } from './callee/executor.js'
import type { Problem } from '../../ports/node-api.js'
import type { NodeEvents } from '../observe/events.js'

/** How often requests that wait for the cards of their senders are looked at, in milliseconds. */
const AGAIN_MS = 1000
/** How often what has expired is removed, in milliseconds. */
const PURGE_MS = 600_000
/** Requests that ended which are listed again after a start. */
const LISTED = 500
/** Requests removed at once that make it worth giving their room back. */
const MANY = 1000

/** How long the answer to a request that is not taken up may take to go out, in milliseconds. */
const ANSWER_MS = 60_000
/** How long after the start requests wait for an agent that is not here, in milliseconds. */
const ATTACHING_MS = 10_000
/** Why a request is not taken up of which only the record is there. */
const LOST = { code: 'STORE_DAMAGED', reason: 'what it was asked with is no longer there' } as const

/** What taking up what was not finished needs. */
export interface RecoveryDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly requestStore: RequestStore
  readonly cutRuns: CutRuns
  readonly lastFault?: LastFault
  readonly directory: Pick<Directory, 'card' | 'isPutOut' | 'party'>
  readonly ledger: Pick<Ledger, 'commit' | 'compact'>
  readonly requests: Pick<Requests, 'onRevoked' | 'resume'>
  readonly inbound: Pick<Inbound, 'recover'>
  readonly exchanges: Pick<ExchangeTable, 'letIn'>
  readonly executor: Pick<Executor, 'end'>
  readonly tasks: Pick<TaskTable, 'restore'>
  readonly swarms: Pick<SwarmTable, 'purgeExpired' | 'resume'>
}

/** Takes up what had no end when this node stopped, and removes what is past its time. */
export class Recovery {
  readonly #deps: RecoveryDeps
  /** Requests of others that wait for the card of their sender. */
  readonly #waiting: RequestRecord[] = []
  #isStopped = false
  /** Turns of requests that ran when this node ended. */
  #turnsOver = 0
  #timer: Timer | null = null
  #purgeTimer: Timer | null = null
  readonly #expiry: ExpiryClock
  /** Monotonic milliseconds. */
  #startedAt = 0

  constructor(deps: RecoveryDeps) {
    this.#deps = deps
    this.#expiry = new ExpiryClock(deps.clock)
  }

  /** Goes on with what this node asked of others, but for those that were put out, and lists again what ended lately. @throws NodeError STORE_DAMAGED */
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
    await this.#deps.swarms.resume()
  }

  async #restore(record: RequestRecord): Promise<void> {
    const restored = await taskOf(this.#deps.requestStore, record)
    if (restored !== null) this.#deps.tasks.restore(restored.task, restored.events)
  }

  /** Goes on with what others asked of this node, and begins to remove what is past its time. */
  async start(): Promise<void> {
    const { clock, cutRuns, lastFault, telemetry } = this.#deps
    this.#startedAt = clock.monotonic()
    this.#purgeTimer = clock.every(PURGE_MS, () => void this.#purge())
    const { waiting: requests } = cutRuns
    if (lastFault !== undefined) telemetry.log('error', 'this node ended by an error of its own', { reason: lastFault.reason })
    if (requests > 0) telemetry.log('warn', 'this node ended while requests ran; they run again one after the other', { requests })
    cutRuns.onFree(() => {
      this.#turnsOver++
      void this.#again()
    })
    await this.#again()
    await lastFault?.settled()
  }

  /** Nothing is taken up any more. */
  stop(): void {
    const { clock } = this.#deps
    this.#isStopped = true
    this.#deps.cutRuns.stop()
    clock.clear(this.#timer)
    clock.clear(this.#purgeTimer)
  }

  async #again(): Promise<void> {
    const before = this.#turnsOver
    for (const record of this.#waiting.splice(0)) {
      if (this.#isStopped) return
      if (!(await this.#recovered(record))) this.#waiting.push(record)
    }
    // A turn that was over meanwhile found those that are looked at here in no list.
    if (before !== this.#turnsOver) return await this.#again()
    this.#takeUpSoon()
  }

  /** Looks at waiting requests again after a second. */
  #takeUpSoon(): void {
    if (this.#waiting.length === 0 || this.#isStopped) return
    this.#timer ??= this.#deps.clock.after(AGAIN_MS, () => {
      this.#timer = null
      void this.#again()
    })
  }

  /** False: it waits for its turn, or, until its own time is over, for the card of its sender or its agent. */
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
      this.#note('a request that was not finished could not be read', error)
    }
    return true
  }

  /** Is the card of its sender not known yet? */
  #isOfStranger({ source: text }: RequestRecord): boolean {
    const { directory } = this.#deps
    const source = parseAddress(text)
    return source !== null && !directory.isPutOut(source.nodeId) && directory.party(source) === null
  }

  /** Is its agent not here yet, so soon after the start? A program attaches it when the node runs. */
  #isForNobody({ target: text }: RequestRecord): boolean {
    const { clock, directory } = this.#deps
    const target = parseAddress(text)
    return target !== null && directory.card(target) === undefined && clock.monotonic() - this.#startedAt < ATTACHING_MS
  }

  /** It runs again, or ends. What has an end has told it as well, or tells it when it is asked after. */
  async #takeUp(name: string, record: RequestRecord): Promise<void> {
    const { requestStore, cutRuns, inbound, ledger } = this.#deps
    const next = recover(cutRuns.found(name, record))
    if (next === 'nothing') return
    const isDone = next !== 'run'
    // The launcher of a swarm gives leases of what may be repeated to others; of the rest it is told that nobody can say.
    if (record.swarm !== null && next !== 'unknown') return await ledger.commit(requestStore.removal(record))
    const envelope = await requestStore.input(name)
    const [sender, recipient] = [parseAddress(record.target), parseAddress(record.source)]
    if (sender === null || recipient === null) return
    // It was accepted before, so it is not refused; it waits while newer requests have the places.
    const later = (): void => {
      this.#waiting.push(record)
      this.#takeUpSoon()
    }
    const recorded = { name, isFirst: true, isDone, refusal: null, deadline: record.deadline, later }
    const refusal = envelope === null ? LOST : inbound.recover(recipient.nodeId, { envelope, recorded })
    if (refusal === null) return
    const thread = { sender, recipient, correlationId: record.correlationId, isReliable: true }
    this.#deps.exchanges.letIn(thread, ANSWER_MS)
    // A ledger that takes nothing now holds up nobody else.
    void this.#deps.executor.end(thread, record, isDone ? ENDINGS.interrupted : failed(refusal.code, refusal.reason))
  }

  async #purge(): Promise<void> {
    const { requestStore, clock, ledger, swarms, telemetry } = this.#deps
    const now = this.#expiry.now()
    const byMs = clock.now() - now
    if (byMs > 0) telemetry.log('info', 'the clock went forward: what has expired by it is removed when it stays', { byMs })
    try {
      const purged = (await requestStore.purgeExpired(now)) + (await swarms.purgeExpired(now))
      if (purged >= MANY) await ledger.compact()
    } catch (error) {
      this.#note('what has expired could not be removed', error)
    }
  }

  #note(what: string, error: unknown): void {
    this.#deps.telemetry.count('errors', 'ledger')
    this.#deps.telemetry.log('error', what, { reason: messageOf(error) })
  }
}

/** A run that was stopped goes on as the same task when its caller asks once more, so it has not ended. */
function hasEnded(record: RequestRecord): boolean {
  return SETTLED.has(record.status) || (record.role === 'callee' && record.status === 'unknown' && !isStopped(record))
}

/** Tasks that are no longer in memory, by the beginning of their ids, as the ledger tells of them. @throws NodeError STORE_DAMAGED */
export async function tasksOfLedger(requestStore: RequestStore, prefix: string): Promise<RecordedTask[]> {
  const tasks = await Promise.all((await requestStore.ofTasks(prefix)).map((record) => taskOf(requestStore, record)))
  return tasks.filter((task) => task !== null)
}

async function taskOf(requestStore: RequestStore, record: RequestRecord): Promise<RecordedTask | null> {
  const bytes = record.status === 'completed' ? await requestStore.result(requestStore.name(record)) : null
  const read = bytes === null ? null : decodePayload(bytes)
  const payload = read?.ok === true ? read.value : null
  return taskFromRecord(record, record.role === 'caller' ? payload : resultOf(payload))
}

/** Of a callee the whole response is kept. */
function resultOf(response: unknown): unknown {
  return typeof response === 'object' && response !== null && 'result' in response ? response.result : null
}

/** How often requests without an outcome are checked, in milliseconds. */
const CHECK_MS = 60_000

/** What checking requests needs. */
interface OrphansDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly events: NodeEvents
  readonly requestStore: Pick<RequestStore, 'pending'>
  readonly requests: Pick<Requests, 'orphans' | 'knows' | 'resume'>
}

/**
 * Checks an invariant of this node: a lane, a queue or a peer holds each request without an outcome. A request that none of them
 * holds is an orphan: it is reported, and sent again, as a query when it may not be repeated.
 */
export class Orphans {
  readonly #deps: OrphansDeps
  #timer: Timer | null = null
  /** Orphans of the last check. */
  #count = 0
  /** Requests that were in the ledger alone at the last check: the end of such a request may be on its way there. */
  #suspects = new Set<string>()
  #isStopped = false

  constructor(deps: OrphansDeps) {
    this.#deps = deps
  }

  /** Begins to check. */
  start(): void {
    this.#timer = this.#deps.clock.every(CHECK_MS, () => void this.check())
  }

  /** Checks no more. */
  stop(): void {
    this.#isStopped = true
    this.#deps.clock.clear(this.#timer)
  }

  /** For `status`: what the last check found. */
  problems(): readonly Problem[] {
    if (this.#count === 0) return []
    const message = `${this.#count} requests without an outcome were held by no lane, queue or peer; they are sent again`
    return [{ code: 'REQUEST_ORPHANED', message, next: 'a2a-node tasks' }]
  }

  /** Checks now. Never rejects. */
  async check(): Promise<void> {
    const { requests, events, telemetry } = this.#deps
    try {
      const lost = await this.#unknown()
      const orphans = requests.orphans()
      for (const request of orphans) request.tend()
      this.#count = lost + orphans.length
    } catch (error) {
      return telemetry.log('error', 'requests without an outcome could not be checked', { reason: messageOf(error) })
    }
    if (this.#count === 0) return
    telemetry.count('errors', 'orphan', this.#count)
    events.add('delivery-failed', 'requests without an outcome were held by no lane, queue or peer', {
      code: 'REQUEST_ORPHANED',
      requests: this.#count
    })
  }

  /** Requests that only the ledger knows, at two checks in a row: this process takes them up. Gives how many there are. */
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

/** Is its outcome unknown for good, as that of a request to a node that was put out of the mesh? */
function isGivenUp({ status, retryAt }: RequestRecord): boolean {
  return status === 'unknown' && retryAt === null
}
