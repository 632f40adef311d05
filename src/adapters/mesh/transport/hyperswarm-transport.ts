import b4a from 'b4a'
import type HyperDHT from 'hyperdht'
import Hyperswarm, { type KeyPair, type NoiseStream } from 'hyperswarm'
import { keyFromText, keyToText } from '../../../kit/ids.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Rendezvous } from '../pairing/pairing-swarm.js'
import type { StreamDirection, StreamTransport } from './stream-transport.js'

/**
 * Connections at which the swarm stops dialling. With four or more dialled peers it counts each connection four times,
 * so this is four times the largest number of links.
 */
const MAX_PEERS = 256
/** Dials at once. */
const MAX_PARALLEL = 16

/** Streams over a DHT: holes are punched through NATs, and peers are found by topic. */
export class HyperswarmTransport implements StreamTransport {
  /** For pairing, which looks for its peers by topics of its own. */
  readonly rendezvous: Rendezvous
  readonly swarm: Hyperswarm
  #admits: (peer: NodeId, direction: StreamDirection) => boolean = () => true

  /** `keyPair`: the node's own, which authenticates each stream. */
  constructor({ dht, keyPair }: { readonly dht: HyperDHT; readonly keyPair: KeyPair }) {
    this.swarm = new Hyperswarm({
      dht,
      keyPair,
      maxPeers: MAX_PEERS,
      maxParallel: MAX_PARALLEL,
      firewall: (key, payload) => !this.#admits(keyToText(key), payload === null ? 'out' : 'in')
    })
    const { swarm } = this
    this.rendezvous = { dht, join: (topic, mode) => swarm.join(topic, mode), flush: () => swarm.flush() }
    // Hyperswarm bans a key that it was denied to dial, also for streams that the peer opens.
    this.swarm.on('ban', (info) => info.ban(!this.#admits(keyToText(info.publicKey), 'in')))
  }

  async listen(topic: Uint8Array): Promise<void> {
    const listening = this.swarm.listen()
    this.swarm.join(topic, { server: true, client: true })
    await listening
  }

  refresh(): void {
    // After an outage the announcer can be left without relays while it seems online.
    this.swarm.server.refresh()
    for (const discovery of this.swarm.topics()) discovery.refresh().catch(() => {})
  }

  dial(peer: NodeId): void {
    const key = keyFromText(peer)
    // Without this a peer that failed a few times is never dialled again.
    const info = this.swarm.peers.get(b4a.toString(key, 'hex'))
    if (info !== undefined) {
      info.ban(false)
      info.attempts = 0
    }
    this.swarm.joinPeer(key)
  }

  undial(peer: NodeId): void {
    this.swarm.leavePeer(keyFromText(peer))
  }

  onStream(handler: (stream: NoiseStream) => void): void {
    this.swarm.on('connection', (stream) => handler(stream))
  }

  firewall(admits: (peer: NodeId, direction: StreamDirection) => boolean): void {
    this.#admits = admits
  }

  close(): Promise<void> {
    return this.swarm.destroy()
  }
}
