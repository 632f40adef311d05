import { tierText } from '../routing/tier.js'
import type { Certificate, InviteRecord, InviteTerms, MeshRecord, RefusalRecord } from './types.js'

/**
 * Why `issuer` could not have issued `child`, or null when it could: a grant never exceeds the issuer's rights. Signed
 * times only.
 */
export function grantFault(issuer: Certificate, child: Certificate): string | null {
  if (child.mesh !== issuer.mesh) return 'the certificate is for another mesh'
  if (child.issuer !== issuer.nodeKey) return 'the certificate names another issuer'
  if (!issuer.mayInvite) return 'its issuer may not invite'
  if (child.maxTier < issuer.maxTier)
    return `its tier ${tierText(child.maxTier)} is more powerful than its issuer's ${tierText(issuer.maxTier)}`
  if (child.mayWrite && !issuer.mayWrite) return 'its issuer may not write'
  if (issuer.sandboxId !== undefined && child.sandboxId !== issuer.sandboxId)
    return `its issuer may grant only the sandbox ${issuer.sandboxId}`
  if (child.expiresAt !== undefined && child.expiresAt <= child.issuedAt)
    return 'the certificate expires before it is issued'
  if (issuer.expiresAt !== undefined && (child.expiresAt === undefined || child.expiresAt > issuer.expiresAt))
    return 'the certificate outlives its issuer'
  return null
}

/**
 * Why `author` may not change or revoke the member with the certificate `target`, or null when it may. The owner
 * changes every member. An admin changes non-admins that it could have admitted.
 */
export function changeFault(author: Certificate, target: Certificate, mesh: Pick<MeshRecord, 'owner'>): string | null {
  if (author.nodeKey === mesh.owner) return null
  if (!author.mayInvite) return 'its author is no admin'
  if (target.mayInvite) return 'only the owner may change an admin'
  const fault = grantFault(author, { ...target, issuer: author.nodeKey })
  return fault === null ? null : `its author could not have admitted the node: ${fault}`
}

/**
 * Why `author` may not end an invite of another member, or null when it may: the owner any, an admin only invites it
 * could have made.
 */
export function endInviteFault(
  author: Certificate,
  terms: InviteTerms,
  mesh: Pick<MeshRecord, 'owner'>
): string | null {
  if (author.nodeKey === mesh.owner) return null
  const fault = termsFault(author, terms)
  return fault === null ? null : `its author could not have made the invite: ${fault}`
}

/** Why a node with this certificate could not make an invite with these terms, or null when it could. */
export function termsFault(author: Certificate, terms: InviteTerms): string | null {
  if (!author.mayInvite) return 'its author may not invite'
  if (terms.expiresAt <= terms.createdAt) return 'the invite expires before it is made'
  if (terms.tier < author.maxTier)
    return `its tier ${tierText(terms.tier)} is more powerful than its author's ${tierText(author.maxTier)}`
  if (terms.admin && !author.mayWrite) return 'its author may not make admins'
  if (author.sandboxId !== undefined && terms.sandboxId !== author.sandboxId)
    return `its author may invite only into the sandbox ${author.sandboxId}`
  if (author.expiresAt !== undefined && terms.createdAt > author.expiresAt)
    return "its author's certificate had expired"
  return null
}

/** Does the certificate grant exactly the terms of the invite: tier, sandbox, and both rights of an admin or none? */
export function isGrantOf(certificate: Certificate, terms: InviteTerms): boolean {
  return (
    certificate.inviteId === terms.id &&
    certificate.maxTier === terms.tier &&
    certificate.mayInvite === terms.admin &&
    certificate.mayWrite === terms.admin &&
    certificate.sandboxId === terms.sandboxId
  )
}

/** Is the certificate one of the owner: self-issued, most powerful, with every right, unbounded? */
export function isOwnerCertificate(certificate: Certificate, mesh: Pick<MeshRecord, 'id' | 'owner'>): boolean {
  const { nodeKey, issuer, maxTier, mayInvite, mayWrite, sandboxId, inviteId, expiresAt } = certificate
  if (certificate.mesh !== mesh.id || nodeKey !== mesh.owner || issuer !== mesh.owner) return false
  return (
    maxTier === 0 &&
    mayInvite &&
    mayWrite &&
    sandboxId === undefined &&
    inviteId === undefined &&
    expiresAt === undefined
  )
}

/**
 * Why an invite admits no further node at `at` (unix milliseconds), or null while it does. Revocation is checked first.
 */
export function inviteFault(invite: InviteRecord, at: number): RefusalRecord['code'] | null {
  if (invite.revokedAt !== null) return 'INVITE_REVOKED'
  if (invite.admitted.length >= invite.terms.uses) return 'INVITE_USED'
  return at > invite.terms.expiresAt ? 'INVITE_EXPIRED' : null
}
