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

  /** All of it as text; broken UTF-8 becomes U+FFFD. */
  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8')
  }
}

/** The last bytes that a program wrote. */
export class TailOutput {
  readonly #maxBytes: number
  #tail = Buffer.alloc(0)

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Adds what was written. */
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

/** Cuts a byte stream into lines. A line over the limit is skipped whole, however long it is. */
export class LineReader {
  readonly #maxBytes: number
  readonly #onLine: (line: string) => void
  #parts: Uint8Array[] = []
  #bytes = 0

  constructor(maxBytes: number, onLine: (line: string) => void) {
    this.#maxBytes = maxBytes
    this.#onLine = onLine
  }

  /** Adds bytes; every line that they end is told. */
  push(chunk: Uint8Array): void {
    let start = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      this.#keep(chunk.subarray(start, end))
      this.end()
      start = end + 1
    }
    this.#keep(chunk.subarray(start))
  }

  /** Ends the line that was begun, if any. */
  end(): void {
    const line = this.#bytes > this.#maxBytes ? '' : Buffer.concat(this.#parts).toString('utf8')
    this.#parts = []
    this.#bytes = 0
    if (line !== '') this.#onLine(line)
  }

  #keep(part: Uint8Array): void {
    this.#bytes += part.length
    if (this.#bytes > this.#maxBytes) this.#parts = []
    else this.#parts.push(part)
  }
}
