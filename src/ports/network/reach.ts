import type { NodeId } from '../../kit/ids.js'

/**
 * The NAT between this machine and the DHT. `open`: none, and packets of strangers arrive. `consistent`: one public
 * port for all peers. `random`: another one for each peer.
 */
export type NatKind = 'open' | 'consistent' | 'random' | 'unknown'

/** The network below a node, by the answers of DHT nodes. Times are ISO. */
export interface ReachInfo {
  /** `unknown`: the first answer is awaited. Null: no DHT is asked (one machine, or no bootstrap node). */
  readonly dht: { readonly state: 'unknown' | 'answering' | 'silent'; readonly since: string } | null
  readonly nat: { readonly kind: NatKind; readonly since: string }
  /**
   * The address of this node as others see it, `203.0.113.7:49737`; without the port behind a random NAT. Null while
   * unknown.
   */
  readonly address: string | null
}

/**
 * Why a dial by the DHT opened no stream. `not-found`: nobody announces the key. `silent`: it is announced, and does
 * not answer. `not-punched`: it answers by way of the DHT, and no packet passes directly. `failed`: else.
 */
export type DialFault = 'not-found' | 'silent' | 'not-punched' | 'failed'

/** The end of the last dial of a peer by the DHT. */
export interface DialEnd {
  /** Null: a stream opened. */
  readonly fault: DialFault | null
  /** The NATs as both ends found them for this dial; null: they did not get so far. */
  readonly nats: { readonly here: NatKind; readonly there: NatKind } | null
  /** Is the NAT here random, by all that the DHT knew when the dial ended? */
  readonly isRandomHere: boolean
}

/** The ways to a peer, as they are now. */
export interface PeerSight {
  /** Is its key announced in the DHT? Null: the DHT does not answer. */
  readonly isAnnounced: boolean | null
  /** Null: it was not dialled by UDP since the start. */
  readonly udp: DialEnd | null
  /** The URLs that it announces, at most 4. `fault`: why the URL opens no WebSocket; null: it does. */
  readonly webSockets: readonly { readonly url: string; readonly fault: string | null }[]
  /** Milliseconds by which this machine's clock is ahead of the peer's; null while there is no link. */
  readonly clockAheadMs: number | null
}

/** The network below a node. */
export interface ReachSource {
  info(): ReachInfo
  /** Looks for a peer in the DHT, and opens and closes its WebSockets; in 5 s at most. Never rejects. */
  examine(peer: NodeId): Promise<PeerSight>
}
