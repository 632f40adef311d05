import type { NodeId } from '../../kit/ids.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import { chooseStreams, type LeftReason, type Payer, type StreamClaim } from '../../domain/document/share.js'
import type { DocumentRecord, MembershipView } from '../../domain/membership/types.js'
import type { DocumentStreams, FollowedStream } from '../../ports/documents.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { NodeStore } from '../../ports/storage.js'
import { memberAccess } from './access.js'
import type { DocumentShares } from './shares.js'
import type { FetchShare } from './fetch-share.js'

/** Name of the stored lists of forgotten and used documents. */
const STORED = 'documents'

/** Dependencies of {@link ReplicationSet}. */
export interface ReplicationSetDeps {
  readonly store: NodeStore
  readonly log: Pick<MemberLog, 'view'>
  readonly self: NodeId
  readonly shares: DocumentShares
  readonly fetching: FetchShare
  readonly documents: Pick<DocumentStreams, 'extent'>
  /** True when a document is open here. Its streams come before all others. */
  isOpen(name: string): boolean
  /** True when a document was complete here once, so a caller has used it. */
  hasArrived(name: string): boolean
  /** This node's own streams of a document that the log may not name yet. */
  ownOf(name: string): readonly StreamKey[]
  /** Cores of its snapshots. */
  snapshotsOf(record: DocumentRecord): readonly StreamKey[]
  onError(error: unknown): void
}

/** The stored form: names of documents that are not followed, and of documents that were opened here. */
interface StoredSet {
  readonly forgotten: readonly string[]
  readonly used?: readonly string[]
}

/** A stream of a document that is not kept, the member whose share it counts for, and the reason. */
export interface LeftStream {
  readonly stream: StreamKey
  readonly node: NodeId
  readonly reason: LeftReason | 'revoked' | 'oversized'
}

interface OfferedStream {
  readonly record: DocumentRecord
  /** One for each member that announced the stream. */
  readonly claims: StreamClaim[]
}

/**
 * The documents that a node follows: all used ones, and others as far as the share of each member has room, except
 * forgotten ones.
 */
export class ReplicationSet {
  readonly #deps: ReplicationSetDeps
  readonly #forgotten = new Set<string>()
  readonly #used = new Set<string>()
  /** Documents whose blocks are being removed. */
  readonly #leaving = new Map<string, Promise<void>>()
  #left: ReadonlyMap<StreamKey, LeftReason> = new Map()
  #writing: Promise<void> = Promise.resolve()

  constructor(deps: ReplicationSetDeps) {
    this.#deps = deps
  }

  /** Reads the stored lists. */
  async start(): Promise<void> {
    const stored = await this.#deps.store.read<StoredSet>(STORED)
    for (const name of stored?.forgotten ?? []) this.#forgotten.add(name)
    for (const name of stored?.used ?? []) this.#used.add(name)
  }

  /** Resolves once all is stored. */
  async close(): Promise<void> {
    await this.#writing
  }

  /** True when a document is to be kept here, shares aside. */
  has(name: string): boolean {
    return !this.#forgotten.has(name) && !this.#leaving.has(name)
  }

  /**
   * Follows a document again after its removal, which would else delete newly fetched blocks that are not requested
   * again.
   */
  async add(name: string): Promise<void> {
    await this.#leaving.get(name)
    if (this.#forgotten.delete(name)) await this.#store()
  }

  /** Marks a document as used here: from now on it is kept, and its bytes count for no share. */
  use(name: string): void {
    if (this.#used.has(name)) return
    this.#used.add(name)
    this.#store().catch(this.#deps.onError)
  }

  /** Was a document used here, and not removed since? */
  isUsed(name: string): boolean {
    return this.#used.has(name)
  }

  /** Stops following a document at once; `remove` then removes its local blocks. */
  forget(name: string, remove: () => Promise<void>): Promise<void> {
    this.#forgotten.add(name)
    this.#used.delete(name)
    const stored = this.#store().catch((error: unknown) => {
      this.#forgotten.delete(name)
      throw error
    })
    return this.#leave(name, stored.then(remove))
  }

  /** Removes the local blocks of an abandoned document. If it is opened meanwhile, it is followed after the removal. */
  removeAbandoned(name: string, remove: () => Promise<void>): Promise<void> {
    const forgetUse = async (): Promise<void> => {
      if (this.#used.delete(name)) await this.#store()
    }
    return this.#leave(name, Promise.resolve().then(remove).then(forgetUse))
  }

  /** The streams to keep here, in the order of transfer. */
  streams(view: MembershipView): FollowedStream[] {
    const offered = this.#offered(view)
    const claims = [...offered.values()].flatMap((one) => one.claims)
    // Bytes of used documents count for no share.
    this.#deps.shares.release(claims.filter(({ use }) => use !== 'none').map(({ stream }) => stream))
    const { kept, left } = chooseStreams(claims)
    this.#left = left
    return kept.flatMap((stream) => {
      const one = offered.get(stream)
      return one === undefined ? [] : [this.#followed(stream, one)]
    })
  }

  /**
   * Streams and snapshots of a document that this node does not keep, or keeps only in part, though the document is not
   * forgotten.
   */
  leftOf(record: DocumentRecord): LeftStream[] {
    if (!this.has(record.name)) return []
    const isAbandoned = this.isAbandoned(record)
    return this.#payersOf(record).flatMap(({ stream, payer: { node } }) => {
      const reason = isAbandoned ? 'revoked' : this.#reasonFor(stream)
      return reason === undefined ? [] : [{ stream, node, reason }]
    })
  }

  #reasonFor(stream: StreamKey): Exclude<LeftStream['reason'], 'revoked'> | undefined {
    const { documents, shares } = this.#deps
    if (documents.extent(stream).isOversized) return 'oversized'
    return shares.isRefused(stream) ? 'bytes' : this.#left.get(stream)
  }

  /** True when a document was removed from the mesh, or is unused here and all its writers were revoked. */
  isAbandoned(record: DocumentRecord): boolean {
    const { members, removedDocuments } = this.#deps.log.view()
    if (removedDocuments.has(record.name)) return true
    const isOut = ({ nodeKey }: { readonly nodeKey: NodeId }): boolean =>
      (members.get(nodeKey)?.revoked ?? null) !== null
    return record.streams.length > 0 && record.streams.every(isOut) && this.#useOf(record) === 'none'
  }

  #offered(view: MembershipView): Map<StreamKey, OfferedStream> {
    const { self, shares } = this.#deps
    const offered = new Map<StreamKey, OfferedStream>()
    for (const record of view.documents.values()) {
      if (!this.has(record.name) || !memberAccess(view, record, self).maySee || this.isAbandoned(record)) continue
      const use = this.#useOf(record)
      for (const { stream, payer } of this.#payersOf(record)) {
        const one = offered.get(stream) ?? { record, claims: [] }
        one.claims.push({ stream, payer, use, isStored: shares.isStored(stream), since: record.createdAt })
        offered.set(stream, one)
      }
    }
    return offered
  }

  #payersOf(record: DocumentRecord): { readonly stream: StreamKey; readonly payer: Payer }[] {
    const { self, ownOf, snapshotsOf } = this.#deps
    return [
      // The log does not name the maker of a snapshot. A share of its own keeps it from using up the share of streams.
      ...snapshotsOf(record).map((stream) => ({ stream, payer: { node: record.creator, kind: 'snapshot' as const } })),
      ...record.streams.map(({ nodeKey, coreKey }) => ({
        stream: coreKey,
        payer: { node: nodeKey, kind: 'stream' as const }
      })),
      ...ownOf(record.name).map((stream) => ({ stream, payer: { node: self, kind: 'stream' as const } }))
    ]
  }

  #followed(stream: StreamKey, { record, claims }: OfferedStream): FollowedStream {
    const { log, shares, fetching } = this.#deps
    const payers = claims.map(({ payer }) => payer)
    const writers = payers.map(({ node }) => node)
    const isUsed = claims.some(({ use }) => use !== 'none')
    return {
      stream,
      mayHave: (peer) => memberAccess(log.view(), record, peer).maySee,
      mayHold: (bytes) => isUsed || shares.mayHold(stream, payers, bytes),
      fetched: (bytes) => (isUsed ? 0 : fetching.fetched(writers, bytes))
    }
  }

  #useOf({ name, creator, streams }: DocumentRecord): StreamClaim['use'] {
    const { self, isOpen, hasArrived, ownOf } = this.#deps
    if (isOpen(name)) return 'open'
    const isOwn = creator === self || streams.some(({ nodeKey }) => nodeKey === self) || ownOf(name).length > 0
    return isOwn || this.#used.has(name) || hasArrived(name) ? 'used' : 'none'
  }

  #leave(name: string, done: Promise<void>): Promise<void> {
    const over = done.catch(() => {}).then(() => void (this.#leaving.get(name) === over && this.#leaving.delete(name)))
    this.#leaving.set(name, over)
    return done
  }

  /** Writes the current lists, one write after the other. */
  #store(): Promise<void> {
    const { log, store } = this.#deps
    const stored = (names: ReadonlySet<string>): string[] =>
      [...names].filter((name) => !log.view().removedDocuments.has(name))
    const done = this.#writing.then(() =>
      store.write(STORED, { forgotten: stored(this.#forgotten), used: stored(this.#used) })
    )
    this.#writing = done.catch(() => {})
    return done
  }
}
