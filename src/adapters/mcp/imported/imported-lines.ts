/** Beginning of a line that is too long, and its end: what is kept to find out which request it answers. */
const KEPT_BYTES = 256
/** So many times the longest line may come without an end; then whoever writes it is mad. */
const MAX_OVERRUN = 4

/** What is told of the lines of a server. */
export interface LineEvents {
  /** A line, without its end. Never empty. */
  line(text: string): void
  /** A line was longer than allowed and was dropped; the id of the request that it answers where that can be told. */
  tooLong(id: number | null): void
  /** A line that does not end. Nothing more is read. */
  endless(): void
}

/** Cuts the output of a server into lines, in bounded memory. */
export class ImportedLines {
  readonly #maxBytes: number
  readonly #events: LineEvents
  #parts: Buffer[] = []
  #bytes = 0
  /** Of a line that is too long. */
  #head = ''
  #tail = Buffer.alloc(0)
  #isOver = false

  constructor(maxBytes: number, events: LineEvents) {
    this.#maxBytes = maxBytes
    this.#events = events
  }

  /** Adds what was read; each line that it ends is told. */
  push(chunk: Uint8Array): void {
    let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    while (!this.#isOver) {
      const end = rest.indexOf(10)
      this.#keep(end === -1 ? rest : rest.subarray(0, end))
      if (end === -1) return
      this.#end()
      rest = rest.subarray(end + 1)
    }
  }

  #keep(part: Buffer): void {
    if (part.length === 0) return
    const wasTooLong = this.#bytes > this.#maxBytes
    this.#bytes += part.length
    if (this.#bytes <= this.#maxBytes) return void this.#parts.push(part)
    if (!wasTooLong) {
      this.#head = Buffer.concat([...this.#parts, part].slice(0, 8))
        .subarray(0, KEPT_BYTES)
        .toString('latin1')
      this.#parts = []
    }
    this.#tail = Buffer.from(Buffer.concat([this.#tail, part.subarray(-KEPT_BYTES)]).subarray(-KEPT_BYTES))
    if (this.#bytes <= this.#maxBytes * MAX_OVERRUN) return
    this.#isOver = true
    this.#events.endless()
  }

  #end(): void {
    const isTooLong = this.#bytes > this.#maxBytes
    const text = isTooLong ? '' : Buffer.concat(this.#parts).toString('utf8').trim()
    const id = isTooLong ? idOf(this.#head, this.#tail.toString('latin1')) : null
    this.#parts = []
    this.#bytes = 0
    this.#tail = Buffer.alloc(0)
    if (isTooLong) this.#events.tooLong(id)
    else if (text !== '') this.#events.line(text)
  }
}

/** The id of an answer stands beside `jsonrpc`, before the result or after it: only there is it looked for. */
function idOf(head: string, tail: string): number | null {
  const found =
    /^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*,/.exec(head) ??
    /^\s*\{\s*"id"\s*:\s*(\d{1,15})\s*,/.exec(head) ??
    /,\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*\}\s*$/.exec(tail) ??
    /,\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(tail)
  return found?.[1] === undefined ? null : Number(found[1])
}
