import { MAX_CANDIDATES } from '../../kit/resolve-id.js'
import { asNodeError } from '../../kit/errors.js'
import { fromUtf8, utf8 } from '../../kit/ids.js'
import type { Hash } from '../../kit/sign.js'
import { KEYS, nameOfIndexKey, rangeOf, rangeUpTo, requestName } from '../../domain/reliable/keys.js'
import { requestRecord, type RequestRecord } from '../../domain/reliable/records.js'
import { SETTLED } from '../../domain/reliable/request.js'
import type { Ledger, LedgerChange } from '../../ports/ledger.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { ledgerEntries } from '../ledger/scan.js'

/** Requests removed per commit. */
const PAGE = 500
/** Names kept in memory: a request is written several times within a short time. */
const KEPT_NAMES = 2048
const NO_VALUE = new Uint8Array(0)
/** Keys of the indexes whose values are names. */
const NAMED = [KEYS.task(''), KEYS.asked('')]

type Identity = Parameters<typeof requestName>[0]

interface NamedRequest {
  readonly request: Identity
  readonly name: string
}

/** Contents of a request beside its record. */
export interface RequestContents {
  /** Its encoded input. */
  readonly input?: Uint8Array
  /** Its encoded result. */
  readonly result?: Uint8Array
}

/** The requests of a ledger: their records, and the indexes of open and of expiring ones. */
export class RequestStore {
  readonly #ledger: Ledger
  readonly #hash: Hash
  readonly #telemetry: Telemetry | null
  /** By request id. */
  readonly #names = new Map<string, NamedRequest>()

  /** `telemetry`: gets each damaged record that a listing leaves out. */
  constructor(ledger: Ledger, hash: Hash, telemetry: Telemetry | null = null) {
    this.#ledger = ledger
    this.#hash = hash
    this.#telemetry = telemetry
  }

  /** The name of a request in the ledger. */
  name(request: Identity): string {
    const known = this.#names.get(request.requestId)
    if (known !== undefined && isSame(known.request, request)) return known.name
    const name = requestName(request, this.#hash)
    if (this.#names.size >= KEPT_NAMES) this.#names.clear()
    // Not the whole record: that would keep the peer's texts as well.
    const { role, source, target, requestId, attempt } = request
    this.#names.set(requestId, { request: { role, source, target, requestId, attempt }, name })
    return name
  }

  /** The changes that replace a record (null: there was none). Commit them with the changes that depend on it. */
  changes(before: RequestRecord | null, after: RequestRecord, { input, result }: RequestContents = {}): LedgerChange[] {
    const name = this.name(after)
    // A run begins or a repeat is sent: only its record changes.
    if (
      before !== null &&
      isIndexedAlike(before, after) &&
      !SETTLED.has(after.status) &&
      input === undefined &&
      result === undefined
    )
      return [{ key: KEYS.request(name), value: requestRecord.encode(after), isNew: false }]
    const here = indexKeys(name, after)
    const were = before === null ? [] : indexKeys(name, before)
    // Only keys with its name are new; another attempt may have the others.
    const isNew = before === null
    const changes: LedgerChange[] = [{ key: KEYS.request(name), value: requestRecord.encode(after), isNew }]
    for (const key of were) if (!here.includes(key)) changes.push({ key, value: null })
    for (const key of here)
      if (!were.includes(key))
        changes.push(
          NAMED.some((kind) => key.startsWith(kind)) ? { key, value: utf8(name) } : { key, value: NO_VALUE, isNew }
        )
    if (before !== null && before.expiresAt !== after.expiresAt)
      changes.push({ key: KEYS.expiry(before.expiresAt, name), value: null })
    // The list of its index keys saves a search when it is removed.
    if (changes.length > 1 || before === null)
      changes.push({ key: KEYS.expiry(after.expiresAt, name), value: utf8(here.join('\n')), isNew })
    if (input !== undefined) changes.push({ key: KEYS.input(name), value: input, isNew })
    // It never runs again.
    else if (SETTLED.has(after.status)) changes.push({ key: KEYS.input(name), value: null })
    if (result !== undefined) changes.push({ key: KEYS.result(name), value: result })
    return changes
  }

  /** The changes that remove a request with all its entries. */
  removal(record: RequestRecord): LedgerChange[] {
    const name = this.name(record)
    return [KEYS.expiry(record.expiresAt, name), ...wholeOf(name), ...indexKeys(name, record)].map((key) => ({
      key,
      value: null
    }))
  }

  /**
   * Records of requests by the beginning of their task ids, the first {@link MAX_CANDIDATES}.
   * @throws NodeError STORE_DAMAGED
   */
  async ofTasks(taskId: string): Promise<RequestRecord[]> {
    if (!/^[!-}]{1,64}$/.test(taskId)) return []
    const from = KEYS.task(taskId)
    // The character after all characters of ids.
    const rows = await this.#ledger.list({ from, to: `${from}~`, limit: MAX_CANDIDATES })
    const records = await Promise.all(rows.map(({ value }) => this.get(fromUtf8(value))))
    return records.filter((record) => record !== null)
  }

  /** A request of this node; null when there is none. @throws NodeError STORE_DAMAGED */
  async asked(requestId: string): Promise<RequestRecord | null> {
    if (!/^[!-~]{1,64}$/.test(requestId)) return null
    const name = await this.#ledger.get(KEYS.asked(requestId))
    return name === null ? null : await this.get(fromUtf8(name))
  }

  /** Requests with an outcome, the earliest expiry first. */
  async *settled(): AsyncGenerator<RequestRecord> {
    for await (const record of this.#indexed('request-expiry', Number.MAX_SAFE_INTEGER - 1))
      if (SETTLED.has(record.status)) yield record
  }

  /** A record by the name of its request; null when there is none. @throws NodeError STORE_DAMAGED */
  async get(name: string): Promise<RequestRecord | null> {
    const bytes = await this.#ledger.get(KEYS.request(name))
    return bytes === null ? null : requestRecord.decode(bytes)
  }

  /** The input of a request; null when it is no longer kept: it is removed when the request ends. */
  input(name: string): Promise<Uint8Array | null> {
    return this.#ledger.get(KEYS.input(name))
  }

  /** The result of a request; null when there is none, or it is no longer kept. */
  result(name: string): Promise<Uint8Array | null> {
    return this.#ledger.get(KEYS.result(name))
  }

  /** Requests without an outcome made up to a time (Unix milliseconds; default: all), oldest first. */
  pending(olderThan = Number.MAX_SAFE_INTEGER - 1): AsyncGenerator<RequestRecord> {
    return this.#indexed('request-open', olderThan)
  }

  /** The requests with the latest expiry, at most `limit`: recent ones and ones with a long timeout. */
  async lasting(limit: number): Promise<RequestRecord[]> {
    const keys = await this.#ledger.list({ ...rangeOf('request-expiry'), limit, isReverse: true })
    const records = await Promise.all(keys.map(({ key }) => this.#listed(nameOfIndexKey(key))))
    return records.filter((record) => record !== null)
  }

  /** Removes every expired request with all its entries. Returns their number. */
  async purgeExpired(now: number): Promise<number> {
    let purged = 0
    const { from, to } = rangeUpTo('request-expiry', now)
    // Not from the start each time: a store reads past keys that were just removed.
    for (let next = from; ; ) {
      const page = await this.#ledger.list({ from: next, to, limit: PAGE })
      const last = page.at(-1)
      if (last === undefined) return purged
      next = last.key
      const changes: LedgerChange[] = []
      for (const { key, value } of page) {
        const name = nameOfIndexKey(key)
        const indexes = fromUtf8(value)
          .split('\n')
          .filter((one) => one !== '')
        for (const one of [key, ...wholeOf(name), ...indexes]) changes.push({ key: one, value: null })
      }
      await this.#ledger.commit(changes)
      purged += page.length
    }
  }

  /** One damaged record must not hide the others: a node would not even start. */
  async #listed(name: string): Promise<RequestRecord | null> {
    const bytes = await this.#ledger.get(KEYS.request(name))
    try {
      return bytes === null ? null : requestRecord.decode(bytes)
    } catch (error) {
      if (asNodeError(error).code !== 'STORE_DAMAGED') throw error
      this.#telemetry?.count('errors', 'ledger')
      this.#telemetry?.log('error', 'the record of a request is damaged, and left out', { record: name })
      return null
    }
  }

  async *#indexed(kind: Parameters<typeof rangeUpTo>[0], time: number): AsyncGenerator<RequestRecord> {
    for await (const { key } of ledgerEntries(this.#ledger, rangeUpTo(kind, time))) {
      const record = await this.#listed(nameOfIndexKey(key))
      if (record !== null) yield record
    }
  }
}

function isSame(one: Identity, other: Identity): boolean {
  const isSameTry = one.role === other.role && one.attempt === other.attempt && one.requestId === other.requestId
  return isSameTry && one.source === other.source && one.target === other.target
}

/** Do both have the same index keys? */
function isIndexedAlike(one: RequestRecord, other: RequestRecord): boolean {
  const isSameKind =
    one.role === other.role &&
    one.requestId === other.requestId &&
    SETTLED.has(one.status) === SETTLED.has(other.status)
  return (
    isSameKind && one.taskId === other.taskId && one.createdAt === other.createdAt && one.expiresAt === other.expiresAt
  )
}

function wholeOf(name: string): string[] {
  return [KEYS.request(name), KEYS.input(name), KEYS.result(name)]
}

function indexKeys(name: string, { role, requestId, status, createdAt, taskId }: RequestRecord): string[] {
  const keys = role === 'caller' ? [KEYS.asked(requestId)] : []
  if (!SETTLED.has(status)) keys.push(KEYS.open(createdAt, name))
  if (taskId !== null) keys.push(KEYS.task(taskId))
  return keys
}
