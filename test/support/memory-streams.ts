import { NodeError } from '../../src/kit/errors.js'
import type { NodeId } from '../../src/kit/ids.js'
import type { DocumentStreams, FollowedStream, OwnStreamState, StreamHandlers } from '../../src/ports/documents.js'
import type { FakeNet } from './fake-links.js'
import { keyText } from './membership.js'

/** What the cores of one node hold, which survives its restarts. */
type Held = Map<string, Uint8Array[]>

/** Streams of documents of several nodes in one process: whoever is linked and follows a stream gets what the other has of it. */
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
    const held = this.#held.get(node) ?? new Map<string, Uint8Array[]>()
    this.#held.set(node, held)
    const streams = new MemoryStreams(node, held, { net: this.#net, onChange: () => this.changed() })
    this.#nodes.set(node, streams)
    return streams
  }

  /** Two tales of a stream are found by all who follow it. */
  fork(stream: string): void {
    for (const node of this.#nodes.values()) node.forked(stream)
  }

  /** A copy of all that a node has, to put it back to later; call it while the node does not run. */
  copyOf(node: NodeId): () => void {
    const copy = new Map(this.#held.get(node))
    return () => void this.#held.set(node, new Map(copy))
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
  readonly #node: NodeId
  readonly #held: Held
  readonly #net: Pick<FakeNet, 'moved'>
  readonly #onChange: () => void
  #followed = new Map<string, FollowedStream>()
  #handlers: StreamHandlers = { onBlocks: () => {}, onFetched: () => {}, onForked: () => {} }
  /** Of those that were removed. */
  readonly #lengths = new Map<string, number>()
  #isClosed = false

  constructor(node: NodeId, held: Held, { net, onChange }: { readonly net: Pick<FakeNet, 'moved'>; onChange(): void }) {
    this.#net = net
    this.#node = node
    this.#held = held
    this.#onChange = onChange
  }

  takeFrom(giver: MemoryStreams): void {
    if (this.#isClosed || giver.#isClosed) return
    for (const stream of this.#followed.keys()) {
      const theirs = giver.#followed.get(stream)?.mayHave(this.#node) === true ? (giver.#held.get(stream) ?? []) : []
      const own = this.#held.get(stream) ?? []
      if (theirs.length <= own.length) continue
      this.#held.set(stream, [...own, ...theirs.slice(own.length)])
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
    const stream = keyText(`${this.#node}/${document}`)
    return Promise.resolve({ stream, blocks: this.#held.get(stream)?.length ?? 0, isWhole: true })
  }

  kept(document: string): Promise<Uint8Array | null> {
    return Promise.resolve(this.#held.get(`kept/${document}`)?.[0] ?? null)
  }

  keep(document: string, bytes: Uint8Array | null): Promise<void> {
    this.#held.set(`kept/${document}`, bytes === null ? [] : [bytes])
    return Promise.resolve()
  }

  append(stream: string, blocks: readonly Uint8Array[]): Promise<number> {
    if (this.#isClosed) return Promise.reject(new NodeError('INTERNAL', 'closed'))
    const held = [...(this.#held.get(stream) ?? []), ...blocks]
    this.#held.set(stream, held)
    this.#handlers.onBlocks(stream)
    this.#onChange()
    return Promise.resolve(held.length)
  }

  read(stream: string, from: number, limit: number): Promise<readonly Uint8Array[]> {
    const blocks = this.#followed.has(stream) ? (this.#held.get(stream) ?? []) : []
    return Promise.resolve(blocks.slice(from, from + limit))
  }

  size(stream: string): { blocks: number; bytes: number } {
    const blocks = this.#followed.has(stream) ? (this.#held.get(stream) ?? []) : []
    return { blocks: blocks.length, bytes: blocks.reduce((sum, { byteLength }) => sum + byteLength, 0) }
  }

  length(stream: string): Promise<number> {
    return Promise.resolve(Math.max(this.#lengths.get(stream) ?? 0, this.#held.get(stream)?.length ?? 0))
  }

  remove(streams: readonly string[]): Promise<void> {
    for (const stream of streams) {
      this.#lengths.set(stream, this.#held.get(stream)?.length ?? 0)
      this.#held.delete(stream)
    }
    return Promise.resolve()
  }

  close(): Promise<void> {
    this.#isClosed = true
    return Promise.resolve()
  }
}
