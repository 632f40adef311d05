import type { NodeId } from '../../kit/ids.js'
import { bytesFromText, bytesToText, flat, fromUtf8, utf8 } from '../../kit/ids.js'
import { isCanonicalKey } from './signing.js'

/** The mesh itself ({@link MeshRecord}). */
export const MESH_KEY = 'mesh'
/** The writers ({@link WritersRecord}). */
export const WRITERS_KEY = 'writers'
/** The next admission order: a number. */
export const ORDER_KEY = 'order'
/** Node keys of everybody revoked, so that their invites end with them. */
export const REVOKED_KEY = 'revoked'

/** The mesh settings of the owner ({@link SettingsRecord}). */
export const SETTINGS_KEY = 'settings'

/** Key of a node's {@link MemberRecord}. */
export function memberKey(nodeId: NodeId): string {
  return `member/${nodeId}`
}

/** Key of an {@link InviteRecord}. */
export function inviteKey(inviteId: string): string {
  return `invite/${inviteId}`
}

/** Key of how many invites a node has made ({@link InviteIndexRecord}). */
export function inviteIndexKey(nodeId: NodeId): string {
  return `invites/${nodeId}`
}

/** Key of how a node regards others ({@link TrustRecord}). */
export function trustKey(nodeId: NodeId): string {
  return `trust/${nodeId}`
}

/** Key of a node's {@link RefusalRecord}. */
export function refusalKey(nodeId: NodeId): string {
  return `refusal/${nodeId}`
}

/** Key of a card, or of the tombstone where one was. */
export function cardKey(nodeId: NodeId, agentId: string): string {
  return `card/${nodeId}/${agentId}`
}

/** Key of the list of a node's cards ({@link CardIndexRecord}). */
export function cardIndexKey(nodeId: NodeId): string {
  return `cards/${nodeId}`
}

/** How many documents there are ({@link DocumentIndexRecord}). */
export const DOCUMENTS_KEY = 'documents'

/** Key of a {@link DocumentRecord}: names may hold any character. */
export function documentKey(name: string): string {
  return `document/${bytesToText(utf8(name))}`
}

/** Key of the name of the document that a core (z32 of its key) is a stream of. */
export function documentCoreKey(coreKey: string): string {
  return `document-core/${coreKey}`
}

/** A key of the view, taken apart. */
export type RecordKey =
  | { readonly kind: 'mesh' | 'writers' | 'order' | 'revoked' | 'settings' | 'documents' }
  | { readonly kind: 'document'; readonly name: string }
  | { readonly kind: 'member' | 'refusal' | 'cards' | 'invites' | 'trust'; readonly nodeId: NodeId }
  | { readonly kind: 'invite'; readonly inviteId: string }
  | { readonly kind: 'document-core'; readonly coreKey: string }
  | { readonly kind: 'card'; readonly nodeId: NodeId; readonly agentId: string }

/** Takes a key of the view apart; null for one that the builders here do not make. */
export function parseRecordKey(key: string): RecordKey | null {
  const [kind, part, agentId, ...rest] = key.split('/')
  if (part === undefined) return isSingle(kind) ? { kind } : null
  if (kind === 'document') return parseDocumentKey(key, part)
  const id = flat(part)
  if (!isCanonicalKey(id) || rest.length > 0) return null
  if (kind === 'card') return agentId === undefined || agentId === '' ? null : { kind, nodeId: id, agentId }
  if (agentId !== undefined) return null
  if (kind === 'invite') return { kind, inviteId: id }
  if (kind === 'document-core') return { kind, coreKey: id }
  return isOfNode(kind) ? { kind, nodeId: id } : null
}

function isOfNode(kind: string | undefined): kind is 'member' | 'refusal' | 'cards' | 'invites' | 'trust' {
  return ['member', 'refusal', 'cards', 'invites', 'trust'].includes(kind ?? '')
}

function parseDocumentKey(key: string, part: string): RecordKey | null {
  const bytes = bytesFromText(part)
  const name = bytes === null ? '' : fromUtf8(bytes)
  return name !== '' && documentKey(name) === key ? { kind: 'document', name } : null
}

const SINGLES: ReadonlySet<string> = new Set([
  MESH_KEY,
  WRITERS_KEY,
  ORDER_KEY,
  REVOKED_KEY,
  SETTINGS_KEY,
  DOCUMENTS_KEY
])

function isSingle(key: string | undefined): key is 'mesh' | 'writers' | 'order' | 'revoked' | 'settings' | 'documents' {
  return key !== undefined && SINGLES.has(key)
}
