declare module 'hypercore-storage' {
  export interface CoreStorageOptions {
    /** Bytes of the table in memory; two of them at most. Default 64 MiB. */
    readonly writeBufferSize?: number
    /** False: blocks of tables stay in the page cache of the system alone. Default true, 32 MiB. */
    readonly blockCache?: boolean
    /** Must be false without a block cache. Default true. */
    readonly tableCacheIndexAndFilterBlocks?: boolean
    /** Threads that write tables out and merge them. Default 6. */
    readonly maxBackgroundJobs?: number
    /** -1 (default): all. */
    readonly maxOpenFiles?: number
  }

  /** The database of a Corestore, in one directory. It is opened with the store. */
  export default class CoreStorage {
    readonly path: string
    constructor(directory: string, options?: CoreStorageOptions)
  }
}
