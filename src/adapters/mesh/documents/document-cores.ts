import type Corestore from 'corestore'
import type Hypercore from 'hypercore'
import type { NoiseStream } from 'hyperswarm'
import Protomux from 'protomux'
import type { Clock } from '../../../kit/clock.js'
import { messageOf, NodeError } from '../../../kit/errors.js'
import { keyFromText, keyToText, type NodeId } from '../../../kit/ids.js'
import type { StreamKey } from '../../../domain/document/client-ids.js'
import type {
  DocumentStreams,
  FollowedStream,
  OwnStreamState,
  StreamExtent,
  StreamHandlers,
  StreamSize
} from '../../../ports/documents.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import { closeStore } from '../cores/core-store.js'
import { beginningOf, bytesBefore, type CoreBeginning, contiguousLength } from '../cores/core-beginning.js'
import { copyStreams } from './document-copy.js'
import { DocumentCore, MAX_STREAM_BYTES } from './document-core.js'
import { joinReads } from '../cores/joint-reads.js'
import { readKept, writeKept } from './kept-bytes.js'
import { MAX_DOCUMENT_CORES } from '../links/open-channels.js'
import { WriterCores } from '../cores/writer-cores.js'

/** Dependencies of {@link DocumentCores}. */
export interface DocumentCoresDeps {
  /**
   * Opens the store of documents, called once. A store of its own: a Corestore gives each of its cores to every peer
   * that names it.
   */
  open(): Promise<Corestore>
  /** Any error of the store as one with a cause and a next step. */
  toError(error: unknown): NodeError
  readonly clock: Clock
  readonly telemetry: Telemetry
}

const NOTHING: StreamSize = { blocks: 0, from: 0, bytes: 0 }

/** A core that this node writes, and where it begins here. */
interface OwnDocumentCore {
  readonly core: Hypercore
  beginning: CoreBeginning
}

interface FollowedCore {
  readonly core: DocumentCore
  following: FollowedStream
}

/** The cores of documents, replicated over the streams of links to the members that may have them. */
export class DocumentCores implements DocumentStreams {
  readonly #deps: DocumentCoresDeps
  readonly #links = new Map<Protomux, NodeId>()
  readonly #followed = new Map<StreamKey, FollowedCore>()
  readonly #own = new Map<StreamKey, OwnDocumentCore>()
  #store: Promise<Corestore> | null = null
  /** Finds forks; there once a store is. */
  #forks: WriterCores | null = null
  #handlers: StreamHandlers = { onBlocks: () => {}, onFetched: () => {}, onForked: () => {} }
  #fault: NodeError | null = null
  #isClosed = false

  constructor(deps: DocumentCoresDeps) {
    this.#deps = deps
  }

  /** A link to a member opened: its stream carries the cores that it may have. */
  link(peer: NodeId, stream: NoiseStream): void {
    const mux = Protomux.from(stream)
    this.#links.set(mux, peer)
    stream.on('close', () => {
      this.#links.delete(mux)
      this.#attach()
    })
    this.#attach()
  }

  get fault(): NodeError | null {
    return this.#fault
  }

  start(handlers: StreamHandlers): void {
    this.#handlers = handlers
  }

  follow(streams: readonly FollowedStream[]): void {
    if (this.#isClosed) return
    const wanted = new Set(streams.map(({ stream }) => stream))
    for (const [stream, { core }] of this.#followed) {
      if (wanted.has(stream)) continue
      this.#followed.delete(stream)
      core.close().catch((error: unknown) => this.#warn(stream, messageOf(error)))
    }
    for (const following of streams) {
      const { stream } = following
      const known = this.#followed.get(stream)
      // Links carry them in this order, also those that were followed before.
      this.#followed.delete(stream)
      this.#followed.set(
        stream,
        known === undefined ? { core: this.#core(stream), following } : Object.assign(known, { following })
      )
    }
    for (const { core } of this.#followed.values()) core.resume()
    this.#attach()
    this.#forks?.follow([...this.#followed.keys()])
  }

  own(document: string): Promise<OwnStreamState> {
    return this.#mapErrors(async () => await this.#ownState(document))
  }

  async #ownState(document: string): Promise<OwnStreamState> {
    const core = (await this.#open()).get({ name: `own/${document}`, active: false, allowFork: false })
    await core.ready()
    const stream = keyToText(core.key)
    const fresh = { core, beginning: await beginningOf(core) }
    const own = this.#own.get(stream) ?? fresh
    if (own === fresh) this.#own.set(stream, own)
    else await core.close()
    return { stream, blocks: own.core.length, isWhole: isWhole(own) }
  }

  append(stream: StreamKey, blocks: readonly Uint8Array[]): Promise<number> {
    return this.#mapErrors(async () => await this.#append(stream, blocks))
  }

  async #append(stream: StreamKey, blocks: readonly Uint8Array[]): Promise<number> {
    const own = this.#own.get(stream)
    if (own === undefined) throw new NodeError('INTERNAL', 'the stream is not an own one')
    const { core, beginning } = own
    if (!isWhole(own))
      throw new NodeError(
        'CONFLICT',
        "peers hold newer blocks of this node's stream than its own store: was it restored from an old copy?"
      )
    const before = (await bytesBefore(core, beginning.blocks)) ?? 0
    const bytes = blocks.reduce((sum, block) => sum + block.byteLength, core.byteLength - before)
    if (bytes > MAX_STREAM_BYTES)
      throw new NodeError('OVERLOADED', `the stream of this node has ${MAX_STREAM_BYTES} bytes`)
    const { length } = await core.append(blocks)
    return length
  }

  begin(stream: StreamKey, blocks: number): Promise<void> {
    // An own stream must never seem to have lost blocks: this node would continue with another one.
    const onBegun = (beginning: CoreBeginning): void => {
      const own = this.#own.get(stream)
      if (own !== undefined) own.beginning = beginning
    }
    return this.#mapErrors(async () => await this.#followed.get(stream)?.core.begin(blocks, onBegun))
  }

  read(stream: StreamKey, from: number, limit: number): Promise<readonly Uint8Array[]> {
    return this.#followed.get(stream)?.core.read(from, limit) ?? Promise.resolve([])
  }

  size(stream: StreamKey): StreamSize {
    return this.#followed.get(stream)?.core.size() ?? NOTHING
  }

  extent(stream: StreamKey): StreamExtent {
    const found = this.#followed.get(stream)?.core.extent()
    if (found === undefined) return { blocks: 0, isMore: false, announced: new Set(), fetched: 0, isOversized: false }
    const peers = found.announced.map((mux) => this.#links.get(mux))
    return { ...found, announced: new Set(peers.filter((peer) => peer !== undefined)) }
  }

  async length(stream: StreamKey): Promise<number> {
    const followed = this.#followed.get(stream)?.core
    const core = followed ?? this.#core(stream)
    const length = await core.length()
    if (followed === undefined) await core.close()
    if (length === null) throw core.notOpen()
    return length
  }

  kept(document: string): Promise<Uint8Array | null> {
    return this.#mapErrors(async () => await readKept(await this.#open(), document))
  }

  keep(document: string, bytes: Uint8Array | null): Promise<void> {
    return this.#mapErrors(async () => await writeKept(await this.#open(), document, bytes))
  }

  flush(): Promise<void> {
    return this.#mapErrors(async () => {
      const store = await this.#store?.catch(() => null)
      await store?.storage.db.flush()
    })
  }

  remove(streams: readonly StreamKey[]): Promise<void> {
    return this.#mapErrors(async () => {
      for (const stream of streams) await this.#remove(stream)
    })
  }

  async #remove(stream: StreamKey): Promise<void> {
    await this.#own.get(stream)?.core.close()
    this.#own.delete(stream)
    const core = this.#core(stream)
    await core.clear()
    await core.close()
  }

  /**
   * Copies all streams, and the data kept of documents, into a directory; false: there is no store of documents yet.
   * See {@link copyStreams}.
   */
  async copyTo(dir: string): Promise<boolean> {
    if (this.#store === null) return false
    await copyStreams(await this.#store, dir)
    return true
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    const store = await this.#store?.catch(() => null)
    await this.#forks?.close()
    await Promise.all([...this.#followed.values()].map(({ core }) => core.close()))
    if (store !== null && store !== undefined) await closeStore(store)
  }

  #core(stream: StreamKey): DocumentCore {
    return new DocumentCore({
      stream,
      open: () => this.#open(),
      mayHold: (bytes) => this.#followed.get(stream)?.following.mayHold?.(bytes) ?? true,
      onBlocks: () => this.#handlers.onBlocks(stream),
      clock: this.#deps.clock,
      onFetched: () => this.#handlers.onFetched(stream),
      restMs: (bytes) => this.#followed.get(stream)?.following.fetched?.(bytes) ?? 0,
      onFault: (_stream, reason) => this.#warn(stream, reason),
      toError: (error) => this.#toError(error)
    })
  }

  async #mapErrors<T>(job: () => Promise<T>): Promise<T> {
    try {
      return await job()
    } catch (error) {
      throw this.#toError(error)
    }
  }

  /** A damaged store stays damaged: it is reported from then on. */
  #toError(error: unknown): NodeError {
    const failure = this.#deps.toError(error)
    if (failure.code === 'STORE_DAMAGED') this.#fault ??= failure
    return failure
  }

  /** Each core to the links that may have it, as far as they have places. */
  #attach(): void {
    const places = new Map([...this.#links.keys()].map((mux) => [mux, MAX_DOCUMENT_CORES]))
    for (const { core, following } of this.#followed.values()) {
      const links = [...this.#links]
        .filter(([mux, peer]) => (places.get(mux) ?? 0) > 0 && following.mayHave(peer))
        .map(([mux]) => mux)
      for (const mux of links) places.set(mux, (places.get(mux) ?? 0) - 1)
      core.attach(links)
    }
  }

  #open(): Promise<Corestore> {
    if (this.#isClosed) return Promise.reject(new NodeError('INTERNAL', 'the documents are closed'))
    this.#store ??= this.#deps.open().then((store) => this.#opened(store))
    return this.#store
  }

  #opened(store: Corestore): Corestore {
    joinReads(store)
    this.#forks = new WriterCores({
      clock: this.#deps.clock,
      open: (stream) => store.get({ key: keyFromText(stream), writable: false, allowFork: false }),
      onForked: (stream) => {
        this.#followed.get(stream)?.core.forked()
        this.#handlers.onForked(stream)
      }
    })
    this.#forks.follow([...this.#followed.keys()])
    return store
  }

  #warn(stream: StreamKey, reason: string): void {
    if (!this.#isClosed) this.#deps.telemetry.log('warn', 'a stream of a document', { stream, reason })
  }
}

/** Is all of it here, from where it begins on? */
function isWhole({ core, beginning }: OwnDocumentCore): boolean {
  return !beginning.isShort && core.length >= beginning.blocks && contiguousLength(core, beginning) === core.length
}
