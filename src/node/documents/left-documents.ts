import { type NodeId, shortId } from '../../kit/ids.js'
import { NODE_NAME } from '../../kit/names/rule.js'
import { safeName } from '../../kit/names/safe-name.js'
import { DOCUMENT_SHARE_LIMITS, MAX_FOLLOWED } from '../../domain/document/share.js'
import type { DocumentRecord, MembershipView } from '../../domain/membership/types.js'
import type { DocumentInfo, DocumentShareInfo } from '../../ports/document-api.js'
import type { Problem } from '../../ports/node-api.js'
import type { Directory } from '../cards/directory.js'
import type { DocumentShares } from './shares.js'
import type { ReplicationSet, LeftStream } from './replication-set.js'
import type { Clock, Timer } from '../../kit/clock.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { DocumentMarks } from './marks.js'

const MIB = 1_048_576
const SHARE = `${DOCUMENT_SHARE_LIMITS.maxStreams} documents, ${DOCUMENT_SHARE_LIMITS.maxBytes / MIB} MiB`

const REASONS: Readonly<Record<LeftStream['reason'], string>> = {
  streams: `its member is over its share: ${DOCUMENT_SHARE_LIMITS.maxStreams} documents that nobody uses here`,
  bytes: `its member is over its share: ${DOCUMENT_SHARE_LIMITS.maxBytes / MIB} MiB of documents that nobody uses here`,
  places: `this node has ${MAX_FOLLOWED} streams of documents that nobody uses here`,
  oversized: 'its member wrote a block that is larger than any of a document',
  revoked: 'all its writers were revoked, and nobody uses it here'
}

/** Why a stream is not kept here, in words for people. */
export function leftReason({ reason }: Pick<LeftStream, 'reason'>): string {
  return REASONS[reason]
}

interface Left {
  readonly followed: Pick<ReplicationSet, 'leftOf'>
  readonly shares: Pick<DocumentShares, 'bytesOf'>
}

/**
 * The problems for `status`: for each member with document streams that this node leaves out, by the kind of their
 * reason.
 */
export function leftProblems({ followed }: Pick<Left, 'followed'>, { documents, members }: MembershipView): Problem[] {
  const left = [...documents.values()].flatMap((record) => followed.leftOf(record))
  const nameOf = (node: NodeId): string =>
    `${safeName(members.get(node)?.certificate.body.name ?? '', NODE_NAME)} (${shortId(node)})`.trim()
  const [oversized, overShare] = [left.filter(({ reason }) => reason === 'oversized'), left.filter(isOverShare)]
  return [...sizeProblems(oversized, nameOf), ...shareProblems(overShare, nameOf)]
}

function isOverShare({ reason }: LeftStream): boolean {
  return reason !== 'revoked' && reason !== 'oversized'
}

function sizeProblems(all: readonly LeftStream[], nameOf: (node: NodeId) => string): Problem[] {
  return [...byMember(all)].map(([node, left]) => {
    const message = `${nameOf(node)} wrote a block that is larger than any of a document: nothing more of ${countText(left)} is fetched`
    return { code: 'MALFORMED', message, next: `a2a-node peers show ${node}` }
  })
}

function shareProblems(all: readonly LeftStream[], nameOf: (node: NodeId) => string): Problem[] {
  return [...byMember(all)].map(([node, left]) => {
    const [name, streams] = [nameOf(node), countText(left)]
    const cause = left.every(({ reason }) => reason === 'places')
      ? `this node has no place for more documents that nobody uses here (${MAX_FOLLOWED} streams)`
      : `${name} is over the share of documents that a member makes other nodes keep (${SHARE})`
    const message = `${cause}: ${streams} of ${name} left out; a document that is opened here is kept in any case`
    return { code: 'OVERLOADED', message, next: `a2a-node peers show ${node}` }
  })
}

function byMember(all: readonly LeftStream[]): ReadonlyMap<NodeId, readonly LeftStream[]> {
  const found = new Map<NodeId, LeftStream[]>()
  for (const left of all) found.set(left.node, [...(found.get(left.node) ?? []), left])
  return found
}

function countText({ length }: readonly LeftStream[]): string {
  return length === 1 ? '1 stream' : `${length} streams`
}

/** The part of its share that a member uses at this node. */
export function shareOf(
  { followed, shares }: Left,
  { documents }: Pick<MembershipView, 'documents'>,
  node: NodeId
): DocumentShareInfo {
  const left = [...documents.values()].flatMap((record: DocumentRecord) =>
    followed.leftOf(record).filter((one) => one.node === node)
  )
  return {
    bytes: shares.bytesOf({ node, kind: 'stream' }),
    snapshotBytes: shares.bytesOf({ node, kind: 'snapshot' }),
    maxBytes: DOCUMENT_SHARE_LIMITS.maxBytes,
    maxDocuments: DOCUMENT_SHARE_LIMITS.maxStreams,
    leftOut: left.length
  }
}

/**
 * How long a document must be abandoned before its blocks are removed, in milliseconds: the log may still undo a
 * revocation or removal.
 */
const RECLAIM_MS = 600_000

/** Dependencies of {@link AbandonedDocuments}. */
interface AbandonedDocumentsDeps {
  readonly clock: Clock
  readonly log: Pick<MemberLog, 'view'>
  readonly followed: Pick<ReplicationSet, 'isAbandoned' | 'isUsed' | 'removeAbandoned'>
  readonly shares: Pick<DocumentShares, 'isStored'>
  readonly marks: Pick<DocumentMarks, 'has'>
  /** True while a document is in use. */
  isInUse(name: string): boolean
  /** Removes the local blocks of a document that is no longer followed. */
  remove(record: DocumentRecord): Promise<void>
  onError(error: unknown): void
}

/** Frees the disk space of removed documents, and of unused ones whose only writers were revoked. */
export class AbandonedDocuments {
  readonly #deps: AbandonedDocumentsDeps
  /** Monotonic milliseconds after which each abandoned document is removed, by its name. */
  readonly #due = new Map<string, number>()
  #timer: Timer | null = null
  #removing: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(deps: AbandonedDocumentsDeps) {
    this.#deps = deps
  }

  /** Called when the set of abandoned documents may have changed. */
  review(): void {
    if (this.#isClosed) return
    const names = new Set(this.#stored().map(({ name }) => name))
    for (const name of this.#due.keys()) if (!names.has(name)) this.#due.delete(name)
    for (const name of names) if (!this.#due.has(name)) this.#postpone(name)
    this.#schedule()
  }

  /** Resolves once pending removals are done. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#deps.clock.clear(this.#timer)
    await this.#removing
  }

  #postpone(name: string): void {
    this.#due.set(name, this.#deps.clock.monotonic() + RECLAIM_MS)
  }

  /** The timer runs until the removals that it began are done. Documents that come later are due later. */
  #schedule(): void {
    if (this.#isClosed || this.#timer !== null || this.#due.size === 0) return
    const { clock } = this.#deps
    this.#timer = clock.after(Math.max(0, Math.min(...this.#due.values()) - clock.monotonic()), () => {
      this.#removing = this.#remove()
    })
  }

  /** Abandoned documents with blocks in the local store. */
  #stored(): DocumentRecord[] {
    const { log, followed, shares, marks } = this.#deps
    const { documents, removedDocuments } = log.view()
    const isStored = ({ name, streams }: DocumentRecord): boolean =>
      followed.isUsed(name) || marks.has(name) || streams.some(({ coreKey }) => shares.isStored(coreKey))
    return [...documents.values(), ...removedDocuments.values()].filter(
      (record) => followed.isAbandoned(record) && isStored(record)
    )
  }

  /** Never rejects. */
  async #remove(): Promise<void> {
    const { clock, followed, isInUse, remove, onError } = this.#deps
    const now = clock.monotonic()
    for (const record of this.#stored()) {
      const { name } = record
      if (this.#isClosed || (this.#due.get(name) ?? Number.POSITIVE_INFINITY) > now) continue
      // For a document that is in use now, or whose removal fails.
      this.#postpone(name)
      // A caller may have opened it during the removal of another document.
      if (isInUse(name) || !followed.isAbandoned(record)) continue
      await followed.removeAbandoned(name, () => remove(record)).catch(onError)
    }
    this.#timer = null
    this.review()
  }
}

/** The streams that this node does not follow, counted by their member and the reason. */
export function leftInfo(
  directory: Pick<Directory, 'ref'>,
  left: readonly LeftStream[]
): NonNullable<DocumentInfo['left']> {
  const counts = new Map<
    string,
    { readonly node: DocumentInfo['creator']; readonly streams: number; readonly reason: string }
  >()
  for (const one of left) {
    const key = `${one.node} ${one.reason}`
    counts.set(key, {
      node: directory.ref(one.node),
      streams: (counts.get(key)?.streams ?? 0) + 1,
      reason: leftReason(one)
    })
  }
  return [...counts.values()]
}
