import { decodePayload } from '../../src/domain/envelope/codec.js'
import { SETTLED } from '../../src/domain/reliable/request.js'
import { messageRecord } from '../../src/domain/reliable/records.js'
import { sameBytes } from '../../src/kit/bytes.js'
import { canonicalJson } from '../../src/kit/json.js'
import type { SwarmHead, SwarmLease, SwarmRow } from '../../src/node/swarms/store.js'
import type { ParticipantRecord } from '../../src/node/swarms/consensus/vote-store.js'
import type { AgentOutcome, AgentTask } from '../../src/ports/agent-runtime.js'
import type { LedgerChange } from '../../src/ports/ledger.js'
import { heldValue } from '../support/ledger-changes.js'
import type { SwarmEvent } from '../../src/ports/swarm-api.js'
import type { RequestRecord } from '../../src/domain/reliable/records.js'
import type { AskedInput, Run } from './witness.js'

/** A run of an item, and what came of it. */
interface ItemRun extends Run {
  /** null while it is open, and when its process was killed at it. */
  outcome: AgentOutcome | null
}

/** What swarms need to be witnessed. */
export interface SwarmWitnessParts {
  /** Something happened that never must. */
  fault(what: string): void
  /** What the disk of a node holds of a request of another. */
  calleeRecord(node: string, requestId: string, attempt: number): RequestRecord | null
}

/** Sees everything that happens to the swarms of a world, and says when what must never happen does. */
export class SwarmWitness {
  readonly #parts: SwarmWitnessParts
  /** By the request id of their item. */
  readonly #runs = new Map<string, ItemRun[]>()
  /** What disks of launchers hold: heads by `node id`, leases, rows and messages by `node key`. */
  readonly #heads = new Map<string, SwarmHead>()
  readonly #leases = new Map<string, SwarmLease>()
  readonly #rows = new Map<string, { readonly row: SwarmRow; readonly bytes: Uint8Array }>()
  readonly #keys = new Map<string, Uint8Array>()
  /** By key of the message: the request that it opens. */
  readonly #onTheirWay = new Map<string, string>()
  /** What was told of items, by `node id item`. */
  readonly #told = new Map<string, string>()
  /** The same wherever it was told, by `id item`; and how swarms ended, by id. */
  readonly #accepted = new Map<string, string>()
  readonly #ends = new Map<string, string>()
  /** Nodes that lost their disks while they voted in a swarm, by its id; and whether its launcher is one of them. */
  readonly #losers = new Map<string, { readonly voters: number; readonly nodes: Set<string>; isLaunchers: boolean }>()
  /** What disks say of seats, by `node id`. */
  readonly #seats = new Map<string, ParticipantRecord['state']>()

  constructor(parts: SwarmWitnessParts) {
    this.#parts = parts
  }

  /** An agent begins a run of an item; gives it with the number it has among those of the item. */
  begins(node: string, task: AgentTask): Run {
    const { requestId, attempt } = task
    const { mayRepeat } = task.input as AskedInput
    const runs = this.#runs.get(requestId) ?? []
    this.#runs.set(requestId, runs)
    const run = { node, task, number: runs.length + 1, isOpen: true, isCut: false, outcome: null, isForgotten: false }
    if (runs.some((one) => one.isOpen && (!mayRepeat || (one.node === node && one.task.attempt === attempt))))
      this.#fault(`${requestId} runs twice at once`)
    if (!mayRepeat && !runs.every((one) => hasFailed(one) || one.isForgotten))
      this.#fault(`${requestId} may not be repeated, and is`)
    const before = this.#parts.calleeRecord(node, requestId, attempt)
    if (before !== null && SETTLED.has(before.status)) this.#fault(`${requestId}#${attempt} is run after its end`)
    runs.push(run)
    return run
  }

  /** A run has ended by itself. */
  ends(run: Run, outcome: AgentOutcome): void {
    const one = this.#runs.get(run.task.requestId)?.[run.number - 1]
    if (one === undefined || !one.isOpen) return
    one.isOpen = false
    one.outcome = outcome
  }

  /** The process of a node was killed: its runs end with it. */
  killed(node: string): void {
    for (const run of this.#of(node)) run.isOpen = false
  }

  /**
   * Have so many of those that vote in a swarm lost their disks that the others are no majority? Nobody may go on with
   * it then.
   * Seats are given by the launcher alone: when it has lost its disk, only those that have one are left. Whoever has
   * the end tells it.
   */
  isBereft(id: string): boolean {
    if ([...this.#heads.values()].some((head) => head.id === id && head.end !== null)) return false
    const { voters, nodes, isLaunchers } = this.#losers.get(id) ?? { voters: 1, nodes: new Set(), isLaunchers: false }
    const seats = [...this.#seats].filter(([name, state]) => name.endsWith(` ${id}`) && state === 'open')
    return (isLaunchers ? seats.length : voters - nodes.size) < Math.floor(voters / 2) + 1
  }

  /** The disk of a node is lost. What others have to send again it begins again. */
  lost(node: string): void {
    for (const { id, voters, taskId } of this.heads(node)) {
      if (voters === undefined) continue
      const losers = this.#losers.get(id) ?? { voters: voters.length, nodes: new Set(), isLaunchers: false }
      this.#losers.set(id, losers)
      losers.nodes.add(node)
      losers.isLaunchers ||= taskId !== ''
    }
    for (const run of this.#of(node)) if (this.isOnItsWay(run.task.requestId)) run.isForgotten = true
    for (const known of [this.#heads, this.#leases, this.#rows, this.#keys, this.#onTheirWay, this.#told, this.#seats])
      forget(known, node)
  }

  /** Does a disk hold a message of a request, as one that was not acknowledged? */
  isOnItsWay(requestId: string): boolean {
    return [...this.#onTheirWay.values()].includes(requestId)
  }

  /** The disk of a node holds a change from now on. */
  keeps(node: string, { key, value: given }: LedgerChange): void {
    const value = heldValue(given)
    const [kind = '', id = '', index = ''] = key.split('/')
    const name = `${node} ${key}`
    if (kind === 'out') this.#keepMessage(name, value)
    if (kind === 'swarm' && value !== null)
      this.#keepHead(`${node} ${id}`, (read(value) as { readonly head: SwarmHead }).head)
    if (kind === 'swarm-key' && value !== null) this.#keepKey(name, value)
    if (kind === 'swarm-seat' && value !== null)
      this.#seats.set(`${node} ${id}`, (read(value) as ParticipantRecord).state)
    if (kind === 'swarm-lease') this.#keepLease(`${node} ${id}/${index}`, value)
    if (kind === 'swarm-result') this.#keepRow(`${node} ${id}/${index}`, value)
  }

  /** A node tells of a swarm: only what its disk holds, and of each item one outcome for good. */
  tells(node: string, id: string, event: SwarmEvent): void {
    if (event.type === 'done' && (this.head(node, id)?.end ?? null) === null)
      this.#fault(`the end of ${id} is told before it is durable`)
    if (event.type !== 'item') return
    const { type: _type, ...told } = event
    const text = canonicalJson(told)
    const name = `${node} ${id} ${event.item}`
    const before = this.#told.get(name)
    if (before !== undefined && before !== text)
      this.#fault(`of ${event.item} of ${id} ${before} was told, and now ${text}`)
    this.#told.set(name, text)
    const elsewhere = this.#accepted.get(`${id} ${event.item}`) ?? text
    if (elsewhere !== text) this.#fault(`of ${event.item} of ${id} ${elsewhere} was accepted, and ${text}`)
    this.#accepted.set(`${id} ${event.item}`, text)
    const row = this.#rowsOf(node, id).find(({ row: { item } }) => item === event.item)
    const { durationMs: _ms, ...kept } = row?.row ?? { durationMs: 0 }
    if (canonicalJson(kept) !== text)
      this.#fault(`of ${event.item} of ${id} ${text} is told, and its disk has ${canonicalJson(kept)}`)
  }

  /** A swarm as the disk of its launcher has it; null for none. */
  head(node: string, id: string): SwarmHead | null {
    return this.#heads.get(`${node} ${id}`) ?? null
  }

  /** All swarms that the disk of a node holds. */
  heads(node: string): SwarmHead[] {
    return [...this.#heads].flatMap(([name, head]) => (name.startsWith(`${node} `) ? [head] : []))
  }

  /** The outcomes of a swarm's items that the disk of its launcher holds. */
  rows(node: string, id: string): readonly SwarmRow[] {
    return this.#rowsOf(node, id)
  }

  #rowsOf(node: string, id: string): SwarmRow[] {
    return [...this.#rows].flatMap(([name, { row }]) => (name.startsWith(`${node} ${id}/`) ? [row] : []))
  }

  #of(node: string): ItemRun[] {
    return [...this.#runs.values()].flat().filter((run) => run.node === node)
  }

  #keepMessage(name: string, value: Uint8Array | null): void {
    const requestId = value === null ? null : messageRecord.decode(value).requestId
    if (requestId === null) this.#onTheirWay.delete(name)
    else this.#onTheirWay.set(name, requestId)
  }

  #keepKey(name: string, value: Uint8Array): void {
    const before = this.#keys.get(name)
    if (before !== undefined && !sameBytes(before, value))
      this.#fault(`the idempotency key ${name} names another swarm`)
    this.#keys.set(name, value)
  }

  #keepHead(name: string, head: SwarmHead): void {
    const before = this.#heads.get(name)?.end ?? null
    if (before !== null && canonicalJson(before) !== canonicalJson(head.end))
      this.#fault(`swarm ${name} had ended, and ends otherwise`)
    this.#heads.set(name, head)
    if (head.end === null || before !== null) return
    this.#compare(name, head)
    const { status, counts } = head.end
    const rows = [...this.#rows].flatMap(([of, { row }]) => (of.startsWith(`${name}/`) ? [row.row.status] : []))
    const completed = rows.filter((one) => one === 'completed').length
    const isCounted =
      counts.total === head.itemCount && counts.completed === completed && counts.failed === rows.length - completed
    if (!isCounted)
      this.#fault(
        `swarm ${name} counts ${JSON.stringify(counts)}, and has ${completed} done of ${rows.length} outcomes`
      )
    if (status === 'canceled') return
    const verdict = completed === rows.length ? 'completed' : completed === 0 ? 'failed' : 'partial'
    if (rows.length !== head.itemCount)
      this.#fault(`swarm ${name} ends with ${rows.length} outcomes of ${head.itemCount} items`)
    if (status !== verdict) this.#fault(`swarm ${name} is ${status}, and its items say ${verdict}`)
  }

  /** All nodes that vote in a swarm have the same of it in the end. */
  #compare(name: string, { id, end, voters }: SwarmHead): void {
    if (voters === undefined) return
    const rows = [...this.#rows].flatMap(([of, { row }]) => (of.startsWith(`${name}/`) ? [row] : []))
    const text = canonicalJson({ end, rows: rows.sort((a, b) => a.index - b.index) })
    if ((this.#ends.get(id) ?? text) !== text)
      this.#fault(`swarm ${name} ends as ${text}, and elsewhere as ${this.#ends.get(id)}`)
    this.#ends.set(id, text)
  }

  /**
   * Is an outcome on a disk final? Where several nodes vote it is once it was told; before, another may take its place.
   */
  #isFinal(name: string, item: string): boolean {
    const [of = ''] = name.split('/')
    const head = this.#heads.get(of)
    return head?.voters === undefined || head.end !== null || this.#told.has(`${of} ${item}`)
  }

  #keepLease(name: string, value: Uint8Array | null): void {
    const before = this.#leases.get(name)
    if (value === null) return void this.#leases.delete(name)
    const lease = read(value) as SwarmLease
    if (before !== undefined && lease.attempt < before.attempt)
      this.#fault(`the leases of ${name} go back to ${lease.attempt}`)
    if (before?.attempt === lease.attempt && before.agent !== lease.agent)
      this.#fault(`lease ${lease.attempt} of ${name} has two agents`)
    const row = this.#rows.get(name)?.row.row
    if (row !== undefined && lease.attempt > row.attempt && this.#isFinal(name, row.item))
      this.#fault(`${name} is leased after its outcome`)
    this.#leases.set(name, lease)
  }

  #keepRow(name: string, value: Uint8Array | null): void {
    const before = this.#rows.get(name)
    if (value === null) return void this.#rows.delete(name)
    const isOther = before !== undefined && !sameBytes(before.bytes, value)
    const isFinal = before !== undefined && this.#isFinal(name, before.row.row.item)
    if (isOther && isFinal) this.#fault(`the outcome of ${name} changes`)
    const row = read(value) as SwarmRow
    this.#rows.set(name, { row, bytes: value })
    if (!isFinal && (before === undefined || isOther)) this.#judge(name, row)
  }

  /** An outcome is that of a run of the lease that it names. */
  #judge(name: string, { holder, row: { attempt, status, result, error } }: SwarmRow): void {
    const runs = this.#runs.get(name.slice(name.indexOf(' ') + 1).replace(/\/0*(\d+)$/, '.$1')) ?? []
    // A run that its node begins anew after it was killed has a number of its own.
    const ofLease = runs.filter(({ task }) => task.attempt >= attempt)
    const is = ({ outcome }: ItemRun): boolean =>
      outcome !== null &&
      (outcome.ok ? status === 'completed' && outcome.result === result : error?.code === outcome.code)
    if (status === 'completed' && !ofLease.some(is)) this.#fault(`no run of ${holder} gave the result of ${name}`)
    if (error?.code === 'TASK_FAILED' && !ofLease.some(is)) this.#fault(`no run of ${holder} failed as ${name} did`)
    if (status === 'unknown' && runs.some(({ task }) => (task.input as AskedInput).mayRepeat))
      this.#fault(`${name} is unknown, and may be repeated`)
  }

  #fault(what: string): void {
    this.#parts.fault(what)
  }
}

/** Is it the request of an item of a swarm? */
export function isOfSwarm(requestId: string): boolean {
  return requestId.startsWith('swarm_')
}

function hasFailed({ outcome }: ItemRun): boolean {
  return outcome !== null && !outcome.ok && outcome.code === 'TASK_FAILED'
}

function read(bytes: Uint8Array): unknown {
  const payload = decodePayload(bytes)
  if (!payload.ok) throw new Error('a record of a swarm cannot be read')
  return payload.value
}

function forget(known: Map<string, unknown>, node: string): void {
  for (const name of known.keys()) if (name.startsWith(`${node} `)) known.delete(name)
}
