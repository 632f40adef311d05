import type { NodeId } from '../../kit/ids.js'
import { type DeniedDocument, writeDenied } from '../../domain/document/denied.js'
import type { DocumentRecord } from '../../domain/membership/types.js'
import type { DocumentDetail, DocumentGaps, DocumentInfo, DocumentWriter } from '../../ports/document-api.js'
import type { NodeDeps } from '../dependencies.js'
import { accessInfo, type DocumentCaller, memberAccess } from '../documents/access.js'
import { leftInfo } from '../documents/left-documents.js'
import type { IndexedDocument } from '../documents/document-index.js'
import type { Pipelines } from '../pipelines.js'
import type { Services } from '../services.js'

/** Dependencies of the calls about documents. */
export interface DocumentsApiDeps
  extends Pick<Services, 'directory' | 'documentSessions' | 'documents' | 'peers' | 'self'>,
    Pick<Pipelines, 'swarmDocuments'> {
  readonly deps: Pick<NodeDeps, 'clock' | 'documents' | 'log' | 'logState' | 'membership'>
}

/** The caller of a document call, and its node. */
export interface DocumentApiCaller {
  readonly node: DocumentsApiDeps
  readonly certified: DocumentCaller
  /** Milliseconds that the call may wait for others; undefined: its default. */
  readonly timeoutMs?: number
}

/** The caller of a document call without its node. */
export type CallTerms = Omit<DocumentApiCaller, 'node'>

/**
 * The document of a name or an id. The document of a swarm is made on first use.
 * @throws NodeError DOCUMENT_NOT_FOUND, OVERLOADED
 */
export async function found(node: DocumentsApiDeps, document: string, by: DocumentCaller): Promise<IndexedDocument> {
  await node.swarmDocuments.ensure(document)
  return node.documents.known.find(document, by)
}

/** The same document, if the caller may write it. @throws NodeError FORBIDDEN */
export function writable(node: DocumentsApiDeps, known: IndexedDocument, by: DocumentCaller): IndexedDocument {
  if (node.documents.known.access(known.record, by).mayWrite) return known
  throw writeDenied(deniedDocument(node, known.record))
}

/** Names of a document, its creator and the owner of the mesh, for a refusal. */
export function deniedDocument(node: DocumentsApiDeps, { name, creator }: IndexedDocument['record']): DeniedDocument {
  const { mesh, members } = node.deps.log.view()
  const nameOf = (one: NodeId | undefined): string | null =>
    one === undefined || members.get(one)?.revoked !== null ? null : node.directory.ref(one).name
  return { name, creator: nameOf(creator), owner: nameOf(mesh?.owner) }
}

/** Members with an ended stream and no other one: as `status` reports forks. */
export function skippedOf(node: DocumentsApiDeps, { name, streams }: DocumentRecord): DocumentGaps {
  const stopped = streams.flatMap(({ nodeKey, coreKey }) => {
    const reason = node.documents.stopOf(name, coreKey)
    return reason === null ? [] : [{ nodeKey, reason }]
  })
  const goesOn = ({ nodeKey }: { readonly nodeKey: NodeId }): boolean =>
    streams.some((one) => one.nodeKey === nodeKey && node.documents.stopOf(name, one.coreKey) === null)
  const skipped = stopped
    .filter((one) => !goesOn(one))
    .map(({ nodeKey, reason }) => ({ node: node.directory.ref(nodeKey), reason }))
  return skipped.length === 0 ? {} : { skipped }
}

/** One row of the list of documents. */
export function documentInfo(
  node: DocumentsApiDeps,
  { id, record }: IndexedDocument,
  by: DocumentCaller
): DocumentInfo {
  const sizes = record.streams.map(({ coreKey }) => node.deps.documents.size(coreKey))
  const { mayWrite, mayRestrict } = node.documents.known.access(record, by)
  const left = node.documents.followed.leftOf(record)
  return {
    id,
    name: record.name,
    creator: node.directory.ref(record.creator),
    createdAt: new Date(record.createdAt).toISOString(),
    bytes: sizes.reduce((sum, { bytes }) => sum + bytes, node.documents.snapshotBytes(record.name)),
    blocks: sizes.reduce((sum, { blocks }) => sum + blocks, 0),
    writers: new Set(record.streams.map(({ nodeKey }) => nodeKey)).size,
    may: { write: mayWrite, restrict: mayRestrict },
    following: left.length === 0 && node.documents.isFollowed(record.name),
    ...(left.length === 0 ? {} : { left: leftInfo(node.directory, left) })
  }
}

/** The warning of a deceptive name; nothing for none. */
export function warned(nameWarning: string | null): Pick<DocumentInfo, 'nameWarning'> {
  return nameWarning === null ? {} : { nameWarning }
}

/** A document with its streams and access. */
export function documentDetail(node: DocumentsApiDeps, known: IndexedDocument, by: DocumentCaller): DocumentDetail {
  const { record } = known
  const view = node.deps.log.view()
  const streams = record.streams.map(({ nodeKey, coreKey }): DocumentWriter => {
    const { blocks, from, bytes } = node.deps.documents.size(coreKey)
    const { mayWrite } = memberAccess(view, record, nodeKey)
    return {
      node: node.directory.ref(nodeKey),
      stream: coreKey,
      blocks,
      from,
      bytes,
      mayWrite,
      stopped: node.documents.stopOf(record.name, coreKey)
    }
  })
  return {
    ...documentInfo(node, known, by),
    ...warned(node.documents.known.nameWarnings(by)(record.name)),
    access: accessInfo(node.directory, record.access),
    streams,
    ...skippedOf(node, record)
  }
}
