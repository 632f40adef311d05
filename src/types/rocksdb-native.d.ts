declare module 'rocksdb-native' {
  export interface RocksOptions {
    readonly createIfMissing?: boolean
    readonly maxBackgroundJobs?: number
    readonly maxOpenFiles?: number
    /** Bytes of a table in memory before it is written out. */
    readonly writeBufferSize?: number
    /** False: blocks of tables stay in the page cache of the system alone. Default true, 32 MiB. */
    readonly blockCache?: boolean
    /** Must be false without a block cache. Default true. */
    readonly tableCacheIndexAndFilterBlocks?: boolean
  }

  export interface RocksRange {
    readonly gte?: Uint8Array
    readonly lt?: Uint8Array
    readonly limit?: number
    readonly reverse?: boolean
    /** False: the keys alone. */
    readonly values?: boolean
    /** Entries that one read of the iterator gives. */
    readonly capacity?: number
  }

  /** Reads that are made together; each promise is of its own key. */
  export interface RocksReadBatch {
    get(key: Uint8Array): Promise<Uint8Array | null>
    tryFlush(): void
  }

  export interface RocksWriteBatch {
    tryPut(key: Uint8Array, value: Uint8Array): void
    tryDelete(key: Uint8Array): void
    flush(): Promise<void>
    destroy(): void
  }

  /** A key-value store in order of the keys' bytes. */
  export default class RocksDB {
    constructor(path: string, options?: RocksOptions)
    ready(): Promise<void>
    get(key: Uint8Array): Promise<Uint8Array | null>
    iterator(range: RocksRange): AsyncIterable<{ readonly key: Uint8Array; readonly value: Uint8Array }>
    read(options?: { readonly capacity?: number; readonly autoDestroy?: boolean }): RocksReadBatch
    write(options?: { readonly capacity?: number; readonly autoDestroy?: boolean }): RocksWriteBatch
    /** The store as it is now, whatever is written later. Close it. */
    snapshot(): RocksDB
    /** Writes tables in memory to files, fsynced. */
    flush(): Promise<void>
    compactRange(): Promise<void>
    close(options?: { readonly force?: boolean }): Promise<void>
  }
}
