import { NodeError } from '../../kit/errors.js'
import { fromUtf8 } from '../../kit/ids.js'
import { LineSplitter } from '../../kit/lines.js'

/**
 * Longest line of a watch, and longest answer to a call, in bytes: all results of swarms that a node keeps (128 MiB)
 * fit, also as base64.
 */
export const LINE_MAX_BYTES = 268_435_456

/**
 * The lines of an answer, without empty ones (keep-alive) and without a last one that has no end.
 * @throws NodeError PAYLOAD_TOO_LARGE for a longer line
 */
export async function* answerLines(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes = LINE_MAX_BYTES
): AsyncGenerator<string, void, undefined> {
  const splitter = new LineSplitter({ maxBytes })
  for await (const chunk of chunks) {
    for (const line of splitter.push(chunk)) {
      if (!(line instanceof Uint8Array)) throw tooLong(maxBytes)
      if (line.byteLength > 0) yield fromUtf8(line)
    }
    if (splitter.openBytes > maxBytes) throw tooLong(maxBytes)
  }
}

/** A whole answer. @throws NodeError PAYLOAD_TOO_LARGE for a longer one */
export async function answerText(chunks: AsyncIterable<Uint8Array>, maxBytes = LINE_MAX_BYTES): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw tooLong(maxBytes, 'an answer')
    parts.push(chunk)
  }
  return fromUtf8(Buffer.concat(parts))
}

function tooLong(maxBytes: number, what = 'a line'): NodeError {
  return new NodeError('PAYLOAD_TOO_LARGE', `the node sent ${what} of more than ${maxBytes} bytes`, {
    next: ['a2a-node status']
  })
}
