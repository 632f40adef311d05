import type { Socket } from 'node:net'
import { PeerBytes } from './peer-bytes.js'

/** The bytes of a TCP connection, for a Noise stream above it. */
export class TcpBytes extends PeerBytes {
  readonly path = 'tcp'
  /** Where the connection leads; '' and 0 once it is gone. */
  readonly remoteHost: string
  readonly remotePort: number
  readonly #socket: Socket

  /** `socket`: open. `isInitiator`: this node opened it. */
  constructor(socket: Socket, isInitiator: boolean) {
    super(isInitiator)
    this.#socket = socket
    this.remoteHost = socket.remoteAddress ?? ''
    this.remotePort = socket.remotePort ?? 0
    // Frames are gathered above; a wait for more would only delay them.
    socket.setNoDelay(true)
    socket.on('data', (data: Buffer) => {
      if (!this.received(data)) socket.pause()
    })
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => this.push(null))
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }
}
