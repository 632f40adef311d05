import type { NodeId } from '../../kit/ids.js'
import { type AccessVerdict, accessOf, mayRestrict } from '../../domain/document/access.js'
import { countedBlocks } from '../../domain/document/counted.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import { memberOf } from '../../domain/membership/fold/document.js'
import type { DocumentRecord, MembershipView } from '../../domain/membership/types.js'
import type { Tier } from '../../domain/routing/tier.js'
import type { DocumentStreams } from '../../ports/documents.js'

/** Who asks this node for something: as weak as what it speaks for. */
export interface DocumentCaller {
  readonly maxTier: Tier
  readonly sandboxId: string | null
}

/** What a caller may do with a document. */
export interface CallerVerdict extends Pick<AccessVerdict, 'maySee' | 'mayWrite'> {
  readonly mayRestrict: boolean
}

/** Why a stream ends whose member lost the right to write; not for good, as a list may give it again. */
export const NOT_ALLOWED = 'its member may not write'

const NOTHING: CallerVerdict = { maySee: false, mayWrite: false, mayRestrict: false }

/** What a member may do with a document, by the view alone; nothing for who is none. */
export function memberAccess(view: MembershipView, document: DocumentRecord, node: NodeId): Pick<AccessVerdict, 'maySee' | 'mayWrite'> {
  const member = view.members.get(node)
  return member === undefined || member.revoked !== null ? NOTHING : accessOf(guarded(view, document), memberOf(member.certificate.body))
}

/** The same of somebody who asks `self`. One that is weaker than its node has no rights that are that node's by name. */
export function callerAccess(
  view: MembershipView,
  document: DocumentRecord,
  { self, by }: { readonly self: NodeId; readonly by: DocumentCaller }
): CallerVerdict {
  const own = view.members.get(self)
  const verdict = memberAccess(view, document, self)
  if (own === undefined || !verdict.maySee) return NOTHING
  const { maxTier, sandboxId = null } = own.certificate.body
  const isWeaker = by.maxTier > maxTier || (by.sandboxId !== null && by.sandboxId !== sandboxId)
  if (!isWeaker) return { ...verdict, mayRestrict: mayRestrict(guarded(view, document), self) }
  const weak = accessOf(guarded(view, document), {
    node: '',
    tier: by.maxTier > maxTier ? by.maxTier : maxTier,
    sandboxId: by.sandboxId ?? sandboxId
  })
  return { maySee: weak.maySee, mayWrite: weak.mayWrite && verdict.mayWrite, mayRestrict: false }
}

/** How many blocks of each stream of a document count. */
export function countedStreams(view: MembershipView, document: DocumentRecord): Map<StreamKey, number> {
  return new Map(document.streams.map(({ coreKey }) => [coreKey, countedBlocks(view, document, coreKey)]))
}

/**
 * How long each stream of a document is known to be, to be signed with an access list: of who loses the right to write, so much
 * stays. It counts what is not fetched yet, was removed here or is not followed: what is here now may be nothing.
 * @throws NodeError CONFLICT when a stream cannot be opened
 */
export async function knownLengths(
  documents: Pick<DocumentStreams, 'length'>,
  { streams }: Pick<DocumentRecord, 'streams'>
): Promise<Record<StreamKey, number>> {
  const lengths = streams.map(async ({ coreKey }) => [coreKey, await documents.length(coreKey)] as const)
  return Object.fromEntries(await Promise.all(lengths))
}

function guarded(view: MembershipView, { creator, access }: DocumentRecord): Parameters<typeof accessOf>[0] {
  return { owner: view.mesh?.owner ?? '', creator, access: access?.access ?? null }
}
