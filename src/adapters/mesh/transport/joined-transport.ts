import type { NoiseStream } from 'hyperswarm'
import type { Clock, Timer } from '../../../kit/clock.js'
import { keyToText, type NodeId } from '../../../kit/ids.js'
import type { StreamDirection, StreamTransport } from './stream-transport.js'

/** A transport among several. */
export interface JoinedPart {
  readonly transport: StreamTransport
  /** Milliseconds after the first ones at which it dials a peer. */
  readonly delayMs: number
}

interface OpenStream {
  readonly rank: number
  readonly stream: NoiseStream
}

/**
 * Several transports as one, the best first. Each dials a peer, some after a delay. A stream of a worse transport is
 * refused while a better one is open; a better one opens beside a worse one, which its owner ends.
 */
export class JoinedTransport implements StreamTransport {
  readonly #parts: readonly JoinedPart[]
  readonly #clock: Clock
  readonly #open = new Map<NodeId, Set<OpenStream>>()
  readonly #dialled = new Map<NodeId, Timer[]>()
  /** Ranks from which on transports were told to stop dialling a peer, since a better one has a stream. */
  readonly #stoppedFrom = new Map<NodeId, number>()
  #handler: (stream: NoiseStream) => void = () => {}

  /** `parts`: the best first. */
  constructor(parts: readonly JoinedPart[], clock: Clock) {
    this.#parts = parts
    this.#clock = clock
  }

  /** Has the peer a stream of a transport before that of `rank`? */
  isLinked(peer: NodeId, rank: number): boolean {
    return this.#best(peer) < rank
  }

  async listen(topic: Uint8Array): Promise<void> {
    const all = await Promise.allSettled(this.#parts.map(({ transport }) => transport.listen(topic)))
    for (const one of all) if (one.status === 'rejected') throw one.reason
  }

  refresh(): void {
    for (const { transport } of this.#parts) transport.refresh()
  }

  dial(peer: NodeId): void {
    this.#dialFrom(0, peer)
  }

  undial(peer: NodeId): void {
    this.#clearTimers(peer)
    this.#dialled.delete(peer)
    this.#stoppedFrom.delete(peer)
    for (const { transport } of this.#parts) transport.undial(peer)
  }

  onStream(handler: (stream: NoiseStream) => void): void {
    this.#handler = handler
    for (const [rank, { transport }] of this.#parts.entries())
      transport.onStream((stream) => this.#opened(rank, stream))
  }

  firewall(admits: (peer: NodeId, direction: StreamDirection) => boolean): void {
    for (const [rank, { transport }] of this.#parts.entries())
      transport.firewall(
        (peer, direction) => admits(peer, direction) && (direction === 'in' || this.#best(peer) >= rank)
      )
  }

  async close(): Promise<void> {
    for (const peer of [...this.#dialled.keys()]) this.#clearTimers(peer)
    // Streams that close now are dialled no more.
    this.#dialled.clear()
    await Promise.all(this.#parts.map(({ transport }) => transport.close()))
  }

  #opened(rank: number, stream: NoiseStream): void {
    const peer = keyToText(stream.remotePublicKey)
    if (this.#best(peer) < rank) {
      stream.on('error', () => {})
      return stream.destroy()
    }
    const one = { rank, stream }
    this.#open.set(peer, (this.#open.get(peer) ?? new Set()).add(one))
    stream.on('close', () => this.#closed(peer, one))
    for (const worse of this.#parts.slice(rank + 1)) worse.transport.undial(peer)
    this.#stoppedFrom.set(peer, Math.min(rank + 1, this.#stoppedFrom.get(peer) ?? rank + 1))
    this.#handler(stream)
  }

  #closed(peer: NodeId, one: OpenStream): void {
    const open = this.#open.get(peer)
    open?.delete(one)
    if (open?.size !== 0) return
    this.#open.delete(peer)
    const from = this.#stoppedFrom.get(peer)
    this.#stoppedFrom.delete(peer)
    // The better ones dial again by themselves, when their peer has not done so.
    if (from !== undefined && this.#dialled.has(peer)) this.#dialFrom(from, peer)
  }

  /** Dials by the transports from this rank on. */
  #dialFrom(first: number, peer: NodeId): void {
    this.#clearTimers(peer)
    const timers: Timer[] = []
    this.#dialled.set(peer, timers)
    for (const [rank, { transport, delayMs }] of this.#parts.entries()) {
      if (rank < first) continue
      const dial = (): void => {
        // Also that of the best stream, which may be the peer's: once it ends, this end dials too.
        if (this.#best(peer) >= rank) transport.dial(peer)
      }
      if (delayMs === 0) dial()
      else timers.push(this.#clock.after(delayMs, dial))
    }
  }

  /** The rank of the best open stream to a peer; infinite without one. */
  #best(peer: NodeId): number {
    return Math.min(...[...(this.#open.get(peer) ?? [])].map(({ rank }) => rank))
  }

  #clearTimers(peer: NodeId): void {
    for (const timer of this.#dialled.get(peer) ?? []) this.#clock.clear(timer)
  }
}
