import type { MeshId, NodeId } from '../../kit/ids.js'
import { isRecord } from '../../kit/json.js'
import { inviteFault } from './grant.js'
import { parseRecordKey, type RecordKey } from './keys.js'
import { isRemoved, isTombstone } from './records.js'
import type {
  DocumentRecord,
  InviteRecord,
  MemberRecord,
  MembershipView,
  MeshRecord,
  RefusalRecord,
  RemovedDocument,
  SettingsRecord,
  SignedCard,
  TrustRecord,
  WritersRecord
} from './types.js'

/** The view before the log is read. */
export const EMPTY_VIEW: MembershipView = {
  mesh: null,
  members: new Map(),
  invites: new Map(),
  refusals: new Map(),
  cards: new Map(),
  writers: { eligible: [], active: [] },
  settings: null,
  trust: new Map(),
  documents: new Map(),
  removedDocuments: new Map()
}

/**
 * The view of a newcomer that has not read the log yet: nothing but the root of trust that its invite names. With it
 * the gate can check the chains of the members it meets; with {@link EMPTY_VIEW} it could only wait.
 */
export function firstView(root: {
  readonly mesh: MeshId
  readonly name: string
  readonly owner: NodeId
}): MembershipView {
  return { ...EMPTY_VIEW, mesh: { id: root.mesh, name: root.name, owner: root.owner, foundedAt: 0 } }
}

/** Builds the view of the log's records. Keys and values that it does not know are skipped. */
export function buildView(records: Iterable<readonly [string, unknown]>): MembershipView {
  const draft = {
    mesh: null as MeshRecord | null,
    members: new Map<NodeId, MemberRecord>(),
    invites: new Map<string, InviteRecord>(),
    refusals: new Map<NodeId, RefusalRecord>(),
    cards: new Map<NodeId, Map<string, SignedCard>>(),
    writers: EMPTY_VIEW.writers,
    settings: null as SettingsRecord | null,
    trust: new Map<NodeId, TrustRecord>(),
    documents: new Map<string, DocumentRecord>(),
    removedDocuments: new Map<string, RemovedDocument>()
  }
  for (const [text, value] of records) {
    const key = parseRecordKey(text)
    if (key !== null && isRecord(value)) place(draft, key, value)
  }
  for (const [id, invite] of draft.invites) draft.invites.set(id, endedInvite(invite, draft.members))
  return draft
}

type Draft = { -readonly [K in keyof MembershipView]: MembershipView[K] } & {
  readonly members: Map<NodeId, MemberRecord>
  readonly invites: Map<string, InviteRecord>
  readonly refusals: Map<NodeId, RefusalRecord>
  readonly cards: Map<NodeId, Map<string, SignedCard>>
  readonly trust: Map<NodeId, TrustRecord>
  readonly documents: Map<string, DocumentRecord>
  readonly removedDocuments: Map<string, RemovedDocument>
}

/** The records are this node's own, put by the fold: their form needs no further check. */
function place(draft: Draft, key: RecordKey, value: unknown): void {
  if (key.kind === 'mesh') draft.mesh = value as MeshRecord
  else if (key.kind === 'writers') draft.writers = value as WritersRecord
  else if (key.kind === 'settings') draft.settings = value as SettingsRecord
  else if (key.kind === 'member') draft.members.set(key.nodeId, value as MemberRecord)
  else if (key.kind === 'refusal') draft.refusals.set(key.nodeId, value as RefusalRecord)
  else if (key.kind === 'invite') draft.invites.set(key.inviteId, value as InviteRecord)
  else if (key.kind === 'trust') draft.trust.set(key.nodeId, value as TrustRecord)
  else if (key.kind === 'document') placeDocument(draft, value as DocumentRecord)
  else if (key.kind === 'card' && !isTombstone(value)) placeCard(draft.cards, key, value as SignedCard)
}

function placeDocument({ documents, removedDocuments }: Draft, record: DocumentRecord): void {
  if (isRemoved(record)) removedDocuments.set(record.name, record)
  else documents.set(record.name, record)
}

function placeCard(
  cards: Map<NodeId, Map<string, SignedCard>>,
  key: RecordKey & { readonly kind: 'card' },
  card: SignedCard
): void {
  const ofNode = cards.get(key.nodeId) ?? new Map<string, SignedCard>()
  cards.set(key.nodeId, ofNode.set(key.agentId, card))
}

/** An invite ends with its creator's revocation, as the fold has it. */
function endedInvite(invite: InviteRecord, members: ReadonlyMap<NodeId, MemberRecord>): InviteRecord {
  const revokedAt = invite.revokedAt ?? members.get(invite.by)?.revoked?.at ?? null
  return revokedAt === invite.revokedAt ? invite : { ...invite, revokedAt }
}

/** Is it an admitted and unrevoked node? */
export function isActive(view: MembershipView, nodeId: NodeId): boolean {
  return view.members.get(nodeId)?.revoked === null
}

/** Was it admitted, and put out since? */
export function isRevoked(view: MembershipView, nodeId: NodeId): boolean {
  return (view.members.get(nodeId)?.revoked ?? null) !== null
}

/** May it invite: is it the owner or an admin, and not revoked? */
export function isAdmin(view: MembershipView, nodeId: NodeId): boolean {
  return isActive(view, nodeId) && view.members.get(nodeId)?.certificate.body.mayInvite === true
}

/** Is its core a writer of the log now? */
export function isWriter(view: MembershipView, nodeId: NodeId): boolean {
  const coreKey = view.members.get(nodeId)?.coreKey
  return isActive(view, nodeId) && coreKey !== undefined && view.writers.active.includes(coreKey)
}

/** Node ids of everybody admitted and not revoked, in the order of admission. */
export function activeMembers(view: MembershipView): NodeId[] {
  return [...view.members]
    .filter(([, member]) => member.revoked === null)
    .sort(([, a], [, b]) => a.order - b.order)
    .map(([nodeId]) => nodeId)
}

/** State of an invite at `now` (unix milliseconds). Revoked comes before used, used before expired. */
export function inviteState(record: InviteRecord, now: number): 'open' | 'used' | 'expired' | 'revoked' {
  const fault = inviteFault(record, now)
  if (fault === null) return 'open'
  return fault === 'INVITE_REVOKED' ? 'revoked' : fault === 'INVITE_USED' ? 'used' : 'expired'
}
