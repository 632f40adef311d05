import type { NodeId } from '../kit/ids.js'
import type { EntryBody, InviteTerms, MembershipView, SignedCertificate, Trust } from '../domain/membership/types.js'
import type { Tier } from '../domain/routing/tier.js'

/** How bytes travel to a peer: `direct` and `local` (on this machine) are UDP. */
export type LinkPath = 'direct' | 'relayed' | 'tcp' | 'websocket' | 'local'

/** Addresses of members that the user gave, beside those on cards and of earlier links. */
export interface GivenAddresses {
  /** `host:port` of TCP, and why the last dial failed; null: it worked, or there was none. */
  list(peer: NodeId): readonly { readonly address: string; readonly fault: string | null }[]
  /** False: it was there. @throws NodeError OVERLOADED for too many, DISK_FULL, NO_PERMISSION */
  add(peer: NodeId, address: string): Promise<boolean>
  /** False: it was not there. @throws NodeError DISK_FULL, NO_PERMISSION */
  remove(peer: NodeId, address: string): Promise<boolean>
}

/**
 * One authenticated, admitted, ordered, flow-controlled session with a member, behind the gate. The peer's stream key
 * is `peer`. Its certificate was valid when the link opened and at each view change since.
 */
export interface Link {
  /** Unique in this process. A reconnect is another link. */
  readonly id: number
  readonly peer: NodeId
  readonly path: LinkPath
  /** The certificate the peer showed at the gate; the view's own, where it has one, is newer. */
  readonly certificate: SignedCertificate
  /** The peer's hello: its software version, for `peers show`. */
  readonly peerVersion: string
  /** Smoothed round trip of the transport in milliseconds, null while unknown. */
  rttMs(): number | null
  /**
   * Queues one frame (<= 1 MiB). False asks the caller to wait for `drained`; the frame is taken all the same. After
   * close: dropped.
   */
  send(frame: Uint8Array): boolean
  /** Resolves when the buffer is empty enough again, or the link closed. */
  drained(): Promise<void>
  /**
   * Tokens that the peer lets this end spend since the link opened (see domain/channel/credit); null: it knows no
   * credit.
   */
  readonly credit: number | null
  /** Raises the number of tokens that the peer may spend since the link opened. After close: dropped. */
  grant(limit: number): void
  readonly closed: boolean
  /** Cuts it. `onClose` follows. */
  close(reason: string): void
  /** The peer broke the protocol on this link: records a strike and cuts the link. `onClose` follows. */
  fault(reason: string): void
}

/** Callbacks for the owner of the links. Handlers must not throw; frames of one link come in order. */
export interface LinkHandlers {
  onOpen(link: Link): void
  onFrame(link: Link, frame: Uint8Array): void
  /** The peer gave more credit, or turned out to know none. */
  onCredit(link: Link): void
  /** `isRest`: it was idle, and one end needed its slot for another link. The peer is still online. */
  onClose(link: Link, reason: string, isRest: boolean): void
  /** An idle link to close when another needs its slot; null when all are in use. */
  spare(): Link | null
}

/**
 * Misbehaviour of a peer. `fault`: it broke the protocol. `forged`: a message that only a forger sends. `doubtful`:
 * honest peers may send it while certificates and cards spread, but not often.
 */
export type Strike = 'fault' | 'forged' | 'doubtful'

/** Streams to other members. */
export interface Links {
  /** Begins to listen and to look for members. Resolves when the listening side is up (not when peers are found). */
  start(handlers: LinkHandlers): Promise<void>
  /**
   * Dials a member by key now; without a free slot, an idle link is closed for it. Resolves with the link, which may be
   * an existing one: then a better path is looked for.
   * @throws NodeError PEER_OFFLINE after `timeoutMs`; at once when every link is in use
   */
  dial(peer: NodeId, timeoutMs: number): Promise<Link>
  /** The members the keeper should hold links to. Replaces the former list. */
  want(peers: readonly NodeId[]): void
  /** Wanted members without a link by choice: a slot is missing here, or there. */
  beyond(): readonly NodeId[]
  /** Counts a strike of a peer; with too many its links are cut and it is kept out for a while, longer each time. */
  strike(peer: NodeId, strike: Strike, reason: string): void
  /** Is it kept out now for its strikes? */
  isKeptOut(peer: NodeId): boolean
  /** Every open link. */
  list(): readonly Link[]
  close(): Promise<void>
}

/** The replicated log of members and cards. */
export interface MemberLog {
  /** The view now: rebuilt at each change, never changed in place. */
  view(): MembershipView
  /** Called after each change of the view. Returns the stop. */
  onChange(listener: (view: MembershipView) => void): () => void
  /**
   * Signs the entry with the node key and brings it into the log: as a writer itself, else through a connected writer.
   * Resolves when this node's view has applied it or found it superseded.
   * @throws NodeError at once OVERLOADED when a limit of the log is reached, and DISK_FULL or STORE_DAMAGED of a writer
   * that appends nothing; TIMEOUT when no writer took it in time; INTERNAL when the log is closed
   */
  submit(body: EntryBody, timeoutMs?: number): Promise<void>
  /** Has the owner signed that a core (z32 of its key) is one of a document? The log never takes that back. */
  isCoreSigned(coreKey: string): Promise<boolean>
  /** May this node append by itself now? */
  writable(): boolean
  /** Log positions, for `metrics` and tests: entries in the linearised log. */
  length(): number
}

/** A fresh invite. */
export interface IssuedInvite {
  readonly terms: InviteTerms
  /** Newcomers of it meet the admins at the topic of the mesh. */
  readonly code: string
  /** At most 60 characters; null: the bootstrap nodes do not fit, or 64 invites of this node are open. */
  readonly shortCode: string | null
}

/** Admission of newcomers, for admins. */
export interface Pairing {
  /** Makes an invite and its code; the record must then be submitted by the caller before it can be used. */
  create(options: {
    readonly tier: Tier
    readonly admin: boolean
    readonly sandboxId: string | null
    readonly trust: Trust
    readonly ttlMs: number
    readonly uses: number
  }): IssuedInvite
  /** Resolves when newcomers can find this node by the short code of a recorded invite, or after the limit. */
  announced(inviteId: string, limitMs: number): Promise<void>
  close(): Promise<void>
}

/** This node in its mesh. */
export interface Membership {
  readonly nodeId: NodeId
  /** Its own certificate in force; changes with the view. */
  certificate(): SignedCertificate
  /** Did it join by a code that named its machine and the inviter's as one person's? */
  readonly acceptsInviter: boolean
}
