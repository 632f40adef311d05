import type { RequestId } from '@modelcontextprotocol/server'
import { LineSplitter } from '../../../kit/lines.js'
import { EDGE_BYTES, idOfEdges } from '../../../kit/mcp/message-edges.js'
import { toolOfEdges } from './oversized-call.js'

/**
 * Found at the edges of a line that was too long: the id of its request, and the tool that it calls
 * ({@link toolOfEdges}).
 */
export interface TooLong {
  readonly id: RequestId | null
  readonly tool: string | null
}

/** A line of a stream: its text (null when it is no UTF-8), or a mark that it was too long. */
export type Line = { readonly text: string | null } | { readonly tooLong: TooLong }

/**
 * Cuts a stream of bytes into lines (`\n` or `\r\n`); empty ones are left out. Holds at most one line and
 * `maxLineBytes`; of a longer one only its edges, until it ends.
 */
export class LineReader {
  readonly #splitter: LineSplitter
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })

  constructor(maxLineBytes: number) {
    this.#splitter = new LineSplitter({ maxBytes: maxLineBytes, edgeBytes: EDGE_BYTES })
  }

  /** The lines that end in this chunk. */
  *take(chunk: Uint8Array): Generator<Line> {
    for (const one of this.#splitter.push(chunk)) {
      const line =
        one instanceof Uint8Array ? this.#lineOf(one) : { tooLong: { id: idOfEdges(one), tool: toolOfEdges(one) } }
      if (line !== null) yield line
    }
  }

  /** Bytes of memory for a line that has not ended. */
  get partialBytes(): number {
    return this.#splitter.partialBytes
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
