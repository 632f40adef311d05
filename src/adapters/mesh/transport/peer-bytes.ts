import { Duplex } from 'node:stream'

/** How links over the streams of a transport by addresses are shown. */
export type AddressedPath = 'tcp' | 'websocket'

/** Bytes of one Noise message of a handshake, at most. */
const HANDSHAKE_MESSAGE_BYTES = 1024
/** Bytes that begin each message of a secret stream: its length, little-endian. */
const LENGTH_BYTES = 3

/** The bytes of a connection, for a Noise stream above it. */
export abstract class PeerBytes extends Duplex {
  abstract readonly path: AddressedPath
  /** Unknown; pairing asks the nearest peer first, and needs a number. */
  readonly rtt = 0
  readonly #handshake: HandshakeLengths

  /** `isInitiator`: this node opened it. */
  constructor(isInitiator: boolean) {
    super({ allowHalfOpen: false })
    this.#handshake = new HandshakeLengths(isInitiator)
  }

  /** Passes on bytes of the peer; false: it should pause. A handshake that is none of a node ends it. */
  protected received(data: Uint8Array): boolean {
    if (this.destroyed) return false
    if (!this.#handshake.isTooLong(data)) return this.push(data)
    this.destroy(new Error('no Noise handshake of a node'))
    return false
  }
}

/**
 * Reads the lengths of the messages of a handshake: a secret stream allocates up to 16 MiB for a stranger that states
 * such a length.
 */
class HandshakeLengths {
  #length = 0
  #lengthBytes = 0
  #missing = 0
  #messages: number

  /** `isInitiator`: this node opened the stream. The bytes behind the handshake have a guard of their own. */
  constructor(isInitiator: boolean) {
    // With the header behind the handshake.
    this.#messages = isInitiator ? 2 : 3
  }

  /** Does a message of the handshake in these bytes, or begun by them, state more than 1,024 bytes? */
  isTooLong(data: Uint8Array): boolean {
    for (let at = 0; at < data.byteLength; ) {
      if (this.#missing > 0) {
        const taken = Math.min(this.#missing, data.byteLength - at)
        this.#missing -= taken
        at += taken
        continue
      }
      if (this.#messages === 0) return false
      this.#length += (data[at++] ?? 0) * 256 ** this.#lengthBytes++
      if (this.#length > HANDSHAKE_MESSAGE_BYTES) return true
      if (this.#lengthBytes < LENGTH_BYTES) continue
      this.#messages--
      this.#missing = this.#length
      this.#length = 0
      this.#lengthBytes = 0
    }
    return false
  }
}
