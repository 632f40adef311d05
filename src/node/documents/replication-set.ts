import type { NodeId } from '../../kit/ids.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import { chooseStreams, type LeftReason, type Payer, type StreamClaim } from '../../domain/document/share.js'
import type { DocumentRecord, MembershipView } from '../../domain/membership/types.js'
import type { FollowedStream } from '../../ports/documents.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { NodeStore } from '../../ports/storage.js'
import { memberAccess } from './access.js'
import type { DocumentShares } from './shares.js'
import type { FetchShare } from './fetch-share.js'

/** Name of the stored document of what is not followed, and of what is used. */
const STORED = 'documents'

/** What {@link ReplicationSet} needs. */
export interface ReplicationSetDeps {
  readonly store: NodeStore
  readonly log: Pick<MemberLog, 'view'>
  readonly self: NodeId
  readonly shares: DocumentShares
  readonly fetching: FetchShare
  /** Is a document open here? Its streams are followed before those of others. */
  isOpen(name: string): boolean
  /** Was a document whole here once? Then somebody has used it. */
  hasArrived(name: string): boolean
  /** This node's own streams of a document that the log may not name yet. */
  ownOf(name: string): readonly StreamKey[]
  /** Cores of its snapshots. */
  snapshotsOf(record: DocumentRecord): readonly StreamKey[]
  onError(error: unknown): void
}

/** Stored: names of documents that are not followed, and of those that somebody opened here. */
interface StoredSet {
  readonly forgotten: readonly string[]
  readonly used?: readonly string[]
}

/** A stream of a document that is not kept, the member that it is counted for, and why it is not kept. */
export interface LeftStream {
  readonly stream: StreamKey
  readonly node: NodeId
  readonly reason: LeftReason | 'revoked'
}

interface OfferedStream {
  readonly record: DocumentRecord
  /** One for each member that announced the stream. */
  readonly claims: StreamClaim[]
}

/**
 * Which documents a node follows: all that somebody uses here, and of the others as much as the share of each member has room
 * for, save those that it was told to forget.
 */
export class ReplicationSet {
  readonly #deps: ReplicationSetDeps
  readonly #forgotten = new Set<string>()
  readonly #used = new Set<string>()
  /** Documents that are being removed here, until they are. */
  readonly #leaving = new Map<string, Promise<void>>()
  #left: ReadonlyMap<StreamKey, LeftReason> = new Map()
  #writing: Promise<void> = Promise.resolve()

  constructor(deps: ReplicationSetDeps) {
    this.#deps = deps
  }

  /** Reads what is stored. */
  async start(): Promise<void> {
    const stored = await this.#deps.store.read<StoredSet>(STORED)
    for (const name of stored?.forgotten ?? []) this.#forgotten.add(name)
    for (const name of stored?.used ?? []) this.#used.add(name)
  }

  /** Once all is stored. */
  async close(): Promise<void> {
    await this.#writing
  }

  /** Is a document to be kept here, as far as shares go? */
  has(name: string): boolean {
    return !this.#forgotten.has(name) && !this.#leaving.has(name)
  }

  /** Follows it again, once it is removed: of what is fetched while it goes some would be taken away again, and not be asked for. */
  async add(name: string): Promise<void> {
    await this.#leaving.get(name)
    if (this.#forgotten.delete(name)) await this.#store()
  }

  /** Somebody uses a document here: from now on it is kept whatever its members take of their shares. */
  use(name: string): void {
    if (this.#used.has(name)) return
    this.#used.add(name)
    this.#store().catch(this.#deps.onError)
  }

  /** Follows it no longer, at once; `remove` then removes what is here of it. */
  forget(name: string, remove: () => Promise<void>): Promise<void> {
    this.#forgotten.add(name)
    this.#used.delete(name)
    const stored = this.#store().catch((error: unknown) => {
      this.#forgotten.delete(name)
      throw error
    })
    return this.#leave(name, stored.then(remove))
  }

  /** Removes what is here of an abandoned document. One that is opened meanwhile is followed once this is done. */
  removeAbandoned(name: string, remove: () => Promise<void>): Promise<void> {
    return this.#leave(name, Promise.resolve().then(remove))
  }

  /** The streams to be here, in the order in which links carry them. */
  streams(view: MembershipView): FollowedStream[] {
    const offered = this.#offered(view)
    const claims = [...offered.values()].flatMap((one) => one.claims)
    // Bytes of used documents are nobody's share.
    this.#deps.shares.release(claims.filter(({ use }) => use !== 'none').map(({ stream }) => stream))
    const { kept, left } = chooseStreams(claims)
    this.#left = left
    return kept.flatMap((stream) => {
      const one = offered.get(stream)
      return one === undefined ? [] : [this.#followed(stream, one)]
    })
  }

  /** Streams and snapshots of a document that this node does not keep, or keeps no further, though it was not told to forget them. */
  leftOf(record: DocumentRecord): LeftStream[] {
    if (!this.has(record.name)) return []
    const isAbandoned = this.isAbandoned(record)
    return this.#payersOf(record).flatMap(({ stream, payer: { node } }) => {
      const reason = isAbandoned ? 'revoked' : this.#deps.shares.isRefused(stream) ? 'bytes' : this.#left.get(stream)
      return reason === undefined ? [] : [{ stream, node, reason }]
    })
  }

  /** Does nobody use a document here whose only writers were revoked? */
  isAbandoned(record: DocumentRecord): boolean {
    const { members } = this.#deps.log.view()
    const isOut = ({ nodeKey }: { readonly nodeKey: NodeId }): boolean => (members.get(nodeKey)?.revoked ?? null) !== null
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
      // The log does not say who made a snapshot. A share of its own keeps it from using up that of streams.
      ...snapshotsOf(record).map((stream) => ({ stream, payer: { node: record.creator, kind: 'snapshot' as const } })),
      ...record.streams.map(({ nodeKey, coreKey }) => ({ stream: coreKey, payer: { node: nodeKey, kind: 'stream' as const } })),
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

  /** One write after the other, each of what is so then. */
  #store(): Promise<void> {
    const done = this.#writing.then(() => this.#deps.store.write(STORED, { forgotten: [...this.#forgotten], used: [...this.#used] }))
    this.#writing = done.catch(() => {})
    return done
  }
}
