import { type FoldResult, full, put, type Scene, skip } from './effects.js'
import { changeFault, grantFault, isOwnerCertificate } from '../grant.js'
import { cardIndexKey, cardKey, memberKey, REVOKED_KEY, trustKey, WRITERS_KEY } from '../keys.js'
import { LOG_SHARE_LIMITS, mayHaveCore } from '../log-share.js'
import { serialFault } from '../serial.js'
import { isSealed } from '../signing.js'
import type { Certificate, EntryBody, MemberRecord, TrustRecord } from '../types.js'
import { withCore, withoutWriter } from '../writers.js'

/** Members that one member rates by entries of its own, in its life. */
export const MAX_TRUSTED = 1024

type MemberEntryBody<K extends EntryBody['kind']> = Extract<EntryBody, { readonly kind: K }>

/** Replaces a member's certificate: another name or tier, all rights as they were. */
export function foldCertificate(scene: Scene, body: MemberEntryBody<'certificate'>): FoldResult {
  const { certificate } = body
  const target = scene.records.member(certificate.body.nodeKey)
  if (target === null) return skip('the node is no member')
  if (target.revoked !== null) return skip('the node is revoked')
  const fault = nextFault(scene, target, certificate.body)
  if (fault !== null) return skip(fault)
  if (certificate.by !== scene.by || !isSealed('certificate', certificate, scene.verify))
    return skip('the signature of the certificate is wrong')
  return put(new Map([[memberKey(certificate.body.nodeKey), { ...target, certificate }]]))
}

function nextFault(scene: Scene, target: MemberRecord, next: Certificate): string | null {
  const now = target.certificate.body
  const fault = changeFault(scene.author.certificate.body, now, scene.mesh) ?? serialFault(now.serial, next.serial)
  if (fault !== null) return fault
  if (next.mayInvite !== now.mayInvite || next.mayWrite !== now.mayWrite) return 'the rights of a member cannot change'
  if (next.sandboxId !== now.sandboxId || next.inviteId !== now.inviteId)
    return 'sandbox and invite of a member cannot change'
  if (now.nodeKey === scene.mesh.owner)
    return isOwnerCertificate(next, scene.mesh) ? null : 'the owner stays L0, without end'
  return grantFault(scene.author.certificate.body, next)
}

/**
 * Revokes a member: its cards are removed and another member gets its place as a writer. Its earlier grants stay valid.
 */
export function foldRevocation(scene: Scene, body: MemberEntryBody<'revocation'>): FoldResult {
  const { nodeKey, at, reason } = body
  const target = scene.records.member(nodeKey)
  if (target === null) return skip('the node is no member')
  if (target.revoked !== null) return skip('the node is revoked already')
  if (nodeKey === scene.mesh.owner) return skip('the owner cannot be revoked')
  const fault = changeFault(scene.author.certificate.body, target.certificate.body, scene.mesh)
  if (fault !== null) return skip(fault)
  const change = withoutWriter(scene.records.writers(), nodeKey)
  const puts = new Map<string, unknown>([
    [memberKey(nodeKey), { ...target, revoked: { by: scene.by, at, reason } }],
    [REVOKED_KEY, [...scene.records.revoked(), nodeKey]],
    [WRITERS_KEY, change.record],
    [cardIndexKey(nodeKey), null]
  ])
  for (const agentId of scene.records.cardIndex(nodeKey).live) puts.set(cardKey(nodeKey, agentId), null)
  return put(puts, change)
}

/**
 * Sets how the author regards another member. The newest serial about that member counts, so entries about others may
 * come in any order.
 */
export function foldTrust(scene: Scene, { nodeKey, trust, serial }: MemberEntryBody<'trust'>): FoldResult {
  const { by, records } = scene
  if (nodeKey === by) return skip('a node does not rate itself')
  if (records.member(nodeKey) === null) return skip('the node is no member')
  const known = records.trust(by).of
  const fault = serialFault(known[nodeKey]?.serial ?? 0, serial)
  if (fault !== null) return skip(fault)
  const isNew = known[nodeKey] === undefined
  if (isNew && Object.keys(known).length >= MAX_TRUSTED) return full(`the node has rated ${MAX_TRUSTED} members`)
  const record: TrustRecord = { of: { ...known, [nodeKey]: { trust, serial } } }
  return put(new Map([[trustKey(by), record]]))
}

/** Replaces the author's own core: the newest serial counts. The core of another writer is refused. */
export function foldCore(scene: Scene, { coreKey, serial }: MemberEntryBody<'core'>): FoldResult {
  const { author, by, mesh, records } = scene
  const fault = serialFault(author.coreSerial ?? 0, serial)
  if (fault !== null) return skip(fault)
  const writers = records.writers()
  if (writers.eligible.some((one) => one.coreKey === coreKey && one.nodeKey !== by))
    return skip('the core is that of another writer')
  // Each one has a share of its own on every disk.
  if (by !== mesh.owner && !mayHaveCore(author, coreKey))
    return full(`the node had ${LOG_SHARE_LIMITS.maxCores} cores already`)
  const former = new Set([...(author.formerCores ?? []), author.coreKey])
  former.delete(coreKey)
  const member: MemberRecord = { ...author, coreKey, coreSerial: serial, formerCores: [...former] }
  const change = withCore(writers, { nodeKey: by, coreKey })
  return put(
    new Map<string, unknown>([
      [memberKey(by), member],
      [WRITERS_KEY, change.record]
    ]),
    change
  )
}
