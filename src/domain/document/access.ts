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

/** Whom an access list lets pass. */
export type AccessRule = z.infer<typeof RuleSchema>

/** Shape of an access list: who may see a document, and who of them may write it. */
export const DocumentAccessSchema = z.strictObject({
  see: RuleSchema,
  write: RuleSchema,
  /** Rises with each change. */
  serial: z.int().nonnegative()
})

/** The access list of a document. */
export type DocumentAccess = z.infer<typeof DocumentAccessSchema>

/** A member who asks, as its certificate has it. */
export interface DocumentMember {
  readonly node: NodeId
  readonly tier: Tier
  /** null: in none. */
  readonly sandboxId: string | null
}

/** A document as far as access goes. `access` is null as long as nobody restricted it. */
export interface GuardedDocument {
  readonly owner: NodeId
  readonly creator: NodeId
  readonly access: DocumentAccess | null
}

/** What a member may do, and which rule says so. Who may not see may not write. */
export interface AccessVerdict {
  readonly maySee: boolean
  readonly mayWrite: boolean
  readonly rule: 'owner' | 'creator' | 'default' | 'list'
}

/** May this node restrict the document? Its creator and the owner of the mesh may. */
export function mayRestrict({ owner, creator }: GuardedDocument, node: NodeId): boolean {
  return node === owner || node === creator
}

/** What a member may do with a document. Owner and creator may do all; by default every member in no sandbox may. */
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

/** An access list and who signed it. */
export interface SignedAccess {
  readonly access: DocumentAccess
  readonly by: NodeId
}

/**
 * Which of two access lists of a document counts, the same wherever they meet in whichever order: the one with the higher
 * serial; of equal ones the owner's, then the one whose text sorts later. Both must be of somebody who may restrict.
 */
export function newerAccess(one: SignedAccess, other: SignedAccess, owner: NodeId): SignedAccess {
  const rank = ({ access, by }: SignedAccess): [number, number] => [access.serial, by === owner ? 1 : 0]
  const [[serial, isOwner], [otherSerial, otherIsOwner]] = [rank(one), rank(other)]
  if (serial !== otherSerial) return serial > otherSerial ? one : other
  if (isOwner !== otherIsOwner) return isOwner > otherIsOwner ? one : other
  return canonicalJson(one.access) >= canonicalJson(other.access) ? one : other
}
