import fc from 'fast-check'
import { canonicalJson } from '../../src/kit/json.js'
import type { Entry, EntryBody, MembershipView } from '../../src/domain/membership/types.js'
import type { Tier } from '../../src/domain/routing/tier.js'
import { demand } from './demand.js'
import { actor, keyText, MESH } from './membership.js'

interface DocumentOp {
  readonly op: 'document'
  readonly by: number
  readonly kind: 'document' | 'document-access' | 'document-stream'
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
    kind: fc.constantFrom('document' as const, 'document-access' as const, 'document-stream' as const),
    name: fc.constantFrom('a', 'b'),
    serial: fc.integer({ min: 1, max: 4 }),
    tier: fc.constantFrom<Tier[]>(0, 1, 2, 3),
    core: fc.constantFrom('one', 'two')
  })
}

/** The body of its entry. */
export function documentBody({ kind, name, serial, tier, core }: DocumentOp): EntryBody {
  const rule = { members: [], maxTier: tier, sandboxes: [], unsandboxed: true }
  const access = { see: rule, write: rule, serial }
  if (kind === 'document') return { kind, mesh: MESH, name, access: tier === 0 ? access : null, at: 1000 }
  if (kind === 'document-access') return { kind, mesh: MESH, name, access, lengths: { [keyText(core)]: serial } }
  return { kind: 'document-stream', mesh: MESH, name, coreKey: keyText(core) }
}

/** What one entry may have changed of documents. */
export function checkDocuments(before: MembershipView, after: MembershipView, entry: Entry): void {
  for (const [name, document] of before.documents) {
    const now = after.documents.get(name)
    demand(now?.creator === document.creator, 'a document stays and keeps its creator')
    demand(canonicalJson(now.streams.slice(0, document.streams.length)) === canonicalJson(document.streams), 'streams are only added')
    const [was, is] = [document.access, now.access]
    demand((is?.access.serial ?? 0) >= (was?.access.serial ?? 0), 'access lists never go back')
    if (is !== null && canonicalJson(is) !== canonicalJson(was))
      demand(is.by === entry.by && (entry.by === actor('owner').id || entry.by === document.creator), 'creator and owner alone restrict')
    const [added] = now.streams.slice(document.streams.length)
    demand(added === undefined || added.nodeKey === entry.by, 'nobody adds a stream for another')
  }
}
