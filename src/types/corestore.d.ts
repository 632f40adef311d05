declare module 'corestore' {
  import type Hypercore from 'hypercore'
  import type { HypercoreManifest } from 'hypercore'
  import type Rache from 'rache'
  import type CoreStorage from 'hypercore-storage'
  import type NoiseSecretStream from '@hyperswarm/secret-stream'
  import type { KeyPair } from '@hyperswarm/secret-stream'

  export interface CorestoreOptions {
    readonly primaryKey?: Uint8Array
    /** Acknowledges that handing over a primary key is unsafe. */
    readonly unsafe?: boolean
    readonly readOnly?: boolean
    /** For the trees in its cores, together. Default: each has one of 65,536 blocks. */
    readonly globalCache?: Rache
  }

  export interface GetCoreOptions {
    readonly key?: Uint8Array
    readonly name?: string
    readonly keyPair?: KeyPair
    readonly manifest?: HypercoreManifest
    readonly discoveryKey?: Uint8Array
    readonly encryption?: { readonly key: Uint8Array } | null
    readonly active?: boolean
    readonly exclusive?: boolean
    readonly writable?: boolean
    readonly createIfMissing?: boolean
    /**
     * False: no truncation by the writer is followed; stored blocks stay. The first opening of a core decides. Default
     * true.
     */
    readonly allowFork?: boolean
  }

  /** Questions to the database of a store, answered together once they are flushed. */
  export interface StoreReading {
    get(key: Uint8Array): Promise<Uint8Array | null>
    tryFlush(): void
    destroy(): void
  }

  /** A session of the database of a store. */
  export interface StoreDatabase {
    readonly snapshotted: boolean
    session(options?: object): StoreDatabase
    /** Writes all that is in memory into tables, synced. The storage's own `flush` writes another column family. */
    flush(): Promise<void>
    /** Entries whose keys lie in a range, in their order. */
    iterator(range: { readonly gte: Uint8Array; readonly lt: Uint8Array }): AsyncIterable<unknown>
    read(options?: { readonly autoDestroy?: boolean }): StoreReading
  }

  /** Many cores in one directory. Opening a directory that is open elsewhere: `File descriptor could not be locked`. */
  export default class Corestore {
    readonly globalCache: Rache | null
    constructor(storage: string | CoreStorage, options?: CorestoreOptions)
    readonly opened: boolean
    readonly closed: boolean
    readonly closing: Promise<void> | null
    readonly primaryKey: Uint8Array
    readonly ns: Uint8Array
    /** Each core has a session of its database. */
    readonly storage: { readonly db: StoreDatabase; close(): Promise<void> }

    ready(): Promise<void>
    get(options: GetCoreOptions | Uint8Array): Hypercore
    namespace(name: string | Uint8Array): Corestore
    session(): Corestore
    /** Derived from the primary key and the name (and this store's namespace). */
    createKeyPair(name: string, namespace?: Uint8Array): Promise<KeyPair>
    replicate(stream: NoiseSecretStream | boolean, options?: object): NoiseSecretStream
    /** Discovery keys of every core on disk. */
    list(namespace?: Uint8Array): AsyncIterable<Uint8Array>
    watch(listener: (core: { readonly key: Uint8Array; readonly discoveryKey: Uint8Array }) => void): void
    unwatch(listener: (core: { readonly key: Uint8Array; readonly discoveryKey: Uint8Array }) => void): void
    suspend(): Promise<void>
    resume(): Promise<void>
    /** Closes all sessions, then the database. */
    close(): Promise<void>
  }
}
