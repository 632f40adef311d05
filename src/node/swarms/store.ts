import { MAX_CANDIDATES } from '../../kit/resolve-id.js'
import { NodeError, type ErrorBody } from '../../kit/errors.js'
import { bytesToText, fromUtf8, utf8, type NodeId } from '../../kit/ids.js'
import { canonicalJson } from '../../kit/json.js'
import type { Hash } from '../../kit/sign.js'
import { decodePayload, encodePayload } from '../../domain/envelope/codec.js'
import { beginningWith, expiredSwarms, lastPart, rangeOfSwarm, SWARM_KEYS, SWARM_KINDS } from '../../domain/reliable/swarm-keys.js'
import type { CertifiedPower } from '../../domain/routing/effective.js'
import type { FinalSwarmStatus, KnownItem } from '../../domain/swarm/machine.js'
import type { Ledger, LedgerChange, LedgerEntry } from '../../ports/ledger.js'
import type { Stage } from '../../domain/swarm/expand.js'
import type { LeftOut, SwarmCounts, SwarmItemInput, SwarmRequest, SwarmResults, SwarmStageInfo } from '../../ports/swarm-api.js'
import { ledgerEntries } from '../ledger/scan.js'

/** Entries that one commit removes. */
const PAGE = 500
/** Bytes of the hash that names an idempotency key. */
const NAME_BYTES = 16
/** What an id, or the beginning of one, looks like. */
const ID = /^[!-}]{0,64}$/
const NO_VALUE = new Uint8Array(0)
/** Records of another version of this program have another number. */
const VERSION = 1

/** What a swarm is, and how it ended. Times are unix milliseconds. */
export interface SwarmHead {
  readonly id: string
  /** '' at a node that did not launch it. */
  readonly taskId: string
  /** Without its inputs and plan. */
  readonly request: SwarmRequest
  /** What its agents must be able to do, of one or the other sub-task; the first is the one that is asked for. */
  readonly capabilities: readonly string[]
  readonly stages: readonly Stage[]
  /** A template of its result; absent unless its plan has one. */
  readonly output?: unknown
  /** Who launched it, when that may be weaker than the operator. */
  readonly onBehalfOf?: CertifiedPower
  /** Shown addresses of those who were asked first. */
  readonly agents: readonly string[]
  readonly leftOut: readonly LeftOut[]
  readonly itemCount: number
  readonly createdAt: number
  readonly deadline: number
  /** When all of it may go. */
  readonly expiresAt: number
  /** The name of its idempotency key, and what it was launched with; null without one. */
  readonly key: { readonly name: string; readonly fingerprint: string } | null
  /** The ledger was put back to an older copy while it ran: nobody here knows what it has done since. */
  readonly isRestored?: boolean
  /** The nodes that vote on who coordinates it, its launcher first; absent where only the launcher ever does. */
  readonly voters?: readonly NodeId[]
  /** null while it has not ended. */
  readonly end: SwarmEnd | null
}

/** How a swarm ended. */
export interface SwarmEnd {
  readonly status: FinalSwarmStatus
  readonly counts: SwarmCounts
  readonly durationMs: number
  readonly error: ErrorBody | null
  readonly stages: readonly SwarmStageInfo[]
  /** Shown addresses. */
  readonly participants: readonly string[]
  readonly leftOut: readonly LeftOut[]
}

/** One item of a swarm. */
export interface SwarmItem {
  readonly name: string
  /** Address of the only agent that may do it. */
  readonly pinnedTo?: string
  /** Absent when it has no form in which it could be kept, and where a template makes it. */
  readonly input?: unknown
  /** Of the first item: what the swarm was given as input, for templates. */
  readonly given?: unknown
}

/** The one outcome of an item. */
export interface SwarmRow {
  readonly index: number
  /** Counts the outcomes of its swarm, in the order in which they were accepted. */
  readonly order: number
  /** Address; '' when it was never leased. */
  readonly holder: string
  readonly row: SwarmResults['results'][number]
}

/** The last lease of an item. */
export interface SwarmLease extends Omit<KnownItem, 'status' | 'leasedAt' | 'retryAt'> {
  /** When it was given, in Unix milliseconds; absent in those of older versions. */
  readonly leasedAt?: number
  /** It has ended without an outcome, and its item is not leased again before; absent while it may be live. */
  readonly rest?: ItemRest
}

/** How long an item is not leased. */
export interface ItemRest {
  /** Unix milliseconds. */
  readonly until: number
  /** The whole of it, in milliseconds: a clock that was put back makes it no longer. */
  readonly ms: number
}

/** The swarms of a ledger. */
export class SwarmStore {
  readonly #ledger: Ledger
  readonly #hash: Hash

  constructor(ledger: Ledger, hash: Hash) {
    this.#ledger = ledger
    this.#hash = hash
  }

  /** What an idempotency key is called here, and what tells its request from others. @throws NodeError PAYLOAD_TOO_LARGE, INVALID_ENVELOPE */
  key(key: string, { items = [], input, ...request }: SwarmRequest, capabilities: readonly string[]): NonNullable<SwarmHead['key']> {
    const { idempotencyKey: _key, ...rest } = request
    const digests = items.map((one: SwarmItemInput) => this.#hash(utf8(JSON.stringify(one.item)), encodePayload(one.input)))
    const parts = [utf8(canonicalJson({ ...rest, capabilities, count: items.length })), encodePayload(input ?? null), ...digests]
    const fingerprint = bytesToText(this.#hash(...parts))
    return { name: bytesToText(this.#hash(utf8(key)).subarray(0, NAME_BYTES)), fingerprint }
  }

  /** The changes with which a swarm begins here: launched, or handed over by its launcher (then it is no task of this node). */
  launched(head: SwarmHead, items: readonly SwarmItem[]): LedgerChange[] {
    const { id, key, taskId } = head
    return [
      ...this.#head(head),
      { key: SWARM_KEYS.open(id), value: NO_VALUE },
      ...(taskId === '' ? [] : [{ key: SWARM_KEYS.task(taskId), value: utf8(id) }]),
      ...(key === null ? [] : [{ key: SWARM_KEYS.key(key.name), value: utf8(id) }]),
      ...items.map((item, index) => ({ key: SWARM_KEYS.item(id, index), value: encodeItem(item) }))
    ]
  }

  /** The change with which an item is leased. */
  leased(id: string, lease: SwarmLease): LedgerChange {
    return { key: SWARM_KEYS.lease(id, lease.index), value: encodePayload(lease) }
  }

  /** The change with which an item has its outcome. @throws NodeError PAYLOAD_TOO_LARGE, INVALID_ENVELOPE for a result that cannot be kept. */
  settled(id: string, row: SwarmRow): LedgerEntry {
    return { key: SWARM_KEYS.result(id, row.index), value: encodePayload(row) }
  }

  /** The changes with which a swarm ends: its inputs and leases go. */
  ended(head: SwarmHead, after: { readonly end: SwarmEnd; readonly expiresAt: number }): LedgerChange[] {
    const { id, itemCount, expiresAt } = head
    const always = [SWARM_KEYS.open(id), SWARM_KEYS.cancel(id), SWARM_KEYS.expiry(expiresAt, id)]
    const gone = Array.from({ length: itemCount }, (_, index) => [SWARM_KEYS.item(id, index), SWARM_KEYS.lease(id, index)]).flat()
    return [...[...always, ...gone].map((key) => ({ key, value: null })), ...this.#head({ ...head, ...after })]
  }

  /** The change with which somebody here wishes a swarm canceled; it goes with its end. */
  cancelRequested(id: string): LedgerChange {
    return { key: SWARM_KEYS.cancel(id), value: NO_VALUE }
  }

  /** Does somebody here wish it canceled? @throws NodeError STORE_DAMAGED */
  async isCancelRequested(id: string): Promise<boolean> {
    return (await this.#ledger.get(SWARM_KEYS.cancel(id))) !== null
  }

  /** A swarm by its id; null for none. @throws NodeError STORE_DAMAGED */
  async get(id: string): Promise<SwarmHead | null> {
    const bytes = await this.#ledger.get(SWARM_KEYS.head(id))
    return bytes === null ? null : decodeHead(bytes)
  }

  /** The swarm of an idempotency key; null for none. @throws NodeError STORE_DAMAGED */
  async ofKey(name: string): Promise<SwarmHead | null> {
    const id = await this.#ledger.get(SWARM_KEYS.key(name))
    return id === null ? null : await this.get(fromUtf8(id))
  }

  /** The swarms of tasks whose ids begin with a text, the first {@link MAX_CANDIDATES}. @throws NodeError STORE_DAMAGED */
  async ofTasks(taskId: string): Promise<SwarmHead[]> {
    if (!ID.test(taskId)) return []
    const rows = await this.#ledger.list({ ...beginningWith(SWARM_KEYS.task(taskId)), limit: MAX_CANDIDATES })
    const heads = await Promise.all(rows.map(({ value }) => this.get(fromUtf8(value))))
    return heads.filter((head) => head !== null)
  }

  /** Swarms whose ids begin with a text, in no order. @throws NodeError STORE_DAMAGED */
  async *heads(prefix = ''): AsyncGenerator<SwarmHead> {
    if (!ID.test(prefix)) return
    for await (const { value } of ledgerEntries(this.#ledger, beginningWith(SWARM_KEYS.head(prefix)))) yield decodeHead(value)
  }

  /** The outcomes of a swarm's items so far, in order. @throws NodeError STORE_DAMAGED */
  async results(id: string): Promise<SwarmRow[]> {
    const rows: SwarmRow[] = []
    // This node wrote it.
    for await (const { value } of ledgerEntries(this.#ledger, rangeOfSwarm('swarm-result', id))) rows.push(decode(value) as SwarmRow)
    return rows
  }

  /** The items of a swarm that has not ended, and their last leases. @throws NodeError STORE_DAMAGED */
  async unfinished(id: string): Promise<{ readonly items: SwarmItem[]; readonly leases: SwarmLease[] }> {
    const items: SwarmItem[] = []
    const leases: SwarmLease[] = []
    for await (const { value } of ledgerEntries(this.#ledger, rangeOfSwarm('swarm-item', id))) items.push(decode(value) as SwarmItem)
    for await (const { value } of ledgerEntries(this.#ledger, rangeOfSwarm('swarm-lease', id))) leases.push(decode(value) as SwarmLease)
    return { items, leases }
  }

  /** Ids of swarms that have not ended. */
  async open(): Promise<string[]> {
    const ids: string[] = []
    for await (const { key } of ledgerEntries(this.#ledger, { from: 'swarm-open/', to: 'swarm-open0' })) ids.push(lastPart(key))
    return ids
  }

  /** Removes every swarm that has expired by now; the number of keys that went with them. */
  async purgeExpired(now: number): Promise<number> {
    let purged = 0
    for await (const { key } of ledgerEntries(this.#ledger, expiredSwarms(now))) purged += await this.#remove(lastPart(key), key)
    return purged
  }

  /**
   * What it promised goes first, at once: a part of that would pass for all of it. Then its results: until its head has gone it is
   * found again.
   */
  async #remove(id: string, expiry: string): Promise<number> {
    const promised = [SWARM_KEYS.open(id), SWARM_KEYS.seat(id), SWARM_KEYS.vote(id), SWARM_KEYS.cancel(id)]
    await this.#ledger.commit(removal(promised))
    let removed = promised.length
    for (const kind of SWARM_KINDS) {
      const keys: string[] = []
      for await (const { key } of ledgerEntries(this.#ledger, rangeOfSwarm(kind, id))) keys.push(key)
      for (let at = 0; at < keys.length; at += PAGE) await this.#ledger.commit(removal(keys.slice(at, at + PAGE)))
      removed += keys.length
    }
    const head = await this.get(id).catch(() => null)
    const also =
      head === null
        ? []
        : [...(head.taskId === '' ? [] : [SWARM_KEYS.task(head.taskId)]), ...(head.key === null ? [] : [SWARM_KEYS.key(head.key.name)])]
    const last = [SWARM_KEYS.head(id), expiry, ...also]
    await this.#ledger.commit(removal(last))
    return removed + last.length
  }

  #head(head: SwarmHead): LedgerChange[] {
    return [
      { key: SWARM_KEYS.head(head.id), value: encodePayload({ version: VERSION, head }) },
      { key: SWARM_KEYS.expiry(head.expiresAt, head.id), value: NO_VALUE }
    ]
  }
}

function removal(keys: readonly string[]): LedgerChange[] {
  return keys.map((key) => ({ key, value: null }))
}

function encodeItem(item: SwarmItem): Uint8Array {
  try {
    return encodePayload(item)
  } catch {
    // Nor can it be sent to anybody: the item fails when it is leased.
    const { input: _input, given: _given, ...rest } = item
    return encodePayload(rest)
  }
}

function decode(bytes: Uint8Array): unknown {
  const read = decodePayload(bytes)
  if (!read.ok) throw damaged()
  return read.value
}

function decodeHead(bytes: Uint8Array): SwarmHead {
  const stored = decode(bytes) as { readonly version: number; readonly head: SwarmHead }
  if (stored.version !== VERSION) throw damaged()
  return stored.head
}

function damaged(): NodeError {
  return new NodeError('STORE_DAMAGED', 'a swarm of the ledger is damaged or of another version')
}
