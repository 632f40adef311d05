declare module 'hypercore' {
  import type NoiseSecretStream from '@hyperswarm/secret-stream'
  import type { KeyPair } from '@hyperswarm/secret-stream'
  import type { Channel } from 'protomux'
  import type Protomux from 'protomux'

  export interface HypercoreManifest {
    readonly version: number
    readonly signers?: readonly { readonly publicKey: Uint8Array; readonly namespace?: Uint8Array }[]
    readonly quorum?: number
    readonly prologue?: { readonly hash: Uint8Array; readonly length: number }
  }

  export interface HypercorePeer {
    readonly remotePublicKey: Uint8Array
    readonly remoteLength: number
    /** Has it announced its length? */
    readonly remoteSynced: boolean
    readonly stream: NoiseSecretStream
    readonly protomux: Protomux
    readonly channel: Channel
    /** Asks for blocks and proofs. The answer to id 0 with an upgrade from 0 on is compared with the local blocks. */
    readonly wireRequest: { send(request: WireRequest): boolean }
  }

  export interface WireRequest {
    readonly id: number
    readonly fork: number
    readonly block: null
    readonly hash: null
    readonly seek: null
    readonly upgrade: { readonly start: number; readonly length: number }
  }

  /** The signed tree. */
  export interface CoreState {
    readonly length: number
    /** Of the blocks as they are stored. */
    readonly byteLength: number
  }

  interface CoreEvents {
    ready: []
    append: []
    /** A block came from a peer. */
    download: [index: number, byteLength: number]
    /** A block went to a peer. */
    upload: [index: number, byteLength: number]
    /** Two different signatures for one length were seen; the core takes nothing more. */
    conflict: [length: number, fork: number]
    truncate: [length: number, fork: number]
    'peer-add': [peer: HypercorePeer]
    'peer-remove': [peer: HypercorePeer]
    close: []
  }

  export interface CoreReadOptions {
    /** False: null instead of waiting for peers. */
    readonly wait?: boolean
    /** Milliseconds; 0 is for ever. */
    readonly timeout?: number
    /** True: the bytes as they are stored, neither decrypted nor decoded. */
    readonly raw?: boolean
  }

  /** An append-only, signed log. Blocks are bytes unless a value encoding is set. */
  export default class Hypercore {
    /** `storage` is a directory or a core storage; a Corestore makes cores as a rule. */
    constructor(storage: string | object, key?: Uint8Array | null, options?: object)
    /** The key of a log with this manifest, or with this one signer. */
    static key(manifest: HypercoreManifest | Uint8Array): Uint8Array
    static discoveryKey(key: Uint8Array): Uint8Array
    /** Largest block that replicates smoothly, in bytes. */
    static readonly MAX_SUGGESTED_BLOCK_SIZE: number

    readonly key: Uint8Array
    readonly discoveryKey: Uint8Array
    readonly id: string | null
    readonly keyPair: KeyPair | null
    readonly manifest: HypercoreManifest | null
    readonly writable: boolean
    readonly opened: boolean
    readonly closed: boolean
    readonly length: number
    readonly signedLength: number
    readonly contiguousLength: number
    readonly byteLength: number
    readonly fork: number
    /**
     * Shared by all sessions: `length` of the signed blocks alone; `frozen` for good since two signatures for one
     * length were seen.
     */
    readonly core: {
      readonly state: CoreState
      readonly header: { readonly frozen: boolean }
      /** Stored blocks: index of the first stored or missing one from a position on; -1 when there is none. */
      readonly bitfield: { firstSet(from: number): number; firstUnset(from: number): number }
      readonly replicator: {
        /** Ends that a multiplexer opens channels of this core; those that are open stay. */
        detachFrom(mux: Protomux): void
        /** Requests at once to a peer near by, and to one far away. Default 16 and 512. */
        setInflightRange(near: number, far: number): void
      }
    }
    readonly peers: readonly HypercorePeer[]

    ready(): Promise<void>
    update(options?: { readonly wait?: boolean }): Promise<boolean>
    /** Hash of the tree of the first `length` blocks (default: all): equal hashes, equal content. */
    treeHash(length?: number): Promise<Uint8Array>
    has(index: number): Promise<boolean>
    get(index: number, options?: CoreReadOptions): Promise<Uint8Array | null>
    append(
      blocks: Uint8Array | readonly Uint8Array[]
    ): Promise<{ readonly length: number; readonly byteLength: number }>
    createReadStream(options?: {
      readonly start?: number
      readonly end?: number
      readonly live?: boolean
    }): AsyncIterable<Uint8Array>
    download(range?: { readonly start?: number; readonly end?: number; readonly linear?: boolean }): {
      done(): Promise<void>
      destroy(): void
    }
    clear(start: number, end?: number): Promise<unknown>
    getUserData(key: string): Promise<Uint8Array | null>
    setUserData(key: string, value: Uint8Array): Promise<void>
    /** Says that peers are being looked for, until the result is called. */
    findingPeers(): () => void
    session(options?: object): Hypercore
    replicate(stream: NoiseSecretStream | boolean): NoiseSecretStream
    replicate(mux: Protomux): Protomux
    close(): Promise<void>
    on<E extends keyof CoreEvents>(event: E, listener: (...args: CoreEvents[E]) => void): this
    once<E extends keyof CoreEvents>(event: E, listener: (...args: CoreEvents[E]) => void): this
    off<E extends keyof CoreEvents>(event: E, listener: (...args: CoreEvents[E]) => void): this
  }
}

declare module 'hypercore/lib/merkle-tree.js' {
  import type { CoreState } from 'hypercore'

  export const MerkleTree: {
    /**
     * Nodes at the top of the tree of the first `length` blocks, with the bytes below each. Rejects when one is not
     * here.
     */
    getRoots(state: CoreState, length: number): Promise<readonly { readonly size: number }[]>
  }
}
