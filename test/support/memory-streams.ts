import { NodeError } from '../../src/kit/errors.js'
import type { NodeId } from '../../src/kit/ids.js'
import type {
  DocumentStreams,
  FollowedStream,
  OwnStreamState,
  StreamExtent,
  StreamHandlers,
  StreamSize
} from '../../src/ports/documents.js'
import type { FakeNet } from './fake-links.js'
import { keyText } from './membership.js'

/** Blocks of one core, those before it begins left out. */
interface HeldCore {
  readonly beginning: number
  readonly blocks: readonly Uint8Array[]
}

/** What the cores of one node hold, which survives its restarts. */
type Held = Map<string, HeldCore>

/** Named among the cores of a store that was begun anew: its own streams have other keys. */
const RENEWED = 'renewed'
const EMPTY: HeldCore = { beginning: 0, blocks: [] }

function lengthOf({ beginning, blocks }: HeldCore): number {
  return beginning + blocks.length
}

function bytesOf(blocks: readonly Uint8Array[]): number {
  return blocks.reduce((sum, { byteLength }) => sum + byteLength, 0)
}

/**
 * Streams of documents of several nodes in one process: whoever is linked and follows a stream gets what the other has
 * of it.
 */
export class StreamNet {
  readonly #net: Pick<FakeNet, 'isConnected' | 'moved'>
  readonly #nodes = new Map<NodeId, MemoryStreams>()
  readonly #held = new Map<NodeId, Held>()
  #isDue = false

  constructor(net: Pick<FakeNet, 'isConnected' | 'moved'>) {
    this.#net = net
  }

  /** How often something went over. */
  get moved(): number {
    return this.#net.moved
  }

  /** The streams of a node; those of before when it starts again. */
  of(node: NodeId): DocumentStreams {
    const held: Held = this.#held.get(node) ?? new Map()
    this.#held.set(node, held)
    const linked = (): MemoryStreams[] =>
      [...this.#nodes].filter(([one]) => one !== node && this.#net.isConnected(one, node)).map(([, streams]) => streams)
    const streams = new MemoryStreams(node, held, { net: this.#net, linked, onChange: () => this.changed() })
    this.#nodes.set(node, streams)
    return streams
  }

  /** The store of a node is found to be damaged. */
  damage(node: NodeId, fault: NodeError): void {
    const streams = this.#nodes.get(node)
    if (streams !== undefined) streams.fault = fault
  }

  /** Two tales of a stream are found by all who follow it. */
  fork(stream: string): void {
    for (const node of this.#nodes.values()) node.forked(stream)
  }

  /** Blocks of a stream that are on the disk of a node, followed or not. */
  blocksOn(node: NodeId, stream: string): number {
    return this.#held.get(node)?.get(stream)?.blocks.length ?? 0
  }

  /** A copy of all that a node has, to put it back to later; call it while the node does not run. */
  copyOf(node: NodeId): () => void {
    const copy = new Map(this.#held.get(node))
    return () => void this.#held.set(node, new Map(copy))
  }

  /** The store of a node is gone, and another one begun; call it while the node does not run. */
  renew(node: NodeId): void {
    this.#held.set(node, new Map([[RENEWED, EMPTY]]))
  }

  /** Something was written, followed or linked: what is missing goes over in the next turn. */
  changed(): void {
    if (this.#isDue) return
    this.#isDue = true
    void Promise.resolve().then(() => {
      this.#isDue = false
      this.#exchange()
    })
  }

  #exchange(): void {
    // Tests without documents watch their links closely.
    if (![...this.#held.values()].some((held) => held.size > 0)) return
    for (const [from, giver] of this.#nodes)
      for (const [to, taker] of this.#nodes) if (from !== to && this.#net.isConnected(from, to)) taker.takeFrom(giver)
  }
}

class MemoryStreams implements DocumentStreams {
  fault: NodeError | null = null
  readonly #node: NodeId
  readonly #held: Held
  readonly #net: Pick<FakeNet, 'moved'>
  readonly #linked: () => readonly MemoryStreams[]
  readonly #onChange: () => void
  #followed = new Map<string, FollowedStream>()
  #handlers: StreamHandlers = { onBlocks: () => {}, onFetched: () => {}, onForked: () => {} }
  /** As they are known to be, here or not. */
  readonly #lengths = new Map<string, number>()
  #isClosed = false

  constructor(
    node: NodeId,
    held: Held,
    {
      net,
      linked,
      onChange
    }: { readonly net: Pick<FakeNet, 'moved'>; linked(): readonly MemoryStreams[]; onChange(): void }
  ) {
    this.#net = net
    this.#linked = linked
    this.#node = node
    this.#held = held
    this.#onChange = onChange
  }

  takeFrom(giver: MemoryStreams): void {
    if (this.#isClosed || giver.#isClosed) return
    for (const { stream, mayHold } of this.#followed.values()) {
      const theirs =
        giver.#followed.get(stream)?.mayHave(this.#node) === true ? (giver.#held.get(stream) ?? EMPTY) : EMPTY
      const own = this.#held.get(stream) ?? EMPTY
      const missing = lengthOf(own)
      // How long it is, is signed: that is known before its blocks are here.
      this.#lengths.set(stream, Math.max(this.#lengths.get(stream) ?? 0, lengthOf(theirs)))
      if (lengthOf(theirs) <= missing || theirs.beginning > missing) continue
      // As its writer signed it, from where it begins here.
      const bytes = bytesOf(own.blocks) + bytesOf(theirs.blocks.slice(missing - theirs.beginning))
      if (mayHold?.(bytes) === false) continue
      this.#held.set(stream, { ...own, blocks: [...own.blocks, ...theirs.blocks.slice(missing - theirs.beginning)] })
      this.#net.moved++
      this.#handlers.onFetched(stream)
      this.#handlers.onBlocks(stream)
      this.#onChange()
    }
  }

  forked(stream: string): void {
    if (!this.#isClosed && this.#followed.has(stream)) this.#handlers.onForked(stream)
  }

  start(handlers: StreamHandlers): void {
    this.#handlers = handlers
  }

  follow(streams: readonly FollowedStream[]): void {
    this.#followed = new Map(streams.map((one) => [one.stream, one]))
    this.#onChange()
  }

  own(document: string): Promise<OwnStreamState> {
    const stream = keyText(`${this.#node}/${document}${this.#held.has(RENEWED) ? ' anew' : ''}`)
    return Promise.resolve({ stream, blocks: lengthOf(this.#held.get(stream) ?? EMPTY), isWhole: true })
  }

  kept(document: string): Promise<Uint8Array | null> {
    return Promise.resolve(this.#held.get(`kept/${document}`)?.blocks[0] ?? null)
  }

  keep(document: string, bytes: Uint8Array | null): Promise<void> {
    this.#held.set(`kept/${document}`, { ...EMPTY, blocks: bytes === null ? [] : [bytes] })
    return Promise.resolve()
  }

  append(stream: string, blocks: readonly Uint8Array[]): Promise<number> {
    if (this.#isClosed) return Promise.reject(new NodeError('INTERNAL', 'closed'))
    const before = this.#held.get(stream) ?? EMPTY
    const held = { ...before, blocks: [...before.blocks, ...blocks] }
    this.#held.set(stream, held)
    this.#handlers.onBlocks(stream)
    this.#onChange()
    return Promise.resolve(lengthOf(held))
  }

  flush(): Promise<void> {
    return Promise.resolve()
  }

  begin(stream: string, at: number): Promise<void> {
    const { beginning, blocks } = this.#here(stream)
    if (!this.#followed.has(stream) || at <= beginning) return Promise.resolve()
    this.#held.set(stream, { beginning: at, blocks: blocks.slice(at - beginning) })
    this.#handlers.onBlocks(stream)
    this.#onChange()
    return Promise.resolve()
  }

  read(stream: string, from: number, limit: number): Promise<readonly Uint8Array[]> {
    const { beginning, blocks } = this.#here(stream)
    const at = from - beginning
    return Promise.resolve(at < 0 ? [] : blocks.slice(at, at + Math.max(limit, 0)))
  }

  size(stream: string): StreamSize {
    const here = this.#here(stream)
    return { blocks: lengthOf(here), from: here.beginning, bytes: bytesOf(here.blocks) }
  }

  extent(stream: string): StreamExtent {
    const mayHave = (one: MemoryStreams): boolean =>
      !one.#isClosed && one.#followed.get(stream)?.mayHave(this.#node) === true
    const givers = this.#followed.has(stream) ? this.#linked().filter(mayHave) : []
    const blocks = this.#followed.has(stream) ? this.#lengthOf(stream) : 0
    const isMore = givers.some((one) => lengthOf(one.#here(stream)) > blocks)
    return {
      blocks,
      isMore,
      announced: new Set(givers.map((one) => one.#node)),
      fetched: lengthOf(this.#here(stream)),
      isOversized: false
    }
  }

  length(stream: string): Promise<number> {
    return Promise.resolve(this.#lengthOf(stream))
  }

  #lengthOf(stream: string): number {
    return Math.max(this.#lengths.get(stream) ?? 0, lengthOf(this.#held.get(stream) ?? EMPTY))
  }

  remove(streams: readonly string[]): Promise<void> {
    for (const stream of streams) {
      this.#lengths.set(stream, Math.max(this.#lengths.get(stream) ?? 0, lengthOf(this.#held.get(stream) ?? EMPTY)))
      this.#held.delete(stream)
    }
    return Promise.resolve()
  }

  close(): Promise<void> {
    this.#isClosed = true
    return Promise.resolve()
  }

  #here(stream: string): HeldCore {
    return (this.#followed.has(stream) ? this.#held.get(stream) : undefined) ?? EMPTY
  }
}
