import { EventEmitter } from 'node:events'
import test from 'brittle'
import fc from 'fast-check'
import type { WebSocket } from 'ws'
import { MESSAGE_MAX_BYTES, WebSocketBytes } from '../../../../src/adapters/mesh/transport/websocket-bytes.js'
import { holds } from '../../../support/holds.js'

/** A socket without a network. */
class FakeSocket extends EventEmitter {
  readonly sent: number[] = []
  isTerminated = false
  bufferedAmount = 0

  send(data: Uint8Array, done: () => void): void {
    this.sent.push(data.byteLength)
    done()
  }

  pause(): void {}
  resume(): void {}
  close(): void {}

  terminate(): void {
    this.isTerminated = true
  }
}

function opened(): { socket: FakeSocket; bytes: WebSocketBytes } {
  const socket = new FakeSocket()
  const bytes = new WebSocketBytes(socket as unknown as WebSocket, false)
  bytes.on('error', () => {})
  bytes.resume()
  return { socket, bytes }
}

function framed(lengths: readonly number[]): Buffer {
  return Buffer.concat(
    lengths.flatMap((length) => [
      Buffer.from([length & 255, (length >> 8) & 255, (length >> 16) & 255]),
      Buffer.alloc(Math.min(length, 2000))
    ])
  )
}

function cutAt(data: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [0, ...cuts.map((cut) => cut % (data.byteLength + 1)).sort((a, b) => a - b), data.byteLength]
  return places.slice(1).map((end, at) => data.subarray(places[at], end))
}

test('before the handshake a message that states more than 1,024 bytes ends the socket, however it is cut; others pass', async (t) => {
  const lengths = fc.array(fc.integer({ min: 0, max: 1024 }), { maxLength: 2 })
  const long = fc.option(fc.integer({ min: 1025, max: 2 ** 24 - 1 }), { nil: null })
  await holds(
    t,
    fc.asyncProperty(lengths, long, fc.array(fc.nat(), { maxLength: 6 }), async (fine, tooLong, cuts) => {
      const { socket, bytes } = opened()
      const data = framed([...fine, ...(tooLong === null ? [] : [tooLong])])
      for (const part of cutAt(data, cuts)) socket.emit('message', part, true)
      return bytes.destroyed === (tooLong !== null)
    })
  )
  const { socket, bytes } = opened()
  socket.emit('message', framed([32, 64, 56, 65_000]), true)
  t.absent(bytes.destroyed, 'afterwards the frame guard bounds them')
  socket.emit('message', Buffer.from('text'), false)
  t.ok(bytes.destroyed, 'a text is no message of a node')
})

test('a peer that sends pings and reads no answers is cut', (t) => {
  const { socket, bytes } = opened()
  socket.emit('ping')
  t.absent(bytes.destroyed)
  socket.bufferedAmount = 4 * 1024 * 1024
  socket.emit('ping')
  t.ok(bytes.destroyed)
})

test('a large write leaves as messages of at most 64 KiB', async (t) => {
  const { socket, bytes } = opened()
  await new Promise((resolve) => bytes.write(Buffer.alloc(2 * MESSAGE_MAX_BYTES + 1), resolve))
  t.alike(socket.sent, [MESSAGE_MAX_BYTES, MESSAGE_MAX_BYTES, 1])
  bytes.destroy()
  await new Promise((resolve) => bytes.once('close', resolve))
  t.ok(socket.isTerminated)
})
