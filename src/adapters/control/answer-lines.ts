import { NodeError } from '../../kit/errors.js'
import { fromUtf8 } from '../../kit/ids.js'
import { LineSplitter } from '../../kit/lines.js'

/** Longest line of a watch in bytes: all results of swarms that a node keeps (128 MiB) fit, also as base64. */
export const LINE_MAX_BYTES = 268_435_456

/** The lines of an answer, without empty ones (keep-alive) and without a last one that has no end. @throws NodeError PAYLOAD_TOO_LARGE for a longer line */
export async function* answerLines(chunks: AsyncIterable<Uint8Array>, maxBytes = LINE_MAX_BYTES): AsyncGenerator<string, void, undefined> {
  const splitter = new LineSplitter({ maxBytes })
  for await (const chunk of chunks) {
    for (const line of splitter.push(chunk)) {
      if (!(line instanceof Uint8Array)) throw tooLong(maxBytes)
      if (line.byteLength > 0) yield fromUtf8(line)
    }
    if (splitter.openBytes > maxBytes) throw tooLong(maxBytes)
  }
}

function tooLong(maxBytes: number): NodeError {
  return new NodeError('PAYLOAD_TOO_LARGE', `the node sent a line of more than ${maxBytes} bytes`, { next: ['a2a-node status'] })
}
