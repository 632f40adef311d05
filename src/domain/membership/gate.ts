import type { ErrorCode } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import type { Verify } from '../../kit/sign.js'
import { verifyChain } from './chain.js'
import type { CertificateChain, MembershipView, SignedCertificate } from './types.js'

/** The claims of a fresh stream. */
export interface GateCase {
  /** The stream's own public key. */
  readonly remote: NodeId
  /** Its chain as proof, leaf first; null for none (yet). */
  readonly chain: CertificateChain | null
  /** The receiver's clock, unix milliseconds. */
  readonly now: number
  readonly verify: Verify
}

/** The verdict on the stream. `wait`: undecided, judge again with the next chain or view. */
export type GateVerdict =
  | { readonly verdict: 'pass'; readonly certificate: SignedCertificate }
  | { readonly verdict: 'wait'; readonly reason: string }
  | {
      readonly verdict: 'refuse'
      readonly code: ErrorCode
      readonly reason: string
      /**
       * The invite that the refusal is about, when it is about one: a node that holds a later invite need not mind it.
       */
      readonly inviteId?: string
    }

/**
 * Is the peer a member? Decided again at every change of the view. Revoked keys are refused. Members in the view pass
 * with the view's certificate. Others pass by a valid chain, unless the view shows that its invite admitted others. A
 * newcomer whose log is still empty judges with `firstView`. Total.
 */
export function judge(view: MembershipView, { remote, chain, now, verify }: GateCase): GateVerdict {
  const member = view.members.get(remote)
  if (member !== undefined && member.revoked !== null)
    return { verdict: 'refuse', code: 'REVOKED', reason: 'the node is revoked' }
  if (
    member !== undefined &&
    !(member.certificate.body.expiresAt !== undefined && now > member.certificate.body.expiresAt)
  ) {
    return { verdict: 'pass', certificate: member.certificate }
  }
  const refusal = view.refusals.get(remote)
  const claimed = chain?.[0]?.body?.inviteId ?? null
  if (refusal !== undefined && (claimed === null || claimed === refusal.inviteId)) {
    return {
      verdict: 'refuse',
      code: refusal.code,
      reason: 'the mesh did not admit the node',
      inviteId: refusal.inviteId
    }
  }
  if (chain !== null && view.mesh !== null) {
    const { id, owner } = view.mesh
    const checked = verifyChain(chain, { mesh: id, owner, leaf: remote, now, verify, view })
    return checked.ok
      ? { verdict: 'pass', certificate: checked.certificate }
      : { verdict: 'refuse', code: checked.code, reason: checked.reason }
  }
  if (member !== undefined) return { verdict: 'refuse', code: 'FORBIDDEN', reason: 'the certificate has expired' }
  return {
    verdict: 'wait',
    reason: view.mesh === null ? 'the mesh is not known here yet' : 'no proof of membership yet'
  }
}
