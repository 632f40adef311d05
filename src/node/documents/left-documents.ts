import { type NodeId, shortId } from '../../kit/ids.js'
import { NODE_NAME } from '../../kit/names/rule.js'
import { safeName } from '../../kit/names/safe-name.js'
import { DOCUMENT_SHARE_LIMITS, MAX_FOLLOWED } from '../../domain/document/share.js'
import type { DocumentRecord, MembershipView } from '../../domain/membership/types.js'
import type { DocumentShareInfo } from '../../ports/document-api.js'
import type { Problem } from '../../ports/node-api.js'
import type { DocumentShares } from './shares.js'
import type { ReplicationSet, LeftStream } from './replication-set.js'
import type { Clock, Timer } from '../../kit/clock.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { DocumentMarks } from './marks.js'

const MIB = 1_048_576
const SHARE = `${DOCUMENT_SHARE_LIMITS.maxStreams} documents, ${DOCUMENT_SHARE_LIMITS.maxBytes / MIB} MiB`

const REASONS: Readonly<Record<LeftStream['reason'], string>> = {
  streams: `its member is over its share: ${DOCUMENT_SHARE_LIMITS.maxStreams} documents that nobody uses here`,
  bytes: `its member is over its share: ${DOCUMENT_SHARE_LIMITS.maxBytes / MIB} MiB of documents that nobody uses here`,
  places: `this node has ${MAX_FOLLOWED} streams of documents that nobody uses here`,
  revoked: 'all its writers were revoked, and nobody uses it here'
}

/** Why a stream is not kept here, for people. */
export function leftReason({ reason }: Pick<LeftStream, 'reason'>): string {
  return REASONS[reason]
}

interface Left {
  readonly followed: Pick<ReplicationSet, 'leftOf'>
  readonly shares: Pick<DocumentShares, 'bytesOf'>
}

/** What is told in `status`: one problem for each member of whom this node leaves out streams of documents. */
export function shareProblems({ followed }: Pick<Left, 'followed'>, { documents, members }: MembershipView): Problem[] {
  const byMember = new Map<NodeId, LeftStream[]>()
  for (const record of documents.values())
    for (const left of followed.leftOf(record))
      if (left.reason !== 'revoked') byMember.set(left.node, [...(byMember.get(left.node) ?? []), left])
  return [...byMember].map(([node, left]) => {
    const name = `${safeName(members.get(node)?.certificate.body.name ?? '', NODE_NAME)} (${shortId(node)})`.trim()
    const streams = left.length === 1 ? '1 stream' : `${left.length} streams`
    const cause = left.every(({ reason }) => reason === 'places')
      ? `this node has no place for more documents that nobody uses here (${MAX_FOLLOWED} streams)`
      : `${name} is over the share of documents that a member makes other nodes keep (${SHARE})`
    const message = `${cause}: ${streams} of ${name} left out; a document that is opened here is kept in any case`
    return { code: 'OVERLOADED', message, next: `a2a-node peers show ${node}` }
  })
}

/** How much of its share a member takes at this node. */
export function shareOf({ followed, shares }: Left, { documents }: Pick<MembershipView, 'documents'>, node: NodeId): DocumentShareInfo {
  const left = [...documents.values()].flatMap((record: DocumentRecord) => followed.leftOf(record).filter((one) => one.node === node))
  return {
    bytes: shares.bytesOf({ node, kind: 'stream' }),
    snapshotBytes: shares.bytesOf({ node, kind: 'snapshot' }),
    maxBytes: DOCUMENT_SHARE_LIMITS.maxBytes,
    maxDocuments: DOCUMENT_SHARE_LIMITS.maxStreams,
    leftOut: left.length
  }
}

/** How long a document must be abandoned before its blocks are removed, in milliseconds: the log may still undo a revocation. */
const RECLAIM_MS = 600_000

/** What {@link AbandonedDocuments} needs. */
interface AbandonedDocumentsDeps {
  readonly clock: Clock
  readonly log: Pick<MemberLog, 'view'>
  readonly followed: Pick<ReplicationSet, 'isAbandoned' | 'removeAbandoned'>
  readonly shares: Pick<DocumentShares, 'isStored'>
  readonly marks: Pick<DocumentMarks, 'has'>
  /** Does somebody want a document now? */
  isInUse(name: string): boolean
  /** Removes what is here of a document that is followed no longer, these streams among it. */
  remove(name: string, streams: readonly StreamKey[]): Promise<void>
  onError(error: unknown): void
}

/** Gives back the disk that documents take whose only writers were revoked and that nobody uses here. */
export class AbandonedDocuments {
  readonly #deps: AbandonedDocumentsDeps
  #timer: Timer | null = null
  #removing: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(deps: AbandonedDocumentsDeps) {
    this.#deps = deps
  }

  /** What is abandoned may have changed. */
  review(): void {
    if (this.#isClosed || this.#timer !== null || this.#stored().length === 0) return
    this.#timer = this.#deps.clock.after(RECLAIM_MS, () => {
      this.#removing = this.#remove().catch(this.#deps.onError)
    })
  }

  /** Once what was begun is done. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#deps.clock.clear(this.#timer)
    await this.#removing
  }

  /** Abandoned documents of which something is here. */
  #stored(): DocumentRecord[] {
    const { log, followed, shares, marks } = this.#deps
    const isStored = ({ name, streams }: DocumentRecord): boolean =>
      marks.has(name) || streams.some(({ coreKey }) => shares.isStored(coreKey))
    return [...log.view().documents.values()].filter((record) => followed.isAbandoned(record) && isStored(record))
  }

  async #remove(): Promise<void> {
    const { followed, isInUse, remove } = this.#deps
    try {
      for (const record of this.#stored()) {
        const { name, streams } = record
        // Somebody may have opened it while another one was removed.
        if (this.#isClosed || isInUse(name) || !followed.isAbandoned(record)) continue
        const cores = streams.map(({ coreKey }) => coreKey)
        await followed.removeAbandoned(name, () => remove(name, cores))
      }
    } finally {
      this.#timer = null
    }
    this.review()
  }
}

/** What {@link DocumentUses} needs. */
interface DocumentUsesDeps<T> {
  open(name: string): Promise<T>
  /** A use of it is over. */
  letGo(name: string, opened: T): void
}

/**
 * Which documents are in use: each from the moment on at which somebody wants it, and not when it is open, since one that is
 * removed meanwhile would be open without its blocks.
 */
export class DocumentUses<T> {
  readonly #uses = new Map<string, number>()
  readonly #deps: DocumentUsesDeps<T>

  constructor(deps: DocumentUsesDeps<T>) {
    this.#deps = deps
  }

  /** Is it in use? */
  has(name: string): boolean {
    return this.#uses.has(name)
  }

  /** Opens a document for a use, until that is released. Rejects as opening does; the use is over then. */
  async hold(name: string): Promise<{ readonly opened: T; release(): void }> {
    this.#add(name, 1)
    try {
      const opened = await this.#deps.open(name)
      let isInUse = true
      const release = (): void => {
        if (!isInUse) return
        isInUse = false
        this.#add(name, -1)
        this.#deps.letGo(name, opened)
      }
      return { opened, release }
    } catch (error) {
      this.#add(name, -1)
      throw error
    }
  }

  #add(name: string, change: 1 | -1): void {
    const uses = (this.#uses.get(name) ?? 0) + change
    if (uses > 0) this.#uses.set(name, uses)
    else this.#uses.delete(name)
  }
}
