import { EventEmitter } from 'node:events'
import type { KeyPair, NoiseStream } from 'hyperswarm'
import type { NodeTransport } from '../../../../src/adapters/mesh/network/transports.js'
import type { Rendezvous } from '../../../../src/adapters/mesh/pairing/pairing-swarm.js'
import type { StreamDirection } from '../../../../src/adapters/mesh/transport/stream-transport.js'
import { keyToText, type NodeId } from '../../../../src/kit/ids.js'
import { openPair } from '../stream-pair.js'

/** Where transports of one process meet. */
export class MemoryNet {
  readonly #transports = new Map<NodeId, MemoryTransport>()

  open(keyPair: KeyPair): MemoryTransport {
    const transport = new MemoryTransport(this, keyPair)
    this.#transports.set(transport.nodeId, transport)
    return transport
  }

  /** The transport of a key, if it listens. */
  listening(nodeId: NodeId): MemoryTransport | null {
    const transport = this.#transports.get(nodeId)
    return transport?.isListening === true ? transport : null
  }

  /** Those that announce one of the topics. */
  below(topics: ReadonlySet<string>): readonly MemoryTransport[] {
    return [...this.#transports.values()].filter((one) => [...one.announced].some((topic) => topics.has(topic)))
  }

  /** Something changed: each transport looks for the peers that it dials. */
  changed(): void {
    for (const transport of this.#transports.values()) transport.look()
  }

  left(nodeId: NodeId): void {
    this.#transports.delete(nodeId)
  }
}

/** Noise streams between nodes of one process, without a network. */
export class MemoryTransport implements NodeTransport {
  readonly nodeId: NodeId
  readonly rendezvous: Rendezvous
  /** Topics below which it can be found. */
  readonly announced = new Set<string>()
  readonly #net: MemoryNet
  readonly #keyPair: KeyPair
  readonly #dialled = new Set<NodeId>()
  /** Streams by peer; null while one is opened. */
  readonly #streams = new Map<NodeId, NoiseStream | null>()
  /** Topics whose nodes it dials. */
  readonly #sought = new Set<string>()
  #isListening = false
  #isClosed = false
  #handler: (stream: NoiseStream) => void = () => {}
  #admits: (peer: NodeId, direction: StreamDirection) => boolean = () => true

  constructor(net: MemoryNet, keyPair: KeyPair) {
    this.#net = net
    this.#keyPair = keyPair
    this.nodeId = keyToText(keyPair.publicKey)
    const join = (topic: Uint8Array, { server = true, client = true } = {}) =>
      this.#join(keyToText(topic), server, client)
    this.rendezvous = { dht: noRecords(), join, flush: async () => true } as unknown as Rendezvous
  }

  get isListening(): boolean {
    return this.#isListening
  }

  async listen(topic: Uint8Array): Promise<void> {
    this.#join(keyToText(topic), true, true)
  }

  refresh(): void {
    this.look()
  }

  dial(peer: NodeId): void {
    this.#dialled.add(peer)
    this.look()
  }

  undial(peer: NodeId): void {
    this.#dialled.delete(peer)
  }

  onStream(handler: (stream: NoiseStream) => void): void {
    this.#handler = handler
  }

  firewall(admits: (peer: NodeId, direction: StreamDirection) => boolean): void {
    this.#admits = admits
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#isListening = false
    this.#net.left(this.nodeId)
    for (const stream of this.#streams.values()) stream?.destroy()
  }

  look(): void {
    if (this.#isClosed) return
    const found = this.#net.below(this.#sought).map(({ nodeId }) => nodeId)
    for (const peer of new Set([...this.#dialled, ...found])) {
      const other = this.#net.listening(peer)
      if (other !== null && other !== this && this.#mayOpen(peer, 'out') && other.#mayOpen(this.nodeId, 'in'))
        void this.#open(other)
    }
  }

  #join(topic: string, isServer: boolean, isClient: boolean) {
    if (isServer) this.announced.add(topic)
    if (isClient) this.#sought.add(topic)
    this.#isListening ||= isServer
    this.#net.changed()
    const destroy = async (): Promise<void> => {
      this.announced.delete(topic)
      this.#sought.delete(topic)
    }
    return { isServer, isClient, destroy, flushed: async () => true }
  }

  #mayOpen(peer: NodeId, direction: StreamDirection): boolean {
    return !this.#streams.has(peer) && this.#admits(peer, direction)
  }

  async #open(other: MemoryTransport): Promise<void> {
    this.#streams.set(other.nodeId, null)
    other.#streams.set(this.nodeId, null)
    const [own, theirs] = await openPair(this.#keyPair, other.#keyPair)
    other.#opened(this.nodeId, theirs)
    this.#opened(other.nodeId, own)
  }

  #opened(peer: NodeId, stream: NoiseStream): void {
    this.#streams.set(peer, stream)
    // Pairing asks the nearest peer first.
    Reflect.set(stream.rawStream, 'rtt', 0)
    stream.on('close', () => {
      this.#streams.delete(peer)
      // As on a network: who dials it hears later that it is gone.
      setImmediate(() => this.#net.changed())
    })
    if (this.#isClosed) stream.destroy()
    else this.#handler(stream)
  }
}

/** A DHT without records: those that pair have a stream to each other. */
function noRecords(): object {
  const lookup = () => ({ closestNodes: [], destroy() {}, async *[Symbol.asyncIterator]() {} })
  const announce = () => ({ finished: async () => {} })
  const nothing = async (): Promise<null> => null
  return Object.assign(new EventEmitter(), {
    lookup,
    announce,
    unannounce: nothing,
    mutableGet: nothing,
    mutablePut: nothing
  })
}
