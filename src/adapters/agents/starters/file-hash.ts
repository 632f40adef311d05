import { createHash } from 'node:crypto'
import type fs from 'node:fs/promises'

/** Bytes read at once. */
const CHUNK_BYTES = 1024 * 1024

/**
 * The SHA-256 of the first `length` bytes of an open file, in hex. A shorter file gives that of all its bytes.
 * @throws the reason of the signal once it is aborted
 */
export async function hashOf(
  file: fs.FileHandle,
  { length, signal }: { readonly length: number; readonly signal: AbortSignal }
): Promise<string> {
  const hash = createHash('sha256')
  const buffer = Buffer.alloc(Math.min(CHUNK_BYTES, length))
  for (let at = 0; at < length; ) {
    signal.throwIfAborted()
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, length - at), at)
    if (bytesRead === 0) break
    hash.update(buffer.subarray(0, bytesRead))
    at += bytesRead
  }
  return hash.digest('hex')
}
