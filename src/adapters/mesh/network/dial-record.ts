import type { DhtConnectOptions } from 'hyperdht'
import type { NoiseStream } from 'hyperswarm'
import { keyToText, type NodeId } from '../../../kit/ids.js'
import type { DialEnd, DialFault, NatKind } from '../../../ports/network/reach.js'
import { AddressedDht } from './known-addresses.js'

/** Peers with a recorded dial; the one dialled longest ago is dropped. */
export const MAX_RECORDED = 256

const FAULTS: Readonly<Record<string, DialFault>> = {
  PEER_NOT_FOUND: 'not-found',
  PEER_CONNECTION_FAILED: 'silent',
  HOLEPUNCH_ABORTED: 'not-punched',
  CANNOT_HOLEPUNCH: 'not-punched',
  HOLEPUNCH_PROBE_TIMEOUT: 'not-punched',
  HOLEPUNCH_DOUBLE_RANDOMIZED_NATS: 'not-punched',
  REMOTE_NOT_HOLEPUNCHING: 'not-punched',
  REMOTE_NOT_HOLEPUNCHABLE: 'not-punched'
}

/** NAT kinds by the numbers of hyperdht (`lib/constants.js`). */
const NATS: readonly NatKind[] = ['unknown', 'open', 'consistent', 'random']

/** Ends of the dials of a DHT node. */
export class DialRecord {
  readonly #ends = new Map<NodeId, DialEnd>()

  /** The end of the last dial of a peer; null when it was not dialled, and while the first dial is under way. */
  of(peer: NodeId): DialEnd | null {
    return this.#ends.get(peer) ?? null
  }

  /** Peers whose last dial opened no stream, with its end, the latest last. */
  failed(): readonly (readonly [NodeId, DialEnd])[] {
    return [...this.#ends].filter(([, { fault }]) => fault !== null)
  }

  /** A dial has ended. */
  ended(peer: NodeId, end: DialEnd): void {
    this.#ends.delete(peer)
    this.#ends.set(peer, end)
    for (const oldest of this.#ends.keys()) {
      if (this.#ends.size <= MAX_RECORDED) break
      this.#ends.delete(oldest)
    }
  }
}

/** A DHT node that records the ends of its dials. */
export class RecordedDht extends AddressedDht {
  readonly dials = new DialRecord()

  override connect(remotePublicKey: Uint8Array, options: DhtConnectOptions = {}): NoiseStream {
    let nats: DialEnd['nats'] = null
    const holepunch = (there: number, here: number): boolean => {
      nats = { here: NATS[here] ?? 'unknown', there: NATS[there] ?? 'unknown' }
      return true
    }
    const stream = super.connect(remotePublicKey, { ...options, holepunch })
    const end = (fault: DialFault | null): void =>
      this.dials.ended(keyToText(remotePublicKey), { fault, nats, isRandomHere: this.randomized })
    let isOpen = false
    stream.on('open', () => {
      isOpen = true
      end(null)
    })
    stream.on('error', ({ code = '' }: Error & { readonly code?: string }) => {
      if (!isOpen) end(FAULTS[code] ?? 'failed')
    })
    return stream
  }
}
