import type { Readable } from 'node:stream'
import type { LongLine } from '../../kit/lines.js'
import { EDGE_BYTES } from '../../kit/mcp/message-edges.js'

/** Limits for reading past a body that is too large. */
export interface SkipLimits {
  readonly maxBytes: number
  readonly timeoutMs: number
}

/**
 * Reads past a body, and keeps 512 bytes of each end. `read`: the part of it that was read, behind which it is paused.
 * null: it is larger than `maxBytes`, breaks off, or takes too long. Never rejects.
 */
export function skippedBody(
  body: Readable,
  { maxBytes, timeoutMs }: SkipLimits,
  read: Buffer = Buffer.alloc(0)
): Promise<LongLine | null> {
  if (body.destroyed || (body.readableDidRead && read.length === 0)) return Promise.resolve(null)
  return new Promise((resolve) => {
    let [head, tail] = [Buffer.alloc(0), Buffer.alloc(0)]
    let bytes = 0
    const finish = (edges: LongLine | null): void => {
      clearTimeout(timer)
      body.off('data', take).off('end', end).off('close', cut)
      resolve(edges)
    }
    const timer = setTimeout(cut, timeoutMs)
    function take(chunk: Buffer): void {
      bytes += chunk.length
      if (bytes > maxBytes) return finish(null)
      if (head.length < EDGE_BYTES) head = Buffer.concat([head, chunk.subarray(0, EDGE_BYTES - head.length)])
      tail = Buffer.concat([tail, chunk.subarray(-EDGE_BYTES)]).subarray(-EDGE_BYTES)
    }
    function end(): void {
      finish({ head, tail, bytes })
    }
    function cut(): void {
      finish(null)
    }
    body.on('end', end).on('close', cut)
    take(read)
    if (bytes <= maxBytes) body.on('data', take).resume()
  })
}
