import { NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import {
  type AccessRule,
  type AccessVerdict,
  accessOf,
  type DocumentAccess,
  MAX_LISTED,
  mayRestrict
} from '../../domain/document/access.js'
import { type DeniedDocument, writeDenied } from '../../domain/document/denied.js'
import { countedBlocks } from '../../domain/document/counted.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import { memberOf } from '../../domain/membership/fold/document.js'
import type { DocumentRecord, MembershipView } from '../../domain/membership/types.js'
import { type Tier, tierText } from '../../domain/routing/tier.js'
import type { DocumentAccessInfo, DocumentRuleInfo, DocumentRuleRequest } from '../../ports/document-api.js'
import type { DocumentStreams } from '../../ports/documents.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { Directory } from '../cards/directory.js'
import type { Guests } from '../policy/guests.js'
import type { DocumentIndex, IndexedDocument } from './document-index.js'

/** The caller of a document operation at this node. A caller that acts for others has the lower of both rights. */
export interface DocumentCaller {
  readonly maxTier: Tier
  readonly sandboxId: string | null
}

/** The rights of a caller on a document. */
export interface CallerVerdict extends Pick<AccessVerdict, 'maySee' | 'mayWrite'> {
  readonly mayRestrict: boolean
}

/** Why a stream ends when its member loses the right to write. Not final: a later access list may restore the right. */
export const NOT_ALLOWED = 'its member may not write'

const NOTHING: CallerVerdict = { maySee: false, mayWrite: false, mayRestrict: false }

/**
 * The rights of a member on a document, by the view alone. An unknown or revoked member has none, and nobody on a
 * removed document.
 */
export function memberAccess(
  view: MembershipView,
  document: DocumentRecord,
  node: NodeId
): Pick<AccessVerdict, 'maySee' | 'mayWrite'> {
  const member = view.members.get(node)
  if (member === undefined || member.revoked !== null || view.removedDocuments.has(document.name)) return NOTHING
  return accessOf(guarded(view, document), memberOf(member.certificate.body))
}

/**
 * The rights of a caller of node `self`. A caller weaker than its node does not get rights granted to that node by
 * name.
 */
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

/** The number of counted blocks of each stream of a document. */
export function countedStreams(view: MembershipView, document: DocumentRecord): Map<StreamKey, number> {
  return new Map(document.streams.map(({ coreKey }) => [coreKey, countedBlocks(view, document, coreKey)]))
}

/**
 * The known length of each stream of a document, to be signed with an access list. A member that loses the right to
 * write keeps this many blocks. The lengths include blocks that are not fetched yet, were removed here or are not
 * followed: the local store may have none.
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

/** An access list in the form for people; null when there is none. */
export function accessInfo(
  directory: Pick<Directory, 'ref'>,
  signed: DocumentRecord['access']
): DocumentAccessInfo | null {
  if (signed === null) return null
  const { access, by } = signed
  const rule = ({ members, maxTier, sandboxes, unsandboxed }: AccessRule): DocumentRuleInfo => ({
    members: members.map((member) => directory.ref(member)),
    tier: maxTier === null ? null : tierText(maxTier),
    sandboxes,
    unsandboxed
  })
  return { see: rule(access.see), write: rule(access.write), serial: access.serial, by: directory.ref(by) }
}

/** Finds the members that access lists name. */
export interface AccessNames {
  readonly directory: Pick<Directory, 'node'>
  readonly guests: Pick<Guests, 'machines'>
}

/** The rules of an access list as they are asked for. */
export interface RequestedAccess {
  readonly see?: DocumentRuleRequest | undefined
  readonly write?: DocumentRuleRequest | undefined
}

/** Everybody outside of sandboxes reads, guests do not write: the list of a document that is made without one. */
export const GUESTS_READ: RequestedAccess = { write: { mine: true, tier: null, unsandboxed: false } }

/**
 * An access list of requested rules. @throws NodeError PEER_NOT_FOUND, AMBIGUOUS_NAME for a member, INVALID_INPUT for
 * too many
 */
export function accessList(
  names: AccessNames,
  { see = {}, write = {} }: RequestedAccess,
  serial: number
): DocumentAccess {
  return { see: ruleOf(names, see), write: ruleOf(names, write), serial }
}

/** The list names members: a later change of trust leaves it, and the blocks that count by it, as they are. */
function ruleOf(
  { directory, guests }: AccessNames,
  { members = [], mine = false, tier = 'L3', sandboxes = [], unsandboxed = true }: DocumentRuleRequest
): AccessRule {
  const named = members.map((member): NodeId => directory.node(member))
  const keys = [...new Set([...named, ...(mine ? guests.machines() : [])])]
  if (keys.length > MAX_LISTED)
    throw new NodeError('INVALID_INPUT', `an access list names at most ${MAX_LISTED} nodes, not ${keys.length}`, {
      next: ['a2a-node doc access --help']
    })
  return { members: keys, maxTier: tier === null ? null : tierOf(tier), sandboxes: [...sandboxes], unsandboxed }
}

function tierOf(text: string): 0 | 1 | 2 | 3 {
  return text === 'L0' ? 0 : text === 'L1' ? 1 : text === 'L2' ? 2 : 3
}

/** Dependencies of refusals of documents. */
export interface DeniedDocumentDeps {
  readonly self: NodeId
  readonly directory: Pick<Directory, 'ref'>
  readonly documents: { readonly known: Pick<DocumentIndex, 'access'> }
  readonly deps: { readonly log: Pick<MemberLog, 'view'> }
}

/** The same document, if the caller may write it. @throws NodeError FORBIDDEN */
export function writable(node: DeniedDocumentDeps, known: IndexedDocument, by: DocumentCaller): IndexedDocument {
  if (node.documents.known.access(known.record, by).mayWrite) return known
  throw writeDenied({ ...deniedDocument(node, known.record), ...missingWriter(node, known.record) })
}

/** The rule that lacks this node; a caller weaker than its node is not helped by it. */
function missingWriter(node: DeniedDocumentDeps, record: DocumentRecord): Pick<DeniedDocument, 'rule' | 'writer'> {
  if (memberAccess(node.deps.log.view(), record, node.self).mayWrite) return {}
  return { rule: accessInfo(node.directory, record.access)?.write, writer: node.directory.ref(node.self).name }
}

/** A document, with the names of the nodes that can grant rights on it. */
export function deniedDocument(node: DeniedDocumentDeps, { name, creator }: IndexedDocument['record']): DeniedDocument {
  const { mesh, members } = node.deps.log.view()
  const nameOf = (one: NodeId | undefined): string | null =>
    one === undefined || members.get(one)?.revoked !== null ? null : node.directory.ref(one).name
  return { name, creator: nameOf(creator), owner: nameOf(mesh?.owner) }
}
