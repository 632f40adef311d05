import fc from 'fast-check'
import { canonicalJson } from '../../src/kit/json.js'
import { accessOf } from '../../src/domain/document/access.js'
import { lengthOf, memberOf, SNAPSHOT_BLOCKS } from '../../src/domain/membership/fold/document.js'
import type { DocumentRecord, Entry, EntryBody, MembershipView } from '../../src/domain/membership/types.js'
import type { Tier } from '../../src/domain/routing/tier.js'
import { demand } from './demand.js'
import { actor, keyText, MESH } from './membership.js'

export const DOCUMENT_KINDS = [
  'document',
  'document-access',
  'document-stream',
  'document-snapshot',
  'document-removed'
] as const

interface DocumentOp {
  readonly op: 'document'
  readonly by: number
  readonly kind: (typeof DOCUMENT_KINDS)[number]
  readonly name: string
  readonly serial: number
  readonly tier: Tier
  readonly core: string
}

/** Something that somebody tries with a document. */
export function arbDocumentOp(by: fc.Arbitrary<number>): fc.Arbitrary<DocumentOp> {
  return fc.record({
    op: fc.constant('document' as const),
    by,
    kind: fc.constantFrom(...DOCUMENT_KINDS),
    name: fc.constantFrom('a', 'b', 'c', 'c'),
    serial: fc.integer({ min: 1, max: 4 }),
    tier: fc.constantFrom<Tier[]>(0, 1, 2, 3),
    core: fc.constantFrom('one', 'two')
  })
}

/** A document with a stream of whoever writes these, so that a snapshot of it can succeed. */
export function documentWithStream(): readonly EntryBody[] {
  return [
    { kind: 'document', mesh: MESH, name: 'c', access: null, at: 1000 },
    { kind: 'document-stream', mesh: MESH, name: 'c', coreKey: keyText('one') }
  ]
}

/** The body of its entry. */
export function documentBody({ kind, name, serial, tier, core }: DocumentOp): EntryBody {
  const rule = { members: [], maxTier: tier, sandboxes: [], unsandboxed: true }
  const access = { see: rule, write: rule, serial }
  if (kind === 'document') return { kind, mesh: MESH, name, access: tier === 0 ? access : null, at: 1000 }
  if (kind === 'document-access') return { kind, mesh: MESH, name, access, lengths: { [keyText(core)]: serial } }
  if (kind === 'document-stream') return { kind, mesh: MESH, name, coreKey: keyText(core) }
  // Few removals: nothing can be done to a removed document.
  if (kind === 'document-removed') return { kind, mesh: MESH, name: serial === 1 ? name : `${name}/none`, at: 2000 }
  const lengths = { [keyText(core)]: (tier + 1) * SNAPSHOT_BLOCKS - (serial === 4 ? 1 : 0) }
  // Few cores, some of them streams: what is known already is no core of a snapshot.
  const coreKey = keyText(tier === 3 && serial === 2 ? core : `snapshot/${core}/${tier}`)
  return { kind, mesh: MESH, name, serial: Math.max(serial - 2, 0), coreKey, blocks: 1, hash: keyText('hash'), lengths }
}

/** A snapshot of the document `notes` in a core of this name; `lengths` by the names of streams. */
export function snapshotBody({
  core,
  lengths,
  serial = 0
}: SnapshotTerms): Extract<EntryBody, { readonly kind: 'document-snapshot' }> {
  const byKey = Object.fromEntries(Object.entries(lengths).map(([stream, length]) => [keyText(stream), length]))
  const place = { coreKey: keyText(core), blocks: 2, hash: keyText(`hash/${core}`) }
  return { kind: 'document-snapshot', mesh: MESH, name: 'notes', serial, ...place, lengths: byKey }
}

interface SnapshotTerms {
  readonly core: string
  readonly lengths: Readonly<Record<string, number>>
  /** Serial of the access list under which it was made. */
  readonly serial?: number
}

/** What one entry may have changed of documents. */
export function checkDocuments(before: MembershipView, after: MembershipView, entry: Entry): void {
  for (const [name, document] of before.removedDocuments)
    demand(
      canonicalJson(after.removedDocuments.get(name)) === canonicalJson(document),
      'a removed document never comes back'
    )
  for (const [name, document] of before.documents) {
    const removed = after.removedDocuments.get(name)
    const now = removed ?? after.documents.get(name)
    demand(now?.creator === document.creator, 'a document stays and keeps its creator')
    demand(
      canonicalJson(now.streams.slice(0, document.streams.length)) === canonicalJson(document.streams),
      'streams are only added'
    )
    if (removed !== undefined) {
      const isRemoval = entry.body.kind === 'document-removed' && entry.body.name === name
      demand(
        isRemoval && (entry.by === actor('owner').id || entry.by === document.creator),
        'removed by whom it may be'
      )
      demand(!after.documents.has(name), 'a removed document is none of the others')
      continue
    }
    const [was, is] = [document.access, now.access]
    demand((is?.access.serial ?? 0) >= (was?.access.serial ?? 0), 'access lists never go back')
    if (is !== null && canonicalJson(is) !== canonicalJson(was))
      demand(
        is.by === entry.by && (entry.by === actor('owner').id || entry.by === document.creator),
        'creator and owner alone restrict'
      )
    const [added] = now.streams.slice(document.streams.length)
    demand(added === undefined || added.nodeKey === entry.by, 'nobody adds a stream for another')
    if (canonicalJson(now.snapshot ?? null) !== canonicalJson(document.snapshot ?? null))
      checkSnapshot(before, { document, now }, entry)
  }
}

interface DocumentStep {
  readonly document: DocumentRecord
  readonly now: DocumentRecord
}

/** Another snapshot took the place of the one in force. */
function checkSnapshot(
  { mesh, members, documents }: MembershipView,
  { document, now }: DocumentStep,
  { by, body }: Entry
): void {
  const { access, creator, streams } = document
  if (now.snapshot === undefined) {
    demand(body.kind === 'document-access' && body.ends === document.snapshot?.coreKey, 'ended by a list')
    return
  }
  const [before, after] = [document.snapshot?.lengths ?? {}, now.snapshot.lengths]
  const author = members.get(by)
  const guarded = { owner: mesh?.owner ?? '', creator, access: access?.access ?? null }
  demand(
    body.kind === 'document-snapshot' && body.serial === (access?.access.serial ?? 0),
    'under the access list in force'
  )
  demand(
    author !== undefined && accessOf(guarded, memberOf(author.certificate.body)).mayWrite,
    'of a member that may write'
  )
  demand(
    Object.keys(after).every((stream) => streams.some(({ coreKey }) => coreKey === stream)),
    'of streams of the document'
  )
  const more = [...new Set([...Object.keys(before), ...Object.keys(after)])].map(
    (one) => lengthOf(after, one) - lengthOf(before, one)
  )
  demand(
    more.every((blocks) => blocks >= 0),
    'no stream of it goes back'
  )
  demand(more.reduce((sum, blocks) => sum + blocks, 0) >= SNAPSHOT_BLOCKS, 'each is much further on')
  const cores = [...documents.values()].flatMap((one) => [
    ...one.streams.map(({ coreKey }) => coreKey),
    one.snapshot?.coreKey
  ])
  demand(!cores.includes(now.snapshot.coreKey), 'in a core of its own')
}
