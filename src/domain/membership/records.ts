import type { NodeId } from '../../kit/ids.js'
import { isRecord } from '../../kit/json.js'
import {
  cardIndexKey,
  cardKey,
  DOCUMENTS_KEY,
  documentCoreKey,
  documentKey,
  inviteIndexKey,
  inviteKey,
  MESH_KEY,
  memberKey,
  ORDER_KEY,
  REVOKED_KEY,
  refusalKey,
  SETTINGS_KEY,
  trustKey,
  WRITERS_KEY
} from './keys.js'
import type { InviteIndexRecord } from './invites/invite-share.js'
import type {
  DocumentRecord,
  InviteRecord,
  MemberRecord,
  MeshRecord,
  RefusalRecord,
  RemovedDocument,
  SettingsRecord,
  SignedCard,
  TrustRecord,
  WritersRecord
} from './types.js'

/** Left by a removed card: the revision that a new card must exceed. */
export interface CardTombstone {
  readonly removed: number
}

/** The cards of one node. */
export interface CardIndexRecord {
  /** Agent ids of its cards, in log order; at most 1,024. */
  readonly live: readonly string[]
  readonly tombstones: number
  /** Bytes of its cards together; at most 4 MiB. */
  readonly bytes: number
}

/** How many documents there are. */
export interface DocumentIndexRecord {
  readonly total: number
  /** By creator. */
  readonly by: Readonly<Record<NodeId, number>>
  /** Bytes of access lists, streams and snapshots of all documents, by author. */
  readonly bytes: Readonly<Record<NodeId, number>>
  /**
   * Removed documents by creator; absent: none. All versions must write the same record of a log without such entries.
   */
  readonly removed?: Readonly<Record<NodeId, number>>
}

/** Is the value at a card's key a tombstone? */
export function isTombstone(value: unknown): value is CardTombstone {
  return isRecord(value) && typeof value.removed === 'number'
}

/** Was the document of a record removed? */
export function isRemoved(record: DocumentRecord): record is RemovedDocument {
  return 'removed' in record
}

/** The view's records as the fold reads them. They are this node's own: the fold alone wrote them. */
export class Records {
  readonly #records: ReadonlyMap<string, unknown>

  /** `records`: value by key; null and absent mean the same. */
  constructor(records: ReadonlyMap<string, unknown>) {
    this.#records = records
  }

  /** The mesh, null before its founding. */
  mesh(): MeshRecord | null {
    return this.#read<MeshRecord>(MESH_KEY)
  }

  /** A node, revoked or not. */
  member(nodeId: NodeId): MemberRecord | null {
    return this.#read<MemberRecord>(memberKey(nodeId))
  }

  /** An invite in any state. */
  invite(inviteId: string): InviteRecord | null {
    return this.#read<InviteRecord>(inviteKey(inviteId))
  }

  /** How many invites a node has made. */
  inviteIndex(nodeId: NodeId): InviteIndexRecord {
    return this.#read<InviteIndexRecord>(inviteIndexKey(nodeId)) ?? { count: 0, bytes: 0 }
  }

  /** Why a node was not admitted. */
  refusal(nodeId: NodeId): RefusalRecord | null {
    return this.#read<RefusalRecord>(refusalKey(nodeId))
  }

  /** The writers rule's state. */
  writers(): WritersRecord {
    return this.#read<WritersRecord>(WRITERS_KEY) ?? { eligible: [], active: [] }
  }

  /** The settings of the owner, null for none. */
  settings(): SettingsRecord | null {
    return this.#read<SettingsRecord>(SETTINGS_KEY)
  }

  /** How a node regards others. */
  trust(nodeId: NodeId): TrustRecord {
    return this.#read<TrustRecord>(trustKey(nodeId)) ?? { of: {} }
  }

  /** The next admission order. */
  order(): number {
    return this.#read<number>(ORDER_KEY) ?? 0
  }

  /** Everybody revoked, in log order. */
  revoked(): readonly NodeId[] {
    return this.#read<readonly NodeId[]>(REVOKED_KEY) ?? []
  }

  /** A card, its tombstone, or null. */
  card(nodeId: NodeId, agentId: string): SignedCard | CardTombstone | null {
    return this.#read<SignedCard | CardTombstone>(cardKey(nodeId, agentId))
  }

  /** The cards that a node has. */
  cardIndex(nodeId: NodeId): CardIndexRecord {
    // A view that is older than the bound on bytes has none.
    return { live: [], tombstones: 0, bytes: 0, ...this.#read<Partial<CardIndexRecord>>(cardIndexKey(nodeId)) }
  }

  /** A document. */
  document(name: string): DocumentRecord | null {
    return this.#read<DocumentRecord>(documentKey(name))
  }

  /** Name of the document that a core is a stream of. */
  documentOfCore(coreKey: string): string | null {
    return this.#read<string>(documentCoreKey(coreKey))
  }

  /** How many documents there are. */
  documentIndex(): DocumentIndexRecord {
    // A view that is older than the bounds has none.
    return { total: 0, by: {}, bytes: {}, ...this.#read<Partial<DocumentIndexRecord>>(DOCUMENTS_KEY) }
  }

  #read<T>(key: string): T | null {
    return (this.#records.get(key) as T | null | undefined) ?? null
  }
}
