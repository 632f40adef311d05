import type { MeshId, NodeId } from '../../kit/ids.js'
import type { CardBody } from '../card/card.js'
import type { DocumentAccess, SignedAccess } from '../document/access.js'
import type { SandboxRules } from '../routing/decide.js'
import type { Tier } from '../routing/tier.js'
import type { TierRule } from '../routing/tier-rules.js'

/** A value, its signer and the signature (z32) over its canonical JSON under the value's own domain prefix. */
export interface Signed<T> {
  readonly body: T
  readonly by: NodeId
  readonly sig: string
}

/** An issuer's statement about a node. An issuer can never grant more than it has. */
export interface Certificate {
  readonly mesh: MeshId
  readonly nodeKey: NodeId
  /** 1..64 characters, control characters stripped. */
  readonly name: string
  readonly maxTier: Tier
  readonly sandboxId?: string
  readonly mayInvite: boolean
  readonly mayWrite: boolean
  /** Unix milliseconds. */
  readonly issuedAt: number
  readonly expiresAt?: number
  /** Rises with each certificate of the same node. */
  readonly serial: number
  readonly issuer: NodeId
  /** The invite by which it was admitted; absent for the owner. */
  readonly inviteId?: string
}

/** A certificate with its signature; `by` equals `body.issuer`. */
export type SignedCertificate = Signed<Certificate>

/** Leaf first, up to (not including) the owner's own certificate, or just the owner's. At most 8 long. */
export type CertificateChain = readonly SignedCertificate[]

/** The grant of an invite, as in the log. */
export interface InviteTerms {
  /** z32 of the invite's id (32 bytes). */
  readonly id: string
  /** z32 of the invite's public key. */
  readonly publicKey: string
  readonly tier: Tier
  readonly admin: boolean
  readonly sandboxId?: string
  /** The inviter takes the newcomers for machines of the same person; absent: for guests. */
  readonly trust?: 'mine'
  readonly uses: number
  readonly createdAt: number
  readonly expiresAt: number
  /** Pre-signed with the invite's key, for the confirming admin: `{data, signature}` in z32. */
  readonly additional: { readonly data: string; readonly signature: string }
}

/**
 * How one member regards another. `mine`: a machine of the same person, of full use. `guest`: somebody else's, which
 * may read and ask.
 */
export type Trust = 'mine' | 'guest'

/** Settings of the owner for every node of the mesh (spec a2a-mcp-mesh, TierRoutingConfig and SandboxRoutingConfig). */
export interface MeshSettings {
  /** At most one rule a tier; a tier without one may open to no tier. */
  readonly tierRules: readonly TierRule[]
  readonly sandbox: SandboxRules
}

/** One entry of the log. The author of each is the key that signed it; the writer core only carries it. */
export type EntryBody =
  | {
      readonly kind: 'founding'
      readonly mesh: MeshId
      readonly name: string
      readonly certificate: SignedCertificate
      readonly coreKey: string
      readonly at: number
    }
  | { readonly kind: 'invite'; readonly mesh: MeshId; readonly invite: InviteTerms }
  | { readonly kind: 'invite-revoked'; readonly mesh: MeshId; readonly inviteId: string; readonly at: number }
  | {
      readonly kind: 'admission'
      readonly mesh: MeshId
      readonly certificate: SignedCertificate
      readonly coreKey: string
      readonly request: JoinRequest
    }
  | { readonly kind: 'certificate'; readonly mesh: MeshId; readonly certificate: SignedCertificate }
  | {
      readonly kind: 'revocation'
      readonly mesh: MeshId
      readonly nodeKey: NodeId
      readonly at: number
      readonly reason: string
    }
  | { readonly kind: 'card'; readonly mesh: MeshId; readonly card: SignedCard }
  | { readonly kind: 'card-removed'; readonly mesh: MeshId; readonly agentId: string; readonly revision: number }
  | {
      readonly kind: 'settings'
      readonly mesh: MeshId
      readonly settings: MeshSettings
      readonly serial: number
      readonly at: number
    }
  /** The author regards a member so, whatever its invite said. `serial` rises with each such entry about it. */
  | {
      readonly kind: 'trust'
      readonly mesh: MeshId
      readonly nodeKey: NodeId
      readonly trust: Trust
      readonly serial: number
      readonly at: number
    }
  /** The author writes to another core from now on: its home was restored or repaired. `serial` rises with each. */
  | { readonly kind: 'core'; readonly mesh: MeshId; readonly coreKey: string; readonly serial: number }
  /** The author creates a document; `access` null: every member in no sandbox may see and write it. */
  | {
      readonly kind: 'document'
      readonly mesh: MeshId
      readonly name: string
      readonly access: DocumentAccess | null
      readonly at: number
    }
  | ({
      readonly kind: 'document-access'
      readonly mesh: MeshId
      readonly name: string
      readonly access: DocumentAccess
      /** Core of a snapshot to end: its content is not the state that it claims. */
      readonly ends?: string | undefined
    } & StreamLengths)
  /** The author removes a document from the mesh, for good. */
  | { readonly kind: 'document-removed'; readonly mesh: MeshId; readonly name: string; readonly at: number }
  /** The author writes into a document with this stream. */
  | { readonly kind: 'document-stream'; readonly mesh: MeshId; readonly name: string; readonly coreKey: string }
  /** The author stored the state of a document after the first blocks of its streams. */
  | ({
      readonly kind: 'document-snapshot'
      readonly mesh: MeshId
      readonly name: string
      /** Serial of the access list by which blocks counted; 0: there was none. */
      readonly serial: number
    } & DocumentSnapshot)

/** The result of the first blocks of the streams of a document. It replaces these blocks. */
export interface DocumentSnapshot extends StreamLengths {
  /** The core that holds it, by its key (z32). */
  readonly coreKey: string
  /** Blocks of that core. */
  readonly blocks: number
  /** Hash (z32) of these blocks, one behind the other. */
  readonly hash: string
}

/** Lengths of the streams of a document, by the key (z32) of their core. */
export interface StreamLengths {
  readonly lengths: Readonly<Record<string, number>>
}

/** A signed log entry. */
export type Entry = Signed<EntryBody>

/** A card signed by its node. */
export type SignedCard = Signed<CardBody>

/**
 * Signed by a candidate with its node key (bound to the invite), so that no one can admit a key without its request.
 */
export interface JoinRequest {
  readonly nodeKey: NodeId
  /** z32 of the writer core's key. */
  readonly coreKey: string
  readonly name: string
  /** Signature (z32) of the node key over `{inviteId, nodeKey, coreKey, name}`. */
  readonly sig: string
}

/** The view's record of the mesh itself. */
export interface MeshRecord {
  readonly id: MeshId
  readonly name: string
  readonly owner: NodeId
  readonly foundedAt: number
}

/** The view's record of one node. */
export interface MemberRecord {
  readonly certificate: SignedCertificate
  readonly coreKey: string
  /** Of the entry by which its core took the place of another; absent for the one with which it came. */
  readonly coreSerial?: number
  /** Cores (z32) that it wrote before, oldest first; absent: none. */
  readonly formerCores?: readonly string[]
  /** Position in the order of admission (owner 0). */
  readonly order: number
  readonly revoked: null | { readonly by: NodeId; readonly at: number; readonly reason: string }
}

/** The view's record of one invite. */
export interface InviteRecord {
  readonly terms: InviteTerms
  readonly by: NodeId
  /** Node keys admitted by it, in log order; at most `terms.uses`. */
  readonly admitted: readonly NodeId[]
  /** By admitted node, the admitters other than the maker; only of invites of the kind `mine`. Absent: none. */
  readonly admitters?: Readonly<Record<NodeId, NodeId>>
  readonly revokedAt: number | null
}

/** Why a node was not admitted, for the node itself to find. */
export interface RefusalRecord {
  readonly inviteId: string
  readonly code: 'INVITE_USED' | 'INVITE_EXPIRED' | 'INVITE_REVOKED'
  /**
   * When the refused certificate was issued, unix milliseconds; a later attempt replaces an earlier one. The fold
   * always sets it.
   */
  readonly at?: number
}

/** The view's record of the settings: the newest signed by the owner. */
export interface SettingsRecord {
  readonly settings: MeshSettings
  /** Rises with each change. */
  readonly serial: number
  /** Unix milliseconds. */
  readonly at: number
}

/** The view's record of how one member regards others, where it changed what invites said. */
export interface TrustRecord {
  /** The latest entry about each member. */
  readonly of: Readonly<Record<NodeId, { readonly trust: Trust; readonly serial: number }>>
}

/** The view's record of one document. */
export interface DocumentRecord {
  readonly name: string
  readonly creator: NodeId
  /** Unix milliseconds. */
  readonly createdAt: number
  /** The current list, its signer, and the lengths of streams at that time; null: unrestricted. */
  readonly access: (SignedAccess & StreamLengths) | null
  /** Streams of members, in log order. */
  readonly streams: readonly DocumentStreamRecord[]
  /** The current snapshot, and the one before it; none: its streams are needed whole. Its content counts for good. */
  readonly snapshot?: (DocumentSnapshot & { readonly before?: DocumentSnapshot | undefined }) | undefined
  /**
   * Cores of the last snapshots that an access list ended, oldest first: a replica that began with one of them is
   * wrong.
   */
  readonly ended?: readonly string[] | undefined
}

/**
 * The view's record of a removed document: nobody may see or write it, and its name is taken for good, since its
 * entries could come again.
 */
export interface RemovedDocument extends DocumentRecord {
  readonly access: null
  readonly removed: { readonly by: NodeId; readonly at: number }
}

/** One member's stream of a document: a core by its key (z32). */
export interface DocumentStreamRecord {
  readonly nodeKey: NodeId
  readonly coreKey: string
}

/** The writers rule's state: members that may write, in log order, and the present writers. */
export interface WritersRecord {
  readonly eligible: readonly { readonly nodeKey: NodeId; readonly coreKey: string }[]
  readonly active: readonly string[]
}

/** Everything a reader of the log knows: a pure value, rebuilt from the view at each change. */
export interface MembershipView {
  readonly mesh: MeshRecord | null
  readonly members: ReadonlyMap<NodeId, MemberRecord>
  readonly invites: ReadonlyMap<string, InviteRecord>
  readonly refusals: ReadonlyMap<NodeId, RefusalRecord>
  /** By node, then by agent id. */
  readonly cards: ReadonlyMap<NodeId, ReadonlyMap<string, SignedCard>>
  readonly writers: WritersRecord
  /** null: as shipped. */
  readonly settings: SettingsRecord | null
  /** By author. */
  readonly trust: ReadonlyMap<NodeId, TrustRecord>
  /** By name, without the removed ones. */
  readonly documents: ReadonlyMap<string, DocumentRecord>
  /** By name. */
  readonly removedDocuments: ReadonlyMap<string, RemovedDocument>
}
