import { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'

/** Bytes of one WebSocket message, at most, whatever is written at once. */
export const MESSAGE_MAX_BYTES = 65_536
/** Bytes of one Noise message of a handshake, at most. */
const HANDSHAKE_MESSAGE_BYTES = 1024
/** Bytes that begin each message of a secret stream: its length, little-endian. */
const LENGTH_BYTES = 3

/** The bytes of a WebSocket, for a Noise stream above it. */
export class WebSocketBytes extends Duplex {
  /** How links over it are shown. */
  readonly path = 'websocket'
  /** Unknown; pairing asks the nearest peer first, and needs a number. */
  readonly rtt = 0
  readonly #socket: WebSocket
  #handshake: HandshakeLengths | null = new HandshakeLengths()

  /** `socket`: open, with messages of at most 64 KiB. */
  constructor(socket: WebSocket) {
    super({ allowHalfOpen: false })
    this.#socket = socket
    socket.on('message', (data: Buffer, isBinary) => this.#received(data, isBinary))
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => this.push(null))
  }

  /** The peer is known: messages may have any length from now on. */
  secured(): void {
    this.#handshake = null
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    let start = 0
    for (; chunk.byteLength - start > MESSAGE_MAX_BYTES; start += MESSAGE_MAX_BYTES)
      this.#socket.send(chunk.subarray(start, start + MESSAGE_MAX_BYTES), () => {})
    this.#socket.send(chunk.subarray(start), done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.close()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.terminate()
    done(error)
  }

  #received(data: Buffer, isBinary: boolean): void {
    if (this.destroyed) return
    if (!isBinary || this.#handshake?.isTooLong(data) === true)
      return void this.destroy(new Error('no Noise handshake of a node'))
    if (!this.push(data)) this.#socket.pause()
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

  /** Does a message in these bytes, or begun by them, state more than 1,024 bytes? */
  isTooLong(data: Uint8Array): boolean {
    for (let at = 0; at < data.byteLength; ) {
      if (this.#missing > 0) {
        const taken = Math.min(this.#missing, data.byteLength - at)
        this.#missing -= taken
        at += taken
        continue
      }
      this.#length += (data[at++] ?? 0) * 256 ** this.#lengthBytes++
      if (this.#length > HANDSHAKE_MESSAGE_BYTES) return true
      if (this.#lengthBytes < LENGTH_BYTES) continue
      this.#missing = this.#length
      this.#length = 0
      this.#lengthBytes = 0
    }
    return false
  }
}
