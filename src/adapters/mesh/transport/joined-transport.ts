import type { NoiseStream } from 'hyperswarm'
import type { Clock, Timer } from '../../../kit/clock.js'
import { keyToText, type NodeId } from '../../../kit/ids.js'
import type { StreamDirection, StreamTransport } from './stream-transport.js'

/** Milliseconds that a better transport is ahead of the next one, for a dialled peer. */
const HEAD_START_MS = 1000

interface OpenStream {
  readonly rank: number
  readonly stream: NoiseStream
}

/**
 * Several transports as one, the best first. A peer is dialled by all of them, each a second after the one before. A
 * stream of a worse transport is refused while a better one is open; a better one opens beside a worse one, which its
 * owner ends.
 */
export class JoinedTransport implements StreamTransport {
  readonly #transports: readonly StreamTransport[]
  readonly #clock: Clock
  readonly #open = new Map<NodeId, Set<OpenStream>>()
  readonly #dialled = new Map<NodeId, Timer[]>()
  #handler: (stream: NoiseStream) => void = () => {}

  /** `transports`: the best first. */
  constructor(transports: readonly StreamTransport[], clock: Clock) {
    this.#transports = transports
    this.#clock = clock
  }

  /** Has the peer a stream of a transport before that of `rank`? */
  isLinked(peer: NodeId, rank: number): boolean {
    return this.#best(peer) < rank
  }

  async listen(topic: Uint8Array): Promise<void> {
    const all = await Promise.allSettled(this.#transports.map((one) => one.listen(topic)))
    for (const one of all) if (one.status === 'rejected') throw one.reason
  }

  refresh(): void {
    for (const one of this.#transports) one.refresh()
  }

  dial(peer: NodeId): void {
    this.#transports[0]?.dial(peer)
    this.#dialWorse(peer)
  }

  undial(peer: NodeId): void {
    this.#clearTimers(peer)
    this.#dialled.delete(peer)
    for (const one of this.#transports) one.undial(peer)
  }

  onStream(handler: (stream: NoiseStream) => void): void {
    this.#handler = handler
    for (const [rank, one] of this.#transports.entries()) one.onStream((stream) => this.#opened(rank, stream))
  }

  firewall(admits: (peer: NodeId, direction: StreamDirection) => boolean): void {
    for (const [rank, one] of this.#transports.entries())
      one.firewall((peer, direction) => admits(peer, direction) && (direction === 'in' || this.#best(peer) >= rank))
  }

  async close(): Promise<void> {
    for (const peer of [...this.#dialled.keys()]) this.#clearTimers(peer)
    // Streams that close now are dialled no more.
    this.#dialled.clear()
    await Promise.all(this.#transports.map((one) => one.close()))
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
    for (const worse of this.#transports.slice(rank + 1)) worse.undial(peer)
    this.#handler(stream)
  }

  #closed(peer: NodeId, one: OpenStream): void {
    const open = this.#open.get(peer)
    open?.delete(one)
    if (open?.size !== 0) return
    this.#open.delete(peer)
    // The best one dials again by itself, when its peer has not done so.
    if (this.#dialled.has(peer)) this.#dialWorse(peer)
  }

  #dialWorse(peer: NodeId): void {
    this.#clearTimers(peer)
    const timers = this.#transports.slice(1).map((one, at) =>
      this.#clock.after((at + 1) * HEAD_START_MS, () => {
        if (this.#best(peer) > at + 1) one.dial(peer)
      })
    )
    this.#dialled.set(peer, timers)
  }

  /** The rank of the best open stream to a peer; infinite without one. */
  #best(peer: NodeId): number {
    return Math.min(...[...(this.#open.get(peer) ?? [])].map(({ rank }) => rank))
  }

  #clearTimers(peer: NodeId): void {
    for (const timer of this.#dialled.get(peer) ?? []) this.#clock.clear(timer)
  }
}
