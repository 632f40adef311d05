import net from 'node:net'
import HyperDHT, { type DhtAddress, type DhtConnectOptions, type HyperDhtOptions } from 'hyperdht'
import type { NoiseStream } from 'hyperswarm'
import type { NodeId } from '../../../kit/ids.js'
import { keyToText } from '../../../kit/ids.js'
import { isRecord } from '../../../kit/json.js'

/** Members with a remembered address; the one linked longest ago is dropped. */
export const MAX_ADDRESSES = 256

/** The record for the home, of UDP or of TCP. */
export interface AddressRecord {
  /** Port of this node, so that others find it there after a restart; null while unknown. */
  readonly port: number | null
  /** Address of the last link to each member, the latest at the end. */
  readonly peers: readonly (readonly [NodeId, string, number])[]
}

/** Where members were linked last. Hints only: a stream authenticates its peer by key. */
export class KnownAddresses {
  readonly #peers: Map<NodeId, DhtAddress>
  readonly #save: (record: AddressRecord) => void
  #port: number | null

  /** `stored`: the record of the home, of any shape; an unusable one is as good as none. */
  constructor(stored: unknown, save: (record: AddressRecord) => void) {
    const { port, peers } = isRecord(stored) ? stored : {}
    this.#port = isPort(port) ? port : null
    this.#peers = new Map(Array.isArray(peers) ? peers.slice(-MAX_ADDRESSES).flatMap(entryOf) : [])
    this.#save = save
  }

  /** Port of this node, as last known; null for none. */
  get port(): number | null {
    return this.#port
  }

  /** Addresses at which the peer may be; empty when it was never linked. */
  of(peer: NodeId): readonly DhtAddress[] {
    const known = this.#peers.get(peer)
    return known === undefined ? [] : [known]
  }

  /** A member was linked at an address, by a node with this port. Saves a changed record. */
  learn(peer: NodeId, { host, port }: DhtAddress, ownPort: number | null): void {
    if (!net.isIPv4(host) || !isPort(port)) return
    const known = this.#peers.get(peer)
    const isNew = known?.host !== host || known.port !== port || (ownPort !== null && ownPort !== this.#port)
    // Also at the same address it is the latest now.
    this.#peers.delete(peer)
    this.#peers.set(peer, { host, port })
    for (const oldest of this.#peers.keys()) {
      if (this.#peers.size <= MAX_ADDRESSES) break
      this.#peers.delete(oldest)
    }
    this.#port = ownPort ?? this.#port
    if (isNew) this.#saveAll()
  }

  /** This node listens on a port. Saves a changed record. */
  bound(port: number): void {
    if (port === this.#port) return
    this.#port = port
    this.#saveAll()
  }

  #saveAll(): void {
    this.#save({ port: this.#port, peers: [...this.#peers].map(([id, at]) => [id, at.host, at.port]) })
  }
}

/** A DHT node that dials peers also at known addresses. `addressesOf`: those to try now; empty for none. */
export class AddressedDht extends HyperDHT {
  readonly #addressesOf: (peer: NodeId) => readonly DhtAddress[]

  constructor(options: HyperDhtOptions, addressesOf: (peer: NodeId) => readonly DhtAddress[]) {
    super(options)
    this.#addressesOf = addressesOf
  }

  override connect(remotePublicKey: Uint8Array, options: DhtConnectOptions = {}): NoiseStream {
    const found = options.relayAddresses ?? []
    const known = found.length > 0 ? [] : this.#addressesOf(keyToText(remotePublicKey))
    return super.connect(remotePublicKey, known.length > 0 ? { ...options, relayAddresses: known } : options)
  }
}

function isPort(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0 && Number(value) < 65_536
}

function entryOf(entry: unknown): (readonly [NodeId, DhtAddress])[] {
  const [peer, host, port] = Array.isArray(entry) ? (entry as readonly unknown[]) : []
  if (typeof peer !== 'string' || typeof host !== 'string' || !net.isIPv4(host) || !isPort(port)) return []
  return [[peer, { host, port }]]
}
