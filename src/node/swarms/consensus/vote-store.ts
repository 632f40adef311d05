import { isRecord } from '../../../kit/json.js'
import { bytesToText, type NodeId } from '../../../kit/ids.js'
import type { Hash } from '../../../kit/sign.js'
import { decodePayload, encodePayload } from '../../../domain/envelope/codec.js'
import { lastPart, rangeOfSwarm, SWARM_KEYS } from '../../../domain/reliable/swarm-keys.js'
import type { ItemRecord } from '../../../domain/swarm/coordination.js'
import type { StoredVote, VoterEffect } from '../../../domain/swarm/coordination-vote.js'
import type { Ledger, LedgerChange } from '../../../ports/ledger.js'
import { ledgerEntries } from '../../ledger/scan.js'

/** Bytes of the hash that names a content. */
const DIGEST_BYTES = 20

/** This node as a participant of a swarm, as recorded in its ledger. */
export interface ParticipantRecord {
  /** Name of this ledger at the join: under another name it has lost its promises. */
  readonly ledger: string
  /**
   * `invited`: the launcher does not know of it yet, so it does not vote. `lost`: it has voted, but its votes are lost.
   */
  readonly state: 'invited' | 'open' | 'lost'
  /** At the launcher: the other nodes' ledger names at their join. */
  readonly seated: Readonly<Record<NodeId, string>>
}

/** A vote to make durable. */
export type StoreEffect = Extract<VoterEffect, { type: 'store' }>

/** This node's votes in the ledger, and the contents of their records. */
export class VoteStore {
  readonly #ledger: Ledger
  readonly #hash: Hash

  constructor(ledger: Ledger, hash: Hash) {
    this.#ledger = ledger
    this.#hash = hash
  }

  /** The name of a content. */
  digest(content: Uint8Array): string {
    return bytesToText(this.#hash(content).subarray(0, DIGEST_BYTES))
  }

  /** The record of this node; null when it is no participant. @throws NodeError STORE_DAMAGED */
  async participant(id: string): Promise<ParticipantRecord | null> {
    const bytes = await this.#ledger.get(SWARM_KEYS.seat(id))
    return bytes === null ? null : (valueOf(bytes) as ParticipantRecord | null)
  }

  /** The change that stores the record. */
  participantChange(id: string, participant: ParticipantRecord): LedgerChange {
    return { key: SWARM_KEYS.seat(id), value: encodePayload(participant) }
  }

  /** The recorded grant and records of this node. @throws NodeError STORE_DAMAGED */
  async stored(id: string): Promise<StoredVote> {
    const bytes = await this.#ledger.get(SWARM_KEYS.vote(id))
    const vote = bytes === null ? null : valueOf(bytes)
    const { epoch, candidate } = isRecord(vote)
      ? (vote as unknown as Omit<StoredVote, 'records'>)
      : { epoch: 0, candidate: null }
    const records = new Map<number, ItemRecord>()
    for await (const { key, value } of ledgerEntries(this.#ledger, rangeOfSwarm('swarm-record', id))) {
      const record = valueOf(value)
      if (isRecord(record)) records.set(Number(lastPart(key)), record as unknown as ItemRecord)
    }
    return { epoch, candidate, records }
  }

  /** The changes that store a vote with its new contents. */
  changes(id: string, { epoch, candidate, records }: StoreEffect, contents: readonly LedgerChange[]): LedgerChange[] {
    const kept = records.map(([index, record]) => ({ key: SWARM_KEYS.record(id, index), value: encodePayload(record) }))
    return [{ key: SWARM_KEYS.vote(id), value: encodePayload({ epoch, candidate }) }, ...kept, ...contents]
  }

  /** The change that stores a content; outcomes share the keys of all swarms. */
  contentChange(
    id: string,
    { index, items }: { readonly index: number; readonly items: number },
    content: Uint8Array | null
  ): LedgerChange {
    return { key: contentKey(id, index, items), value: content }
  }

  /** The content of the record at an index; null when there is none. @throws NodeError STORE_DAMAGED */
  async content(id: string, index: number, items: number): Promise<Uint8Array | null> {
    return await this.#ledger.get(contentKey(id, index, items))
  }

  /** Every stored outcome of an item, by index. @throws NodeError STORE_DAMAGED */
  async outcomes(id: string): Promise<Map<number, Uint8Array>> {
    const kept = new Map<number, Uint8Array>()
    for await (const { key, value } of ledgerEntries(this.#ledger, rangeOfSwarm('swarm-result', id)))
      kept.set(Number(lastPart(key)), value)
    return kept
  }
}

function contentKey(id: string, index: number, items: number): string {
  return index < items ? SWARM_KEYS.result(id, index) : SWARM_KEYS.note(id, index)
}

function valueOf(bytes: Uint8Array): unknown {
  const read = decodePayload(bytes)
  return read.ok ? read.value : null
}
