import { fromUtf8 } from '../../../kit/ids.js'
import { LineSplitter, type LongLine } from '../../../kit/lines.js'
import { idOfEdges } from '../../../kit/mcp/message-edges.js'

/** Bytes kept of the beginning and the end of a too long line, to find the request that it answers. */
const KEPT_BYTES = 256
/** Reading ends after this multiple of the line limit without a newline. */
const MAX_OVERRUN = 4

/** Events of the lines of a server. */
export interface LineEvents {
  /** A line, without its end. Never empty. */
  line(text: string): void
  /** A line was too long and was dropped; `id`: the request that it answers, null when unknown. */
  tooLong(id: number | null): void
  /** A line that does not end. Nothing more is read. */
  endless(): void
}

/** Cuts the output of a server into lines, in bounded memory. */
export class ImportedLines {
  readonly #maxBytes: number
  readonly #events: LineEvents
  readonly #splitter: LineSplitter
  #isOver = false

  constructor(maxBytes: number, events: LineEvents) {
    this.#maxBytes = maxBytes
    this.#events = events
    this.#splitter = new LineSplitter({ maxBytes, edgeBytes: KEPT_BYTES })
  }

  /** Adds bytes and reports each line that they complete. */
  push(chunk: Uint8Array): void {
    if (this.#isOver) return
    for (const line of this.#splitter.push(chunk)) {
      this.#tell(line)
      if (this.#isOver) return
    }
    this.#checkEnd(this.#splitter.openBytes)
  }

  #tell(line: Uint8Array | LongLine): void {
    if (!(line instanceof Uint8Array)) {
      this.#checkEnd(line.bytes)
      const id = idOfEdges(line)
      return this.#events.tooLong(typeof id === 'number' && id >= 0 ? id : null)
    }
    const text = fromUtf8(line).trim()
    if (text !== '') this.#events.line(text)
  }

  #checkEnd(bytes: number): void {
    if (bytes <= this.#maxBytes * MAX_OVERRUN) return
    this.#isOver = true
    this.#events.endless()
  }
}
