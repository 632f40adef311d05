import type { Readable, Writable } from 'node:stream'
import { LineSplitter, type LongLine } from '../../kit/lines.js'
import type { RpcMessage } from '../../kit/mcp/rpc-message.js'

const EDGE_BYTES = 512
const NEWLINE = Buffer.from('\n')

/** Calls back with each line of a stream, without its newline; its bytes are valid until the next one. */
export function readLines(from: Readable, maxBytes: number, take: (line: Uint8Array | LongLine) => void): void {
  const splitter = new LineSplitter({ maxBytes, edgeBytes: EDGE_BYTES })
  from.on('data', (chunk: Buffer) => {
    for (const line of splitter.push(chunk)) take(line)
  })
}

/** Writes a line. While the sink is full, nothing more is read from the source. */
export function writeLine(sink: Writable, line: Buffer, source: Readable | null): void {
  if (sink.destroyed || sink.writableEnded) return
  if (sink.write(line) || source === null || source.isPaused()) return
  source.pause()
  const resume = (): void => {
    sink.off('drain', resume).off('close', resume)
    source.resume()
  }
  sink.on('drain', resume).on('close', resume)
}

/** A line as it came, as a copy with its newline. */
export function wholeLine(line: Uint8Array): Buffer {
  return Buffer.concat([line, NEWLINE])
}

/** A line longer than a limit, of which only the edges are known: with spaces between them. */
export function longLine({ head, tail }: LongLine, bytes: number): Buffer {
  return Buffer.concat([head, Buffer.alloc(bytes, ' '), tail, NEWLINE])
}

/** A message as a line. */
export function lineOf(message: RpcMessage): Buffer {
  return Buffer.from(`${JSON.stringify(message)}\n`)
}
