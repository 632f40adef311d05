import { concatBytes, unwritten } from './bytes.js'

const NEWLINE = 0x0a
/** Space for a line that comes in pieces, at first; it doubles. */
const FIRST_BYTES = 4096
/** Space that is kept for the next line in pieces. */
const KEPT_BYTES = 65_536
const EMPTY = new Uint8Array(0)

/** A line that is longer than allowed. */
export interface LongLine {
  /** Its first and its last bytes. */
  readonly head: Uint8Array
  readonly tail: Uint8Array
  readonly bytes: number
}

/** Memory limits of a {@link LineSplitter}. */
export interface LineLimits {
  /** Longest line without its newline. */
  readonly maxBytes: number
  /** Bytes of each end of a longer line that are kept. Default 0. */
  readonly edgeBytes?: number
}

/**
 * Cuts a stream of bytes into lines, without their `\n`. It holds at most one line of `maxBytes`, in a block of at most
 * twice that (but 4 KiB at least). Of a longer line it holds only the edges, until it ends. Bytes of a line are valid
 * until the next one is read.
 */
export class LineSplitter {
  readonly #maxBytes: number
  readonly #edgeBytes: number
  #partial: Uint8Array = EMPTY
  #bytes = 0
  #skipped: { readonly head: Uint8Array; tail: Uint8Array } | null = null

  constructor({ maxBytes, edgeBytes = 0 }: LineLimits) {
    this.#maxBytes = maxBytes
    this.#edgeBytes = edgeBytes
  }

  /** The lines that end in this chunk, empty ones too. */
  *push(chunk: Uint8Array): Generator<Uint8Array | LongLine> {
    let from = 0
    for (let to = chunk.indexOf(NEWLINE); to !== -1; to = chunk.indexOf(NEWLINE, from)) {
      const part = chunk.subarray(from, to)
      from = to + 1
      yield this.#bytes === 0 && part.byteLength <= this.#maxBytes ? part : this.#finish(part)
    }
    this.#hold(chunk.subarray(from))
  }

  /** Ends the line that was begun: an empty one when there was none. */
  end(): Uint8Array | LongLine {
    return this.#finish(EMPTY)
  }

  /** Bytes of the line that has not ended, skipped ones too. */
  get openBytes(): number {
    return this.#bytes
  }

  /** Bytes of memory for that line. */
  get partialBytes(): number {
    return this.#partial.byteLength + (this.#skipped === null ? 0 : this.#edgeBytes * 2)
  }

  #hold(part: Uint8Array): void {
    if (part.byteLength === 0) return
    const bytes = this.#bytes + part.byteLength
    if (this.#skipped !== null) this.#skipped.tail = this.#tailOf(this.#skipped.tail, part)
    else if (bytes > this.#maxBytes) this.#skip(part)
    else {
      this.#grow(bytes)
      this.#partial.set(part, this.#bytes)
    }
    this.#bytes = bytes
  }

  #skip(part: Uint8Array): void {
    const before = this.#partial.subarray(0, this.#bytes)
    const size = this.#edgeBytes
    const head = concatBytes([before.subarray(0, size), part.subarray(0, size)]).subarray(0, size)
    this.#skipped = { head, tail: this.#tailOf(before, part) }
    this.#partial = EMPTY
  }

  // One block that doubles: a line that comes byte by byte costs neither an object a byte nor a copy of all for each.
  #grow(bytes: number): void {
    if (bytes <= this.#partial.byteLength) return
    const larger = unwritten(Math.max(bytes, FIRST_BYTES, this.#partial.byteLength * 2))
    larger.set(this.#partial.subarray(0, this.#bytes))
    this.#partial = larger
  }

  #finish(last: Uint8Array): Uint8Array | LongLine {
    this.#hold(last)
    const bytes = this.#bytes
    const line = this.#skipped === null ? this.#partial.subarray(0, bytes) : { ...this.#skipped, bytes }
    this.#skipped = null
    this.#bytes = 0
    if (this.#partial.byteLength > KEPT_BYTES) this.#partial = EMPTY
    return line
  }

  /** A copy of the last bytes of both, so that the larger pieces can be freed. */
  #tailOf(before: Uint8Array, part: Uint8Array): Uint8Array {
    const both = concatBytes([lastOf(before, this.#edgeBytes), lastOf(part, this.#edgeBytes)])
    return lastOf(both, this.#edgeBytes)
  }
}

function lastOf(bytes: Uint8Array, count: number): Uint8Array {
  return bytes.subarray(Math.max(0, bytes.byteLength - count))
}
