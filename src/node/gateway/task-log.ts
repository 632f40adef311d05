import { type Clock, wait } from '../../kit/clock.js'
import { messageOf } from '../../kit/errors.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { KeyRange } from '../../domain/gateway/push-records.js'
import { eventRange, GATEWAY_KEYS, TASK_RANGE, taskIdOf } from '../../domain/gateway/records.js'
import { decodeLog, decodeTask, encodeLog, encodeTask } from '../../domain/gateway/task-record.js'
import {
  applyGateway,
  ENDED_STATES,
  type GatewayEvent,
  type GatewayInput,
  type GatewaySnapshot,
  type GatewayTask,
  snapshotOf
} from '../../domain/gateway/task.js'
import type { Message } from '../../domain/gateway/message.js'
import type { ContentsTurn } from '../../ports/gateway.js'
import type { Ledger, LedgerChange, LedgerEntry } from '../../ports/ledger.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { Abort } from '../../kit/abort.js'
import { TransientMap } from '../../kit/transient.js'

/** Bounds of one read of the ledger. */
interface ReadSize {
  /** Entries of the first read. */
  readonly first: number
  readonly most: number
  /** Approximate: each entry may be as large as a message. */
  readonly bytes: number
}

const READ: ReadSize = { first: 16, most: 512, bytes: 4_194_304 }
/** For a reader who may be slow: the entries are in memory until they are taken. */
const SLOW_READ: ReadSize = { first: 1, most: 16, bytes: 262_144 }
/** Delay before a failed commit is retried, in milliseconds. */
const AGAIN_MS = 1000

/** The tasks whose events are kept in memory, and the characters of all of them: others are read from the disk. */
const RECENT_TASKS = 128
const RECENT_LENGTH = 2_097_152
/** Characters of a log stored in the record of its task: lists read those of many tasks at once. */
const WHOLE_LENGTH = 16_384

/** Dependencies of {@link TaskLog}. */
export interface TaskLogDeps {
  readonly clock: Clock
  readonly ledger: Ledger
  readonly telemetry: Telemetry
}

/** Further changes for the commit of events of an existing task. */
export type Alongside = (task: GatewayTask, events: readonly GatewayEvent[]) => readonly LedgerChange[]

/** A task with events that are not durable yet. */
interface Writing {
  /** Resolves once the first commit succeeds; rejects when it fails. */
  begun: Promise<void> | null
  /** The task after all applied events. */
  task: GatewayTask
  events: GatewayEvent[]
}

/** Durable events of a task. */
export interface EventRange {
  /** Generation of the event before them; 0: from the first one. */
  readonly after: number
  /** Generation of the last one. */
  readonly to: number
  /** Default: the read waits for nobody. */
  readonly turn?: ContentsTurn | undefined
}

/** Options of a read of a range of keys. */
interface ReadOptions {
  /** Entries in all. */
  readonly most: number
  readonly size: ReadSize
  readonly turn?: ContentsTurn | undefined
}

const ALL: ReadOptions = { most: Number.POSITIVE_INFINITY, size: READ }

/** A durable event, with its task after it. */
export interface TaskUpdate {
  readonly task: GatewayTask
  readonly event: GatewayEvent
}

/**
 * The event logs of gateway tasks in the ledger. Listeners get an event once it is durable. Events that arrive during a
 * commit go into the next one.
 */
export class TaskLog {
  readonly #deps: TaskLogDeps
  readonly #writing = new TransientMap<string, Writing>()
  readonly #recent = new RecentEvents()
  /** By task. */
  readonly #listeners = new TransientMap<string, Set<(update: TaskUpdate | null) => void>>()
  readonly #onTask: (task: GatewayTask, isFirst: boolean) => void
  readonly #alongside: Alongside
  readonly #stopped = new Abort()

  /** `onTask`: called before all listeners with each durable task, and whether it is new. */
  constructor(
    deps: TaskLogDeps,
    onTask: (task: GatewayTask, isFirst: boolean) => void,
    alongside: Alongside = () => []
  ) {
    this.#deps = deps
    this.#onTask = onTask
    this.#alongside = alongside
  }

  /** Every task in the ledger, in the order of ids. @throws NodeError STORE_DAMAGED */
  async *tasks(): AsyncIterable<GatewayTask> {
    for await (const { key, value } of this.#all(TASK_RANGE)) {
      const record = decodeTask(taskIdOf(key), value)
      if (record !== null) yield record.task
    }
  }

  /** Calls back with each event of a task once it is durable; null: the task was removed. A listener must not throw. */
  on(id: string, listener: (update: TaskUpdate | null) => void): Unsubscribe {
    const listeners = this.#listeners.get(id) ?? new Set()
    this.#listeners.set(id, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#listeners.get(id) === listeners) this.#listeners.delete(id)
    }
  }

  /** The task with its events that are not durable yet. */
  current(task: GatewayTask): GatewayTask {
    return this.#writing.get(task.id)?.task ?? task
  }

  /**
   * Writes a task with its first events and the changes of `more`. Events until the commit go into it, too. Returns the
   * task with its first events. `durable` rejects with the ledger's error: then the task does not exist.
   */
  begin(task: GatewayTask, inputs: readonly GatewayInput[], more: readonly LedgerChange[]): BegunTask {
    let now = task
    const events: GatewayEvent[] = []
    for (const input of inputs) {
      const step = applyGateway(now, input, this.#deps.clock.now())
      if (!step.ok) throw new Error(`a gateway task does not begin so: ${step.reason}`)
      now = step.task
      events.push(step.event)
    }
    const writing: Writing = { begun: null, task: now, events }
    this.#writing.set(task.id, writing)
    writing.begun = this.#writeFirst(writing, more)
    return { task: now, durable: writing.begun }
  }

  /** Waits until a beginning task is durable or failed to begin. Never rejects. */
  async begun(id: string): Promise<void> {
    await this.#writing.get(id)?.begun?.catch(() => {})
  }

  /** A task with events that are not durable yet; undefined for any other. */
  changing(id: string): GatewayTask | undefined {
    return this.#writing.get(id)?.task
  }

  /** Applies an event and writes it, with retries. Returns why it does not fit, else null. */
  add(task: GatewayTask, input: GatewayInput): string | null {
    const known = this.#writing.get(task.id)
    const step = applyGateway(known?.task ?? task, input, this.#deps.clock.now())
    if (!step.ok) return step.reason
    const writing = known ?? { begun: null, task, events: [] }
    writing.task = step.task
    writing.events.push(step.event)
    if (known === undefined) {
      this.#writing.set(task.id, writing)
      void this.#write(writing)
    }
    return null
  }

  /** The contents of a task, without a promise when its events are in memory. @throws NodeError STORE_DAMAGED */
  snapshot(task: GatewayTask, turn?: ContentsTurn): GatewaySnapshot | Promise<GatewaySnapshot> {
    const { id, generation } = task
    const recent = this.#recent.of(id, generation)
    if (recent === null)
      return this.events(id, { after: 0, to: generation, turn }).then((events) => snapshotOf(task, events))
    return snapshotOf(task, recent.events.length === generation ? recent.events : recent.events.slice(0, generation))
  }

  /** Durable events of a range. */
  async events(id: string, range: EventRange): Promise<GatewayEvent[]> {
    const recent = this.#recent.of(id, range.to)
    // The first one has the generation 1, and none is missing.
    if (recent !== null) return recent.events.slice(range.after, range.to)
    const events: GatewayEvent[] = []
    for await (const some of this.#eventsByRecord(id, range, READ)) for (const event of some) events.push(event)
    return events
  }

  /** Durable events of a range, as they were recorded together, for a reader who may be slow. */
  eventsByRecord(id: string, range: EventRange): AsyncIterable<GatewayEvent[]> {
    return this.#eventsByRecord(id, range, SLOW_READ)
  }

  async *#eventsByRecord(id: string, range: EventRange, size: ReadSize): AsyncIterable<GatewayEvent[]> {
    if (range.after >= range.to) return
    for await (const { events } of this.#records(id, range, size)) {
      const some = within(events, range)
      const isLast = some.at(-1)?.generation === range.to
      yield some
      if (isLast) return
    }
  }

  /**
   * The message of a client by id in a task, null for none, and the length of all its records.
   * @throws NodeError STORE_DAMAGED
   */
  async recordMessage(
    { id, generation }: GatewayTask,
    messageId: string
  ): Promise<{ readonly message: Message | null; readonly bytes: number }> {
    const isIt = (event: GatewayEvent): boolean =>
      event.type === 'message' && event.message.role === 'user' && event.message.messageId === messageId
    let found: GatewayEvent | undefined
    let bytes = 0
    for await (const { events, length } of this.#records(id, { after: 0, to: generation })) {
      bytes += length
      found ??= events.find(isIt)
    }
    return { message: found?.type === 'message' ? found.message : null, bytes }
  }

  /** The records of a task's durable events after a generation, one at a time: all together may be large. */
  async *#records(
    id: string,
    { after, to, turn }: EventRange,
    size = READ
  ): AsyncIterable<{ readonly events: readonly GatewayEvent[]; readonly length: number }> {
    const recent = this.#recent.of(id, to)
    if (recent !== null) return yield recent
    await turn?.take()
    const bytes = await this.#deps.ledger.get(GATEWAY_KEYS.task(id))
    const record = bytes === null ? null : decodeTask(id, bytes)
    // The task was removed meanwhile.
    if (bytes === null || record === null) return
    turn?.read(bytes.byteLength)
    if (record.log !== null) return yield { events: record.log, length: bytes.byteLength }
    // Each record has at least one event.
    for await (const { value } of this.#all(eventRange(id, after), { most: to - after, size, turn })) {
      const events = decodeLog(record.task, value)
      if (events === null) return
      yield { events, length: value.byteLength }
    }
  }

  /** A caller has the end of the task: drops its events from memory. */
  recordSent(id: string): void {
    this.#recent.drop(id)
  }

  /** Removes a task with its log. */
  async remove(task: GatewayTask): Promise<void> {
    const keys = [GATEWAY_KEYS.task(task.id)]
    for await (const { key } of this.#all(eventRange(task.id, 0))) keys.push(key)
    await this.#deps.ledger.commit(keys.map((key) => ({ key, value: null })))
    for (const listener of [...(this.#listeners.get(task.id) ?? [])]) listener(null)
  }

  /** Stops all retries. */
  stop(): void {
    this.#stopped.abort()
  }

  #tell({ task, events, length }: Batch, isFirst: boolean): void {
    this.#recent.add(task.id, events, length)
    this.#onTask(task, isFirst)
    const listeners = this.#listeners.get(task.id)
    if (listeners !== undefined)
      for (const event of events) for (const listener of [...listeners]) listener({ task, event })
  }

  async #writeFirst(writing: Writing, more: readonly LedgerChange[]): Promise<void> {
    const { id } = writing.task
    const batch = new Batch(writing, () => more)
    try {
      await this.#deps.ledger.commit(() => batch.take())
    } catch (error) {
      this.#writing.delete(id)
      throw error
    }
    this.#tell(batch, true)
    if (writing.events.length > 0) void this.#write(writing)
    else this.#writing.delete(id)
  }

  async #write(writing: Writing): Promise<void> {
    const { clock, ledger, telemetry } = this.#deps
    // Events of the same turn go into one commit.
    await Promise.resolve()
    while (writing.events.length > 0 && !this.#stopped.aborted) {
      const batch = new Batch(writing, this.#alongside)
      try {
        await ledger.commit(() => batch.take())
      } catch (error) {
        batch.giveBack()
        telemetry.count('errors', 'ledger')
        telemetry.log('warn', 'what happened to a task could not be recorded yet', {
          task: writing.task.id,
          reason: messageOf(error)
        })
        await wait(clock, AGAIN_MS, this.#stopped)
        continue
      }
      this.#tell(batch, false)
    }
    this.#writing.delete(writing.task.id)
  }

  async *#all({ from, to }: KeyRange, { most, size, turn }: ReadOptions = ALL): AsyncIterable<LedgerEntry> {
    let left = most
    let limit = Math.min(size.first, left)
    for (let next = from; left > 0; ) {
      await turn?.take()
      const entries = await this.#deps.ledger.list({ from: next, to, limit })
      const bytes = entries.reduce((sum, { value }) => sum + value.byteLength, 0)
      turn?.read(bytes)
      yield* entries
      left -= entries.length
      const last = entries.at(-1)
      if (last === undefined || entries.length < limit) return
      limit = Math.min(size.most, left, Math.max(1, Math.floor((size.bytes * limit) / bytes)))
      // The smallest key after the last one.
      next = `${last.key}!`
    }
  }
}

function within(events: readonly GatewayEvent[], { after, to }: EventRange): GatewayEvent[] {
  return events.filter(({ generation }) => generation > after && generation <= to)
}

/** A beginning task. */
export interface BegunTask {
  readonly task: GatewayTask
  readonly durable: Promise<void>
}

/** One commit of a task: all events until the ledger takes it. */
class Batch {
  readonly #writing: Writing
  readonly #alongside: Alongside
  task: GatewayTask
  events: GatewayEvent[] = []
  /** Characters of the record with the events. */
  length = 0

  constructor(writing: Writing, alongside: Alongside) {
    this.#writing = writing
    this.#alongside = alongside
    this.task = writing.task
  }

  take(): LedgerChange[] {
    const { task, events } = this.#writing
    this.#writing.events = []
    this.task = task
    this.events = events
    const changes = this.#recorded(task, events)
    for (const change of this.#alongside(task, events)) changes.push(change)
    return changes
  }

  #recorded(task: GatewayTask, events: readonly GatewayEvent[]): LedgerChange[] {
    const key = GATEWAY_KEYS.task(task.id)
    const log = encodeLog(task, events)
    this.length = log.length
    const isWhole = events[0]?.generation === 1 && ENDED_STATES.has(task.state) && log.length <= WHOLE_LENGTH
    if (isWhole) return [{ key, value: encodeTask(task, log) }]
    return [
      { key, value: encodeTask(task) },
      { key: GATEWAY_KEYS.events(task.id, task.generation), value: log }
    ]
  }

  /** Returns the events after a failed commit, which perhaps took none. */
  giveBack(): void {
    this.#writing.events.unshift(...this.events.splice(0))
  }
}

/** All events of a task. */
interface RecentLog {
  readonly id: string
  readonly events: GatewayEvent[]
  /** Characters of their records. */
  length: number
}

/** Events of the newest tasks, so that waiting callers need not read them from the disk. */
class RecentEvents {
  /** Roughly in the order of their beginnings. Few, each kept until its answer: a map would be rebuilt all the time. */
  readonly #logs: RecentLog[] = []
  /** Characters of all. */
  #length = 0

  /** `length`: of the record with the events. */
  add(id: string, events: GatewayEvent[], length: number): void {
    const log = this.#at(id)
    if (log !== null) {
      for (const event of events) log.events.push(event)
      log.length += length
    } else if (events[0]?.generation === 1) this.#logs.push({ id, events, length })
    else return
    this.#length += length
    while (this.#logs.length > RECENT_TASKS || this.#length > RECENT_LENGTH)
      this.#length -= this.#logs.shift()?.length ?? 0
  }

  /** All events up to a generation, and maybe later ones; null when they are not in memory. */
  of(id: string, to: number): Readonly<RecentLog> | null {
    const log = this.#at(id)
    return log !== null && log.events.length >= to ? log : null
  }

  drop(id: string): void {
    const at = this.#logs.findLastIndex((log) => log.id === id)
    const log = this.#logs[at]
    if (log === undefined) return
    this.#length -= log.length
    const last = this.#logs.pop()
    if (last !== undefined && at < this.#logs.length) this.#logs[at] = last
  }

  #at(id: string): RecentLog | null {
    for (let at = this.#logs.length - 1; at >= 0; at--) if (this.#logs[at]?.id === id) return this.#logs[at] ?? null
    return null
  }
}
