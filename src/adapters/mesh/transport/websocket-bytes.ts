import type { WebSocket } from 'ws'
import { PeerBytes } from './peer-bytes.js'

/** Bytes of one WebSocket message, at most, whatever is written at once. */
export const MESSAGE_MAX_BYTES = 65_536
/** Bytes that wait to be sent when a ping comes, at most. */
const UNREAD_MAX_BYTES = 2_097_152

/** The bytes of a WebSocket, for a Noise stream above it. */
export class WebSocketBytes extends PeerBytes {
  readonly path = 'websocket'
  readonly #socket: WebSocket

  /** `socket`: open, with messages of at most 64 KiB. `isInitiator`: this node opened it. */
  constructor(socket: WebSocket, isInitiator: boolean) {
    super(isInitiator)
    this.#socket = socket
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
    if (!isBinary) return void this.destroy(new Error('no message of a node'))
    if (!this.received(data)) this.#socket.pause()
  }
}
