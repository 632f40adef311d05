import type { NodeId } from '../../../kit/ids.js'
import { type FoldResult, put, type Scene, skip } from './effects.js'
import { grantFault, inviteFault, isGrantOf } from '../grant.js'
import { inviteKey, memberKey, ORDER_KEY, refusalKey, WRITERS_KEY } from '../keys.js'
import { serialFault } from '../serial.js'
import { isJoinSealed, isSealed } from '../signing.js'
import type { EntryBody, InviteRecord, MemberRecord, RefusalRecord } from '../types.js'
import { withWriter } from '../writers.js'

type MemberAdmission = Extract<EntryBody, { readonly kind: 'admission' }>

/**
 * Admits a node by an invite: the first `uses` distinct node keys in log order; later ones leave a refusal for the node
 * to find. An admission that its issuer could not have made, or that the node did not ask for, leaves nothing.
 */
export function foldAdmission(scene: Scene, body: MemberAdmission): FoldResult {
  const { nodeKey, inviteId, issuedAt } = body.certificate.body
  const invite = inviteId === undefined ? null : scene.records.invite(inviteId)
  if (invite === null) return skip('the invite is unknown')
  const fault = admissionFault(scene, body, invite)
  if (fault !== null) return skip(fault)
  const member = scene.records.member(nodeKey)
  if (member !== null) return skip(member.revoked === null ? 'the node is already a member' : 'the node is revoked')
  const code = inviteFault(endedWithCreator(scene, invite), issuedAt)
  if (code !== null) return refuse(scene, body, code)
  return admit(scene, body, invite)
}

/** The faults that void an admission: its grant, and the signers of certificate and request. */
function admissionFault(scene: Scene, body: MemberAdmission, invite: InviteRecord): string | null {
  const { certificate, coreKey, request } = body
  if (certificate.by !== scene.by) return 'its author is not the issuer of the certificate'
  if (request.nodeKey !== certificate.body.nodeKey || request.coreKey !== coreKey)
    return 'the request is of another node'
  const fault = grantFault(scene.author.certificate.body, certificate.body) ?? serialFault(0, certificate.body.serial)
  if (fault !== null) return fault
  if (!isGrantOf(certificate.body, invite.terms)) return 'the certificate and the invite grant different rights'
  if (!isSealed('certificate', certificate, scene.verify)) return 'the signature of the certificate is wrong'
  return isJoinSealed(invite.terms.id, request, scene.verify) ? null : 'the node did not ask for it'
}

/** Invites end with their creator: a revoked admin must not come back by a code it kept. */
function endedWithCreator(scene: Scene, invite: InviteRecord): InviteRecord {
  return invite.revokedAt === null && scene.records.revoked().includes(invite.by) ? { ...invite, revokedAt: 0 } : invite
}

function refuse(scene: Scene, body: MemberAdmission, code: RefusalRecord['code']): FoldResult {
  const { nodeKey, issuedAt } = body.certificate.body
  const stored = scene.records.refusal(nodeKey)
  // The latest attempt counts, by signed time: an old entry appended once more changes nothing.
  if (stored !== null && issuedAt <= (stored.at ?? 0)) return skip(code)
  const refusal: RefusalRecord = { inviteId: body.certificate.body.inviteId ?? '', code, at: issuedAt }
  return { ...skip(code), puts: new Map([[refusalKey(nodeKey), refusal]]) }
}

function admit(scene: Scene, body: MemberAdmission, invite: InviteRecord): FoldResult {
  const { nodeKey, mayWrite } = body.certificate.body
  const writers = scene.records.writers()
  if (mayWrite && isTaken(body.coreKey, writers.eligible)) return skip('the core key belongs to another member')
  const order = scene.records.order()
  const member: MemberRecord = { certificate: body.certificate, coreKey: body.coreKey, order, revoked: null }
  const puts = new Map<string, unknown>([
    [memberKey(nodeKey), member],
    [inviteKey(invite.terms.id), withAdmitted(invite, nodeKey, scene.by)],
    [ORDER_KEY, order + 1]
  ])
  if (scene.records.refusal(nodeKey) !== null) puts.set(refusalKey(nodeKey), null)
  if (!mayWrite) return put(puts)
  const change = withWriter(writers, { nodeKey, coreKey: body.coreKey })
  return put(puts.set(WRITERS_KEY, change.record), change)
}

/** The machines of its maker count as one person's only by admitters that are so too: see `ownMachines`. */
function withAdmitted(invite: InviteRecord, node: NodeId, by: NodeId): InviteRecord {
  const next = { ...invite, admitted: [...invite.admitted, node] }
  if (invite.terms.trust !== 'mine' || by === invite.by) return next
  return { ...next, admitters: { ...invite.admitters, [node]: by } }
}

function isTaken(
  coreKey: string,
  eligible: readonly { readonly nodeKey: NodeId; readonly coreKey: string }[]
): boolean {
  return eligible.some((one) => one.coreKey === coreKey)
}
