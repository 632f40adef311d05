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

/** The network below a node. */
export interface ReachSource {
  info(): ReachInfo
}
