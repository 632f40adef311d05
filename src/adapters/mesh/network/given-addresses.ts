import { NodeError } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import { isRecord } from '../../../kit/json.js'
import { tcpAddress } from '../../../kit/net/tcp-address.js'
import type { GivenAddresses } from '../../../ports/mesh.js'
import type { NodeStore } from '../../../ports/storage.js'

/** Name of the stored document. */
const DOCUMENT = 'given-addresses'
/** Addresses of one member, at most. */
export const MAX_GIVEN = 4
/** Members with given addresses, at most. */
export const MAX_GIVEN_PEERS = 256

/** The addresses of members that the user gave, in the home: key of the member to `host:port`. */
export class StoredAddresses implements GivenAddresses {
  readonly #store: NodeStore
  readonly #faultOf: (address: string) => string | null
  #peers: ReadonlyMap<NodeId, readonly string[]>

  private constructor(store: NodeStore, stored: unknown, faultOf: (address: string) => string | null) {
    this.#store = store
    this.#faultOf = faultOf
    this.#peers = new Map(isRecord(stored) ? Object.entries(stored).slice(0, MAX_GIVEN_PEERS).map(entryOf) : [])
  }

  /** `faultOf`: why the last dial of an address failed. @throws NodeError STORE_DAMAGED */
  static async open(store: NodeStore, faultOf: (address: string) => string | null): Promise<StoredAddresses> {
    return new StoredAddresses(store, await store.read(DOCUMENT), faultOf)
  }

  /** The addresses of a peer. */
  of(peer: NodeId): readonly string[] {
    return this.#peers.get(peer) ?? []
  }

  list(peer: NodeId): ReturnType<GivenAddresses['list']> {
    return this.of(peer).map((address) => ({ address, fault: this.#faultOf(address) }))
  }

  async add(peer: NodeId, address: string): Promise<boolean> {
    const known = this.of(peer)
    if (known.includes(address)) return false
    if (known.length >= MAX_GIVEN || (known.length === 0 && this.#peers.size >= MAX_GIVEN_PEERS))
      throw new NodeError('OVERLOADED', `at most ${MAX_GIVEN} addresses of ${MAX_GIVEN_PEERS} nodes are kept`, {
        retryable: false,
        next: [
          known.length === 0 ? 'a2a-node peers --all' : `a2a-node peers show ${peer}`,
          'a2a-node peers remove <peer> --address <host:port>'
        ]
      })
    await this.#set(peer, [...known, address])
    return true
  }

  async remove(peer: NodeId, address: string): Promise<boolean> {
    const known = this.of(peer)
    if (!known.includes(address)) return false
    await this.#set(
      peer,
      known.filter((one) => one !== address)
    )
    return true
  }

  async #set(peer: NodeId, addresses: readonly string[]): Promise<void> {
    const former = this.of(peer)
    this.#keep(peer, addresses)
    try {
      await this.#store.write(DOCUMENT, Object.fromEntries(this.#peers))
    } catch (error) {
      this.#keep(peer, former)
      throw error
    }
  }

  #keep(peer: NodeId, addresses: readonly string[]): void {
    const next = new Map(this.#peers).set(peer, addresses)
    if (addresses.length === 0) next.delete(peer)
    this.#peers = next
  }
}

function entryOf([peer, addresses]: readonly [string, unknown]): readonly [NodeId, readonly string[]] {
  const texts = Array.isArray(addresses) ? addresses.slice(0, MAX_GIVEN) : []
  return [peer, texts.flatMap((text) => (typeof text === 'string' ? (tcpAddress(text) ?? []) : []))]
}
