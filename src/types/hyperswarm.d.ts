declare module 'hyperswarm' {
  import type HyperDHT from 'hyperdht'
  import type { DhtAddress, DhtServer } from 'hyperdht'
  import type NoiseSecretStream from '@hyperswarm/secret-stream'
  import type { KeyPair } from '@hyperswarm/secret-stream'

  export type { KeyPair, NoiseSecretStream }
  /** The stream of `connection`. */
  export type NoiseStream = NoiseSecretStream

  export interface HyperswarmOptions {
    readonly dht?: HyperDHT
    readonly keyPair?: KeyPair
    readonly seed?: Uint8Array
    /**
     * True denies and bans the key until `peer.ban(false)`. Must be synchronous. `payload`: null for a key that is to
     * be dialled.
     */
    readonly firewall?: (remotePublicKey: Uint8Array, payload: unknown) => boolean
    /** Limits dialled connections, not incoming ones. Default 64. */
    readonly maxPeers?: number
    readonly maxClientConnections?: number
    readonly maxServerConnections?: number
    /** Dials at once. Default 3. */
    readonly maxParallel?: number
    /** Milliseconds before the first, second and third retry. Default 1,000, 5,000, 15,000. */
    readonly backoffs?: readonly number[]
    /** Milliseconds added at random to a retry. */
    readonly jitter?: number
    readonly bootstrap?: readonly (DhtAddress | string)[]
    readonly relayThrough?: Uint8Array | null
    readonly handshakeClearWait?: number
  }

  /** The swarm's record of a key. */
  export interface PeerInfo {
    readonly publicKey: Uint8Array
    readonly relayAddresses: readonly DhtAddress[] | null
    readonly topics: readonly Uint8Array[]
    readonly banned: boolean
    readonly explicit: boolean
    readonly prioritized: boolean
    readonly proven: boolean
    readonly client: boolean
    readonly queued: boolean
    readonly waiting: boolean
    /** Failed dials; past 3 it is dialled no more until it is found again. */
    attempts: number
    ban(banned: boolean): void
    reconnect(reconnect: boolean): void
  }

  export interface DiscoveryMode {
    /** Announce. Default true. */
    readonly server?: boolean
    /** Look up. Default true. */
    readonly client?: boolean
    readonly limit?: number
  }

  /** One holder's hold on a topic. */
  export interface PeerDiscovery {
    readonly topic: Uint8Array
    readonly isClient: boolean
    readonly isServer: boolean
    readonly destroyed: boolean
    /** Looks up and announces again; false when that failed. @throws Error after destroy, or with both modes off. */
    refresh(mode?: DiscoveryMode): Promise<boolean>
    flushed(): Promise<boolean>
    /** Unannounces when the last holder of the topic goes. */
    destroy(): Promise<void>
  }

  interface SwarmEvents {
    connection: [stream: NoiseSecretStream, peer: PeerInfo]
    update: []
    ban: [peer: PeerInfo, error: Error]
  }

  export default class Hyperswarm {
    constructor(options?: HyperswarmOptions)
    readonly keyPair: KeyPair
    readonly dht: HyperDHT
    readonly server: DhtServer
    readonly connections: ReadonlySet<NoiseSecretStream>
    /** By public key in hex. Banned, queued, waiting and explicit ones stay for ever unless deleted. */
    readonly peers: Map<string, PeerInfo>
    readonly explicitPeers: ReadonlySet<PeerInfo>
    /** Dials under way. */
    readonly connecting: number
    readonly destroyed: boolean
    readonly suspended: boolean
    maxPeers: number

    join(topic: Uint8Array, mode?: DiscoveryMode): PeerDiscovery
    leave(topic: Uint8Array): Promise<void>
    status(topic: Uint8Array): PeerDiscovery | null
    /** Every topic that is joined. */
    topics(): IterableIterator<PeerDiscovery>
    /** Dials this key directly and retries. */
    joinPeer(publicKey: Uint8Array): void
    leavePeer(publicKey: Uint8Array): void
    listen(): Promise<DhtServer>
    /** Resolves when pending lookups and dials are done; says nothing of success. */
    flush(): Promise<boolean>
    clear(): Promise<unknown>
    suspend(): Promise<void>
    resume(): Promise<void>
    /** Unannounces, closes streams and the DHT (also one that was handed in). */
    destroy(options?: { readonly force?: boolean }): Promise<void>
    on<E extends keyof SwarmEvents>(event: E, listener: (...args: SwarmEvents[E]) => void): this
    once<E extends keyof SwarmEvents>(event: E, listener: (...args: SwarmEvents[E]) => void): this
    off<E extends keyof SwarmEvents>(event: E, listener: (...args: SwarmEvents[E]) => void): this
    removeListener<E extends keyof SwarmEvents>(event: E, listener: (...args: SwarmEvents[E]) => void): this
  }
}
