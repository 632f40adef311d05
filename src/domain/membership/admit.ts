import type { NodeId } from '../../kit/ids.js'
import { LookAlikes } from '../../kit/names/look-alikes.js'
import { nameFault, NODE_NAME } from '../../kit/names/rule.js'
import type { Verify } from '../../kit/sign.js'
import type { Tier } from '../routing/tier.js'
import { grantFault, inviteFault } from './grant.js'
import type { DenyCode } from './pairing-status.js'
import { isJoinSealed } from './signing.js'
import { ownMachines } from './trust.js'
import type { Certificate, InviteRecord, JoinRequest, MembershipView } from './types.js'
import { isAdmin } from './view.js'

/** A request to join, as an admin meets it. */
export interface JoinCase {
  readonly self: NodeId
  readonly inviteId: string
  /** Out of `decodeJoinData`. */
  readonly request: JoinRequest
  /** The admin's clock, unix milliseconds. */
  readonly now: number
  readonly verify: Verify
}

/**
 * An admin's answer to a request. `admit`: sign this body, log the admission, confirm once the own view has it.
 * `confirm`: it is a member already. `deny` with a code. `silent`: this node may not answer; another admin may.
 */
export type JoinAnswer =
  | { readonly answer: 'admit'; readonly certificate: Certificate }
  | { readonly answer: 'confirm' }
  | { readonly answer: 'deny'; readonly code: DenyCode }
  | { readonly answer: 'silent'; readonly reason: string }

/**
 * Decides a request to join by this node's view. A name that no node may take, or that looks like another member's and
 * is not the same, is denied. Equal names may collide; people see a suffix.
 */
export function considerJoin(view: MembershipView, one: JoinCase): JoinAnswer {
  const { self, inviteId, request, now, verify } = one
  if (!isAdmin(view, self)) return { answer: 'silent', reason: 'this node is no admin' }
  const invite = view.invites.get(inviteId)
  if (invite === undefined) return { answer: 'silent', reason: 'the invite is not known here' }
  if (!isJoinSealed(inviteId, request, verify)) return { answer: 'deny', code: 'INVITE_INVALID' }
  const member = view.members.get(request.nodeKey)
  if (member !== undefined) return member.revoked === null ? { answer: 'confirm' } : { answer: 'deny', code: 'REVOKED' }
  // Admitted by a stranger, it would be no machine of the maker: see `ownMachines`.
  if (invite.terms.trust === 'mine' && self !== invite.by && !isOfMaker(view, self, invite))
    return { answer: 'silent', reason: 'only machines of the person that made the invite admit by it' }
  const code = inviteFault(invite, now)
  if (code !== null) return { answer: 'deny', code }
  if (invite.terms.admin && view.writers.eligible.some((writer) => writer.coreKey === request.coreKey))
    return { answer: 'deny', code: 'INVITE_INVALID' }
  const nameCode = nameRefusal(view, request.name)
  return nameCode === null ? admit(view, one, invite) : { answer: 'deny', code: nameCode }
}

function isOfMaker(view: MembershipView, self: NodeId, { by }: InviteRecord): boolean {
  return ownMachines({ view, self: by, acceptsInviter: false }).has(self)
}

/**
 * Asked of the admin alone and not of the fold: it follows the Unicode tables of its runtime, and all nodes must fold
 * alike.
 */
function nameRefusal(view: MembershipView, name: string): DenyCode | null {
  if (nameFault(name, NODE_NAME) !== null) return 'INVALID_INPUT'
  const names = [...view.members.values()].flatMap(({ revoked, certificate }) =>
    revoked === null ? certificate.body.name : []
  )
  return new LookAlikes(names).find(name) === null ? null : 'AMBIGUOUS_NAME'
}

function admit(view: MembershipView, { self, request, now }: JoinCase, invite: InviteRecord): JoinAnswer {
  const own = view.members.get(self)?.certificate.body
  if (own === undefined) return { answer: 'silent', reason: 'this node is no admin' }
  const { id, tier, admin, sandboxId } = invite.terms
  const certificate: Certificate = {
    mesh: own.mesh,
    nodeKey: request.nodeKey,
    name: request.name,
    maxTier: tier,
    ...(sandboxId === undefined ? {} : { sandboxId }),
    mayInvite: admin,
    mayWrite: admin,
    issuedAt: now,
    ...(own.expiresAt === undefined ? {} : { expiresAt: own.expiresAt }),
    serial: 1,
    issuer: self,
    inviteId: id
  }
  const fault = grantFault(own, certificate)
  return fault === null ? { answer: 'admit', certificate } : { answer: 'silent', reason: fault }
}

/** A change of a member's certificate. */
export interface Amendment {
  readonly self: NodeId
  readonly nodeKey: NodeId
  readonly name?: string
  readonly tier?: Tier
  /** This node's clock, unix milliseconds. */
  readonly now: number
}

/**
 * The body of a member's next certificate (rename, change of tier), to be signed by `self` and logged as `certificate`;
 * rights, sandbox and invite stay. Null for a node that is no member. Whether `self` may is decided by the fold.
 */
export function amendCertificate(
  view: MembershipView,
  { self, nodeKey, name, tier, now }: Amendment
): Certificate | null {
  const member = view.members.get(nodeKey)
  if (member === undefined || member.revoked !== null) return null
  const body = member.certificate.body
  const limit = view.members.get(self)?.certificate.body.expiresAt
  return {
    ...body,
    name: name ?? body.name,
    maxTier: tier ?? body.maxTier,
    issuedAt: now,
    serial: body.serial + 1,
    issuer: self,
    ...(limit === undefined || nodeKey === self ? {} : { expiresAt: Math.min(limit, body.expiresAt ?? limit) })
  }
}
