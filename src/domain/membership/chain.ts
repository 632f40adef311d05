import type { MeshId, NodeId } from '../../kit/ids.js'
import type { Verify } from '../../kit/sign.js'
import { grantFault, isGrantOf, isOwnerCertificate } from './grant.js'
import { isSealed } from './signing.js'
import type { Certificate, CertificateChain, MembershipView, SignedCertificate } from './types.js'
import { isActive } from './view.js'

/** Certificates in one chain. */
export const MAX_CHAIN = 8

/**
 * The chain of a member, leaf first, up to but not including the owner's certificate; for the owner just its own.
 * Null for nodes the view does not know, and for chains longer than 8.
 */
export function chainOf(view: MembershipView, nodeId: NodeId): CertificateChain | null {
  const owner = view.mesh?.owner
  const chain: SignedCertificate[] = []
  let next = nodeId
  while (chain.length < MAX_CHAIN) {
    const certificate = view.members.get(next)?.certificate
    if (certificate === undefined || owner === undefined) return null
    chain.push(certificate)
    if (certificate.body.issuer === owner) return chain
    next = certificate.body.issuer
  }
  return null
}

/** Trust anchor of a chain. */
export interface ChainTrust {
  readonly mesh: MeshId
  readonly owner: NodeId
  /** The key that the chain should speak for: the stream's own. */
  readonly leaf: NodeId
  /** The receiver's clock, unix milliseconds. */
  readonly now: number
  readonly verify: Verify
  /** The receiver's own view; its newer certificates and revocations win. */
  readonly view: MembershipView
}

/** The certificate in force, or why there is none. */
export type ChainVerdict =
  | { readonly ok: true; readonly certificate: SignedCertificate }
  | { readonly ok: false; readonly code: 'REVOKED' | 'INVITE_INVALID' | 'FORBIDDEN'; readonly reason: string }

/**
 * Does the chain prove that `leaf` is a member? Each link is signed by the next link's node, within its grant, and not
 * expired; the last is signed by the owner. A leaf that the view has admitted needs no chain above it: grants that its
 * issuers made before their revocation stay valid. Codes: REVOKED, INVITE_INVALID (no invite, or not its terms),
 * FORBIDDEN. Total.
 */
export function verifyChain(chain: CertificateChain, trust: ChainTrust): ChainVerdict {
  try {
    return judgeChain(chain, trust)
  } catch {
    return refuse('FORBIDDEN', 'the chain is malformed')
  }
}

function judgeChain(chain: CertificateChain, trust: ChainTrust): ChainVerdict {
  const { view, leaf, now } = trust
  const shape = shapeFault(chain, trust)
  if (shape !== null) return refuse('FORBIDDEN', shape)
  const known = view.members.get(leaf)
  if (known !== undefined && known.revoked !== null) return refuse('REVOKED', 'the node is revoked')
  const first = chain[0] as SignedCertificate
  const isStanding = known !== undefined && known.certificate.body.serial >= first.body.serial
  if (isStanding)
    return isExpired(known.certificate.body, now)
      ? refuse('FORBIDDEN', 'the certificate has expired')
      : pass(known.certificate)
  const fault = linksFault(chain, trust)
  if (fault === null) return pass(first)
  // An invalid newer certificate does not undo the admission.
  return known !== undefined && !isExpired(known.certificate.body, now) ? pass(known.certificate) : fault
}

/** Signatures, and that each link is of the issuer of the one before. */
function shapeFault(chain: CertificateChain, trust: ChainTrust): string | null {
  if (chain.length === 0 || chain.length > MAX_CHAIN) return `a chain has 1 to ${MAX_CHAIN} certificates`
  let holder = trust.leaf
  for (const { body, by } of chain) {
    if (body.nodeKey !== holder || by !== body.issuer) return 'a certificate is not the one that belongs here'
    holder = body.issuer
  }
  return chain.every((link) => isSealed('certificate', link, trust.verify)) ? null : 'a signature is wrong'
}

/** Grants, expiry and revocation, link by link; the view's newer certificate of an issuer replaces the one shown. */
function linksFault(chain: CertificateChain, trust: ChainTrust): (ChainVerdict & { readonly ok: false }) | null {
  for (const [place, link] of chain.entries()) {
    const { body } = link
    if (isExpired(body, trust.now)) return refuse('FORBIDDEN', 'a certificate has expired')
    if (isRevoked(trust.view, body.nodeKey)) return refuse('REVOKED', 'a node of the chain is revoked')
    if (body.nodeKey === trust.owner) {
      if (!isOwnerCertificate(body, { id: trust.mesh, owner: trust.owner }))
        return refuse('FORBIDDEN', "the owner's certificate is wrong")
      continue
    }
    const issuer = body.issuer === trust.owner ? rootOf(trust) : newest(chain[place + 1], trust.view)
    const fault = issuer === null ? 'the chain does not end at the owner' : grantFault(issuer, body)
    if (fault !== null) return refuse('FORBIDDEN', fault)
    const invite = inviteFaultOf(body, trust.view)
    if (invite !== null) return refuse('INVITE_INVALID', invite)
  }
  return null
}

/** An admission names an invite; where the view knows that invite (of a node it has not admitted), they must agree. */
function inviteFaultOf(certificate: Certificate, view: MembershipView): string | null {
  if (certificate.inviteId === undefined) return 'a certificate names no invite'
  const invite = view.invites.get(certificate.inviteId)
  // Later certificates (another name or tier) differ from the invite by right.
  if (invite === undefined || certificate.serial > 1 || isActive(view, certificate.nodeKey)) return null
  if (!isGrantOf(certificate, invite.terms)) return 'the certificate and the invite grant different rights'
  return certificate.issuedAt > invite.terms.expiresAt ? 'the invite had expired' : null
}

function newest(link: SignedCertificate | undefined, view: MembershipView): Certificate | null {
  if (link === undefined) return null
  const known = view.members.get(link.body.nodeKey)?.certificate.body
  return known !== undefined && known.serial > link.body.serial ? known : link.body
}

/** The certificate of the owner, with every right. */
function rootOf(trust: ChainTrust): Certificate {
  const { mesh, owner } = trust
  return {
    mesh,
    nodeKey: owner,
    issuer: owner,
    name: 'owner',
    maxTier: 0,
    mayInvite: true,
    mayWrite: true,
    issuedAt: 0,
    serial: 1
  }
}

function isRevoked(view: MembershipView, nodeId: NodeId): boolean {
  return view.members.has(nodeId) && !isActive(view, nodeId)
}

function isExpired(certificate: Certificate, now: number): boolean {
  return certificate.expiresAt !== undefined && now > certificate.expiresAt
}

function pass(certificate: SignedCertificate): ChainVerdict {
  return { ok: true, certificate }
}

function refuse(
  code: 'REVOKED' | 'INVITE_INVALID' | 'FORBIDDEN',
  reason: string
): ChainVerdict & { readonly ok: false } {
  return { ok: false, code, reason }
}
