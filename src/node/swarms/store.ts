import { MAX_CANDIDATES } from '../../kit/resolve-id.js'
import { NodeError, type ErrorBody } from '../../kit/errors.js'
import { bytesToText, fromUtf8, utf8, type NodeId } from '../../kit/ids.js'
import { canonicalJson } from '../../kit/json.js'
import type { Hash } from '../../kit/sign.js'
import { decodeStored, encodePayload, encodeStored } from '../../domain/envelope/codec.js'
import { ENVELOPE_LIMITS } from '../../domain/envelope/limits.js'
import {
  beginningWith,
  expiredSwarms,
  lastPart,
  rangeOfSwarm,
  SWARM_KEYS,
  SWARM_KINDS
} from '../../domain/reliable/swarm-keys.js'
import type { CertifiedPower } from '../../domain/routing/effective.js'
import { decodeOutcome } from '../../domain/swarm/handover.js'
import type { FinalSwarmStatus, KnownItem } from '../../domain/swarm/machine.js'
import type { Ledger, LedgerChange, LedgerEntry } from '../../ports/ledger.js'
import type { Stage } from '../../domain/swarm/expand.js'
import type {
  LeftOut,
  SwarmCounts,
  SwarmItemInput,
  SwarmRequest,
  SwarmResults,
  SwarmStageInfo
} from '../../ports/swarm-api.js'
import { ledgerEntries } from '../ledger/scan.js'

/** Entries removed per commit. */
const PAGE = 500
/** Bytes of the hash that names an idempotency key. */
const NAME_BYTES = 16
/** The form of an id, or of the beginning of one. */
const ID = /^[!-}]{0,64}$/
const NO_VALUE = new Uint8Array(0)
/** Records of another version of this program have another number. */
const VERSION = 1

/** A swarm and its end. Times are Unix milliseconds. */
export interface SwarmHead {
  readonly id: string
  /** '' at a node that did not launch it. */
  readonly taskId: string
  /** Without its inputs and plan. */
  readonly request: SwarmRequest
  /** Capabilities that its agents need for any of the sub-tasks; the first is the requested one. */
  readonly capabilities: readonly string[]
  readonly stages: readonly Stage[]
  /** Template of its result; absent unless its plan has one. */
  readonly output?: unknown
  /** The launcher's authority, when it may be weaker than the operator's. */
  readonly onBehalfOf?: CertifiedPower
  /** Shown addresses of the agents that were asked first. */
  readonly agents: readonly string[]
  readonly leftOut: readonly LeftOut[]
  readonly itemCount: number
  readonly createdAt: number
  readonly deadline: number
  /** When all its entries may be removed. */
  readonly expiresAt: number
  /** The name of its idempotency key, and the fingerprint of its request; null without a key. */
  readonly key: { readonly name: string; readonly fingerprint: string } | null
  /** The ledger was restored from an older copy while the swarm ran: its later progress is unknown here. */
  readonly isRestored?: boolean
  /** The nodes that vote on its coordinator, its launcher first; absent when only the launcher coordinates. */
  readonly voters?: readonly NodeId[]
  /** null while it has not ended. */
  readonly end: SwarmEnd | null
}

/** The author of the cancellation of a swarm. */
export interface Cancellation {
  /** The node at which it was requested: this one, or the authenticated sender of the request. */
  readonly node: NodeId
  /** The API's caller at that node; null: not known here. */
  readonly caller: string | null
  /** By the clock of the node that recorded it, in Unix milliseconds. */
  readonly at: number
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
  /** Absent: it was not canceled, or by an earlier build or a restore. */
  readonly canceledBy?: Cancellation
}

/** One item of a swarm. */
export interface SwarmItem {
  readonly name: string
  /** Address of the only agent that may do it. */
  readonly pinnedTo?: string
  /** Absent when it has no encoding, or a template makes it. */
  readonly input?: unknown
  /** At the first item: the input of the swarm, for templates. */
  readonly given?: unknown
}

/** The one outcome of an item. */
export interface SwarmRow {
  readonly index: number
  /** Counts the outcomes of its swarm, in the order of their acceptance. */
  readonly order: number
  /** Address; '' when it was never leased. */
  readonly holder: string
  readonly row: SwarmResults['results'][number]
}

/** The last lease of an item. */
export interface SwarmLease extends Omit<KnownItem, 'status' | 'leasedAt' | 'retryAt'> {
  /** When it was given, in Unix milliseconds; absent in leases of older versions. */
  readonly leasedAt?: number
  /** It ended without an outcome, and its item is not leased again before; absent while it may be live. */
  readonly rest?: ItemRest
}

/** How long an item is not leased. */
export interface ItemRest {
  /** Unix milliseconds. */
  readonly until: number
  /** All of it, in milliseconds: a clock that was set back does not extend it. */
  readonly ms: number
}

/** Bytes of JSON in a message that nodes take; 1 MiB at least. */
export interface JsonBytesTaken {
  readonly own: number
  by(node: NodeId): number
}

const { maxJsonBytes } = ENVELOPE_LIMITS
const LEAST_TAKEN: JsonBytesTaken = { own: maxJsonBytes, by: () => maxJsonBytes }

/** The swarms of a ledger. */
export class SwarmStore {
  readonly #ledger: Ledger
  readonly #hash: Hash
  readonly #taken: JsonBytesTaken

  constructor(ledger: Ledger, hash: Hash, taken = LEAST_TAKEN) {
    this.#ledger = ledger
    this.#hash = hash
    this.#taken = taken
  }

  /**
   * The name of an idempotency key here, and the fingerprint of its request.
   * @throws NodeError PAYLOAD_TOO_LARGE, INVALID_ENVELOPE
   */
  key(
    key: string,
    { items = [], input, ...request }: SwarmRequest,
    capabilities: readonly string[]
  ): NonNullable<SwarmHead['key']> {
    const { idempotencyKey: _key, ...rest } = request
    const digests = items.map((one: SwarmItemInput) =>
      this.#hash(utf8(JSON.stringify(one.item)), encodeStored(one.input))
    )
    const parts = [
      utf8(canonicalJson({ ...rest, capabilities, count: items.length })),
      encodeStored(input ?? null),
      ...digests
    ]
    const fingerprint = bytesToText(this.#hash(...parts))
    return { name: bytesToText(this.#hash(utf8(key)).subarray(0, NAME_BYTES)), fingerprint }
  }

  /** The changes that begin a swarm here: launched, or received from its launcher (then it is no task of this node). */
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

  /** The change that leases an item. */
  leased(id: string, lease: SwarmLease): LedgerChange {
    return { key: SWARM_KEYS.lease(id, lease.index), value: encodePayload(lease) }
  }

  /**
   * The change that records an item's outcome, of at most the JSON that this node and every participant takes.
   * @throws NodeError PAYLOAD_TOO_LARGE, INVALID_ENVELOPE for a result that cannot be stored.
   */
  settled({ id, voters }: Pick<SwarmHead, 'id' | 'voters'>, row: SwarmRow): LedgerEntry {
    const takesBytes = Math.min(this.#taken.own, ...(voters ?? []).map((node) => this.#taken.by(node)))
    return { key: SWARM_KEYS.result(id, row.index), value: encodeStored(row, takesBytes) }
  }

  /** The changes that end a swarm: its inputs, but those of the items in `kept`, and its leases are removed. */
  ended(
    head: SwarmHead,
    { kept, ...after }: { readonly end: SwarmEnd; readonly expiresAt: number; readonly kept: ReadonlySet<number> }
  ): LedgerChange[] {
    const { id, itemCount, expiresAt } = head
    const always = [SWARM_KEYS.open(id), SWARM_KEYS.cancel(id), SWARM_KEYS.expiry(expiresAt, id)]
    const gone = Array.from({ length: itemCount }, (_, index) => [
      ...(kept.has(index) ? [] : [SWARM_KEYS.item(id, index)]),
      SWARM_KEYS.lease(id, index)
    ]).flat()
    return [...[...always, ...gone].map((key) => ({ key, value: null })), ...this.#head({ ...head, ...after })]
  }

  /** The change that records a cancel request of this node; it is removed with the swarm's end. */
  cancelRequested(id: string, by: Cancellation): LedgerChange {
    return { key: SWARM_KEYS.cancel(id), value: encodePayload(by) }
  }

  /**
   * The cancel request of this node for it; null for none. One of an earlier build names `self` alone.
   * @throws NodeError STORE_DAMAGED
   */
  async cancelRequest(id: string, self: NodeId): Promise<Cancellation | null> {
    const value = await this.#ledger.get(SWARM_KEYS.cancel(id))
    if (value === null) return null
    return value.byteLength === 0 ? { node: self, caller: null, at: 0 } : (decode(value) as Cancellation)
  }

  /** A swarm by its id; null when there is none. @throws NodeError STORE_DAMAGED */
  async get(id: string): Promise<SwarmHead | null> {
    const bytes = await this.#ledger.get(SWARM_KEYS.head(id))
    return bytes === null ? null : decodeHead(bytes)
  }

  /** The swarm of an idempotency key; null when there is none. @throws NodeError STORE_DAMAGED */
  async ofKey(name: string): Promise<SwarmHead | null> {
    const id = await this.#ledger.get(SWARM_KEYS.key(name))
    return id === null ? null : await this.get(fromUtf8(id))
  }

  /** Swarms by the beginning of their task ids, the first {@link MAX_CANDIDATES}. @throws NodeError STORE_DAMAGED */
  async ofTasks(taskId: string): Promise<SwarmHead[]> {
    if (!ID.test(taskId)) return []
    const rows = await this.#ledger.list({ ...beginningWith(SWARM_KEYS.task(taskId)), limit: MAX_CANDIDATES })
    const heads = await Promise.all(rows.map(({ value }) => this.get(fromUtf8(value))))
    return heads.filter((head) => head !== null)
  }

  /** Swarms by the beginning of their ids, in no order. @throws NodeError STORE_DAMAGED */
  async *heads(prefix = ''): AsyncGenerator<SwarmHead> {
    if (!ID.test(prefix)) return
    for await (const { value } of ledgerEntries(this.#ledger, beginningWith(SWARM_KEYS.head(prefix))))
      yield decodeHead(value)
  }

  /**
   * The outcomes of a swarm's items so far, in order, without invalid ones of other participants.
   * @throws NodeError STORE_DAMAGED
   */
  async results({ id, voters }: Pick<SwarmHead, 'id' | 'voters'>): Promise<SwarmRow[]> {
    const rows: SwarmRow[] = []
    for await (const { key, value } of ledgerEntries(this.#ledger, rangeOfSwarm('swarm-result', id))) {
      // Without other participants this node wrote it, so it needs no check.
      const row = voters === undefined ? (decode(value) as SwarmRow) : this.outcome(value)
      if (row?.index === Number(lastPart(key))) rows.push(row)
    }
    return rows
  }

  /** The outcome in a content of another participant; null for an invalid one, or one too large for this node. */
  outcome(content: Uint8Array): SwarmRow | null {
    return decodeOutcome(content, this.#taken.own)
  }

  /** The items of a swarm that has not ended, and their last leases. @throws NodeError STORE_DAMAGED */
  async unfinished(id: string): Promise<{ readonly items: SwarmItem[]; readonly leases: SwarmLease[] }> {
    const items: SwarmItem[] = []
    const leases: SwarmLease[] = []
    for await (const { value } of ledgerEntries(this.#ledger, rangeOfSwarm('swarm-item', id)))
      items.push(decode(value) as SwarmItem)
    for await (const { value } of ledgerEntries(this.#ledger, rangeOfSwarm('swarm-lease', id)))
      leases.push(decode(value) as SwarmLease)
    return { items, leases }
  }

  /** The input of an item; undefined when it is not kept. @throws NodeError STORE_DAMAGED */
  async input(id: string, index: number): Promise<unknown> {
    const bytes = await this.#ledger.get(SWARM_KEYS.item(id, index))
    return bytes === null ? undefined : (decode(bytes) as SwarmItem).input
  }

  /** Ids of swarms that have not ended. */
  async open(): Promise<string[]> {
    const ids: string[] = []
    for await (const { key } of ledgerEntries(this.#ledger, { from: 'swarm-open/', to: 'swarm-open0' }))
      ids.push(lastPart(key))
    return ids
  }

  /** Removes every expired swarm. Returns the number of removed keys. */
  async purgeExpired(now: number): Promise<number> {
    let purged = 0
    for await (const { key } of ledgerEntries(this.#ledger, expiredSwarms(now)))
      purged += await this.#remove(lastPart(key), key)
    return purged
  }

  /**
   * Its promises go first, in one commit: a part of them would pass for all of them. Then its results; its head goes
   * last, so an interrupted removal is found again.
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
        : [
            ...(head.taskId === '' ? [] : [SWARM_KEYS.task(head.taskId)]),
            ...(head.key === null ? [] : [SWARM_KEYS.key(head.key.name)])
          ]
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
    return encodeStored(item)
  } catch {
    // It cannot be sent either: the item fails when it is leased.
    const { input: _input, given: _given, ...rest } = item
    return encodePayload(rest)
  }
}

function decode(bytes: Uint8Array): unknown {
  const read = decodeStored(bytes)
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
