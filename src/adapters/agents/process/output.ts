import { isUtf8 } from 'node:buffer'

/** Bytes that a program wrote, up to a limit. */
export class BoundedOutput {
  readonly #chunks: Uint8Array[] = []
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Keeps a chunk. False when it goes beyond the limit; then nothing more is kept. */
  push(chunk: Uint8Array): boolean {
    this.#bytes += chunk.length
    if (this.#bytes > this.#maxBytes) return false
    this.#chunks.push(chunk)
    return true
  }

  /** All of it. */
  bytes(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  /** All of it as text; null when it is no UTF-8. */
  text(): string | null {
    const bytes = this.bytes()
    return isUtf8(bytes) ? bytes.toString('utf8') : null
  }
}

/** The last bytes that a program wrote. */
export class TailOutput {
  readonly #maxBytes: number
  #tail = Buffer.alloc(0)

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Adds written bytes. */
  push(chunk: Uint8Array): void {
    const joined = Buffer.concat([this.#tail, chunk])
    this.#tail = joined.length > this.#maxBytes ? Buffer.from(joined.subarray(joined.length - this.#maxBytes)) : joined
  }

  /** Them as text, without white space around; a character cut in two at the start is left out. */
  text(): string {
    return this.#tail
      .toString('utf8')
      .replace(/^\uFFFD+/, '')
      .trim()
  }
}
