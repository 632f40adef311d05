import type { NodeId } from '../../../kit/ids.js'
import { isFurther, isStreamOf } from './document.js'
import type { Certificate, DocumentRecord, Entry, EntryBody, MembershipView } from '../types.js'

/** Does the view already show the entry's effect, or something newer that supersedes it? */
export function isApplied(view: MembershipView, entry: Entry): boolean {
  const body = entry.body
  switch (body.kind) {
    case 'founding':
      return view.mesh !== null
    case 'invite':
      return view.invites.has(body.invite.id)
    case 'invite-revoked':
      return typeof view.invites.get(body.inviteId)?.revokedAt === 'number'
    case 'admission':
      return isAdmissionDecided(view, body.certificate.body)
    case 'certificate':
      return (
        (view.members.get(body.certificate.body.nodeKey)?.certificate.body.serial ?? 0) >= body.certificate.body.serial
      )
    case 'revocation':
      return isRevoked(view, body.nodeKey)
    case 'settings':
      return (view.settings?.serial ?? 0) >= body.serial
    case 'trust':
      return (view.trust.get(entry.by)?.of[body.nodeKey]?.serial ?? 0) >= body.serial
    case 'core':
      return (view.members.get(entry.by)?.coreSerial ?? 0) >= body.serial
    case 'document':
    case 'document-access':
    case 'document-removed':
    case 'document-stream':
    case 'document-snapshot':
      // A removed document takes no further entries.
      return view.removedDocuments.has(body.name) || isDocumentChanged(view.documents.get(body.name), entry.by, body)
    case 'card':
      return (
        isRevoked(view, entry.by) || (cardRevision(view, entry, body.card.body.id) ?? -1) >= body.card.body.revision
      )
    case 'card-removed':
      return isRevoked(view, entry.by) || (cardRevision(view, entry, body.agentId) ?? body.revision + 1) > body.revision
  }
}

type DocumentBody = Extract<EntryBody, { readonly kind: `document${string}` }>

function isDocumentChanged(record: DocumentRecord | undefined, by: NodeId, body: DocumentBody): boolean {
  switch (body.kind) {
    case 'document':
      return record !== undefined
    case 'document-access':
      return (record?.access?.access.serial ?? 0) >= body.access.serial
    case 'document-removed':
      return false
    case 'document-stream':
      return record?.streams.some(isStreamOf(by, body.coreKey)) === true
    case 'document-snapshot':
      return !isFurther(record, body)
  }
}

/** A refusal of an earlier attempt says nothing of this one. */
function isAdmissionDecided(view: MembershipView, { nodeKey, issuedAt }: Certificate): boolean {
  return view.members.has(nodeKey) || (view.refusals.get(nodeKey)?.at ?? -1) >= issuedAt
}

function isRevoked(view: MembershipView, nodeId: NodeId): boolean {
  return (view.members.get(nodeId)?.revoked ?? null) !== null
}

function cardRevision(view: MembershipView, entry: Entry, agentId: string): number | null {
  return view.cards.get(entry.by)?.get(agentId)?.body.revision ?? null
}
