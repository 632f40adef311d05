import BlindPairing from 'blind-pairing'
import type { SwarmOfPairing, Topic } from 'blind-pairing'
import type { NoiseStream } from 'hyperswarm'
import type Protomux from 'protomux'

/** Where blind-pairing 2.3.1 opens the channel of a topic on a stream, and where it opens those of all its topics. */
const ATTACH = '_attachToMuxer'
const ON_STREAM = '_onconnection'
const PROTOCOL = 'blind-pairing'

/**
 * Pairing that opens the channel of a topic when its peer opens one. An admin answers at up to 64 topics. A channel of
 * each on every stream would pass the limit of open channels, and the peer would close the stream.
 *
 * A stranger that was there before the topic has asked in vain: that stream alone gets an unasked channel.
 */
export class AskedPairing extends BlindPairing {
  readonly #isMember: (publicKey: Uint8Array) => boolean
  #isNewStream = false

  constructor(swarm: SwarmOfPairing, isMember: (publicKey: Uint8Array) => boolean) {
    super(swarm)
    this.#isMember = isMember
  }

  protected override [ON_STREAM](stream: NoiseStream): void {
    this.#isNewStream = true
    try {
      super[ON_STREAM](stream)
    } finally {
      this.#isNewStream = false
    }
  }

  /** `topic`: null when the peer opened its channel. */
  protected override [ATTACH](mux: Protomux, id: Uint8Array, topic: Topic | null): void {
    const isAsked = topic === null
    if (isAsked || (!this.#isNewStream && !this.#isMember(mux.stream.remotePublicKey))) super[ATTACH](mux, id, topic)
    else mux.pair({ protocol: PROTOCOL, id }, () => this[ATTACH](mux, id, null))
  }
}
