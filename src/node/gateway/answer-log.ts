import { messageOf } from '../../kit/errors.js'
import { fromUtf8, utf8 } from '../../kit/ids.js'
import { isRecord } from '../../kit/json.js'
import { sizeOf } from '../../kit/size.js'
import { MAX_HISTORY } from '../../domain/gateway/conversation.js'
import { earlier, type ContextExchange, type ContextPlace } from '../../domain/gateway/conversation-turns.js'
import { ANSWER_RANGE, GATEWAY_KEYS } from '../../domain/gateway/records.js'
import type { LedgerChange } from '../../ports/ledger.js'
import type { TaskLogDeps } from './task-log.js'

/** Most messages in the ledger that were answered without a task. */
export const MAX_ANSWERED = 10_000
/** Bytes of them together. */
export const MAX_ANSWERED_BYTES = 67_108_864
/** How many answers are in memory alone, and their bytes, about: those of contexts with one message. */
const [MAX_FRESH, MAX_FRESH_BYTES] = [4096, 16_777_216]
/** Records per read. */
const READ_RECORDS = 256

interface AnswerEntry {
  readonly owner: string
  readonly context: string
  readonly at: number
  readonly bytes: number
}

/** An answer in memory alone. */
interface FreshAnswer {
  readonly place: ContextPlace
  readonly exchange: ContextExchange
  readonly bytes: number
}

/**
 * Messages that agents answered without a task, by context. Most contexts have one message: its answer is in memory
 * until the context has a second one, or the node stops. The owner with the most records loses its oldest first.
 */
export class AnswerLog {
  readonly #deps: TaskLogDeps
  readonly #kept = new Map<string, AnswerEntry>()
  /** Keys of records by owner, and by context; the oldest first. */
  readonly #owners = new Map<string, Set<string>>()
  readonly #contexts = new Map<string, Set<string>>()
  /** By the id of the context, which this node made. */
  readonly #fresh = new Map<string, FreshAnswer>()
  #bytes = 0
  #freshBytes = 0
  #count = 0

  constructor(deps: TaskLogDeps) {
    this.#deps = deps
  }

  /** Reads what is in the ledger. @throws NodeError STORE_DAMAGED */
  async start(): Promise<void> {
    const { ledger } = this.#deps
    for (let from: string = ANSWER_RANGE.from; ; ) {
      const entries = await ledger.list({ ...ANSWER_RANGE, from, limit: READ_RECORDS })
      for (const { key, value } of entries) {
        const read = decoded(value)
        if (read !== null) this.#enter(key, { ...read, bytes: value.byteLength, at: read.exchange[1].at })
      }
      const last = entries.at(-1)
      if (last === undefined) return
      this.#count = Number(last.key.slice(ANSWER_RANGE.from.length))
      from = `${last.key}!`
    }
  }

  /** The newest exchanges of a context, the oldest first; all are on record now. @throws NodeError STORE_DAMAGED */
  async of(place: ContextPlace): Promise<readonly ContextExchange[]> {
    const { ledger } = this.#deps
    const read: ContextExchange[] = []
    for (const key of [...(this.#contexts.get(keyOf(place)) ?? [])].slice(-MAX_HISTORY)) {
      const bytes = await ledger.get(key)
      const one = bytes === null ? null : decoded(bytes)
      if (one !== null) read.push(one.exchange)
    }
    const { contextId } = place
    const fresh = this.#fresh.get(contextId)
    if (fresh === undefined || keyOf(fresh.place) !== keyOf(place)) return read
    this.#forget(contextId)
    await this.put(place, fresh.exchange)
    return [...read, fresh.exchange]
  }

  /** Every context with answers, and the time of the newest one: unix milliseconds. */
  *contexts(): IterableIterator<readonly [place: ContextPlace, at: number]> {
    for (const [context, keys] of this.#contexts)
      yield [placeOf(context), this.#kept.get([...keys].at(-1) ?? '')?.at ?? 0]
    for (const { place, exchange } of this.#fresh.values())
      if (!this.#contexts.has(keyOf(place))) yield [place, exchange[1].at]
  }

  /** Remembers the first exchange of a context that no client has named yet. */
  remember(place: ContextPlace, exchange: ContextExchange): void {
    const bytes = sizeOf(exchange)
    this.#fresh.set(place.contextId, { place, exchange, bytes })
    this.#freshBytes += bytes
    while (this.#fresh.size > MAX_FRESH || this.#freshBytes > MAX_FRESH_BYTES) this.#forgetOfLargest()
  }

  /** The owner with the most bytes loses the older half of its answers: many at once, since each look is at all. */
  #forgetOfLargest(): void {
    const owners = new Map<string, { bytes: number; readonly contexts: string[] }>()
    let largest: { bytes: number; readonly contexts: string[] } = { bytes: 0, contexts: [] }
    for (const [context, { place, bytes }] of this.#fresh) {
      const one = owners.get(place.owner) ?? { bytes: 0, contexts: [] }
      one.bytes += bytes
      one.contexts.push(context)
      owners.set(place.owner, one)
      if (one.bytes > largest.bytes) largest = one
    }
    const { contexts } = largest
    for (const context of contexts.slice(0, Math.ceil(contexts.length / 2))) this.#forget(context)
  }

  #forget(context: string): void {
    this.#freshBytes -= this.#fresh.get(context)?.bytes ?? 0
    this.#fresh.delete(context)
  }

  /** Records an exchange. Resolves when it is durable. @throws NodeError of the ledger */
  async put(place: ContextPlace, exchange: ContextExchange): Promise<void> {
    await this.#deps.ledger.commit(this.#changes(place, exchange))
  }

  #changes(place: ContextPlace, exchange: ContextExchange): LedgerChange[] {
    const [asked, { at, message }] = exchange
    const short: ContextExchange = [
      { at: asked.at, message: earlier(asked.message) },
      { at, message: earlier(message) }
    ]
    const { owner } = place
    const context = keyOf(place)
    const value = utf8(JSON.stringify([owner, context, short]))
    const key = GATEWAY_KEYS.answer(++this.#count)
    this.#enter(key, { owner, context, at, bytes: value.byteLength })
    return [{ key, value }, ...this.#removals(() => this.#kept.size > MAX_ANSWERED || this.#bytes > MAX_ANSWERED_BYTES)]
  }

  #removals(isFull: () => boolean): LedgerChange[] {
    const changes: LedgerChange[] = []
    while (isFull()) {
      let largest: Set<string> | undefined
      for (const keys of this.#owners.values()) if (keys.size > (largest?.size ?? 0)) largest = keys
      for (const key of largest ?? []) {
        changes.push({ key, value: null })
        this.#leave(key)
        break
      }
      if (largest === undefined) break
    }
    return changes
  }

  #enter(key: string, kept: AnswerEntry): void {
    this.#kept.set(key, kept)
    this.#bytes += kept.bytes
    for (const [map, name] of [
      [this.#owners, kept.owner],
      [this.#contexts, kept.context]
    ] as const)
      map.set(name, (map.get(name) ?? new Set()).add(key))
  }

  #leave(key: string): void {
    const kept = this.#kept.get(key)
    if (kept === undefined) return
    this.#kept.delete(key)
    this.#bytes -= kept.bytes
    for (const [map, name] of [
      [this.#owners, kept.owner],
      [this.#contexts, kept.context]
    ] as const) {
      const keys = map.get(name)
      keys?.delete(key)
      if (keys?.size === 0) map.delete(name)
    }
  }

  /** Removes those from before a time, unix milliseconds. Never rejects. */
  async sweep(before: number): Promise<void> {
    const old: string[] = []
    for (const [key, { at }] of this.#kept) if (at < before) old.push(key)
    for (const key of old) this.#leave(key)
    for (const [context, { exchange }] of this.#fresh) if (exchange[1].at < before) this.#forget(context)
    await this.#commit(old.map((key) => ({ key, value: null })))
  }

  /** Records what is in memory alone. */
  stop(): void {
    const changes = [...this.#fresh.values()].flatMap(({ place, exchange }) => this.#changes(place, exchange))
    this.#fresh.clear()
    void this.#commit(changes)
  }

  async #commit(changes: readonly LedgerChange[]): Promise<void> {
    if (changes.length === 0) return
    await this.#deps.ledger.commit(changes).catch((error: unknown) => {
      this.#deps.telemetry.count('errors', 'ledger')
      this.#deps.telemetry.log('warn', 'answers without a task could not be recorded', { reason: messageOf(error) })
    })
  }
}

/** One text for a context of a caller with an agent. */
export function keyOf({ owner, contextId, agent }: ContextPlace): string {
  return JSON.stringify([owner, contextId, agent])
}

function placeOf(key: string): ContextPlace {
  const [owner, contextId, agent] = JSON.parse(key) as [string, string, string]
  return { owner, contextId, agent }
}

/** Decodes a record of this node; null for an invalid one. */
function decoded(
  bytes: Uint8Array
): { readonly owner: string; readonly context: string; readonly exchange: ContextExchange } | null {
  try {
    const [owner, context, exchange] = JSON.parse(fromUtf8(bytes)) as [string, string, ContextExchange]
    return isRecord(exchange[0].message) && isRecord(exchange[1].message) ? { owner, context, exchange } : null
  } catch {
    return null
  }
}
