import { NodeError } from '../kit/errors.js'
import { utf8Text } from './utf8-text.js'

/**
 * Reads standard input to its end as UTF-8; `again` is this command line.
 * @throws NodeError USAGE beyond `maxBytes`, and for invalid UTF-8
 */
export async function readStdin(maxBytes: number, again: string | null = null): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBytes) throw new NodeError('USAGE', `standard input is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return utf8Text(Buffer.concat(chunks), { name: 'standard input', again })
}
