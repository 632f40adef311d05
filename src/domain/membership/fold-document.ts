import type { NodeId } from '../../kit/ids.js'
import { canonicalJson } from '../../kit/json.js'
import { accessOf, mayRestrict, newerAccess } from '../document/access.js'
import { type FoldResult, put, type Scene, skip } from './effects.js'
import { DOCUMENTS_KEY, documentCoreKey, documentKey } from './keys.js'
import { serialFault } from './serial.js'
import type { Certificate, DocumentRecord, DocumentStreamRecord, EntryBody } from './types.js'

/** Documents of one mesh. */
export const MAX_DOCUMENTS = 4096
/** Those that one member may create. */
export const MAX_DOCUMENTS_OF_MEMBER = 1024
/** Streams of one document. */
export const MAX_DOCUMENT_STREAMS = 512
/** Those of one member: each home that is restored or repaired has another one. */
export const MAX_STREAMS_OF_MEMBER = 16

type Body<K extends EntryBody['kind']> = Extract<EntryBody, { readonly kind: K }>

/** Creates a document: whoever names it first. */
export function foldDocument(scene: Scene, { name, access, at }: Body<'document'>): FoldResult {
  const { by, records, mesh } = scene
  if (records.document(name) !== null) return skip('the document is known already')
  const { total, by: counts } = records.documentIndex()
  const count = Object.hasOwn(counts, by) ? (counts[by] ?? 0) : 0
  // The owner can always make another one: nobody else uses up what there is.
  if (by !== mesh.owner && total >= MAX_DOCUMENTS) return skip(`the mesh has ${MAX_DOCUMENTS} documents`)
  if (count >= MAX_DOCUMENTS_OF_MEMBER) return skip(`the node has created ${MAX_DOCUMENTS_OF_MEMBER} documents`)
  const fault = access === null ? null : serialFault(0, access.serial)
  if (fault !== null) return skip(fault)
  const record: DocumentRecord = {
    name,
    creator: by,
    createdAt: at,
    access: access === null ? null : { access, by, lengths: {} },
    streams: []
  }
  return put(
    new Map<string, unknown>([
      [documentKey(name), record],
      [DOCUMENTS_KEY, { total: total + 1, by: { ...counts, [by]: count + 1 } }]
    ])
  )
}

/** Puts another access list in force: of the creator or the owner, and the one that `newerAccess` prefers. */
export function foldDocumentAccess(scene: Scene, { name, access, lengths }: Body<'document-access'>): FoldResult {
  const { by, records, mesh } = scene
  const record = records.document(name)
  if (record === null) return skip('the document is unknown')
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
  return put(new Map([[documentKey(name), { ...record, access: next }]]))
}

function isNewer(next: NonNullable<DocumentRecord['access']>, stored: NonNullable<DocumentRecord['access']>, owner: NodeId): boolean {
  if (next.by === stored.by && canonicalJson(next.access) === canonicalJson(stored.access)) return false
  return newerAccess(stored, next, owner) === next
}

/**
 * Adds a stream of the author to a document that it may write. A core is in one document only: in another it would go to
 * whoever may see that.
 */
export function foldDocumentStream(scene: Scene, { name, coreKey }: Body<'document-stream'>): FoldResult {
  const { by, records, mesh, author } = scene
  const record = records.document(name)
  if (record === null) return skip('the document is unknown')
  const { streams, creator } = record
  if (streams.some(isStreamOf(by, coreKey))) return skip('the stream is known already')
  if ((records.documentOfCore(coreKey) ?? name) !== name) return skip('the stream is one of another document')
  const guarded = { owner: mesh.owner, creator, access: record.access?.access ?? null }
  if (!accessOf(guarded, memberOf(author.certificate.body)).mayWrite) return skip('its author may not write the document')
  if (!hasPlaceFor(record, by)) return skip('there is no place for another stream')
  return put(
    new Map<string, unknown>([
      [documentKey(name), { ...record, streams: [...streams, { nodeKey: by, coreKey }] }],
      [documentCoreKey(coreKey), name]
    ])
  )
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
