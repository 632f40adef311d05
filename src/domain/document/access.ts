import { z } from 'zod'
import { isKeyText, type NodeId } from '../../kit/ids.js'
import { canonicalJson } from '../../kit/json.js'
import { isTier, type Tier } from '../routing/tier.js'

/** Names of one list in an access rule. */
export const MAX_LISTED = 256

const RuleSchema = z.strictObject({
  /** Nodes that pass, whatever their tier and sandbox. */
  members: z.array(z.custom<NodeId>(isKeyText)).max(MAX_LISTED),
  /** The least powerful tier that passes; null: none does by its tier. */
  maxTier: z.custom<Tier>(isTier).nullable(),
  /** With that tier: sandboxes whose nodes pass, and whether nodes without one do. */
  sandboxes: z.array(z.string().min(1).max(128)).max(MAX_LISTED),
  unsandboxed: z.boolean()
})

/** The members that an access list admits. */
export type AccessRule = z.infer<typeof RuleSchema>

/** Shape of an access list: the readers of a document, and the writers among them. */
export const DocumentAccessSchema = z.strictObject({
  see: RuleSchema,
  write: RuleSchema,
  serial: z.int().nonnegative()
})

/** The access list of a document. */
export type DocumentAccess = z.infer<typeof DocumentAccessSchema>

/** A requesting member, by its certificate. */
export interface DocumentMember {
  readonly node: NodeId
  readonly tier: Tier
  /** null: in none. */
  readonly sandboxId: string | null
}

/** A document as far as access goes. `access` is null while it is unrestricted. */
export interface GuardedDocument {
  readonly owner: NodeId
  readonly creator: NodeId
  readonly access: DocumentAccess | null
}

/** The rights of a member and the rule for them. Without the right to see there is none to write. */
export interface AccessVerdict {
  readonly maySee: boolean
  readonly mayWrite: boolean
  readonly rule: 'owner' | 'creator' | 'default' | 'list'
}

/** May this node restrict the document? Its creator and the owner of the mesh may. */
export function mayRestrict({ owner, creator }: GuardedDocument, node: NodeId): boolean {
  return node === owner || node === creator
}

/** The rights of a member to a document. Owner and creator have all; by default every member in no sandbox has. */
export function accessOf(document: GuardedDocument, member: DocumentMember): AccessVerdict {
  const { access } = document
  if (mayRestrict(document, member.node)) {
    return { maySee: true, mayWrite: true, rule: member.node === document.owner ? 'owner' : 'creator' }
  }
  if (access === null) {
    const isFree = member.sandboxId === null
    return { maySee: isFree, mayWrite: isFree, rule: 'default' }
  }
  const maySee = passes(access.see, member)
  return { maySee, mayWrite: maySee && passes(access.write, member), rule: 'list' }
}

function passes(rule: AccessRule, { node, tier, sandboxId }: DocumentMember): boolean {
  if (rule.members.includes(node)) return true
  if (rule.maxTier === null || tier > rule.maxTier) return false
  return sandboxId === null ? rule.unsandboxed : rule.sandboxes.includes(sandboxId)
}

/** An access list and its signer. */
export interface SignedAccess {
  readonly access: DocumentAccess
  readonly by: NodeId
}

/**
 * The valid one of two access lists of a document, the same on every node in any order. The higher serial wins; of
 * equal serials the owner's, then the later text. Both signers must have the right to restrict.
 */
export function newerAccess(one: SignedAccess, other: SignedAccess, owner: NodeId): SignedAccess {
  const rank = ({ access, by }: SignedAccess): [number, number] => [access.serial, by === owner ? 1 : 0]
  const [[serial, isOwner], [otherSerial, otherIsOwner]] = [rank(one), rank(other)]
  if (serial !== otherSerial) return serial > otherSerial ? one : other
  if (isOwner !== otherIsOwner) return isOwner > otherIsOwner ? one : other
  return canonicalJson(one.access) >= canonicalJson(other.access) ? one : other
}
