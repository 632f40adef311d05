declare module 'autobase' {
  import type Corestore from 'corestore'
  import type Hypercore from 'hypercore'
  import type { CoreReadOptions, HypercoreManifest } from 'hypercore'
  import type NoiseSecretStream from '@hyperswarm/secret-stream'
  import type { KeyPair } from '@hyperswarm/secret-stream'

  /** One linearised entry as apply sees it. The writer (`from`) carries the entry; it is not its author. */
  export interface ApplyNode<V = Uint8Array> {
    readonly value: V
    readonly from: { readonly key: Uint8Array }
    /** Position in the writer's own core, plus one. */
    readonly length: number
    readonly optimistic: boolean
    readonly indexed: boolean
    readonly heads: readonly { readonly key: Uint8Array; readonly length: number }[]
  }

  /** The base's interface for apply. */
  export interface ApplyHost {
    readonly key: Uint8Array
    readonly discoveryKey: Uint8Array
    addWriter(key: Uint8Array, options?: { readonly indexer?: boolean }): Promise<void>
    ackWriter(key: Uint8Array): Promise<void>
    /** @throws Error on the last indexer: ask `removeable` first. */
    removeWriter(key: Uint8Array): Promise<void>
    removeable(key: Uint8Array): boolean
    /** Stops the base with an `interrupt` event. */
    interrupt(reason: string): void
  }

  /** Makes the cores that a view is built on. */
  export interface ViewStore {
    get(nameOrOptions: string | { readonly name: string; readonly valueEncoding?: string }): Hypercore
  }

  export interface AutobaseHandlers<View, V = Uint8Array> {
    open(store: ViewStore, host: ApplyHost): View
    /** Must be deterministic and must not throw: a throw closes the base. */
    apply(nodes: readonly ApplyNode<V>[], view: View, host: ApplyHost): Promise<void>
    close?(view: View): Promise<void>
    update?(view: View, changes: unknown): Promise<void> | void
    readonly valueEncoding?: 'binary' | 'json' | 'utf-8' | object
    /** Makes a new base encrypted with a key of its own. */
    readonly encrypt?: boolean
    /** Insists on an encryption key. */
    readonly encrypted?: boolean
    readonly encryptionKey?: Uint8Array | Promise<Uint8Array> | null
    /** Key pair of the local writer core; default: derived from the store by the name `local`. */
    readonly keyPair?: KeyPair | Promise<KeyPair>
    readonly optimistic?: boolean
    readonly fastForward?: boolean
    /** Milliseconds between an idle indexer's acknowledgements; 0 turns them off. Default 10,000. */
    readonly ackInterval?: number
    readonly ackThreshold?: number
    readonly bigBatches?: boolean
  }

  interface AutobaseEvents {
    /** The view changed. Does not fire at boot when nothing changed. */
    update: []
    /** The core of a writer was opened. */
    writer: [writer: { readonly core: Hypercore }]
    writable: []
    unwritable: []
    'is-indexer': []
    'is-non-indexer': []
    interrupt: [reason: unknown]
    'fast-forward': [to: number, from: number]
    warning: [error: Error]
    error: [error: Error]
    close: []
  }

  /** A block of a writer that others come before: the last blocks of other writers that it knew, and its own one. */
  export interface LogHead {
    readonly key: Uint8Array
    /** Position in its writer's core, plus one. */
    readonly length: number
  }

  /** A block of a writer on its way into the order of the log. */
  export interface LogNode {
    /** As it is in the block. */
    readonly actualHeads: readonly LogHead[]
    /** Blocks of its writer that belong together, from this one to their last, which has 1. */
    readonly batch: number
    /** Blocks of the views that the writer read; the engine fetches them. */
    trace: unknown
  }

  /** A block of a writer's core, decoded. */
  export interface LogBlock {
    /** Written by one that is no writer. */
    readonly optimistic: boolean
    readonly node: { readonly heads: readonly LogHead[]; readonly batch: number; readonly value: Uint8Array | null }
  }

  /** A core of a writer, read as blocks of the log. */
  export interface LogCore {
    readonly key: Uint8Array
    readonly manifest: HypercoreManifest | null
    readonly writable: boolean
    readonly length: number
    /** Shared by all sessions. */
    readonly core: Hypercore['core']
    download(range: { readonly start: number; readonly end: number; readonly linear: boolean }): LogRange
    ready(): Promise<void>
    has(index: number): Promise<boolean>
    get(index: number, options: CoreReadOptions & { readonly raw: true }): Promise<Uint8Array | null>
    get(index: number, options?: CoreReadOptions): Promise<LogBlock | null>
    close(): Promise<void>
  }

  /** Blocks that are asked for. */
  export interface LogRange {
    readonly range: { readonly end: number }
    destroy(): void
  }

  /**
   * One writer's core as the engine reads it. Internal to it: these names are of the version that package.json pins.
   */
  export interface LogWriter {
    readonly core: LogCore
    /** Takes nothing more of the core when true. */
    frozen: boolean
    /** The block that was read and waits for those before it. */
    node: LogNode | null
    /** Blocks that were read and are not confirmed yet; `length` is the position of the next one. */
    readonly nodes: { readonly length: number; get(at: number): LogNode | null | undefined }
    /** The range requested now. */
    range: LogRange | null
    /** Asks for nothing more. */
    _pause(): void
    /** Asks for further blocks; called whenever something changed while there are some. */
    _resume(): void
    /** Reads the next block into `node`. False: it is not here. */
    _loadNextNode(): Promise<boolean>
    /** False: a block before `node` is not here. */
    _ensureNodeDependencies(boot: unknown): Promise<boolean>
  }

  /** Arguments of the engine's look-up of a writer. */
  export type GetWriterArgs = readonly [
    key: Uint8Array,
    length: number,
    seen: number,
    mayClose: boolean,
    isAdded: boolean,
    system: unknown
  ]

  /** Several writers' cores as one linearised log with a view folded from it. */
  export default class Autobase<View = unknown, V = Uint8Array> {
    /** Without a bootstrap key a new base is founded. */
    constructor(store: Corestore, bootstrap: Uint8Array | null, handlers: AutobaseHandlers<View, V>)
    /** The key of the writer core this store would use. */
    static getLocalKey(store: Corestore, options?: { readonly keyPair?: KeyPair }): Promise<Uint8Array>
    static getLocalCore(
      store: Corestore,
      options?: { readonly keyPair?: KeyPair },
      encryptionKey?: Uint8Array
    ): Hypercore

    /** Null before `ready` of a base that is being founded. */
    readonly key: Uint8Array
    readonly discoveryKey: Uint8Array
    readonly encryptionKey: Uint8Array | null
    readonly local: Hypercore
    /** The system core. */
    readonly core: Hypercore
    readonly view: View
    readonly writable: boolean
    readonly isIndexer: boolean
    readonly length: number
    readonly signedLength: number
    readonly indexedLength: number
    readonly opened: boolean
    readonly closed: boolean
    readonly closing: Promise<void> | null

    ready(): Promise<void>
    update(): Promise<void>
    flush(): Promise<void>
    /** @throws Error `Not writable`, `Autobase is closing`. */
    append(value: V | readonly V[], options?: { readonly optimistic?: boolean }): Promise<number>
    ack(background?: boolean): Promise<void>
    heads(): { readonly key: Uint8Array; readonly length: number }[]
    hintWakeup(hints: LogHead | readonly LogHead[]): void
    replicate(stream: NoiseSecretStream | boolean, options?: object): NoiseSecretStream
    waitForWritable(): Promise<void>
    /** Goes to the newest view that the indexers signed, also when the entries that it is made of are not here. */
    repair(): Promise<void>
    getLastError(): Error | null
    close(): Promise<void>
    /** The writers, active and former ones, that the view here names, with the blocks of each that are in the order. */
    readonly system: null | {
      get(key: Uint8Array): Promise<{ readonly length: number } | null>
      list(): AsyncIterable<{ readonly key: Uint8Array }>
    }
    /**
     * Internal: the writer of a core; null when there is none. `system` is set where the engine reads what it confirmed
     * itself.
     */
    protected _getWriterByKey(...args: GetWriterArgs): Promise<LogWriter | null>
    /** Internal: the writers that are open. */
    protected readonly activeWriters: {
      get(key: Uint8Array): LogWriter | null
      /** Makes each writer request the blocks that it may fetch now. */
      updateActivity(): void
    }
    /** Internal: a session of a writer's core, which decodes its blocks. */
    protected _makeWriterCore(key: Uint8Array): LogCore
    /** Internal: the reader of a core. */
    protected _makeWriter(
      ...args: readonly [key: Uint8Array, length: number, isActive: boolean, isRemoved: boolean]
    ): LogWriter
    on<E extends keyof AutobaseEvents>(event: E, listener: (...args: AutobaseEvents[E]) => void): this
    once<E extends keyof AutobaseEvents>(event: E, listener: (...args: AutobaseEvents[E]) => void): this
    off<E extends keyof AutobaseEvents>(event: E, listener: (...args: AutobaseEvents[E]) => void): this
  }
}
