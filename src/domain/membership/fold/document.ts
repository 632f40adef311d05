import type { NodeId } from '../../../kit/ids.js'
import { canonicalJson } from '../../../kit/json.js'
import { accessOf, mayRestrict, newerAccess } from '../../document/access.js'
import { type FoldResult, full, put, type Scene, skip } from './effects.js'
import { DOCUMENTS_KEY, documentCoreKey, documentKey } from '../keys.js'
import { serialFault } from '../serial.js'
import { type DocumentIndexRecord, isRemoved } from '../records.js'
import type {
  Certificate,
  DocumentRecord,
  DocumentSnapshot,
  DocumentStreamRecord,
  EntryBody,
  RemovedDocument,
  StreamLengths
} from '../types.js'

/** Documents of one mesh. */
export const MAX_DOCUMENTS = 4096
/** Documents of one member. */
export const MAX_DOCUMENTS_OF_MEMBER = 1024
/** Removed documents of one member: each keeps its name. */
export const MAX_REMOVED_DOCUMENTS_OF_MEMBER = 4096
/** Streams of one document. */
export const MAX_DOCUMENT_STREAMS = 512
/** Streams of one member: each restored or repaired home has a new one. */
export const MAX_STREAMS_OF_MEMBER = 16
/** Bytes that the access lists, streams and snapshots of one member take in all documents together. */
export const MAX_DOCUMENT_BYTES_OF_MEMBER = 1_048_576
/** Charge of one stream or snapshot, in bytes. */
const STREAM_BYTES = 128
/** Snapshots of a document of which is remembered that a list ended them. */
const MAX_ENDED_SNAPSHOTS = 16
/** Blocks that a snapshot has at least in addition to the one before. */
export const SNAPSHOT_BLOCKS = 1024

type DocumentEntryBody<K extends EntryBody['kind']> = Extract<EntryBody, { readonly kind: K }>

/** Creates a document by its first mention. */
export function foldDocument(scene: Scene, { name, access, at }: DocumentEntryBody<'document'>): FoldResult {
  const { by, records, mesh } = scene
  if (records.document(name) !== null) return skip('the document is known already')
  const { total, by: counts, ...index } = records.documentIndex()
  const count = countOf(counts, by)
  // The owner can always create a document: no one else uses up the total.
  if (by !== mesh.owner && total >= MAX_DOCUMENTS) return full(`the mesh has ${MAX_DOCUMENTS} documents`)
  if (count >= MAX_DOCUMENTS_OF_MEMBER) return full(`the node has ${MAX_DOCUMENTS_OF_MEMBER} documents`)
  if (countOf(index.removed, by) >= MAX_REMOVED_DOCUMENTS_OF_MEMBER)
    return full(`the node has removed ${MAX_REMOVED_DOCUMENTS_OF_MEMBER} documents`)
  const fault = access === null ? null : serialFault(0, access.serial)
  if (fault !== null) return skip(fault)
  const list = access === null ? null : { access, by, lengths: {} }
  const counted = charged(
    scene,
    { ...index, total: total + 1, by: { ...counts, [by]: count + 1 } },
    { more: listBytes(list, []) }
  )
  if (counted === null) return full(OVER_SHARE)
  const record: DocumentRecord = { name, creator: by, createdAt: at, access: list, streams: [] }
  return put(
    new Map<string, unknown>([
      [documentKey(name), record],
      [DOCUMENTS_KEY, counted]
    ])
  )
}

/**
 * Removes a document: its creator has room for another one, and its access list takes no more bytes. The name stays
 * taken, since entries of the removed document may come again. Its streams stay known, so that every node finds their
 * blocks and removes them.
 */
export function foldDocumentRemoved(scene: Scene, { name, at }: DocumentEntryBody<'document-removed'>): FoldResult {
  const { by, records, mesh } = scene
  const record = records.document(name)
  if (record === null) return skip('the document is unknown')
  if (isRemoved(record)) return skip(REMOVED)
  const { creator, createdAt, streams, access } = record
  if (!mayRestrict({ owner: mesh.owner, creator, access: null }, by))
    return skip('its author may not remove the document')
  const { total, by: counts, removed = {}, ...index } = records.documentIndex()
  const next = {
    ...index,
    total: total - 1,
    by: { ...counts, [creator]: countOf(counts, creator) - 1 },
    removed: { ...removed, [creator]: countOf(removed, creator) + 1 }
  }
  return put(
    new Map<string, unknown>([
      [
        documentKey(name),
        { name, creator, createdAt, access: null, streams, removed: { by, at } } satisfies RemovedDocument
      ],
      [DOCUMENTS_KEY, charged({ ...scene, by: access?.by ?? by }, next, { more: 0, less: listBytes(access, streams) })]
    ])
  )
}

const REMOVED = 'the document is removed'

function countOf(counts: Readonly<Record<NodeId, number>> = {}, node: NodeId): number {
  return Object.hasOwn(counts, node) ? (counts[node] ?? 0) : 0
}

const OVER_SHARE = `access lists, streams and snapshots of the node take ${MAX_DOCUMENT_BYTES_OF_MEMBER / 1_048_576} MiB in the log already`

/**
 * The index with the author's charge: `more` bytes in place of `less` bytes that it or another (`lessOf`) made. Null:
 * its share is full. The owner can always restrict a document, and everyone can shorten a list.
 */
function charged(
  { by, mesh }: Scene,
  index: DocumentIndexRecord,
  { more, less = 0, lessOf = by }: { readonly more: number; readonly less?: number; readonly lessOf?: NodeId }
): DocumentIndexRecord | null {
  const bytes = new Map<NodeId, number>(Object.entries(index.bytes))
  const before = bytes.get(by) ?? 0
  bytes.set(lessOf, Math.max(0, (bytes.get(lessOf) ?? 0) - less))
  const sum = (bytes.get(by) ?? 0) + more
  if (by !== mesh.owner && sum > before && sum > MAX_DOCUMENT_BYTES_OF_MEMBER) return null
  bytes.set(by, sum)
  return { ...index, bytes: Object.fromEntries([...bytes].filter(([, count]) => count > 0)) }
}

/**
 * Bytes of a list. The lengths of the document's streams are left out: each of these counts for the member that made
 * it.
 */
function listBytes(list: DocumentRecord['access'], streams: DocumentRecord['streams']): number {
  if (list === null) return 0
  const known = new Set<string>(streams.map(({ coreKey }) => coreKey))
  const lengths = Object.entries(list.lengths).filter(([stream]) => !known.has(stream))
  return canonicalJson([list.access, lengths]).length
}

/** Puts another access list in force: of the creator or the owner, and the one that `newerAccess` prefers. */
export function foldDocumentAccess(
  scene: Scene,
  { name, access, lengths, ends }: DocumentEntryBody<'document-access'>
): FoldResult {
  const { by, records, mesh } = scene
  const record = records.document(name)
  if (record === null) return skip('the document is unknown')
  if (isRemoved(record)) return skip(REMOVED)
  if (!mayRestrict({ owner: mesh.owner, creator: record.creator, access: null }, by))
    return skip('its author may not restrict the document')
  if (Object.keys(lengths).length > MAX_DOCUMENT_STREAMS) return skip('it names too many streams')
  const stored = record.access
  if (access.serial !== stored?.access.serial) {
    const fault = serialFault(stored?.access.serial ?? 0, access.serial)
    if (fault !== null) return skip(fault)
  }
  const next = { access, by, lengths }
  if (stored !== null && !isNewer(next, stored, mesh.owner)) return skip('a newer one is known')
  const change = {
    more: listBytes(next, record.streams),
    less: listBytes(stored, record.streams),
    lessOf: stored?.by ?? by
  }
  const counted = charged(scene, records.documentIndex(), change)
  if (counted === null) return full(OVER_SHARE)
  return put(
    new Map<string, unknown>([
      [documentKey(name), { ...withoutEnded(record, ends), access: next }],
      [DOCUMENTS_KEY, counted]
    ])
  )
}

/** Only a member that has seen the error ends a snapshot: others may have removed the blocks that it holds. */
function withoutEnded(record: DocumentRecord, ends: string | undefined): DocumentRecord {
  const { snapshot, ...rest } = record
  if (snapshot === undefined || snapshot.coreKey !== ends) return record
  return { ...rest, ended: [...(record.ended ?? []), ends].slice(-MAX_ENDED_SNAPSHOTS) }
}

function isNewer(
  next: NonNullable<DocumentRecord['access']>,
  stored: NonNullable<DocumentRecord['access']>,
  owner: NodeId
): boolean {
  if (next.by === stored.by && canonicalJson(next.access) === canonicalJson(stored.access)) return false
  return newerAccess(stored, next, owner) === next
}

/**
 * Adds a stream of the author to a document that it may write. A core belongs to one document: a second one would send
 * it to its readers.
 */
export function foldDocumentStream(scene: Scene, { name, coreKey }: DocumentEntryBody<'document-stream'>): FoldResult {
  const { by, records, mesh, author } = scene
  const record = records.document(name)
  if (record === null) return skip('the document is unknown')
  if (isRemoved(record)) return skip(REMOVED)
  const { streams, creator } = record
  if (streams.some(isStreamOf(by, coreKey))) return skip('the stream is known already')
  if ((records.documentOfCore(coreKey) ?? name) !== name) return skip('the stream is one of another document')
  const guarded = { owner: mesh.owner, creator, access: record.access?.access ?? null }
  if (!accessOf(guarded, memberOf(author.certificate.body)).mayWrite)
    return skip('its author may not write the document')
  if (!hasPlaceFor(record, by)) return full('the limit of streams is reached')
  const counted = charged(scene, records.documentIndex(), { more: STREAM_BYTES })
  if (counted === null) return full(OVER_SHARE)
  return put(
    new Map<string, unknown>([
      [documentKey(name), { ...record, streams: [...streams, { nodeKey: by, coreKey }] }],
      [documentCoreKey(coreKey), name],
      [DOCUMENTS_KEY, counted]
    ])
  )
}

/**
 * Activates a snapshot of a member that may write the document. It must cover more of the document's streams than the
 * one before. Its content counts from then on, until an access list ends it.
 */
export function foldDocumentSnapshot(
  scene: Scene,
  { name, serial, coreKey, blocks, hash, lengths }: DocumentEntryBody<'document-snapshot'>
): FoldResult {
  const { records, mesh, author } = scene
  const record = records.document(name)
  if (record === null) return skip('the document is unknown')
  if (isRemoved(record)) return skip(REMOVED)
  if (records.documentOfCore(coreKey) !== null) return skip('its core is one of a document already')
  const guarded = { owner: mesh.owner, creator: record.creator, access: record.access?.access ?? null }
  if (!accessOf(guarded, memberOf(author.certificate.body)).mayWrite)
    return skip('its author may not write the document')
  if (serial !== (record.access?.access.serial ?? 0)) return skip('it was made under another access list')
  if (!isFurther(record, { lengths })) return skip('it is not far enough behind the one in force')
  const known = new Set(record.streams.map((stream) => stream.coreKey))
  if (Object.keys(lengths).some((stream) => !known.has(stream)))
    return skip('it is of a stream that is not one of the document')
  const counted = charged(scene, records.documentIndex(), { more: STREAM_BYTES })
  if (counted === null) return full(OVER_SHARE)
  return put(
    new Map<string, unknown>([
      [documentKey(name), { ...record, snapshot: { coreKey, blocks, hash, lengths, ...formerOf(record) } }],
      [documentCoreKey(coreKey), name],
      [DOCUMENTS_KEY, counted]
    ])
  )
}

/** The one in force so far: the next one may be lost before anybody has it. */
function formerOf({ snapshot }: DocumentRecord): { readonly before?: DocumentSnapshot } {
  if (snapshot === undefined) return {}
  const { coreKey, blocks, hash, lengths } = snapshot
  return { before: { coreKey, blocks, hash, lengths } }
}

/** Is a snapshot of a document so much further on than the one in force that it takes its place? */
export function isFurther(record: DocumentRecord | undefined, { lengths }: StreamLengths): boolean {
  if (record === undefined) return true
  const before = Object.entries(record.snapshot?.lengths ?? {})
  if (before.some(([stream, length]) => lengthOf(lengths, stream) < length)) return false
  const sum = (all: readonly number[]): number => all.reduce((total, one) => total + one, 0)
  return sum(Object.values(lengths)) - sum(before.map(([, length]) => length)) >= SNAPSHOT_BLOCKS
}

/** Length of a stream; 0 when it is not named. */
export function lengthOf(lengths: StreamLengths['lengths'], stream: string): number {
  return Object.hasOwn(lengths, stream) ? (lengths[stream] ?? 0) : 0
}

/** Does a document take another stream of a node? */
export function hasPlaceFor({ streams }: Pick<DocumentRecord, 'streams'>, node: NodeId): boolean {
  if (streams.length >= MAX_DOCUMENT_STREAMS) return false
  return streams.filter(({ nodeKey }) => nodeKey === node).length < MAX_STREAMS_OF_MEMBER
}

/** Is a stream this core of this node? */
export function isStreamOf(node: NodeId, coreKey: string): (stream: DocumentStreamRecord) => boolean {
  return (stream) => stream.nodeKey === node && stream.coreKey === coreKey
}

/** A member as its certificate has it, for the rules of access. */
export function memberOf({ nodeKey, maxTier, sandboxId }: Certificate): Parameters<typeof accessOf>[1] {
  return { node: nodeKey, tier: maxTier, sandboxId: sandboxId ?? null }
}
