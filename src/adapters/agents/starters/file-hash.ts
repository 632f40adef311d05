import { createHash } from 'node:crypto'
import { eachChunk, type RangeReader } from '../../../kit/transfer/chunks.js'

/** The SHA-256 of the first `length` bytes of an open file, in hex. A shorter file gives that of all its bytes. */
export async function hashOf(
  file: RangeReader,
  range: { readonly length: number; readonly signal: AbortSignal }
): Promise<string> {
  const hash = createHash('sha256')
  await eachChunk(file, range, (bytes) => hash.update(bytes))
  return hash.digest('hex')
}
