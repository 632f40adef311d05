import type { RequestId } from '@modelcontextprotocol/server'
import { LineSplitter, type LongLine } from '../../../kit/lines.js'
import { toolOfEdges } from './oversized-call.js'

/** Bytes of the start and of the end of a message that is too long, kept to find its id in. */
export const EDGE_BYTES = 512

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

const ID = String.raw`"id"\s*:\s*(-?(?:0|[1-9]\d{0,14})|"[ !#-[\]-~]{0,256}")`
const FIRST_MEMBER = new RegExp(String.raw`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?${ID}\s*,`)
const LAST_MEMBER = new RegExp(String.raw`,\s*${ID}\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)

/**
 * The id of a request or an answer of which only the edges are known; null where they do not show it. The members
 * beside the first and the last brace of a line are those of the outermost object.
 */
export function idOfEdges({ head, tail }: LongLine): RequestId | null {
  const found = FIRST_MEMBER.exec(textOf(head))?.[1] ?? LAST_MEMBER.exec(textOf(tail))?.[1]
  return found === undefined ? null : (JSON.parse(found) as RequestId)
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1')
}
