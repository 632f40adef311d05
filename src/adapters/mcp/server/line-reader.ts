import type { RequestId } from '@modelcontextprotocol/server'

const NEWLINE = 0x0a
/** Bytes of the start and of the end of a line that is too long, kept to find its id in. */
const EDGE_BYTES = 512
/** Room for a line that comes in pieces, at first; it doubles. */
const FIRST_BYTES = 4096
/** Room that is kept for the next line in pieces. */
const KEPT_BYTES = 65_536

/** A line of a stream: its text (null when it is no UTF-8), or that it was too long, with the id of its request where it can be told. */
export type Line = { readonly text: string | null } | { readonly tooLong: { readonly id: RequestId | null } }

/**
 * Cuts a stream of bytes into lines (`\n` or `\r\n`); empty ones are left out. Holds at most one line and `maxLineBytes`; of a longer
 * one only its edges, until it ends.
 */
export class LineReader {
  readonly #maxLineBytes: number
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })
  #partial: Buffer = Buffer.alloc(0)
  #bytes = 0
  #skipped: { readonly head: string; tail: Uint8Array } | null = null

  constructor(maxLineBytes: number) {
    this.#maxLineBytes = maxLineBytes
  }

  /** The lines that end in this chunk. */
  *take(chunk: Uint8Array): Generator<Line> {
    let from = 0
    for (let to = chunk.indexOf(NEWLINE); to !== -1; to = chunk.indexOf(NEWLINE, from)) {
      const line = this.#end(chunk.subarray(from, to))
      from = to + 1
      if (line !== null) yield line
    }
    this.#hold(chunk.subarray(from))
  }

  /** Bytes of memory for a line that has not ended. */
  get partialBytes(): number {
    return this.#partial.byteLength + (this.#skipped === null ? 0 : EDGE_BYTES * 2)
  }

  #hold(part: Uint8Array): void {
    if (part.byteLength === 0) return
    if (this.#skipped !== null) this.#skipped.tail = tailOf(this.#skipped.tail, part)
    else if (this.#bytes + part.byteLength > this.#maxLineBytes) this.#skip(part)
    else {
      this.#grow(this.#bytes + part.byteLength)
      this.#partial.set(part, this.#bytes)
      this.#bytes += part.byteLength
    }
  }

  #skip(part: Uint8Array): void {
    const before = this.#partial.subarray(0, this.#bytes)
    const head = Buffer.concat([before.subarray(0, EDGE_BYTES), part.subarray(0, EDGE_BYTES)]).toString('latin1', 0, EDGE_BYTES)
    this.#skipped = { head, tail: tailOf(before, part) }
    this.#bytes = 0
    this.#partial = Buffer.alloc(0)
  }

  // One block that doubles: a line that comes byte by byte costs neither an object a byte nor a copy of all for each.
  #grow(bytes: number): void {
    if (bytes <= this.#partial.byteLength) return
    const larger = Buffer.allocUnsafeSlow(Math.max(bytes, FIRST_BYTES, this.#partial.byteLength * 2))
    larger.set(this.#partial.subarray(0, this.#bytes))
    this.#partial = larger
  }

  #end(last: Uint8Array): Line | null {
    if (this.#skipped !== null || this.#bytes + last.byteLength > this.#maxLineBytes) {
      this.#hold(last)
      const { head, tail } = this.#skipped ?? { head: '', tail: last }
      this.#skipped = null
      return { tooLong: { id: idOf(head, Buffer.from(tail).toString('latin1')) } }
    }
    if (this.#bytes === 0) return this.#lineOf(last)
    this.#hold(last)
    const line = this.#lineOf(this.#partial.subarray(0, this.#bytes))
    this.#bytes = 0
    if (this.#partial.byteLength > KEPT_BYTES) this.#partial = Buffer.alloc(0)
    return line
  }

  #lineOf(bytes: Uint8Array): Line | null {
    try {
      const text = this.#decoder.decode(bytes)
      return text.trim() === '' ? null : { text }
    } catch {
      return { text: null }
    }
  }
}

/** A copy of the last bytes of both: what they were cut from is let go. */
function tailOf(before: Uint8Array, part: Uint8Array): Uint8Array {
  return Buffer.concat([before.subarray(-EDGE_BYTES), part.subarray(-EDGE_BYTES)]).subarray(-EDGE_BYTES)
}

const ID = String.raw`"id"\s*:\s*(-?(?:0|[1-9]\d{0,14})|"[ !#-[\]-~]{0,256}")`
const FIRST_MEMBER = new RegExp(String.raw`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?${ID}\s*,`)
const LAST_MEMBER = new RegExp(String.raw`,\s*${ID}\s*\}\s*$`)

/**
 * The id of a request of which only the edges are known: clients write it first or last. What stands before the last brace of a line
 * is a member of the outermost object, and so is what follows its first.
 */
function idOf(head: string, tail: string): RequestId | null {
  const found = FIRST_MEMBER.exec(head)?.[1] ?? LAST_MEMBER.exec(tail)?.[1]
  return found === undefined ? null : (JSON.parse(found) as RequestId)
}
