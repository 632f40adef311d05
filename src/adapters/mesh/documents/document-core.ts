import type Corestore from 'corestore'
import type Hypercore from 'hypercore'
import type Protomux from 'protomux'
import type { Clock } from '../../../kit/clock.js'
import { messageOf, type NodeError, passingConflict } from '../../../kit/errors.js'
import { keyFromText } from '../../../kit/ids.js'
import type { StreamKey } from '../../../domain/document/client-ids.js'
import type { StreamExtent, StreamSize } from '../../../ports/documents.js'
import {
  beginningOf,
  bytesBefore,
  type CoreBeginning,
  contiguousLength,
  NO_BEGINNING,
  setBeginning
} from '../cores/core-beginning.js'
import { MAX_STORED_BLOCK_BYTES, StreamFetch } from './stream-fetch.js'

/** Bytes of one stream: an own stream takes no more, and of another no more is fetched. */
export const MAX_STREAM_BYTES = 268_435_456

/** Dependencies of {@link DocumentCore}. */
export interface DocumentCoreDeps {
  readonly stream: StreamKey
  readonly clock: Clock
  /** Resolves to the store of documents. */
  open(): Promise<Corestore>
  /** More blocks are here. */
  onBlocks(stream: StreamKey): void
  /** May it store this number of bytes? */
  mayHold(bytes: number): boolean
  /** A block came from a peer. */
  onFetched(stream: StreamKey): void
  /**
   * Counts bytes that came from peers (0: none). Gives the milliseconds after which more of the stream may be
   * requested.
   */
  restMs(bytes: number): number
  /** It could not be opened, or holds too much. */
  onFault(stream: StreamKey, reason: string): void
  /** Any error of the store as one with a cause and a next step. */
  toError(error: unknown): NodeError
}

/** A stream that cannot be read now does not count as shorter. */
function cannotOpen(): NodeError {
  return passingConflict('a stream of the document cannot be opened now')
}

/** The links over which a core is replicated. */
class AttachedLinks {
  readonly #attached = new Set<Protomux>()

  /** Sets the links of a core, in the place of all earlier ones. */
  set(core: Hypercore, wanted: readonly Protomux[]): void {
    for (const mux of [...this.#attached].filter((one) => !wanted.includes(one))) {
      this.#attached.delete(mux)
      detach(core, mux)
    }
    for (const mux of wanted.filter((one) => !this.#attached.has(one))) {
      this.#attached.add(mux)
      core.replicate(mux)
    }
  }

  /** The core was closed, and its links are detached. */
  forget(): void {
    this.#attached.clear()
  }
}

/** One followed core of a document: fetched whole from every link that it is attached to. */
export class DocumentCore {
  readonly #deps: DocumentCoreDeps
  readonly #links = new AttachedLinks()
  #core: Hypercore | null = null
  #beginning: CoreBeginning = NO_BEGINNING
  /** Bytes before it begins; null as long as the tree does not say. */
  #before: number | null = 0
  readonly #fetch: StreamFetch
  /** Number of reported blocks. */
  #announced = 0
  #isClosed = false
  #isForked = false
  /** Why it could not be opened. */
  #fault: NodeError | null = null
  /** Resolves when it is open, or cannot be. */
  #opening: Promise<void>
  #wanted: readonly Protomux[] = []

  constructor(deps: DocumentCoreDeps) {
    this.#deps = deps
    this.#fetch = new StreamFetch({
      clock: deps.clock,
      restMs: (bytes) => deps.restMs(bytes),
      wanted: () => this.#missing()
    })
    this.#opening = this.#open().catch((error: unknown) => this.#failed(error))
  }

  /** Sets the multiplexers of the links that may have it, in the place of all earlier ones. */
  attach(links: readonly Protomux[]): void {
    this.#wanted = links
    const core = this.#core
    if (core === null) return
    this.#links.set(core, this.#mayFetch(core) ? links : [])
  }

  /**
   * Blocks from `from` on without a hole, at most `limit`.
   * @throws NodeError CONFLICT when it cannot be opened, STORE_DAMAGED when its store cannot
   */
  async read(from: number, limit: number): Promise<readonly Uint8Array[]> {
    await this.#opening
    const core = this.#core
    if (this.#isForked || this.#isClosed) return []
    if (core === null) throw this.notOpen()
    const end = Math.min(this.#storedLength(core), from + limit)
    if (from < this.#beginning.blocks || from >= end) return []
    return await storedBlocks(core, from, end).catch((error: unknown) => Promise.reject(this.#deps.toError(error)))
  }

  /** Its stored part. */
  size(): StreamSize {
    const core = this.#core
    if (core === null) return { blocks: 0, from: 0, bytes: 0 }
    return {
      blocks: this.#storedLength(core),
      from: this.#beginning.blocks,
      bytes: core.byteLength - (this.#before ?? core.byteLength)
    }
  }

  /**
   * Its known length, and the links whose ends announced theirs. For a stream that is not fetched: the stored length.
   */
  extent(): Omit<StreamExtent, 'announced'> & { readonly announced: readonly Protomux[] } {
    const core = this.#core
    const { blocks: fetched, isOversized } = this.#fetch
    if (core === null) return { blocks: 0, isMore: false, announced: [], fetched, isOversized }
    const peers = core.peers.filter(({ remoteSynced }) => remoteSynced)
    const mayFetch = !this.#isForked && this.#mayFetch(core)
    const isMore = mayFetch && peers.some(({ remoteLength }) => remoteLength > core.length)
    const announced = peers.map(({ protomux }) => protomux)
    return { blocks: mayFetch ? core.length : this.#storedLength(core), isMore, announced, fetched, isOversized }
  }

  /** Moves its beginning behind the first `blocks` blocks. `onBegun`: called before any of them is removed. */
  async begin(blocks: number, onBegun: (beginning: CoreBeginning) => void): Promise<void> {
    await this.#opening
    if (this.#isClosed || blocks <= this.#beginning.blocks) return
    const core = this.#core
    if (core === null) throw this.notOpen()
    const isShort = this.#beginning.isShort || this.#storedLength(core) < blocks
    const beginning = { blocks, isShort }
    // One with two branches takes nothing more, and nothing of it is read.
    if (!this.#isForked) await setBeginning(core, beginning)
    this.#beginning = beginning
    this.#before = null
    // Its writer learns that other nodes have more of it.
    if (isShort) this.#deps.onFetched(this.#deps.stream)
    if (this.#isForked) return
    onBegun(beginning)
    // Pending requests would fetch the blocks again at once, and a node abandons an own stream whose blocks peers gave
    // it.
    this.#fetch.pause()
    await core.clear(0, Math.min(blocks, core.length))
    await this.#measure(core)
    this.#tell(core)
  }

  /** Blocks that it is known to have, here or not; null when it cannot be opened. */
  async length(): Promise<number | null> {
    await this.#opening
    return this.#core?.length ?? null
  }

  /** Why it is not open. */
  notOpen(): NodeError {
    return this.#fault?.code === 'STORE_DAMAGED' ? this.#fault : cannotOpen()
  }

  /** Removes its blocks. A later fetch starts at the first block that a peer has. */
  async clear(): Promise<void> {
    await this.#opening
    if (this.#core === null) return
    await this.#core.clear(0, this.#core.length)
    if (this.#beginning.blocks > 0) await setBeginning(this.#core, { ...NO_BEGINNING, isShort: true })
  }

  /**
   * It has two branches: nothing of it is read any more. The engine closes it; reopened it shows this node's branch to
   * other peers.
   */
  forked(): void {
    if (this.#isForked) return
    this.#isForked = true
    this.#core = null
    this.#links.forget()
    this.#opening = this.#opening.then(() => this.#open()).catch((error: unknown) => this.#failed(error))
  }

  /** Stops replicating it. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#fetch.close()
    await this.#opening
    const core = this.#core
    if (core === null) return
    this.#links.set(core, [])
    await core.close()
  }

  #failed(error: unknown): void {
    this.#fault = this.#deps.toError(error)
    this.#deps.onFault(this.#deps.stream, messageOf(error))
  }

  async #open(): Promise<void> {
    const { stream, open } = this.#deps
    const store = await open()
    if (this.#isClosed) return
    // Its writer could truncate it for everybody, also behind blocks that others built on.
    const core = store.get({ key: keyFromText(stream), writable: false, allowFork: false })
    await core.ready()
    if (this.#isClosed) return await core.close()
    this.#fetch.signed(core)
    this.#beginning = await beginningOf(core)
    // A killed process may have stored the beginning without removing the blocks before it.
    const { blocks } = this.#beginning
    const first = core.core.bitfield.firstSet(0)
    if (first !== -1 && first < blocks) await core.clear(0, Math.min(blocks, core.length))
    this.#before = await bytesBefore(core, this.#beginning.blocks)
    if (this.#isClosed) return await core.close()
    this.#core = core
    this.#isForked ||= core.core.header.frozen
    if (!this.#isForked) {
      core.on('append', () => this.#grown(core))
      core.on('download', (index, bytes) => this.#downloaded(core, index, bytes))
      this.#fetch.slowDown(0)
      this.#fetch.start()
    }
    this.attach(this.#wanted)
    this.#tell(core)
  }

  /** Requests depend on the number of bytes before the beginning: nobody can check a snapshot's claim of it. */
  async #measure(core: Hypercore): Promise<void> {
    const { blocks } = this.#beginning
    const before = await bytesBefore(core, blocks)
    // Begun later meanwhile, it is measured again.
    if (this.#isClosed || this.#isForked || this.#beginning.blocks !== blocks) return
    this.#before = before
    this.#fetch.start()
    this.attach(this.#wanted)
  }

  /** Continues requests at once when no rest is due any more: the document may be in use now. */
  resume(): void {
    this.#fetch.resume()
  }

  /** The blocks to request. Of a stream of unknown size behind its beginning only the first one: it tells the size. */
  #missing(): { readonly core: Hypercore; readonly start: number; readonly end: number } | null {
    const core = this.#core
    if (core === null || this.#isClosed || this.#isForked) return null
    const { blocks } = this.#beginning
    return { core, start: blocks, end: this.#before === null ? blocks + 1 : -1 }
  }

  #downloaded(core: Hypercore, index: number, bytes: number): void {
    if (!this.#fetch.took(core, bytes)) return void this.#refuse(core, index)
    this.#deps.onFetched(this.#deps.stream)
    this.#tell(core)
    if (this.#before === null) void this.#measure(core)
  }

  /**
   * Detaches a stream with an oversized block, and does not keep that block: passing it on delays every message on a
   * link.
   */
  async #refuse(core: Hypercore, index: number): Promise<void> {
    const { stream, onFault } = this.#deps
    this.attach(this.#wanted)
    onFault(
      stream,
      `a block of the stream has more than ${MAX_STORED_BLOCK_BYTES} bytes: nothing more of it is fetched`
    )
    await core.clear(index, index + 1).catch((error: unknown) => onFault(stream, messageOf(error)))
  }

  #storedLength(core: Hypercore): number {
    return contiguousLength(core, this.#beginning)
  }

  #grown(core: Hypercore): void {
    this.#fetch.signed(core)
    if (this.#isTooLong(core))
      this.#deps.onFault(this.#deps.stream, `the stream has more than ${MAX_STREAM_BYTES} bytes`)
    // The links that may have it stay known: a share may have room later.
    if (!this.#mayFetch(core)) this.attach(this.#wanted)
    this.#tell(core)
  }

  #mayFetch(core: Hypercore): boolean {
    if (this.#fetch.isOversized) return false
    return this.#before === null || (!this.#isTooLong(core) && this.#deps.mayHold(core.byteLength - this.#before))
  }

  #isTooLong({ byteLength }: Hypercore): boolean {
    return this.#before !== null && byteLength - this.#before > MAX_STREAM_BYTES
  }

  #tell(core: Hypercore): void {
    const stored = this.#storedLength(core)
    if (this.#isClosed || this.#isForked || stored <= this.#announced) return
    this.#announced = stored
    this.#deps.onBlocks(this.#deps.stream)
  }
}

/** The blocks of `from` to `end` that are stored, up to the first hole. */
async function storedBlocks(core: Hypercore, from: number, end: number): Promise<readonly Uint8Array[]> {
  const blocks = await Promise.all(
    Array.from({ length: end - from }, (_, offset) => core.get(from + offset, { wait: false }))
  )
  const hole = blocks.indexOf(null)
  return (hole === -1 ? blocks : blocks.slice(0, hole)) as Uint8Array[]
}

/**
 * Ends the replication over one link. The engine has no call for it: the channel closes, and a new one is not answered.
 */
function detach({ core, peers }: Hypercore, mux: Protomux): void {
  core.replicator.detachFrom(mux)
  for (const peer of [...peers]) if (peer.protomux === mux) peer.channel.close()
}
