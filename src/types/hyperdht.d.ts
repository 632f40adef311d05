declare module 'hyperdht' {
  import type NoiseSecretStream from '@hyperswarm/secret-stream'
  import type { KeyPair, RawStream } from '@hyperswarm/secret-stream'

  export type { KeyPair, NoiseSecretStream, RawStream }

  /** An IPv4 address and port. */
  export interface DhtAddress {
    readonly host: string
    readonly port: number
  }

  export interface HyperDhtOptions {
    /** Nodes to start from, also as `host:port`; an empty list makes a network of its own. Default: the public ones. */
    readonly bootstrap?: readonly (DhtAddress | string)[] | false
    /** Remembered nodes, tried beside the bootstrap ones. */
    readonly nodes?: readonly DhtAddress[]
    readonly port?: number
    /** False: the port must be the given one. Default true. */
    readonly anyPort?: boolean
    /** Address to bind. */
    readonly host?: string
    readonly keyPair?: KeyPair
    readonly seed?: Uint8Array
    /** False says that this node is reachable without hole punching. */
    readonly firewalled?: boolean
    readonly ephemeral?: boolean
    /** Milliseconds between keep-alives of a connection; false turns them off. Default 5,000. */
    readonly connectionKeepAlive?: number | false
    readonly randomPunchInterval?: number
    readonly deferRandomPunch?: boolean
    readonly quickFirewall?: boolean
  }

  export interface DhtConnectOptions {
    readonly keyPair?: KeyPair
    readonly relayAddresses?: readonly DhtAddress[]
    /** Try addresses of the same network first. Default true. */
    readonly localConnection?: boolean
    /** Asked with the NAT kinds of both ends (`lib/constants.js`) once they are known; false ends the dial. */
    readonly holepunch?: (remote: number, local: number) => boolean
  }

  export interface DhtServerOptions {
    /** True (or a promise of it) denies. */
    readonly firewall?: (
      remotePublicKey: Uint8Array,
      payload: unknown,
      address: DhtAddress | null
    ) => boolean | Promise<boolean>
    readonly shareLocalAddress?: boolean
    readonly holepunch?: boolean
    /** Milliseconds that the state of a handshake is kept after it. Default 10,000. */
    readonly handshakeClearWait?: number
  }

  /** Accepts streams for one key pair. */
  export interface DhtServer {
    readonly listening: boolean
    readonly closed: boolean
    readonly publicKey: Uint8Array | null
    readonly relayAddresses: readonly DhtAddress[]
    listen(keyPair?: KeyPair): Promise<DhtServer>
    /** Announces the key again, with fresh relays. */
    refresh(): void
    address(): { readonly publicKey: Uint8Array; readonly host: string; readonly port: number } | null
    close(): Promise<void>
    on(event: 'connection', listener: (stream: NoiseSecretStream) => void): this
    on(event: 'listening' | 'close', listener: () => void): this
  }

  /** A running query; iterate it or await `finished`. */
  export interface DhtQuery<T> extends AsyncIterable<T> {
    readonly closestNodes: readonly DhtAddress[]
    finished(): Promise<void>
    destroy(): void
  }

  /** One answer to a lookup. */
  export interface LookupReply {
    readonly from: DhtAddress
    readonly to: DhtAddress
    readonly peers: readonly { readonly publicKey: Uint8Array; readonly relayAddresses: readonly DhtAddress[] }[]
  }

  interface DhtEvents {
    ready: []
    listening: []
    persistent: []
    'network-change': []
    'network-update': []
    close: []
  }

  export default class HyperDHT {
    constructor(options?: HyperDhtOptions)
    /**
     * A bootstrap node: `host` is the address others reach it at, `options.host` the one it binds. Not for several on
     * one port.
     */
    static bootstrapper(port: number, host: string, options?: HyperDhtOptions): HyperDHT
    static keyPair(seed?: Uint8Array): KeyPair
    static hash(data: Uint8Array): Uint8Array

    /** Own address as others see it; null and 0 while unknown. */
    readonly host: string | null
    readonly port: number
    readonly firewalled: boolean
    readonly ephemeral: boolean
    readonly randomized: boolean
    /** False after a while without any answer. Says nothing of peers. */
    readonly online: boolean
    readonly destroyed: boolean
    readonly bootstrapped: boolean
    /** The list to start from; a host may be `<address>@<name>`. */
    readonly bootstrapNodes: readonly DhtAddress[]
    readonly stats: { readonly requests: { readonly responses: number; readonly timeouts: number } }
    readonly defaultKeyPair: KeyPair
    /** Milliseconds between keep-alives of new connections. */
    connectionKeepAlive: number

    ready(): Promise<void>
    /** Resolves also when no node answered. Rejects when the port cannot be bound. */
    fullyBootstrapped(): Promise<void>
    bind(): Promise<void>
    connect(remotePublicKey: Uint8Array, options?: DhtConnectOptions): NoiseSecretStream
    createServer(options?: DhtServerOptions, onConnection?: (stream: NoiseSecretStream) => void): DhtServer
    lookup(topic: Uint8Array): DhtQuery<LookupReply>
    /** Nodes at which a key is announced. */
    findPeer(publicKey: Uint8Array): DhtQuery<{ readonly from: DhtAddress }>
    announce(topic: Uint8Array, keyPair: KeyPair, relayAddresses?: readonly DhtAddress[]): DhtQuery<LookupReply>
    unannounce(topic: Uint8Array, keyPair: KeyPair): Promise<void>
    /** `to`: the address of this node, as the asked one sees it. */
    ping(address: DhtAddress, options?: { readonly retry?: boolean }): Promise<{ readonly to: DhtAddress }>
    address(): DhtAddress | null
    localAddress(): DhtAddress | null
    remoteAddress(): DhtAddress | null
    addNode(address: DhtAddress): void
    /** Known nodes, most recent first; to remember for `nodes`. */
    toArray(options?: { readonly limit?: number }): DhtAddress[]
    suspend(): Promise<void>
    resume(): Promise<void>
    /** Closes servers and unannounces first unless forced. */
    destroy(options?: { readonly force?: boolean }): Promise<void>
    on<E extends keyof DhtEvents>(event: E, listener: (...args: DhtEvents[E]) => void): this
    once<E extends keyof DhtEvents>(event: E, listener: (...args: DhtEvents[E]) => void): this
    off<E extends keyof DhtEvents>(event: E, listener: (...args: DhtEvents[E]) => void): this
  }
}

declare module 'hyperdht/testnet.js' {
  import type HyperDHT from 'hyperdht'
  import type { DhtAddress, HyperDhtOptions } from 'hyperdht'

  /** A network of loopback nodes for tests. */
  export interface Testnet {
    readonly nodes: readonly HyperDHT[]
    readonly bootstrap: readonly DhtAddress[]
    createNode(options?: HyperDhtOptions): HyperDHT
    destroy(): Promise<void>
  }
  export default function createTestnet(
    size?: number,
    options?: { readonly host?: string; readonly port?: number; readonly bootstrap?: readonly DhtAddress[] }
  ): Promise<Testnet>
}
