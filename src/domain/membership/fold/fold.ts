import type { NodeId } from '../../../kit/ids.js'
import { type FoldContext, type FoldResult, full, put, type Scene, skip } from './effects.js'
import { foldAdmission } from './admission.js'
import { foldCard, foldCardRemoved } from './card.js'
import {
  foldDocument,
  foldDocumentAccess,
  foldDocumentRemoved,
  foldDocumentSnapshot,
  foldDocumentStream
} from './document.js'
import { foldCertificate, foldCore, foldRevocation, foldTrust } from './member.js'
import { withInvite } from '../invites/invite-share.js'
import { endInviteFault, isOwnerCertificate, termsFault } from '../grant.js'
import {
  cardIndexKey,
  cardKey,
  DOCUMENTS_KEY,
  documentCoreKey,
  documentKey,
  inviteIndexKey,
  inviteKey,
  MESH_KEY,
  memberKey,
  ORDER_KEY,
  REVOKED_KEY,
  refusalKey,
  SETTINGS_KEY,
  trustKey,
  WRITERS_KEY
} from '../keys.js'
import { Records } from '../records.js'
import { serialFault } from '../serial.js'
import { isSealed } from '../signing.js'
import type {
  Entry,
  EntryBody,
  InviteRecord,
  MemberRecord,
  MeshRecord,
  SettingsRecord,
  WritersRecord
} from '../types.js'

export type { FoldContext, FoldResult } from './effects.js'

type Body<K extends EntryBody['kind']> = Extract<EntryBody, { readonly kind: K }>

/** The keys of the view that {@link fold} must be given for this entry. Total: a malformed entry reads nothing. */
export function reads(entry: Entry): readonly string[] {
  try {
    return [...new Set([MESH_KEY, memberKey(entry.by), ...readsOf(entry.by, entry.body)])]
  } catch {
    return []
  }
}

function readsOf(by: NodeId, body: EntryBody): readonly string[] {
  switch (body.kind) {
    case 'founding':
      return []
    case 'invite':
      return [inviteKey(body.invite.id), inviteIndexKey(by)]
    case 'invite-revoked':
      return [inviteKey(body.inviteId)]
    case 'admission': {
      const { nodeKey, inviteId } = body.certificate.body
      return [memberKey(nodeKey), refusalKey(nodeKey), inviteKey(inviteId ?? ''), WRITERS_KEY, ORDER_KEY, REVOKED_KEY]
    }
    case 'certificate':
      return [memberKey(body.certificate.body.nodeKey)]
    case 'revocation':
      return [memberKey(body.nodeKey), cardIndexKey(body.nodeKey), WRITERS_KEY, REVOKED_KEY]
    case 'card':
      return [cardKey(by, body.card.body.id), cardIndexKey(by)]
    case 'card-removed':
      return [cardKey(by, body.agentId), cardIndexKey(by)]
    case 'settings':
      return [SETTINGS_KEY]
    case 'trust':
      return [trustKey(by), memberKey(body.nodeKey)]
    case 'core':
      return [WRITERS_KEY]
    case 'document':
    case 'document-access':
    case 'document-removed':
      return [documentKey(body.name), DOCUMENTS_KEY]
    case 'document-stream':
    case 'document-snapshot':
      return [documentKey(body.name), documentCoreKey(body.coreKey), DOCUMENTS_KEY]
  }
}

/**
 * The effect of a log entry on the view, given the records at the keys of {@link reads}. `entry` comes from
 * `decodeEntry`. Deterministic and total: an entry that breaks a rule is skipped, never thrown. Keyed: applying an
 * entry again, at once or later in the log, changes nothing. No clock: expiry compares signed times.
 */
export function fold(records: ReadonlyMap<string, unknown>, entry: Entry, context: FoldContext): FoldResult {
  try {
    return foldEntry(new Records(records), entry, context)
  } catch {
    return skip('the entry is malformed')
  }
}

function foldEntry(records: Records, entry: Entry, context: FoldContext): FoldResult {
  const { body, by } = entry
  if (body.mesh !== context.meshId) return skip('the entry is for another mesh')
  const mesh = records.mesh()
  if (body.kind === 'founding')
    return mesh === null ? foldFounding(entry, body, context) : skip('the mesh is founded already')
  if (mesh === null) return skip('the mesh is not founded yet')
  const author = records.member(by)
  if (author === null) return skip('its author is no member')
  if (author.revoked !== null) return skip('its author is revoked')
  if (!isSealed('entry', entry, context.verify)) return skip('the signature is wrong')
  return foldBody({ records, verify: context.verify, mesh, by, author }, body)
}

function foldBody(scene: Scene, body: Exclude<EntryBody, Body<'founding'>>): FoldResult {
  switch (body.kind) {
    case 'invite':
      return foldInvite(scene, body)
    case 'invite-revoked':
      return foldInviteRevoked(scene, body)
    case 'admission':
      return foldAdmission(scene, body)
    case 'certificate':
      return foldCertificate(scene, body)
    case 'revocation':
      return foldRevocation(scene, body)
    case 'card':
      return foldCard(scene, body)
    case 'card-removed':
      return foldCardRemoved(scene, body)
    case 'settings':
      return foldSettings(scene, body)
    case 'trust':
      return foldTrust(scene, body)
    case 'core':
      return foldCore(scene, body)
    case 'document':
      return foldDocument(scene, body)
    case 'document-access':
      return foldDocumentAccess(scene, body)
    case 'document-removed':
      return foldDocumentRemoved(scene, body)
    case 'document-stream':
      return foldDocumentStream(scene, body)
    case 'document-snapshot':
      return foldDocumentSnapshot(scene, body)
    default:
      return skip('the entry is of an unknown kind')
  }
}

function foldFounding(entry: Entry, body: Body<'founding'>, context: FoldContext): FoldResult {
  const { certificate, coreKey } = body
  const mesh: MeshRecord = { id: body.mesh, name: body.name, owner: entry.by, foundedAt: body.at }
  if (!context.isBootstrapRelay) return skip('a founding counts only from the bootstrap core')
  if (certificate.by !== entry.by || !isOwnerCertificate(certificate.body, mesh))
    return skip("the certificate is not an owner's")
  if (!isSealed('entry', entry, context.verify) || !isSealed('certificate', certificate, context.verify))
    return skip('a signature is wrong')
  const member: MemberRecord = { certificate, coreKey, order: 0, revoked: null }
  const writers: WritersRecord = { eligible: [{ nodeKey: entry.by, coreKey }], active: [coreKey] }
  return put(
    new Map<string, unknown>([
      [MESH_KEY, mesh],
      [memberKey(entry.by), member],
      [WRITERS_KEY, writers],
      [ORDER_KEY, 1]
    ])
  )
}

function foldInvite(scene: Scene, body: Body<'invite'>): FoldResult {
  const fault = termsFault(scene.author.certificate.body, body.invite)
  if (fault !== null) return skip(fault)
  if (scene.records.invite(body.invite.id) !== null) return skip('the invite is known already')
  const record: InviteRecord = { terms: body.invite, by: scene.by, admitted: [], revokedAt: null }
  const invite = [inviteKey(body.invite.id), record] as const
  if (scene.by === scene.mesh.owner) return put(new Map([invite]))
  const index = withInvite(scene.records.inviteIndex(scene.by), body.invite)
  if (index === null) return full('invites of the node fill its share of the log')
  return put(new Map<string, unknown>([invite, [inviteIndexKey(scene.by), index]]))
}

function foldInviteRevoked(scene: Scene, body: Body<'invite-revoked'>): FoldResult {
  const invite = scene.records.invite(body.inviteId)
  if (invite === null) return skip('the invite is unknown')
  if (invite.revokedAt !== null) return skip('the invite is revoked already')
  const fault = invite.by === scene.by ? null : endInviteFault(scene.author.certificate.body, invite.terms, scene.mesh)
  if (fault !== null) return skip(fault)
  return put(new Map([[inviteKey(body.inviteId), { ...invite, revokedAt: body.at }]]))
}

/** The mesh settings of the owner: the newest serial counts. */
function foldSettings(scene: Scene, { settings, serial, at }: Body<'settings'>): FoldResult {
  if (scene.by !== scene.mesh.owner) return skip('only the owner changes settings of the mesh')
  const fault = serialFault(scene.records.settings()?.serial ?? 0, serial)
  if (fault !== null) return skip(fault)
  const record: SettingsRecord = { settings, serial, at }
  return put(new Map([[SETTINGS_KEY, record]]))
}
