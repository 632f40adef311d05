import type { AgentOutcome, AgentTask } from '../../src/ports/agent-runtime.js'
import type { LedgerChange } from '../../src/ports/ledger.js'
import { decodePayload } from '../../src/domain/envelope/codec.js'
import { receiverRecord, requestRecord, type RequestRecord } from '../../src/domain/reliable/records.js'
import { MAX_CUTS, SETTLED } from '../../src/domain/reliable/request.js'
import { FINAL_STATES, type Task } from '../../src/domain/task/task.js'
import { ENDINGS } from '../../src/domain/task/outcome.js'
import { sameBytes } from '../../src/kit/bytes.js'
import { isOfSwarm, SwarmWitness } from './swarm-witness.js'
import type { Trace } from './trace.js'
import { heldValue } from '../support/ledger-changes.js'

/** One run of an agent. */
export interface Run {
  readonly node: string
  readonly task: AgentTask
  /** Counts the runs of its request, from 1. */
  readonly number: number
  isOpen: boolean
  /** Its process was killed at it, and its node still has the disk. */
  isCut: boolean
  /** Its node lost its disk, and whoever asked could not know that the request was there. */
  isForgotten: boolean
}

/** How an agent's request was asked: what the agents of a world are given as input. */
export interface AskedInput {
  readonly ask: number
  /** May it be run again? */
  readonly mayRepeat: boolean
}

/** Ends of a node at the first run of a request that it need not know of: that it began got not to its disk. */
const UNCOUNTED = 1

/** Why a node says of a request that may be repeated that nobody can say whether it was done. */
const LATE: ReadonlySet<string> = new Set([ENDINGS.late.error.message, ENDINGS.lateInDoubt.error.message])

/** Sees everything that happens in a world, and says when what must never happen does. */
export class Witness {
  /** What was broken, in order. */
  readonly faults: string[] = []
  /** Sees what happens to swarms. */
  readonly swarms = new SwarmWitness({
    fault: (what) => this.fault(what),
    calleeRecord: (node, requestId, attempt) =>
      [...this.#of(node)].find(
        (one) => one.role === 'callee' && one.requestId === requestId && one.attempt === attempt
      ) ?? null
  })
  readonly #trace: Trace
  readonly #runs = new Map<string, Run[]>()
  /** Kills of a node since it first began a request, by `node request`. */
  readonly #kills = new Map<string, number>()
  /** What tasks said last when that was an end, by `node task`. */
  readonly #told = new Map<string, string>()
  /** Tasks of callees whose record a disk holds no longer, by `node task`. */
  readonly #gone = new Set<string>()
  /** What disks hold, by node and key. */
  readonly #records = new Map<string, RequestRecord>()
  readonly #results = new Map<string, Uint8Array>()
  readonly #contig = new Map<string, number>()
  readonly #acked = new Map<string, number>()

  constructor(trace: Trace) {
    this.#trace = trace
  }

  /** Something happened that never must. */
  fault(what: string): void {
    this.faults.push(what)
    this.#trace.add('!', what)
  }

  /** An agent begins a run. */
  begins(node: string, task: AgentTask): Run {
    const { requestId, attempt } = task
    if (isOfSwarm(requestId)) return this.#beginsItem(node, task)
    const runs = this.#runs.get(requestId) ?? []
    this.#runs.set(requestId, runs)
    const run = { node, task, number: runs.length + 1, isOpen: true, isCut: false, isForgotten: false }
    this.#trace.add(node, `begins ${requestId} (${task.capability}), attempt ${attempt}, run ${run.number}`)
    if (runs.some(({ isOpen }) => isOpen)) this.fault(`${requestId} runs twice at once`)
    const { mayRepeat } = task.input as AskedInput
    if (!mayRepeat && !runs.every((one) => one.isForgotten)) this.fault(`${requestId} may not be repeated, and is`)
    const cuts = runs.filter(({ isCut }) => isCut).length
    if (cuts > MAX_CUTS + UNCOUNTED) this.fault(`${requestId} runs again after ${cuts} ends of ${node} while it ran`)
    if (this.#isDone(node, requestId)) this.fault(`${requestId} is run after its end`)
    runs.push(run)
    if (!this.#kills.has(`${node} ${requestId}`)) this.#kills.set(`${node} ${requestId}`, 0)
    return run
  }

  #beginsItem(node: string, task: AgentTask): Run {
    const run = this.swarms.begins(node, task)
    this.#trace.add(node, `begins ${task.requestId} (${task.capability}), lease ${task.attempt}, run ${run.number}`)
    return run
  }

  /** A run has ended by itself. */
  ends(run: Run, outcome: AgentOutcome): void {
    if (!run.isOpen) return
    if (isOfSwarm(run.task.requestId)) this.swarms.ends(run, outcome)
    run.isOpen = false
    this.#trace.add(run.node, `ends ${run.task.requestId}: ${outcome.ok ? 'done' : outcome.code}`)
  }

  /** The process of a node was killed: its runs end with it. */
  killed(node: string): void {
    for (const run of [...this.#runs.values()].flat()) {
      if (run.node !== node) continue
      run.isCut ||= run.isOpen
      run.isOpen = false
    }
    for (const [name, kills] of this.#kills) if (name.startsWith(`${node} `)) this.#kills.set(name, kills + 1)
    this.swarms.killed(node)
  }

  /**
   * A task says how it stands: once it told an end it tells no other, also after a restart. The exception is a failed
   * task of a callee whose record has gone: its id follows from the request, which may arrive again as a new one.
   */
  tells(node: string, task: Task): void {
    // Nothing came of what was canceled either: a node may say so in either way.
    const state = task.state === 'canceled' ? 'failed' : task.state
    const text = `${state} ${JSON.stringify(task.state === 'completed' ? task.result : null)}`
    this.#trace.add(node, `task ${task.id} of the ${task.role} is ${text}`)
    const name = `${node} ${task.id}`
    const told = this.#told.get(name)
    const isAgain = told?.startsWith('failed') === true && this.#gone.delete(name)
    if (isAgain) this.#told.delete(name)
    else if (told !== undefined && told !== text) this.fault(`task ${task.id} at ${node} was ${told}, and is ${text}`)
    // Whoever cancels sees it at once, before it is recorded.
    if (FINAL_STATES.has(task.state) && task.state !== 'canceled') this.#told.set(name, text)
  }

  /** A node says that it has a lane up to a number. `lane`: as text. */
  acknowledges(node: string, lane: string, ack: number): void {
    const name = `${node} ${lane}`
    if (ack > (this.#contig.get(name) ?? 0))
      this.fault(`${node} acknowledges ${ack} of ${lane}, and its disk has ${this.#contig.get(name) ?? 0}`)
    if (ack < (this.#acked.get(name) ?? 0))
      this.fault(`${node} acknowledges ${ack} of ${lane} after ${this.#acked.get(name) ?? 0}`)
    this.#acked.set(name, ack)
  }

  /** The disk of a node holds changes from now on. */
  keeps(node: string, changes: readonly LedgerChange[]): void {
    this.#trace.add(node, `disk: ${changes.map(({ key, value }) => `${key}${value === null ? ' -' : ''}`).join(', ')}`)
    for (const { key, value: given } of changes) {
      const value = heldValue(given)
      const name = `${node} ${key.slice(key.indexOf('/') + 1)}`
      if (key.startsWith('lane-in/') && value !== null) this.#keepLane(name, receiverRecord.decode(value).contig)
      if (key.startsWith('request/')) this.#keepRequest(name, value === null ? null : requestRecord.decode(value))
      if (key.startsWith('request-out/')) this.#keepResult(name, value)
      this.swarms.keeps(node, { key, value })
    }
  }

  /** All that the disk of a node held is lost. */
  lost(node: string): void {
    for (const [requestId, runs] of this.#runs)
      for (const run of runs.filter((one) => one.node === node)) {
        run.isCut = false
        if (this.swarms.isOnItsWay(requestId)) run.isForgotten = true
      }
    this.swarms.lost(node)
    for (const known of [this.#told, this.#records, this.#results, this.#contig, this.#acked, this.#kills])
      for (const name of known.keys()) if (name.startsWith(`${node} `)) known.delete(name)
  }

  /** The disk of a node did not take changes. */
  refused(node: string, changes: readonly LedgerChange[]): void {
    this.#trace.add(node, `disk refuses ${changes.length} changes`)
  }

  /** What the disk of a node that asked holds of a request; null for nothing. */
  askedOn(node: string, requestId: string): RequestRecord | null {
    return this.#found(node, requestId, 'caller')?.record ?? null
  }

  /**
   * Did the node of its agent end at it, and was back when its time was over, so that nobody can say whether it was
   * done?
   */
  wasLate(node: string, requestId: string): boolean {
    const records = [...this.#of(node)].filter((one) => one.requestId === requestId)
    return records.some(({ error, updatedAt, deadline }) => LATE.has(error?.message ?? '') && updatedAt >= deadline)
  }

  /** Was the node of its agent killed so often since it first ran that it may not run again? */
  wasCutShort(node: string, requestId: string): boolean {
    return (this.#kills.get(`${node} ${requestId}`) ?? 0) >= MAX_CUTS
  }

  /** Did any agent begin it? */
  hasBegun(requestId: string): boolean {
    return this.#runs.has(requestId)
  }

  /** What both disks hold of how a request of one node to another ended must be the same. */
  agree(requestId: string, caller: string, callee: string): void {
    const [asked, done] = [this.#found(caller, requestId, 'caller'), this.#found(callee, requestId, 'callee')]
    if (asked === null) return this.fault(`the disk of ${caller} has no request ${requestId}`)
    const isCanceled = asked.record.error?.code === 'CANCELED'
    const status = done?.record.status ?? 'absent'
    if (asked.record.status === 'completed') {
      if (status !== 'completed') this.fault(`${requestId} is completed at ${caller}, and ${status} at ${callee}`)
      else if (JSON.stringify(asked.result) !== JSON.stringify((done?.result as { result?: unknown } | null)?.result))
        this.fault(`${requestId} has one result at ${caller} and another at ${callee}`)
    } else if (status === 'completed' && !isCanceled)
      this.fault(`${requestId} is ${asked.record.status} at ${caller}, and completed at ${callee}`)
  }

  #found(
    node: string,
    requestId: string,
    role: RequestRecord['role']
  ): { record: RequestRecord; result: unknown } | null {
    for (const [name, record] of this.#records) {
      if (!name.startsWith(`${node} `) || record.requestId !== requestId || record.role !== role) continue
      const bytes = this.#results.get(name)
      const read = bytes === undefined ? null : decodePayload(bytes)
      return { record, result: read?.ok === true ? read.value : null }
    }
    return null
  }

  *#of(node: string): Generator<RequestRecord> {
    for (const [name, record] of this.#records) if (name.startsWith(`${node} `)) yield record
  }

  #isDone(node: string, requestId: string): boolean {
    const record = this.#found(node, requestId, 'callee')?.record
    return record !== undefined && SETTLED.has(record.status)
  }

  #keepLane(name: string, contig: number): void {
    if (contig < (this.#contig.get(name) ?? 0))
      this.fault(`${name} goes back from ${this.#contig.get(name)} to ${contig}`)
    this.#contig.set(name, contig)
  }

  #keepRequest(name: string, record: RequestRecord | null): void {
    const before = this.#records.get(name)
    if (before !== undefined && record !== null && SETTLED.has(before.status) && record.status !== before.status)
      this.fault(`on disk ${record.requestId} (${name}) was ${before.status}, and is ${record.status}`)
    if (record === null && before?.role === 'callee')
      this.#gone.add(`${name.slice(0, name.indexOf(' '))} ${before.taskId}`)
    if (record === null) this.#records.delete(name)
    else this.#records.set(name, record)
  }

  #keepResult(name: string, bytes: Uint8Array | null): void {
    const before = this.#results.get(name)
    if (before !== undefined && bytes !== null && !sameBytes(before, bytes))
      this.fault(`on disk the result of ${name} changes`)
    if (bytes === null) this.#results.delete(name)
    else this.#results.set(name, bytes)
  }
}
