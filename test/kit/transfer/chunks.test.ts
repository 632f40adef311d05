import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { eachChunk, writeAll } from '../../../src/kit/transfer/chunks.js'
import { holds } from '../../support/holds.js'

test('all bytes are written and read in order, however few a file takes or gives at once', async (t: Assert) => {
  await holds(
    t,
    fc.asyncProperty(fc.uint8Array(), fc.nat(5), fc.integer({ min: 1, max: 7 }), async (bytes, from, piece) => {
      const stored = new Uint8Array(from + bytes.length)
      const file = {
        write: (buffer: Uint8Array, at: number, length: number, position: number) => {
          const part = buffer.subarray(at, at + Math.min(length, piece))
          stored.set(part, position)
          return Promise.resolve({ bytesWritten: part.length })
        },
        read: (buffer: Uint8Array, at: number, length: number, position: number) => {
          const part = stored.subarray(position, position + Math.min(length, piece))
          buffer.set(part, at)
          return Promise.resolve({ bytesRead: part.length })
        }
      }
      await writeAll(file, bytes, from)
      const parts: Uint8Array[] = []
      const range = { length: stored.length + 1, signal: new AbortController().signal }
      await eachChunk(file, range, (part) => parts.push(part.slice()))
      return Buffer.concat(parts).equals(Buffer.concat([new Uint8Array(from), bytes]))
    })
  )
})
