import type { Clock, Timer } from '../kit/clock.js'
import { messageOf } from '../kit/errors.js'
import { decodePayload } from '../domain/envelope/codec.js'
import type { RequestRecord } from '../domain/reliable/records.js'
import { recover, SETTLED } from '../domain/reliable/request.js'
import type { Ledger } from '../ports/ledger.js'
import type { Telemetry } from '../ports/telemetry.js'
import { parseAddress } from './directory.js'
import type { Inbox } from './inbox.js'
import { recordedTask } from './recorded-task.js'
import type { RecordedTask } from './recorded-task.js'
import type { RequestBook } from './request-book.js'
import type { Requests } from './requests.js'
import type { Swarms } from './swarms.js'
import type { Tasks } from './tasks.js'

/** How often requests that wait for the cards of their senders are looked at, in milliseconds. */
const AGAIN_MS = 1000
/** How often what has expired is removed, in milliseconds. */
const PURGE_MS = 600_000
/** Requests that ended which are listed again after a start. */
const LISTED = 500
/** Requests removed at once that make it worth giving their room back. */
const MANY = 1000

/** What taking up what was not finished needs. */
export interface RecoveryParts {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly book: RequestBook
  readonly ledger: Pick<Ledger, 'commit' | 'compact'>
  readonly requests: Pick<Requests, 'resume'>
  readonly inbox: Pick<Inbox, 'recover'>
  readonly tasks: Pick<Tasks, 'restore'>
  readonly swarms: Pick<Swarms, 'purgeExpired' | 'resume'>
}

/** Takes up what had no end when this node stopped, and removes what is past its time. */
export class Recovery {
  readonly #parts: RecoveryParts
  /** Requests of others that wait for the card of their sender. */
  #waiting: RequestRecord[] = []
  #timer: Timer | null = null
  #purgeTimer: Timer | null = null

  constructor(parts: RecoveryParts) {
    this.#parts = parts
  }

  /** Goes on with what this node asked of others, and lists again what ended lately. @throws NodeError STORE_DAMAGED */
  async resume(): Promise<void> {
    const { book, requests } = this.#parts
    const ended = (await book.lasting(LISTED)).filter(({ status }) => SETTLED.has(status))
    for (const record of ended.sort((a, b) => a.createdAt - b.createdAt)) await this.#restore(record)
    for await (const record of book.pending()) {
      if (record.role === 'callee') {
        this.#waiting.push(record)
        continue
      }
      await this.#restore(record)
      requests.resume(record)
    }
    await this.#parts.swarms.resume()
  }

  async #restore(record: RequestRecord): Promise<void> {
    const restored = await taskOf(this.#parts.book, record)
    if (restored !== null) this.#parts.tasks.restore(restored.task, restored.events)
  }

  /** Goes on with what others asked of this node, and begins to remove what is past its time. */
  async start(): Promise<void> {
    const { clock } = this.#parts
    this.#purgeTimer = clock.every(PURGE_MS, () => void this.#purge())
    await this.#again()
    if (this.#waiting.length > 0) this.#timer = clock.every(AGAIN_MS, () => void this.#again())
  }

  /** Nothing is taken up any more. */
  stop(): void {
    const { clock } = this.#parts
    this.#waiting = []
    clock.clear(this.#timer)
    clock.clear(this.#purgeTimer)
  }

  async #again(): Promise<void> {
    const records = this.#waiting
    this.#waiting = []
    for (const record of records) if (!(await this.#recovered(record))) this.#waiting.push(record)
    if (this.#waiting.length === 0) this.#parts.clock.clear(this.#timer)
  }

  async #recovered(record: RequestRecord): Promise<boolean> {
    const { book, inbox } = this.#parts
    const peer = parseAddress(record.source)?.nodeId
    const name = book.name(record)
    try {
      const envelope = await book.input(name)
      // The launcher of a swarm gives leases of what may be repeated to others; of the rest it is told that nobody can say.
      const isDone = recover({ ...record, runs: record.tries }) === 'unknown'
      const isGivenAway = record.swarm !== null && !isDone
      const isOver = isGivenAway || peer === undefined || envelope === null
      if (isOver) await this.#parts.ledger.commit(book.removal(record))
      if (isOver) return true
      return inbox.recover(peer, { envelope, recorded: { name, isFirst: true, isDone, isRefused: false } })
    } catch (error) {
      this.#note('a request that was not finished could not be read', error)
      return true
    }
  }

  async #purge(): Promise<void> {
    const { book, clock, ledger, swarms } = this.#parts
    try {
      const purged = (await book.purgeExpired(clock.now())) + (await swarms.purgeExpired(clock.now()))
      if (purged >= MANY) await ledger.compact()
    } catch (error) {
      this.#note('what has expired could not be removed', error)
    }
  }

  #note(what: string, error: unknown): void {
    this.#parts.telemetry.count('errors', 'ledger')
    this.#parts.telemetry.log('error', what, { reason: messageOf(error) })
  }
}

/** A task that is no longer in memory, by its id (or a beginning of it that no other has): as the ledger tells of it; null for none, or several. */
export async function taskOfLedger(book: RequestBook, prefix: string): Promise<RecordedTask | null> {
  const record = await book.ofTask(prefix)
  return record === null ? null : taskOf(book, record)
}

async function taskOf(book: RequestBook, record: RequestRecord): Promise<RecordedTask | null> {
  const bytes = record.status === 'completed' ? await book.result(book.name(record)) : null
  const read = bytes === null ? null : decodePayload(bytes)
  const payload = read?.ok === true ? read.value : null
  return recordedTask(record, record.role === 'caller' ? payload : resultOf(payload))
}

/** Of a callee the whole response is kept. */
function resultOf(response: unknown): unknown {
  return typeof response === 'object' && response !== null && 'result' in response ? response.result : null
}
