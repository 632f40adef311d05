import type { AbortSignalLike } from '../clock.js'

/** Bytes read at once. */
const CHUNK_BYTES = 1024 * 1024

/** An open file. */
export interface RangeReader {
  /** Reads up to `length` bytes of a position into a buffer; 0 bytes at the end of the file. */
  read(buffer: Uint8Array, at: number, length: number, position: number): Promise<{ readonly bytesRead: number }>
}

/**
 * Calls back with the first `length` bytes of a file, in order; with fewer when it is shorter. Rejects once the signal
 * is aborted.
 */
export async function eachChunk(
  file: RangeReader,
  { length, signal }: { readonly length: number; readonly signal: AbortSignalLike },
  take: (bytes: Uint8Array) => void
): Promise<void> {
  const buffer = new Uint8Array(Math.min(CHUNK_BYTES, length))
  for (let position = 0; position < length; ) {
    if (signal.aborted) throw new Error('aborted')
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, length - position), position)
    if (bytesRead === 0) return
    take(buffer.subarray(0, bytesRead))
    position += bytesRead
  }
}

/** An open file for writing. */
export interface RangeWriter {
  /** Writes up to `length` bytes of a buffer, from `at` on, to a position. */
  write(buffer: Uint8Array, at: number, length: number, position: number): Promise<{ readonly bytesWritten: number }>
}

/** Writes all bytes to a position, however few the file takes at once. */
export async function writeAll(file: RangeWriter, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; )
    done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten
}
