import { type NodeId, shortId } from '../../kit/ids.js'
import { NODE_NAME } from '../../kit/names/rule.js'
import { safeName } from '../../kit/names/safe-name.js'
import { DOCUMENT_SHARE_LIMITS, MAX_FOLLOWED } from '../../domain/document/share.js'
import type { DocumentRecord, MembershipView } from '../../domain/membership/types.js'
import type { DocumentShareInfo } from '../../ports/document-api.js'
import type { Problem } from '../../ports/node-api.js'
import type { DocumentShares } from './shares.js'
import type { ReplicationSet, LeftStream } from './replication-set.js'

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
