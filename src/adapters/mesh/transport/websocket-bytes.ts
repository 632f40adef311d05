import { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'

/** Bytes of one WebSocket message, at most, whatever is written at once. */
export const MESSAGE_MAX_BYTES = 65_536
/** Bytes of one Noise message of a handshake, at most. */
const HANDSHAKE_MESSAGE_BYTES = 1024
/** Bytes that wait to be sent when a ping comes, at most. */
const UNREAD_MAX_BYTES = 2_097_152
/** Bytes that begin each message of a secret stream: its length, little-endian. */
const LENGTH_BYTES = 3

/** The bytes of a WebSocket, for a Noise stream above it. */
export class WebSocketBytes extends Duplex {
  /** How links over it are shown. */
  readonly path = 'websocket'
  /** Unknown; pairing asks the nearest peer first, and needs a number. */
  readonly rtt = 0
  readonly #socket: WebSocket
  readonly #handshake: HandshakeLengths

  /** `socket`: open, with messages of at most 64 KiB. `isInitiator`: this node opened it. */
  constructor(socket: WebSocket, isInitiator: boolean) {
    super({ allowHalfOpen: false })
    this.#socket = socket
    this.#handshake = new HandshakeLengths(isInitiator ? 2 : 3)
    socket.on('message', (data: Buffer, isBinary) => this.#received(data, isBinary))
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => this.push(null))
    // The library answers each ping, whether the peer reads the answers or not.
    socket.on('ping', () => {
      if (socket.bufferedAmount > UNREAD_MAX_BYTES) this.destroy(new Error('it sends pings and reads no answers'))
    })
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
    if (!isBinary || this.#handshake.isTooLong(data))
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
  #messages: number

  /** `messages`: those of the handshake, with the header behind it. The bytes behind them have a guard of their own. */
  constructor(messages: number) {
    this.#messages = messages
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
