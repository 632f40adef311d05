import type { NodeId } from '../kit/ids.js'
import type { Trust } from '../domain/membership/types.js'
import type { Tier, TierText } from '../domain/routing/tier.js'
import type { DocumentShareInfo } from './document-api.js'
import type { LinkPath } from './mesh.js'
import type { LogReading, NodeRef, Problem } from './node-api.js'
import type { PeerSight, ReachInfo } from './network/reach.js'
import type { PolicyDecision } from '../domain/policy/rule.js'
import type { RenamedInPolicy } from './policy-api.js'

/** One row of `peers`. */
export interface PeerInfo {
  readonly id: NodeId
  readonly name: string
  readonly tier: TierText
  readonly status: 'online' | 'offline' | 'revoked'
  readonly path: LinkPath | null
  readonly rttMs: number | null
  /** Agent ids of its cards, `operator` left out. */
  readonly agents: readonly string[]
  /** ISO time; null when this node never had a link to it. */
  readonly lastSeenAt: string | null
  /** Its fault: it is in quarantine. Null when there is none. */
  readonly problem: Problem | null
  /** How the answering node regards it. */
  readonly trust: Trust
}

/** `peers`. */
export interface PeerList extends LogReading {
  readonly peers: readonly PeerInfo[]
}

/** `peers show`. */
export interface PeerDetail extends PeerInfo {
  /** It is the answering node. */
  readonly self: boolean
  readonly admin: boolean
  readonly writer: boolean
  readonly owner: boolean
  readonly sandboxId: string | null
  readonly issuer: NodeRef
  readonly version: string | null
  /** Addresses that `peers add` gave it, and why the last dial failed. Absent: an earlier build. */
  readonly addresses?: readonly { readonly address: string; readonly fault: string | null }[]
  /** The storage that it takes here for documents. */
  readonly documents: DocumentShareInfo
  readonly revoked: null | { readonly by: NodeRef; readonly at: string; readonly reason: string }
}

/** `doctor <peer>`: how a peer is reached, by all that this node knows and tried. */
export interface PeerExam extends PeerDetail {
  /** The neighbour that carries messages to it, without a link; null for none. */
  readonly relayedBy: NodeRef | null
  /** In the form of {@link PeerDetail.version}. */
  readonly ownVersion: string
  readonly reach: ReachInfo | null
  /** Null for a revoked member. */
  readonly sight: PeerSight | null
  /** Agents of this node, by the decision about a request of the peer to their default capability. */
  readonly policy: Readonly<Record<PolicyDecision, readonly string[]>>
  /** `ok`: its messages arrive. `next`: a command. */
  readonly verdict: { readonly ok: boolean; readonly text: string; readonly next: string }
}

/** One row of `invite ls`. */
export interface InviteInfo {
  readonly id: string
  readonly tier: TierText
  readonly admin: boolean
  readonly sandboxId: string | null
  readonly uses: number
  readonly used: number
  readonly expiresAt: string
  readonly state: 'open' | 'used' | 'expired' | 'revoked'
  readonly by: NodeRef
  readonly trust: Trust
}

/** Calls about the other members, and about invites. */
export interface PeerCalls {
  'peers.list': { params: { readonly all?: boolean }; result: PeerList }
  'peers.show': { params: { readonly peer: string }; result: PeerDetail }
  'peers.rename': {
    params: { readonly peer: string; readonly name: string }
    /** `policy`: the rules of this node that named it, or another, by a name that changed its meaning. */
    result: PeerDetail & { readonly policy: readonly RenamedInPolicy[] }
  }
  'peers.tier': { params: { readonly peer: string; readonly tier: Tier }; result: PeerDetail }
  /** How this node regards a peer, above what its invite said. `changed` false: so it was. */
  'peers.trust': {
    params: { readonly peer: string; readonly trust: Trust }
    result: PeerDetail & { readonly changed: boolean }
  }
  'peers.revoke': {
    params: { readonly peer: string; readonly reason?: string }
    /** `wasRevoked`: it was out before; `revoked` says since when, and the reason given now goes nowhere. */
    result: PeerDetail & { readonly wasRevoked: boolean }
  }
  /** Gives a peer one more address (`host:port` of TCP), or forgets it with `remove`. `changed` false: so it was. */
  'peers.address': {
    params: { readonly peer: string; readonly address: string; readonly remove?: boolean }
    result: PeerDetail & { readonly changed: boolean }
  }
  'peers.ping': {
    params: { readonly peer: string; readonly count?: number }
    result: { readonly peer: NodeRef; readonly path: LinkPath; readonly rttMs: readonly number[] }
  }
  /** Tries to link the peer first; takes 10 s at most. */
  'peers.examine': { params: { readonly peer: string }; result: PeerExam }
  'invite.create': {
    params: {
      readonly tier?: Tier
      readonly admin?: boolean
      readonly ttlMs?: number
      readonly uses?: number
      readonly sandboxId?: string
      /** Default: `mine` for tier 0, else `guest`. */
      readonly trust?: Trust
    }
    result: {
      readonly id: string
      /** The short code (at most 60 characters); the long one where the bootstrap nodes do not fit. */
      readonly code: string
      /** Newcomers with it meet any admin at the topic of the mesh. Earlier builds read only this one. */
      readonly longCode: string
      readonly expiresAt: string
      readonly uses: number
      readonly tier: TierText
      readonly sandboxId: string | null
      readonly trust: Trust
    }
  }
  'invite.list': { params: Record<string, never>; result: LogReading & { readonly invites: readonly InviteInfo[] } }
  'invite.revoke': { params: { readonly id: string }; result: InviteInfo }
}
