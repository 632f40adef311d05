import { NodeError } from '../kit/errors.js'

/** Reads all of standard input as UTF-8. @throws NodeError USAGE beyond `maxBytes`. */
export async function readStdin(maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBytes) throw new NodeError('USAGE', `standard input is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
