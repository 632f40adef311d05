declare module 'hyperbee' {
  import type Hypercore from 'hypercore'

  /** Key or value encodings of Hyperbee. */
  export type BeeEncoding = 'binary' | 'utf-8' | 'json'

  export interface HyperbeeOptions {
    readonly keyEncoding?: BeeEncoding
    readonly valueEncoding?: BeeEncoding
    /** False in an Autobase view. */
    readonly extension?: boolean
    readonly readonly?: boolean
  }

  export interface BeeEntry<K, V> {
    readonly seq: number
    readonly key: K
    readonly value: V
  }

  export interface BeeRange<K> {
    readonly gt?: K
    readonly gte?: K
    readonly lt?: K
    readonly lte?: K
    readonly limit?: number
    readonly reverse?: boolean
  }

  export interface BeeBatch<K, V> {
    get(key: K): Promise<BeeEntry<K, V> | null>
    put(key: K, value: V): Promise<void>
    del(key: K): Promise<void>
    flush(): Promise<void>
    close(): Promise<void>
  }

  /** A sorted map over a Hypercore. K and V are the decoded types of the two encodings. */
  export default class Hyperbee<K = string, V = unknown> {
    constructor(core: Hypercore, options?: HyperbeeOptions)
    readonly core: Hypercore
    readonly version: number
    readonly writable: boolean
    readonly opened: boolean
    readonly closed: boolean

    ready(): Promise<void>
    get(key: K): Promise<BeeEntry<K, V> | null>
    put(key: K, value: V): Promise<void>
    del(key: K): Promise<void>
    batch(options?: { readonly update?: boolean }): BeeBatch<K, V>
    peek(range?: BeeRange<K>): Promise<BeeEntry<K, V> | null>
    createReadStream(range?: BeeRange<K>): AsyncIterable<BeeEntry<K, V>>
    /** A read-only view of the version now. Close it. */
    snapshot(): Hyperbee<K, V>
    checkout(version: number): Hyperbee<K, V>
    update(options?: { readonly wait?: boolean }): Promise<boolean>
    close(): Promise<void>
  }
}
