import type { SwarmOfPairing } from 'blind-pairing'
import type { NoiseStream } from 'hyperswarm'

/** Where newcomers and admins find each other before they share a mesh: records and topics of the DHT. */
export type Rendezvous = Pick<SwarmOfPairing, 'dht' | 'join' | 'flush'>

/** The streams of this node, members' and strangers', whatever transport opened them. */
export interface OpenStreams {
  streams(): Iterable<NoiseStream>
  /** Calls the listener for each new stream, when its guards are in place. Returns the function that ends that. */
  onStream(listener: (stream: NoiseStream) => void): () => void
}

/** Pairs over the streams of every transport, behind the guards of the links. */
export function pairingSwarm({ dht, join, flush }: Rendezvous, open: OpenStreams): SwarmOfPairing {
  const stops = new Map<(stream: NoiseStream) => void, () => void>()
  return {
    dht,
    join,
    flush,
    get connections() {
      return open.streams()
    },
    on: (_event, listener) => void stops.set(listener, open.onStream(listener)),
    removeListener: (_event, listener) => {
      stops.get(listener)?.()
      stops.delete(listener)
    }
  }
}
